# links.py - ways onto a network, and how each is kept up.
#
# Every link has start(now), step(now) -> has it changed?, up, told(). step() is called
# some times a second and never waits: what fails is tried again, after a pause that
# doubles up to half a minute. The broker knows nothing of it: its listener stays, sessions
# outlive the loss, and clients come back to them.
# Constants of `network` differ from port to port, so only isconnected() is relied on;
# status() is for the text.
try:
    import network
except ImportError:
    network = None  # type: ignore[assignment]

_JOIN_MS = 20000  # how long one attempt may take, with DHCP
_PAUSE_MS = 1000
_LONGEST_PAUSE_MS = 30000
_MASK = 0x3FFFFFFF
_AP_ADDRESS = "192.168.4.1"
_PASSWORD_MIN = 8
# What status() says where it is no plain number of the way on: name, constants of ports
_WHYS = (
    ("wrong password", ("STAT_WRONG_PASSWORD",)),
    ("no such access point", ("STAT_NO_AP_FOUND",)),
    ("refused", ("STAT_CONNECT_FAIL", "STAT_ASSOC_FAIL", "STAT_HANDSHAKE_TIMEOUT")),
)


def make(config):
    """The link that network.json names; ValueError, KeyError: it cannot be used."""
    kind = config["link"]
    if kind == "host":
        return Host()
    if network is None:
        raise ValueError("link %s: this Python has no module network" % kind)
    if config.get("hostname"):
        network.hostname(config["hostname"])  # before there is an interface
    if kind == "station":
        return Station(config["ssid"], config.get("password", ""))
    if kind == "access_point":
        return AccessPoint(config["ssid"], config.get("password", ""))
    if kind == "ethernet":
        return Ethernet(config)
    if kind == "ppp":
        return Serial(config)
    raise ValueError("link: expected station, access_point, ethernet, ppp or host")


def _kind(name):
    # What not every image has
    kind = getattr(network, name, None)
    if kind is None:
        raise ValueError("this board's MicroPython has no network.%s" % name)
    return kind


class Host:
    """The network is there already."""

    up = True

    def start(self, now):
        pass

    def step(self, now):
        return False

    def told(self):
        return "network: the system's"

    def resolver(self):
        """None: the system looks names up itself."""


class Link:
    """What all links of a board have; a kind makes its nic and knows how to begin()."""

    name = ""

    def __init__(self):
        self.up = False
        self.why = ""
        self._since = 0
        self._pause = _PAUSE_MS
        self._trying = False

    def start(self, now):
        self._try(now)

    def step(self, now):
        """Look after it; True if it came up, was lost, or failed otherwise than before."""
        waited = (now - self._since) & _MASK
        was = self.up
        self.up = self._is_up()
        if self.up:
            self._pause = _PAUSE_MS
            self._trying = False
            return not was
        if was:  # lost: the port may mend it itself, for as long as an attempt takes
            self.why = "lost"
            self._since = now
            self._trying = True
            return True
        if not self._trying:
            if waited >= self._pause:
                self._pause = min(_LONGEST_PAUSE_MS, 2 * self._pause)
                self._try(now)
            return False
        why = self._failure()
        if not why and waited < _JOIN_MS:
            return False
        self._trying = False
        self._since = now
        why = why or "no answer"
        changed = why != self.why
        self.why = why
        return changed

    def told(self):
        """One line for people."""
        if self.up:
            return "%s: up, %s" % (self.name, self.interface().ifconfig()[0])
        return "%s: %s; it is tried again" % (self.name, self.why)

    def resolver(self):
        """The address of the network's DNS server."""
        return self.interface().ifconfig()[3]

    def _try(self, now):
        self._since = now
        self._trying = True
        try:
            self.begin()
        except OSError as error:
            self._trying = False
            self.why = "error %s" % error

    # A kind's own

    def begin(self):
        """Begin to connect; OSError: that failed at once."""
        raise NotImplementedError

    def interface(self):
        """Its network interface, of the port's `network`."""
        raise NotImplementedError

    def _is_up(self):
        try:
            return self.interface().isconnected()
        except OSError:
            return False

    def _failure(self):
        return ""


class Station(Link):
    """A client of an access point that is there."""

    def __init__(self, ssid, password):
        super().__init__()
        self.name = "wifi " + ssid
        self._ssid = ssid
        self._password = password
        _kind("WLAN")
        self.nic = network.WLAN(network.STA_IF)

    def interface(self):
        return self.nic

    def begin(self):
        self.nic.active(True)
        try:
            self.nic.disconnect()  # an ESP32 refuses to begin while it still tries
        except OSError:
            pass
        self.nic.connect(self._ssid, self._password)

    def _failure(self):
        status = self.nic.status()
        for why, names in _WHYS:
            for name in names:
                if status == getattr(network, name, None):
                    return why
        return ""


class AccessPoint(Link):
    """An access point of the board's own, with its own DHCP and a fixed address."""

    def __init__(self, ssid, password):
        super().__init__()
        if password and len(password) < _PASSWORD_MIN:
            raise ValueError("password: at least 8 characters, or none")
        self.name = "access point " + ssid
        self._ssid = ssid
        self._password = password
        _kind("WLAN")
        self.nic = network.WLAN(network.AP_IF)

    def interface(self):
        return self.nic

    def begin(self):
        nic = self.nic
        if self._password:
            mixed = network.WLAN.SEC_WPA_WPA2  # what every port has
            nic.config(ssid=self._ssid, key=self._password, security=mixed)
        else:
            nic.config(ssid=self._ssid, security=network.WLAN.SEC_OPEN)
        nic.active(True)
        nic.ifconfig((_AP_ADDRESS, "255.255.255.0", _AP_ADDRESS, _AP_ADDRESS))

    def _is_up(self):
        return self.nic.active()  # whether or not anybody has joined


class Ethernet(Link):
    """A W5500 on SPI; pins as on WIZnet's board, unless network.json says otherwise."""

    name = "ethernet"

    def __init__(self, config):
        super().__init__()
        from machine import SPI, Pin

        pins = config.get("pins", {})
        spi = SPI(
            config.get("spi", 0),
            config.get("baudrate", 20000000),
            mosi=Pin(pins.get("mosi", 19)),
            miso=Pin(pins.get("miso", 16)),
            sck=Pin(pins.get("sck", 18)),
        )
        cs, reset = Pin(pins.get("cs", 17)), Pin(pins.get("reset", 20))
        self.nic = _kind("WIZNET5K")(spi, cs, reset)

    def interface(self):
        return self.nic

    def begin(self):
        self.nic.active(True)  # DHCP begins with it; ifconfig("dhcp") would wait for it


class Serial(Link):
    """PPP on a UART: a modem, or the emulated board."""

    name = "ppp"

    def __init__(self, config):
        super().__init__()
        from machine import UART, Pin

        pins = config.get("pins", {})
        uart = UART(
            config.get("uart", 1),
            baudrate=config.get("baudrate", 921600),
            tx=Pin(pins.get("tx", 4)),
            rx=Pin(pins.get("rx", 5)),
            rxbuf=4096,
            txbuf=4096,
            timeout=0,
        )
        self.nic = _kind("PPP")(uart)

    def interface(self):
        return self.nic

    def begin(self):
        self.nic.connect()
