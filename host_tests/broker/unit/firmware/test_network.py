"""The firmware's network: it comes up, logs why it does not, and retries for ever."""

import sys

from board_case import AIR, ESP32, RP2, W5500
from network_case import NetworkCase

WIFI = (RP2, ESP32)


class TestStation(NetworkCase):
    def test_it_comes_up(self):
        for port in WIFI:
            self.join(port)
            self.run_for(2)
            self.assertEqual(self.log, ["wifi home: up, 192.168.1.7"])

    def test_it_waits_for_slow_dhcp(self):
        for port in WIFI:
            self.start(port)
            AIR.points["home"] = "secret"
            AIR.dhcp_ms = 15000
            self.link.start(0)
            self.run_for(16)
            self.assertTrue(self.link.up)
            self.assertEqual(AIR.attempts, 1)

    def test_without_dhcp_it_tries_again(self):
        for port in WIFI:
            self.start(port)
            AIR.points["home"] = "secret"
            AIR.dhcp_ms = 10**9
            self.link.start(0)
            self.run_for(60)
            self.assertEqual(self.log, ["wifi home: no answer; it is tried again"])
            self.assertTrue(2 <= AIR.attempts <= 4)
            AIR.dhcp_ms = 100
            self.run_for(60)
            self.assertTrue(self.link.up)

    def test_without_an_access_point_it_logs_once_and_tries_for_ever(self):
        for port in WIFI:
            self.start(port)
            self.link.start(0)
            self.run_for(600)
            self.assertEqual(self.log, ["wifi home: no such access point; it is tried again"])
            self.assertTrue(18 <= AIR.attempts <= 30, AIR.attempts)
            AIR.points["home"] = "secret"
            self.run_for(32)
            self.assertTrue(self.link.up)

    def test_a_wrong_password_is_logged_without_the_password(self):
        for port in WIFI:
            self.join(port, password="another")
            self.run_for(60)
            self.assertEqual(self.log, ["wifi home: wrong password; it is tried again"])

    def test_a_lost_link_comes_up_again(self):
        for port in WIFI:
            self.join(port)
            self.run_for(2)
            del AIR.points["home"]
            self.run_for(100)
            self.assertFalse(self.link.up)
            AIR.points["home"] = "secret"
            self.run_for(32)
            self.assertEqual(self.log[1], "wifi home: lost; it is tried again")
            self.assertEqual(self.log[-1], "wifi home: up, 192.168.1.7")
            # and once it is up, the next loss is answered as quickly as the first
            del AIR.points["home"]
            self.run_for(1)
            AIR.points["home"] = "secret"
            self.run_for(3)
            self.assertTrue(self.link.up)

    def test_after_an_error_of_the_driver_it_tries_again(self):
        for port in WIFI:
            self.start(port)
            AIR.points["home"] = "secret"
            works = self.link.nic.connect

            def fails(*_):
                raise OSError(5)

            self.link.nic.connect = fails
            self.link.start(0)
            self.run_for(5)
            self.assertEqual(len(self.log), 1)
            self.assertTrue(self.log[0].startswith("wifi home: error "), self.log)
            self.assertTrue(self.log[0].endswith("; it is tried again"))
            self.link.nic.connect = works
            self.run_for(32)
            self.assertTrue(self.link.up)

    def test_the_same_error_is_logged_once(self):
        for port in WIFI:
            self.start(port)
            AIR.points["home"] = "secret"
            numbers = [5] * 4 + [12] * 100

            def fails(*_, numbers=numbers):
                raise OSError(numbers.pop(0))

            self.link.nic.connect = fails
            self.link.start(0)
            self.run_for(600)
            self.assertEqual(len(self.log), 2, self.log)
            self.assertTrue(len(numbers) < 90)


