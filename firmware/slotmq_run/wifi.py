# wifi.py - the base of station.py and access.py.
from slotmq_run import network_link
from slotmq_run.network_link import network


class Wifi(network_link.Link):
    def __init__(self, kind, which, config):
        super().__init__(config)
        self._ssid = config["ssid"]
        self._password = config.get("password", "")
        self._saves = config.get("power_saving", False)
        self.name = kind + self._ssid
        network_link.made_by("WLAN")
        self.nic = network.WLAN(which)

    def interface(self):
        return self.nic

    def wake(self):
        """Switch power saving off, with which packets wait while the radio sleeps. Needed after
        each activation: a CYW43 switches it on then, and an ESP32 accepts no setting before."""
        if self._saves:
            return
        try:
            self.nic.config(pm=network.WLAN.PM_NONE)
        except Exception as error:  # logged once; an ESP32 needs it with Bluetooth
            self._saves = True
            print("%s: power saving: %s" % (self.name, error))
