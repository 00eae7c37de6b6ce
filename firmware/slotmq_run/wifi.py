# wifi.py - what a client of an access point and one of the board's own have in common.
from slotmq_run import links
from slotmq_run.links import network


class Wifi(links.Link):
    def __init__(self, kind, which, config):
        super().__init__(config)
        self._ssid = config["ssid"]
        self._password = config.get("password", "")
        self._saves = config.get("power_saving", False)
        self.name = kind + self._ssid
        links.made_by("WLAN")
        self.nic = network.WLAN(which)

    def interface(self):
        return self.nic

    def wake(self):
        """No power saving, with which packets wait while the radio sleeps. A CYW43 begins with it
        anew when it becomes active, and an ESP32 takes nothing before."""
        if self._saves:
            return
        try:
            self.nic.config(pm=network.WLAN.PM_NONE)
        except Exception as error:  # told once; an ESP32 wants it on for Bluetooth
            self._saves = True
            print("%s: power saving: %s" % (self.name, error))
