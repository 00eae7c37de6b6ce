# network_cyw43.py - `network` of the rp2 port with a CYW43. Written from extmod/network_cyw43.c of
# MicroPython 1.25 and 1.26, and cyw43_ctrl.c and cyw43_lwip.c of the driver.
#
# Unlike on a board, each connect() is one attempt, and an access point that accepts WPA3 only
# refuses WPA2 with CYW43_LINK_FAIL.
import network_base
from network_base import AIR

_DOWN, _JOIN, _NOIP, _UP, _FAIL, _NONET, _BADAUTH = 0, 1, 2, 3, -1, -2, -3
_NO_ADDRESS = ("0.0.0.0", "255.255.255.0", "192.168.0.1", "8.8.8.8")  # CYW43_DEFAULT_IP_*
_OF_DHCP = ("192.168.1.7", "255.255.255.0", "192.168.1.1", "192.168.1.1")
_OF_AP = ("192.168.4.1", "255.255.255.0", "192.168.4.1", "8.8.8.8")
_GET = ["antenna", "channel", "ssid", "essid", "security", "mac", "pm", "txpower", "hostname"]
_SET = [name for name in _GET if name != "mac"] + ["monitor", "key", "password", "trace"]
_CYCLES = ["channel", "ssid", "essid", "security", "key", "password"]


class WLAN(network_base.Interface):
    SEC_OPEN, SEC_WPA_WPA2, SEC_WPA3, SEC_WPA2_WPA3 = 0, 0x400006, 0x1000004, 0x1400004
    PM_NONE, PM_PERFORMANCE, PM_POWERSAVE = 0x10, 0xA11142, 0x11

    def begin(self, which):
        super().begin(which)
        # rp2/main.c: a name and a password that are public
        self.settings = {"ssid": "PICO1234", "key": "picoW123", "security": 0x400004}
        self.addresses = None  # before cyw43_cb_tcpip_init()

    def active(self, on=None):
        if on is None:
            return self.is_active
        if on:
            self._up()
        elif self.which == self.IF_STA and self.module.version >= (1, 26):
            self.disconnect()
        self.is_active = bool(on)
        return None

    def _up(self):
        chip = self.module
        if not chip.is_up:  # cyw43_wifi_set_up(): the first interface powers up the radio
            chip.is_up = True
            chip.radio_country = chip.country()
            chip.pm = self.PM_PERFORMANCE
        if self.which == self.IF_AP:
            self.names.append(self.settings["ssid"])
        if self.addresses is None:  # only once: nothing clears itf_state
            self.addresses = _NO_ADDRESS if self.which == self.IF_STA else _OF_AP
            self.dhcp = self.which == self.IF_STA
            self.hostname = chip.hostname()

    def connect(self, ssid, key=None, *, auth=-1, security=-1, bssid=None, channel=None):
        if not self.is_active:
            raise OSError(1)
        AIR.attempts += 1
        if security == -1:
            security = auth
        if security == -1:
            security = self.SEC_WPA_WPA2 if key else self.SEC_OPEN
        self.wanted = ssid, key or "", security
        self.since = AIR.now

    def disconnect(self):
        self.wanted = None

    def status(self, what=None):
        if what is not None:
            if what == "rssi" and self.which != self.IF_STA:
                raise ValueError("STA required")
            if what == "stations" and self.which != self.IF_AP:
                raise ValueError("AP required")
            if what not in ("rssi", "stations"):
                raise ValueError("unknown status param")
            return -50 if what == "rssi" else [(b"\0" * 6,)] * AIR.joined
        if self.which == self.IF_AP:
            return _UP if self.is_active else _DOWN
        if self.wanted is None:
            return _DOWN
        around = AIR.look()
        ssid, key, security = self.wanted
        if ssid not in around.points:
            return _NONET
        if around.points[ssid] != key:
            return _BADAUTH
        if ssid in around.wpa3 and not security & 0x1000000:
            return _FAIL
        if self.dhcp and around.now - self.since >= around.dhcp_ms:
            self.addresses = _OF_DHCP
        return _NOIP if self.addresses[0] == "0.0.0.0" else _UP

    def isconnected(self):
        up = self.status() == _UP
        return up and (self.which == self.IF_STA or AIR.joined > 0)

    def ifconfig(self, given=None):
        if given is None:
            self.status()
            return self.addresses or ("0.0.0.0",) * 4
        if given == "dhcp":
            raise AssertionError("it would wait for up to 10 s")
        addresses = network_base.parse(given)
        if self.addresses is None:
            return None  # cyw43_cb_tcpip_init() comes later, and overwrites them
        self.dhcp = False
        self.addresses = addresses
        return None

    def config(self, *names, **settings):
        if not settings:
            if len(names) != 1:
                raise TypeError("must query one param")
            if names[0] not in _GET:
                raise ValueError("unknown config param")
            return self.module.pm if names[0] == "pm" else self.settings.get(names[0])
        if names:
            raise TypeError("can't specify pos and kw args")
        for name in settings:
            if name not in _SET:
                raise ValueError("unknown config param")
            if name == "pm":
                self.module.pm = settings["pm"]
            else:
                self.settings[name] = settings[name]
        if self.is_active and any(name in settings for name in _CYCLES):
            self.names.append(self.settings["ssid"])
        return None


class Network(network_base.Module):
    STAT_IDLE, STAT_CONNECTING, STAT_GOT_IP = _DOWN, _JOIN, _UP
    STAT_CONNECT_FAIL, STAT_NO_AP_FOUND, STAT_WRONG_PASSWORD = _FAIL, _NONET, _BADAUTH

    def __init__(self, version=(1, 25)):
        super().__init__()
        self.version = version
        self.is_up = False
        self.radio_country = None
        self.pm = None
        WLAN.module = self
        WLAN.made.clear()
        self.WLAN = WLAN
