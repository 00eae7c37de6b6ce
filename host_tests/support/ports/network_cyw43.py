# network_cyw43.py - `network` of rp2 with a CYW43: extmod/network_cyw43.c of MicroPython 1.25 and
# 1.26, cyw43_ctrl.c and cyw43_lwip.c of the driver. Both runtimes.
#
# What it does otherwise than a board: one join is one attempt, and an access point that takes
# WPA3 alone refuses WPA2 with CYW43_LINK_FAIL.
import air
from air import AIR

_DOWN, _JOIN, _NOIP, _UP, _FAIL, _NONET, _BADAUTH = 0, 1, 2, 3, -1, -2, -3
_NO_ADDRESS = ("0.0.0.0", "255.255.255.0", "192.168.0.1", "8.8.8.8")  # CYW43_DEFAULT_IP_*
_OF_DHCP = ("192.168.1.7", "255.255.255.0", "192.168.1.1", "192.168.1.1")
_OF_AP = ("192.168.4.1", "255.255.255.0", "192.168.4.1", "8.8.8.8")
_GET = ["antenna", "channel", "ssid", "essid", "security", "mac", "pm", "txpower", "hostname"]
_SET = [name for name in _GET if name != "mac"] + ["monitor", "key", "password", "trace"]
_CYCLES = ["channel", "ssid", "essid", "security", "key", "password"]


class WLAN:
    """CYW43: one object for each interface."""

    IF_STA, IF_AP = 0, 1
    SEC_OPEN, SEC_WPA_WPA2, SEC_WPA3, SEC_WPA2_WPA3 = 0, 0x400006, 0x1000004, 0x1400004
    PM_NONE, PM_PERFORMANCE, PM_POWERSAVE = 0x10, 0xA11142, 0x11
    module = None  # the Network that it is of
    made = {}  # noqa: RUF012 - interface: its object

    def __new__(cls, which=0):
        if which not in cls.made:
            cls.made[which] = object.__new__(cls)
            cls.made[which].begin(which)
        return cls.made[which]

    def begin(self, which):
        self.which = which
        self.is_active = False
        # rp2/main.c gives the access point a name and a password that everybody knows.
        self.settings = {"ssid": "PICO1234", "key": "picoW123", "security": 0x400004}
        self.names = []  # under which it was there, as an access point
        self.addresses = None  # before cyw43_cb_tcpip_init()
        self.dhcp = False
        self.wanted = None
        self.since = 0

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
        if not chip.is_up:  # cyw43_wifi_set_up(): the first interface switches the radio on
            chip.is_up = True
            chip.radio_country = chip.country()
            chip.pm = self.PM_PERFORMANCE
        if self.which == self.IF_AP:
            self.names.append(self.settings["ssid"])
        if self.addresses is None:  # once: nothing clears itf_state
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
        addresses = air.parse(given, self.addresses)
        if self.addresses is None:
            return None  # cyw43_cb_tcpip_init() is yet to come, and writes its own
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


class Network(air.Module):
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
