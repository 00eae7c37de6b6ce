"""An application's interrupt handlers may not allocate while a turn waits for events. They leave
that to the code between two turns, as docs/embed.md shows; its example runs here.

micropython.schedule calls within ipoll, where the heap is locked, as Pin.irq and Timer do. On
CPython there is no lock, and only the example is tried."""

import sys
import unittest

import packets
from fakes import World

from slotmq import Broker, Settings

MICROPYTHON = sys.implementation.name == "micropython"
# That of docs/embed.md
EXAMPLE = """\
def start(broker):
    ring = bytearray(16)
    count = bytearray(2)  # written by the handler, read by step

    def pressed(pin):
        ring[count[0] & 15] = pin.value()
        count[0] = (count[0] + 1) & 255

    def step():
        while count[1] != count[0]:
            broker.publish("button", b"%d" % ring[count[1] & 15])
            count[1] = (count[1] + 1) & 255

    Pin(15, Pin.IN).irq(pressed)
    return step
"""


class Pin:
    IN = 0

    def __init__(self, number, mode):
        pass

    def irq(self, handler):
        Pin.handler = handler

    def value(self):
        return 1


class TestInterrupts(unittest.TestCase):
    def setUp(self):
        self.world = World(Broker(settings=Settings(sys_interval=0)))
        self.broker = self.world.broker
        self.client = self.world.client("c")
        self.client.send(packets.subscribe(1, "button", 0))
        self.world.turn(2)
        self.client.packets()

    def interrupt(self, handler, pin):
        """A turn that calls the handler while it waits for events."""
        loop = self.world.loop
        ipoll = loop.at_hand[3]
        if MICROPYTHON:
            from micropython import schedule

            def wait(timeout_ms):
                schedule(handler, pin)
                for _ in range(3):  # the port looks for what is scheduled between bytecodes
                    pass
                return ipoll(timeout_ms)
        else:

            def wait(timeout_ms):
                handler(pin)
                return ipoll(timeout_ms)

        loop.at_hand[3] = wait
        try:
            self.world.turn()
        finally:
            loop.at_hand[3] = ipoll

    def test_a_handler_that_allocates_is_ended(self):
        if not MICROPYTHON:
            return
        done = [0, 0]

        def handler(_):
            done[0] = 1
            done[1] = [0] * 20

        self.interrupt(handler, Pin(15, Pin.IN))
        self.assertEqual(done, [1, 0])
        self.assertEqual(self.broker.loop.exhausted, 0)  # it is printed, and the turn goes on
        self.assertEqual(len(self.client.packets()), 0)

    def test_the_example_is_that_of_the_documentation(self):
        page = __file__.rsplit("/", 5)[0] + "/docs/embed.md"
        with open(page) as file:  # noqa: PTH123
            self.assertIn(EXAMPLE, file.read())

    def test_the_documented_handler_publishes_each_interrupt(self):
        made = {"Pin": Pin}
        exec(EXAMPLE, made)
        step = made["start"](self.broker)
        for _ in range(300):  # more than the ring, and than a byte, holds
            self.interrupt(Pin.handler, Pin(15, Pin.IN))
            step()
            self.world.turn()
            self.assertEqual(len(self.client.packets()), 1)

    def test_several_between_two_steps_are_published_once_each(self):
        made = {"Pin": Pin}
        exec(EXAMPLE, made)
        step = made["start"](self.broker)
        for _ in range(16):
            self.interrupt(Pin.handler, Pin(15, Pin.IN))
        step()
        step()
        self.world.turn(2)
        self.assertEqual(len(self.client.packets()), 16)
