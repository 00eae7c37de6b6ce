"""The Wi-Fi options of network.json: each port sets them in its own way, and an unknown option
stops nothing."""

import unittest

from board_case import AIR, ESP32, RP2, use

HOME = {"link": "station", "ssid": "home", "password": "secret"}


class TestWifiOptions(unittest.TestCase):
    def start(self, port, config=HOME, **facts):
        self.links, _, self.network, _ = use(port, **facts)
        self.link = self.links.make(config)
        self.told = []

    def run_for(self, seconds):
        for _ in range(seconds * 5):
            AIR.now += 200
            if self.link.step(AIR.now):
                self.told.append(self.link.told())

    def up(self, port, config=None, **facts):
        self.start(port, HOME | (config or {}), **facts)
        AIR.points["home"] = "secret"
        self.link.start(0)
        self.run_for(2)

    def test_power_saving_is_off_unless_it_is_asked_for(self):
        for port in (RP2, ESP32):
            wlan = port.WLAN
            self.up(port)
            self.assertEqual(self.network.pm, wlan.PM_NONE)
            self.up(port, {"power_saving": True})
            self.assertEqual(self.network.pm, wlan.PM_PERFORMANCE)
            self.start(port, {"link": "access_point", "ssid": "mine"})
            self.link.start(0)
            self.assertEqual(self.network.pm, wlan.PM_NONE)

    def test_power_saving_that_the_port_does_not_let_go_is_told_once(self):
        self.start(ESP32)
        AIR.points["home"] = "secret"
        tried = []

        def config(**settings):
            tried.append(settings)
            raise RuntimeError("Wifi Unknown Error 0x0102")

        self.link.nic.config = config
        self.link.start(0)
        self.run_for(2)
        self.link.start(AIR.now)
        self.assertEqual(len(tried), 1)
        self.assertTrue(self.link.up)

    def test_a_fixed_address_asks_no_dhcp(self):
        mine = ["192.168.1.10", "255.255.255.0", "192.168.1.1", "192.168.1.2"]
        for port in (RP2, ESP32):
            self.start(port, HOME | {"address": mine})
            AIR.points["home"] = "secret"
            AIR.dhcp_ms = 10**9
            self.link.start(0)
            self.run_for(2)
            self.assertEqual(self.told, ["wifi home: up, 192.168.1.10"])
            self.assertEqual(self.link.resolver(), "192.168.1.2")

    def test_an_address_that_is_none_is_told_and_stops_nobody(self):
        for port in (RP2, ESP32):
            self.up(port, {"address": ["home", "", "", ""]})
            self.assertEqual(len(self.told), 1)
            self.assertTrue(self.told[0].startswith("wifi home: error "), self.told)

    def test_a_cyw43_begins_in_its_country(self):
        self.up(RP2, {"country": "DE"})
        self.assertEqual(self.network.radio_country, "DE")
        self.up(ESP32, {"country": "DE"})  # which has no use for it
        self.assertTrue(self.link.up)

    def test_wpa3_is_asked_for_on_a_cyw43_and_an_esp32_takes_it_by_itself(self):
        for security in ("wpa3", "wpa2_wpa3", ""):
            self.start(RP2, HOME | {"security": security})
            AIR.points["home"] = "secret"
            AIR.wpa3.append("home")
            self.link.start(0)
            self.run_for(2)
            self.assertEqual(self.link.up, bool(security), self.told)
        for port, security in ((ESP32, "wpa3"), (RP2, "wpa9")):
            self.up(port, {"security": security})  # what it does not know is left out
            if port is ESP32:
                self.assertTrue(self.link.up)

    def test_an_esp32_without_memory_for_wifi_says_so_and_tries_again(self):
        for version in ((1, 25), (1, 26)):
            idf = ESP32.Idf(60000)
            self.start(ESP32, version=version, idf=idf)
            AIR.points["home"] = "secret"
            taken = idf.largest()
            self.assertTrue(idf.take(taken))
            self.link.start(0)
            self.run_for(5)
            self.assertTrue("error W" in self.told[0], self.told)
            idf.give(taken)
            self.run_for(32)
            self.assertTrue(self.link.up)
