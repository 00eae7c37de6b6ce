# station.py - the board is a Wi-Fi client.
from slotmq_run import wifi
from slotmq_run.network_link import network

# Texts for values of status(), with the names of the constants in the different ports
_WHYS = (
    ("wrong password", ("STAT_WRONG_PASSWORD",)),
    ("no such access point", ("STAT_NO_AP_FOUND",)),
    ("refused", ("STAT_CONNECT_FAIL", "STAT_HANDSHAKE_TIMEOUT")),
)


class Station(wifi.Wifi):
    """A client of an access point."""

    def __init__(self, config):
        super().__init__("wifi ", network.STA_IF, config)
        self._more = {}  # keyword arguments of connect()
        if config.get("security"):
            found = getattr(network.WLAN, "SEC_" + config["security"].upper(), None)
            self._more = {"security": found}

    def begin(self):
        self.nic.active(True)
        try:
            self.nic.disconnect()  # an ESP32 refuses connect() during an attempt
        except OSError:
            pass
        self.wake()
        if self.fixed:
            self.nic.ifconfig(self.fixed)
        try:
            self.nic.connect(self._ssid, self._password, **self._more)
        except TypeError:  # an ESP32 has no such argument and uses what the access point offers
            self._more = {}
            print("%s: security is left out" % self.name)
            self.nic.connect(self._ssid, self._password)

    def _failure(self):
        status = self.nic.status()
        for why, names in _WHYS:
            for name in names:
                if status == getattr(network, name, None):
                    return why
        return ""
