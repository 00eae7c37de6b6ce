# board_case.py - a board's modules `network` and `machine` as they behave, for the firmware's
# tests: access points that are missing, passwords that are wrong, DHCP that takes its time,
# links that are lost. An rp2 and an esp32 number their states differently; an esp32 refuses
# connect() while it is still trying, and config() of an access point that is not active, which
# IDF does not promise to take; an rp2 has no max_clients; and their timers have other numbers.
import sys

sys.path.append(__file__.rsplit("/", 1)[0] + "/../../firmware")

RP2 = {
    "STAT_IDLE": 0,
    "STAT_CONNECTING": 1,
    "STAT_WRONG_PASSWORD": -3,
    "STAT_NO_AP_FOUND": -2,
    "STAT_CONNECT_FAIL": -1,
    "STAT_GOT_IP": 3,
}
ESP32 = {
    "STAT_IDLE": 1000,
    "STAT_CONNECTING": 1001,
    "STAT_GOT_IP": 1010,
    "STAT_NO_AP_FOUND": 201,
    "STAT_WRONG_PASSWORD": 202,
    "STAT_ASSOC_FAIL": 203,
    "STAT_HANDSHAKE_TIMEOUT": 204,
}


_TIMERS = 2  # of an ESP32-C3; others have four


class Air:
    """What is around the board."""

    def __init__(self):
        self.now = 0
        self.points = {}  # ssid: password
        self.dhcp_ms = 500
        self.attempts = 0
        self.cable = True


AIR = Air()


class WLAN:
    SEC_OPEN, SEC_WPA_WPA2 = 0, 4
    port = RP2

    def __init__(self, which):
        self.which = which
        self.is_active = False
        self.settings = {}
        self.names = []  # under which it was there, as an access point
        self.address = "0.0.0.0"
        self._ssid = None
        self._since = 0

    def active(self, on=None):
        if on is None:
            return self.is_active
        self.is_active = on
        if on:
            self.names.append(self.settings.get("ssid"))
        return None

    def config(self, **settings):
        if self.port is ESP32 and not self.is_active:
            raise OSError("Wifi Invalid Mode")
        if self.port is RP2 and "max_clients" in settings:
            raise ValueError("unknown config param")
        self.settings.update(settings)
        if self.is_active:
            self.names.append(self.settings.get("ssid"))

    def ifconfig(self, given=None):
        if given:
            self.address = given[0]
        return (self.address, "255.255.255.0", "0.0.0.0", "0.0.0.0")

    def connect(self, ssid, password):
        assert self.is_active
        if self._ssid is not None and self.port is ESP32:
            raise OSError("Wifi Internal State Error")
        AIR.attempts += 1
        self._ssid = ssid
        self._password = password
        self._since = AIR.now

    def disconnect(self):
        if self._ssid is None and self.port is ESP32:
            raise OSError("Wifi Not Started")
        self._ssid = None

    def status(self):
        port = self.port
        if self._ssid is None:
            return port["STAT_IDLE"]
        if self._ssid not in AIR.points:
            return port["STAT_NO_AP_FOUND"]
        if AIR.points[self._ssid] != self._password:
            return port["STAT_WRONG_PASSWORD"]
        if AIR.now - self._since < AIR.dhcp_ms:
            return port["STAT_CONNECTING"]
        self.address = "192.168.1.7"
        return port["STAT_GOT_IP"]

    def isconnected(self):
        return self.status() == self.port["STAT_GOT_IP"]


class WIZNET5K:
    """With lwIP: the first active(True) starts DHCP, which goes on by itself."""

    def __init__(self, spi, cs, reset):
        self.wired = spi, cs, reset
        self.since = None

    def active(self, on):
        assert on
        if self.since is None:
            AIR.attempts += 1
            self.since = AIR.now

    def isconnected(self):
        return AIR.cable and self.since is not None and AIR.now - self.since >= AIR.dhcp_ms

    def ifconfig(self):
        return ("192.168.1.8", "255.255.255.0", "192.168.1.1", "192.168.1.1")


class Network:
    STA_IF, AP_IF = 0, 1
    WLAN = WLAN
    WIZNET5K = WIZNET5K
    name = None

    def hostname(self, name):
        self.name = name


class Machine:
    """Records what becomes of watchdog, pins and memory."""

    def __init__(self):
        self.mem32 = {0x40058000: 1 << 30 | 5}
        self.fed = 0
        self.dogs = []
        self.lit = []

    def WDT(self, timeout):  # noqa: N802
        self.dogs.append(timeout)
        return self

    def feed(self):
        self.fed += 1

    def Timer(self, number):  # noqa: N802
        if (number != -1) if WLAN.port is RP2 else not 0 <= number < _TIMERS:
            raise ValueError("invalid Timer number")
        return self

    def init(self, freq, callback):
        for _ in range(freq):
            callback(self)


class Pin:
    OUT = 1
    changes = []  # noqa: RUF012 - of all pins

    def __init__(self, name, _mode=None):
        self.name = name
        if name == "none":
            raise ValueError("unknown named Pin")
        self.on = 0

    def value(self, on=None):
        if on is None:
            return self.on
        self.on = 1 if on else 0
        Pin.changes.append(self.on)
        return None


class SPI:
    def __init__(self, number, baudrate, mosi, miso, sck):
        self.number, self.baudrate = number, baudrate
        self.pins = mosi.name, miso.name, sck.name


Machine.Pin, Machine.SPI = Pin, SPI


def use(port):
    """The modules of the firmware on such a port: links, watch, and the fakes."""
    for name in list(sys.modules):
        if name.startswith("slotmq_run"):
            del sys.modules[name]
    AIR.__init__()
    Pin.changes.clear()
    network, machine = Network(), Machine()
    for name in port:
        setattr(network, name, port[name])
    WLAN.port = port
    kept = {name: sys.modules.get(name) for name in ("network", "machine")}
    sys.modules["network"], sys.modules["machine"] = network, machine
    try:
        from slotmq_run import links, watch
    finally:
        for name in kept:
            if kept[name]:
                sys.modules[name] = kept[name]
            else:
                del sys.modules[name]
    return links, watch, network, machine