class TestEthernet(NetworkCase):
    def wired(self, port=W5500, **config):
        self.start(port, {"link": "host"})
        kept = sys.modules.get("machine")
        sys.modules["machine"] = self.machine  # network_link.py takes its SPI when it is asked for
        try:
            self.link = self.network_link.make({"link": "ethernet"} | config)
        finally:
            del sys.modules["machine"]
            if kept:
                sys.modules["machine"] = kept

    def test_it_comes_up_when_dhcp_has_answered(self):
        self.wired()
        AIR.dhcp_ms = 3000
        self.link.start(0)
        self.run_for(2)
        self.assertEqual(self.log, [])
        self.run_for(2)
        self.assertEqual(self.log, ["ethernet: up, 192.168.1.8"])
        self.assertEqual(self.link.resolver(), "192.168.1.1")

    def test_after_the_cable_is_plugged_in_again_it_comes_up(self):
        self.wired()
        self.link.start(0)
        self.run_for(2)
        AIR.cable = False
        self.run_for(120)
        self.assertEqual(self.log[1], "ethernet: lost; it is tried again")
        AIR.cable = True
        self.run_for(1)
        self.assertEqual(self.log[-1], "ethernet: up, 192.168.1.8")
        self.assertEqual(AIR.attempts, 1)  # the driver is not set up anew

    def test_without_a_cable_it_logs_once(self):
        self.wired()
        AIR.cable = False
        self.link.start(0)
        self.run_for(300)
        self.assertEqual(self.log, ["ethernet: no answer; it is tried again"])

    def test_its_pins_are_the_boards_or_those_of_network_json(self):
        self.wired()
        spi, cs, reset = self.link.nic.wired
        self.assertEqual((spi.number, spi.pins, cs.name, reset.name), (0, (19, 16, 18), 17, 20))
        pins = {"mosi": 11, "miso": 12, "sck": 10, "cs": 13, "reset": 15}
        self.wired(spi=1, pins=pins, baudrate=10**7)
        spi, cs, reset = self.link.nic.wired
        self.assertEqual((spi.number, spi.pins, cs.name, reset.name), (1, (11, 12, 10), 13, 15))
        self.assertEqual(spi.baudrate, 10**7)

    def test_its_interrupt_pin_is_the_boards_unless_other_pins_are_given(self):
        self.wired()
        self.assertEqual(self.link.nic.intn.name, 21)
        self.link.start(0)
        self.assertEqual(self.link.nic.late_ms, 0)
        for config, pin in (
            ({"int_pin": 5}, 5),
            ({"int_pin": None}, None),
            ({"pins": {"cs": 13}}, None),
            ({"pins": {"cs": 13}, "int_pin": 4}, 4),
        ):
            self.wired(**config)
            self.link.start(0)
            found = self.link.nic.intn
            self.assertEqual(found and found.name, pin)
            self.assertEqual(self.link.nic.late_ms, 64 if pin is None else 0)

    def test_a_fixed_address_needs_no_dhcp(self):
        self.wired(address=["192.168.1.10", "255.255.255.0", "192.168.1.1", "192.168.1.1"])
        AIR.dhcp_ms = 10**9
        self.link.start(0)
        self.run_for(1)
        self.assertEqual(self.log, ["ethernet: up, 192.168.1.10"])

    def test_it_has_its_hostname(self):
        self.wired(hostname="shed")
        self.assertEqual(self.network.hostname(), "shed")

    def test_a_firmware_without_its_driver_is_refused(self):
        with self.assertRaises(ValueError) as refused:
            self.wired(RP2)
        self.assertTrue("has no network.WIZNET5K" in str(refused.exception))


class TestAccessPoint(NetworkCase):
    CONFIG = {"link": "access_point", "ssid": "mine", "password": "long enough"}  # noqa: RUF012

    def begin(self, port):
        self.start(port, self.CONFIG | {"hostname": "broker"})
        self.link.start(0)
        self.run_for(1)
        self.assertEqual(self.log, ["access point mine: up, 192.168.4.1"])
        self.assertEqual(self.link.nic.settings["security"], self.network.WLAN.SEC_WPA_WPA2)
        self.assertEqual(self.link.nic.settings["key"], "long enough")
        self.assertEqual(self.network.hostname(), "broker")

    def test_a_cyw43_has_its_name_from_the_start(self):
        self.begin(RP2)
        self.assertEqual(self.link.nic.names, ["mine"])

    def test_an_esp32_allows_ten_clients(self):
        self.begin(ESP32)
        self.assertEqual(self.link.nic.settings["max_clients"], 10)
        self.assertEqual(self.link.nic.names[-1], "mine")

    def test_after_an_error_of_the_driver_it_is_off_and_tries_again(self):
        for port in WIFI:
            self.start(port, self.CONFIG)
            works = self.link.nic.config

            def fails(**_):
                raise OSError(5)

            self.link.nic.config = fails
            self.link.start(0)
            self.run_for(600)
            self.assertEqual(len(self.log), 1, self.log)
            self.assertTrue(self.log[0].startswith("access point mine: error "))
            self.assertFalse(self.link.up or self.link.nic.is_active)
            self.link.nic.config = works
            self.run_for(32)
            self.assertEqual(self.log[1:], ["access point mine: up, 192.168.4.1"])


class TestOthers(NetworkCase):
    def test_an_open_access_point(self):
        for port in WIFI:
            self.start(port, {"link": "access_point", "ssid": "mine"})
            self.link.start(0)
            self.run_for(1)
            settings = self.link.nic.settings
            self.assertEqual((settings["ssid"], settings["security"]), ("mine", 0))

    def test_a_wrong_configuration_is_refused_with_the_reason(self):
        self.start(RP2)
        for config, reason in (
            ({"link": "access_point", "ssid": "x", "password": "short"}, "at least 8"),
            ({"link": "token ring"}, "expected station"),
        ):
            with self.assertRaises(ValueError) as refused:
                self.network_link.make(config)
            self.assertTrue(reason in str(refused.exception))
        with self.assertRaises(KeyError):
            self.network_link.make({"link": "station"})

    def test_a_computer_is_always_connected(self):
        self.start(RP2)
        link = self.network_link.make({"link": "host"})
        link.start(0)
        self.assertTrue(link.up and not link.step(0))
