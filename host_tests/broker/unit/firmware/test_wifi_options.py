"""The Wi-Fi options of network.json: each port sets them in its own way, and an unknown option
stops nothing."""

from board_case import AIR, ESP32, RP2
from network_case import HOME, NetworkCase


class TestWifiOptions(NetworkCase):
    def up(self, port, config=None, **facts):
        self.join(port, HOME | (config or {}), **facts)
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

    def test_power_saving_that_cannot_be_switched_off_is_tried_once(self):
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

    def test_a_fixed_address_needs_no_dhcp(self):
        mine = ["192.168.1.10", "255.255.255.0", "192.168.1.1", "192.168.1.2"]
        for port in (RP2, ESP32):
            self.start(port, HOME | {"address": mine})
            AIR.points["home"] = "secret"
            AIR.dhcp_ms = 10**9
            self.link.start(0)
            self.run_for(2)
            self.assertEqual(self.log, ["wifi home: up, 192.168.1.10"])
            self.assertEqual(self.link.resolver(), "192.168.1.2")

    def test_an_invalid_address_is_logged(self):
        for port in (RP2, ESP32):
            self.up(port, {"address": ["home", "", "", ""]})
            self.assertEqual(len(self.log), 1)
            self.assertTrue(self.log[0].startswith("wifi home: error "), self.log)

    def test_a_cyw43_has_its_country_from_the_start(self):
        self.up(RP2, {"country": "DE"})
        self.assertEqual(self.network.radio_country, "DE")
        self.up(ESP32, {"country": "DE"})  # which has no use for it
        self.assertTrue(self.link.up)

    def test_a_cyw43_needs_the_option_for_wpa3_and_an_esp32_does_not(self):
        for security in ("wpa3", "wpa2_wpa3", ""):
            self.start(RP2, HOME | {"security": security})
            AIR.points["home"] = "secret"
            AIR.wpa3.append("home")
            self.link.start(0)
            self.run_for(2)
            self.assertEqual(self.link.up, bool(security), self.log)
        for port, security in ((ESP32, "wpa3"), (RP2, "wpa9")):
            self.up(port, {"security": security})  # what it does not know is left out
            if port is ESP32:
                self.assertTrue(self.link.up)

    def test_an_esp32_without_memory_for_wifi_logs_it_and_tries_again(self):
        for version in ((1, 25), (1, 26)):
            idf = ESP32.Idf(60000)
            self.start(ESP32, version=version, idf=idf)
            AIR.points["home"] = "secret"
            taken = idf.largest()
            self.assertTrue(idf.take(taken))
            self.link.start(0)
            self.run_for(5)
            self.assertTrue("error W" in self.log[0], self.log)
            idf.give(taken)
            self.run_for(32)
            self.assertTrue(self.link.up)
