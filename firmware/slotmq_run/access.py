# access.py - the board is an access point.
from slotmq_run import wifi
from slotmq_run.network_link import network

_AP_ADDRESS = "192.168.4.1"
_PASSWORD_MIN = 8
_STATIONS = 10  # highest number of clients: an ESP32-C3 has no more; Espressif's default is 4


class AccessPoint(wifi.Wifi):
    """The board's own access point, with a DHCP server and a fixed address."""

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
            self.nic.active(False)  # otherwise it stays visible under the port's default SSID
            raise
        self._is_made = True

    def _make(self):
        # SSID and password are set before a CYW43 becomes active; otherwise it would be visible
        # for a moment with the default SSID and a well-known password. ESP-IDF may refuse to set
        # them for an inactive interface.
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
            mixed = network.WLAN.SEC_WPA_WPA2  # the one mode that every port has
            nic.config(ssid=self._ssid, key=self._password, security=mixed)
        else:
            nic.config(ssid=self._ssid, security=network.WLAN.SEC_OPEN)
        try:
            nic.config(max_clients=_STATIONS)
        except ValueError:
            pass  # a CYW43 has no such setting

    def _is_up(self):
        return self._is_made and self.nic.active()  # with or without clients
