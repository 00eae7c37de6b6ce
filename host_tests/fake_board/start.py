# start.py - firmware/main.py on a computer, with modules `network` and `machine` that a test
# moves: what is around the board stands in air.json, in the folder that it runs in.
#
#   {"points": {ssid: password}, "dhcp": does it answer?, "hang": does the driver hang?,
#    "dns": the port of loopback where the DNS server is, "ntp": and that of a time server}
#
# The watchdog is the kernel's alarm, so what it does not let live ends at once and in the
# midst of anything, as on a board. The clock of the board is in rtc.json. Both runtimes.
import json
import os
import sys


def alarm(seconds):
    """The process ends so many seconds from now; 0: it does not."""
    try:
        from signal import alarm as set_it
    except ImportError:
        from ffi import open as library

        set_it = library(None).func("I", "alarm", "I")
    set_it(seconds)


def air():
    """What is around the board now; the file is replaced in one piece."""
    with open("air.json") as file:  # noqa: PTH123
        return json.load(file)


class WLAN:
    def __init__(self, _which):
        self.wanted = None
        self.address = "0.0.0.0"

    def active(self, *_):
        return True

    def connect(self, ssid, password):
        self.wanted = ssid, password

    def disconnect(self):
        self.wanted = None

    def ifconfig(self):
        return (self.address, "255.255.255.0", "0.0.0.0", "127.0.0.1")

    def isconnected(self):
        while air()["hang"]:
            pass
        return self.status() == Network.STAT_GOT_IP

    def status(self):
        now = air()
        if self.wanted is None:
            return Network.STAT_IDLE
        ssid, password = self.wanted
        if ssid not in now["points"]:
            return Network.STAT_NO_AP_FOUND
        if now["points"][ssid] != password:
            return Network.STAT_WRONG_PASSWORD
        if not now["dhcp"]:
            return Network.STAT_CONNECTING
        self.address = "192.168.1.7"
        return Network.STAT_GOT_IP


class Network:
    STA_IF = 0
    STAT_IDLE, STAT_CONNECTING, STAT_GOT_IP = 0, 1, 3
    STAT_CONNECT_FAIL, STAT_NO_AP_FOUND, STAT_WRONG_PASSWORD = -1, -2, -3
    WLAN = WLAN


class Dog:
    def __init__(self, timeout):
        self.seconds = -(-timeout // 1000)
        self.feed()

    def feed(self):
        alarm(self.seconds)


class Clock:
    def datetime(self, when):
        with open("rtc.new", "w") as file:  # noqa: PTH123
            json.dump(when, file)
        os.rename("rtc.new", "rtc.json")  # noqa: PTH104


class Machine:
    WDT = Dog
    RTC = Clock


sys.modules["network"], sys.modules["machine"] = Network, Machine
from slotmq_run import wall  # noqa: E402

wall._DNS_PORT, wall._PORT = air().get("dns", 53), air().get("ntp", 123)
import main  # noqa: E402,F401
