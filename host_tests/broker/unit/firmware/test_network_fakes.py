"""The fakes of `network` refuse what their ports refuse, with the ports' errors."""

import unittest

from board_case import AIR, ESP32, RP2, W5500


def refused(kind, function, *args, **named):
    try:
        function(*args, **named)
    except kind as error:
        return str(error)
    raise AssertionError("it was taken")


class TestFakes(unittest.TestCase):
    def setUp(self):
        AIR.__init__()

    def test_each_port_accepts_its_own_options_only(self):
        for port in (RP2, ESP32):
            wlan = port.Network().WLAN(0)
            wlan.active(True)
            for name in ("pm", "channel", "mac", "hostname", "txpower"):
                wlan.config(name)
            for named in ({"power": 1}, {"pm": 0, "country": "DE"}):
                self.assertEqual(refused(ValueError, wlan.config, **named), "unknown config param")
            self.assertEqual(refused(ValueError, wlan.config, "country"), "unknown config param")
            refused(TypeError, wlan.config, "pm", pm=0)
        nic = W5500.Network().WIZNET5K()
        self.assertEqual(refused(ValueError, nic.config, pm=0), "unknown config param")
        self.assertEqual(refused(ValueError, nic.status, "rssi"), "unknown status param")

    def test_a_cyw43_accepts_security_and_not_max_clients(self):
        wlan = RP2.Network().WLAN(0)
        self.assertTrue("1" in refused(OSError, wlan.connect, "home", "x"))  # EPERM
        wlan.active(True)
        wlan.connect("home", "secret", security=wlan.SEC_WPA3)
        refused(ValueError, RP2.WLAN(1).config, max_clients=4)

    def test_activating_a_cyw43_resets_power_saving(self):
        network = RP2.Network()
        wlan = network.WLAN(0)
        wlan.config(pm=wlan.PM_NONE)
        wlan.active(True)
        self.assertEqual(wlan.config("pm"), wlan.PM_PERFORMANCE)

    def test_an_address_set_before_activation_is_lost(self):
        given = ("10.0.0.2", "255.0.0.0", "10.0.0.1", "10.0.0.1")
        for nic in (RP2.Network().WLAN(0), W5500.Network().WIZNET5K()):
            nic.ifconfig(given)
            nic.active(True)
            self.assertEqual(nic.ifconfig()[0], "0.0.0.0")
            nic.ifconfig(given)
            self.assertEqual(nic.ifconfig(), given)

    def test_an_esp32_refuses_security_and_an_inactive_interface(self):
        wlan = ESP32.Network().WLAN(0)
        self.assertEqual(refused(OSError, wlan.connect, "home", "x"), "Wifi Not Started")
        self.assertEqual(refused(OSError, wlan.disconnect), "Wifi Not Started")
        self.assertEqual(refused(OSError, wlan.config, pm=0), "Wifi Invalid Mode")
        wlan.active(True)
        refused(TypeError, wlan.connect, "home", "x", security=3)
        refused(TypeError, wlan.connect, ssid="home", security=3)
        self.assertEqual(refused(OSError, wlan.config, max_clients=4), "AP required")
        AIR.points["home"] = "x"
        wlan.connect("home", "x")
        self.assertEqual(refused(OSError, wlan.connect, "home", "x"), "Wifi Internal State Error")
        self.assertEqual(refused(OSError, wlan.config, pm=0), "Wifi Internal State Error")

    def test_each_port_refuses_invalid_countries_and_host_names(self):
        for port in (RP2, ESP32, W5500):
            network = port.Network()
            refused(ValueError, network.country, "DEU")
            refused(ValueError, network.hostname, "x" * 33)
            network.hostname("shed")
            self.assertEqual((network.hostname(), network.country()), ("shed", "XX"))
