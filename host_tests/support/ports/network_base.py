# network_base.py - what the fakes of the ports' `network` modules have in common, and AIR: the
# surroundings of the board (access points, DHCP server, cable), which a test changes.


class Air:
    def __init__(self):
        self.now = 0  # ms
        self.points = {}  # ssid: password
        self.wpa3 = []  # ssids that accept WPA3 only
        self.dhcp_ms = 500  # until DHCP answers
        self.attempts = 0  # to connect
        self.cable = True
        self.joined = 0  # stations, if the board is the access point

    def look(self):
        """Return the surroundings as they are now. A test may replace this."""
        return self


AIR = Air()


def parse(addresses):
    """Check the four addresses for ifconfig(); netutils_parse_ipv4_addr() raises ValueError."""
    for text in addresses:
        parts = text.split(".")
        if len(parts) != 4 or not all(part.isdigit() and int(part) < 256 for part in parts):
            raise ValueError("invalid arguments")
    return tuple(addresses)


class Module:
    """What `network` has on each port (extmod/modnetwork.c of MicroPython 1.25 and 1.26)."""

    STA_IF, AP_IF = 0, 1

    def __init__(self):
        self._hostname = "mpy"
        self._country = "XX"
        self.name_server = "0.0.0.0"

    def hostname(self, name=None):
        if name is None:
            return self._hostname
        if len(name) > 32:  # MICROPY_PY_NETWORK_HOSTNAME_MAX_LEN
            raise ValueError
        self._hostname = name
        return None

    def ipconfig(self, what):
        # The name server of lwIP; None of the fakes says another one than DHCP.
        assert what == "dns"
        return self.name_server

    def country(self, code=None):
        if code is None:
            return self._country
        if len(code) != 2:
            raise ValueError
        self._country = code
        return None


class Interface:
    """A WLAN interface: one object for each, however often the constructor is called."""

    IF_STA, IF_AP = 0, 1
    module = None  # the Network to which it belongs
    made = {}  # noqa: RUF012 - interface: its object

    def __new__(cls, which=0):
        cls.check(which)
        if which not in cls.made:
            cls.made[which] = object.__new__(cls)
            cls.made[which].begin(which)
        return cls.made[which]

    @classmethod
    def check(cls, which):
        """May it be made? Otherwise it raises what the port raises."""

    def begin(self, which):
        self.which = which
        self.is_active = False
        self.names = []  # ssids under which it was an access point
        self.dhcp = False
        self.wanted = None  # (ssid, key, ...) of connect()
        self.since = 0  # ms, when it was called
