# station.py - a board as a client of an access point.
from slotmq_run import wifi
from slotmq_run.links import network

# What status() says where it is no plain number of the way on: name, constants of ports
_WHYS = (
    ("wrong password", ("STAT_WRONG_PASSWORD",)),
    ("no such access point", ("STAT_NO_AP_FOUND",)),
    ("refused", ("STAT_CONNECT_FAIL", "STAT_HANDSHAKE_TIMEOUT")),
)


class Station(wifi.Wifi):
    """A client of an access point that is there."""

    def __init__(self, config):
        super().__init__("wifi ", network.STA_IF, config)
        self._more = {}  # that connect() is told
        if config.get("security"):
            found = getattr(network.WLAN, "SEC_" + config["security"].upper(), None)
            self._more = {"security": found}

    def begin(self):
        self.nic.active(True)
        try:
            self.nic.disconnect()  # an ESP32 refuses to begin while it still tries
        except OSError:
            pass
        self.wake()
        if self.fixed:
            self.nic.ifconfig(self.fixed)
        try:
            self.nic.connect(self._ssid, self._password, **self._more)
        except TypeError:  # told once; an ESP32 takes what the access point has, WPA3 too
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
