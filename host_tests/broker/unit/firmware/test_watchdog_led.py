"""The firmware's watchdog and LED."""

import unittest

from board_case import ESP32, RP2, Pin, use


class TestWatchdogLed(unittest.TestCase):
    def start(self, port):
        _, self.watch, _, self.machine = use(port)

    def test_the_watchdog_of_an_rp2_can_be_stopped(self):
        self.start(RP2)
        dog = self.watch.Dog(8000)
        dog.feed()
        self.assertEqual(self.machine.fed, 0)
        self.watch._chip = lambda: "Raspberry Pi Pico W with RP2040"
        dog.start()
        dog.feed()
        dog.release()
        self.assertEqual(self.machine.dogs, [8000])
        self.assertEqual(self.machine.mem32, {0x40058000: 5})

    def test_the_watchdog_of_an_esp32_gets_a_longer_timeout(self):
        self.start(ESP32)
        self.watch._chip = lambda: "Generic ESP32 module with ESP32"
        dog = self.watch.Dog(8000)
        dog.start()
        dog.release()
        self.assertEqual(self.machine.dogs, [8000, 0x7FFFFFF])

    def test_the_led_blinks_while_joining_and_is_on_when_up(self):
        self.start(RP2)
        led = self.watch.Led("LED")
        led.show(self.watch.JOINING)
        for now in range(0, 2000, 100):
            led.step(now)
        led.show(self.watch.UP)
        led.step(2500)
        led.show(self.watch.OFF)
        self.assertEqual(Pin.changes, [0, 1, 0, 1, 0])  # the fourth blink went on as UP

    def test_the_alarm_blinks_five_times_a_second(self):
        self.start(RP2)
        led = self.watch.Led("LED")
        led.show(self.watch.ALARM)
        for now in range(0, 1000, 50):
            led.step(now)
        self.assertEqual(Pin.changes, [0, 1] * 5)

    def test_a_board_without_that_led(self):
        self.start(RP2)
        led = self.watch.Led("none")
        led.show(self.watch.UP)
        self.assertEqual(Pin.changes, [])
