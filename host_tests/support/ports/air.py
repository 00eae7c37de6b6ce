# air.py - what is around a board whose `network` is a fake: access points, DHCP, a cable. A test
# moves it; the fakes look at it whenever they are asked.


class Air:
    def __init__(self):
        self.now = 0  # ms
        self.points = {}  # ssid: password
        self.wpa3 = []  # of these, who takes WPA3 alone
        self.dhcp_ms = 500  # until it answers
        self.attempts = 0  # to connect
        self.cable = True
        self.joined = 0  # stations, where the board is the access point

    def look(self):
        """The air as it is now."""
        return self


AIR = Air()


def parse(given, old):
    """What ifconfig() keeps of four addresses; netutils_parse_ipv4_addr() raises ValueError."""
    for text in given:
        parts = text.split(".")
        if len(parts) != 4 or not all(part.isdigit() and int(part) < 256 for part in parts):
            raise ValueError("invalid arguments")
    return tuple(given)


class Module:
    """What `network` has on every port (extmod/modnetwork.c, 1.25 to 1.26)."""

    STA_IF, AP_IF = 0, 1

    def __init__(self):
        self._hostname = "mpy"
        self._country = "XX"

    def hostname(self, name=None):
        if name is None:
            return self._hostname
        if len(name) > 32:  # MICROPY_PY_NETWORK_HOSTNAME_MAX_LEN
            raise ValueError
        self._hostname = name
        return None

    def country(self, code=None):
        if code is None:
            return self._country
        if len(code) != 2:
            raise ValueError
        self._country = code
        return None
