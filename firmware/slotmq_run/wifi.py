# wifi.py - a board as a client of an access point, or with one of its own.
from slotmq_run import links
from slotmq_run.links import network

_AP_ADDRESS = "192.168.4.1"
_PASSWORD_MIN = 8
_STATIONS = 10  # that may join: the most of an ESP32-C3; Espressif's default is 4
# What status() says where it is no plain number of the way on: name, constants of ports
_WHYS = (
    ("wrong password", ("STAT_WRONG_PASSWORD",)),
    ("no such access point", ("STAT_NO_AP_FOUND",)),
    ("refused", ("STAT_CONNECT_FAIL", "STAT_ASSOC_FAIL", "STAT_HANDSHAKE_TIMEOUT")),
)


def make(kind, config):
    """The link of network.json."""
    make = Station if kind == "station" else AccessPoint
    return make(config["ssid"], config.get("password", ""))


class Station(links.Link):
    """A client of an access point that is there."""

    def __init__(self, ssid, password):
        super().__init__()
        self.name = "wifi " + ssid
        self._ssid = ssid
        self._password = password
        links.made_by("WLAN")
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


class AccessPoint(links.Link):
    """An access point of the board's own, with its own DHCP and a fixed address."""

    def __init__(self, ssid, password):
        super().__init__()
        if password and len(password) < _PASSWORD_MIN:
            raise ValueError("password: at least 8 characters, or none")
        self.name = "access point " + ssid
        self._ssid = ssid
        self._password = password
        self._is_made = False
        links.made_by("WLAN")
        self.nic = network.WLAN(network.AP_IF)

    def interface(self):
        return self.nic

    def begin(self):
        self._is_made = False
        try:
            self._make()
        except OSError:
            self.nic.active(False)  # or it would be there under the port's own name
            raise
        self._is_made = True

    def _make(self):
        # A CYW43 is given its name before it is active, or it would be there under another for a
        # moment, with a password that everybody knows. IDF may refuse an interface that is not up.
        nic = self.nic
        try:
            self._settle()
            nic.active(True)
        except OSError:
            nic.active(True)
            self._settle()
        nic.ifconfig((_AP_ADDRESS, "255.255.255.0", _AP_ADDRESS, _AP_ADDRESS))

    def _settle(self):
        nic = self.nic
        if self._password:
            mixed = network.WLAN.SEC_WPA_WPA2  # what every port has
            nic.config(ssid=self._ssid, key=self._password, security=mixed)
        else:
            nic.config(ssid=self._ssid, security=network.WLAN.SEC_OPEN)
        try:
            nic.config(max_clients=_STATIONS)
        except ValueError:
            pass  # a CYW43 has no such setting

    def _is_up(self):
        return self._is_made and self.nic.active()  # whether or not anybody has joined
