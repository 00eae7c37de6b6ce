# access.py - a board with an access point of its own.
from slotmq_run import wifi
from slotmq_run.links import network

_AP_ADDRESS = "192.168.4.1"
_PASSWORD_MIN = 8
_STATIONS = 10  # that may join: the most of an ESP32-C3; Espressif's default is 4


class AccessPoint(wifi.Wifi):
    """An access point of the board's own, with its own DHCP and a fixed address."""

    def __init__(self, config):
        super().__init__("access point ", network.AP_IF, config)
        if self._password and len(self._password) < _PASSWORD_MIN:
            raise ValueError("password: at least 8 characters, or none")
        self._is_made = False

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
        self.wake()
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
