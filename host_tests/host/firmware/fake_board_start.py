# fake_board_start.py - firmware/main.py on a computer, with modules `network` and `machine`
# that a test moves: what is around the board stands in air.json, in the folder it runs in.
#
#   {"points": {ssid: password}, "dhcp": does it answer?, "hang": does the driver hang?,
#    "dns": the port of loopback where the DNS server is, "ntp": and that of a time server,
#    "port": esp32, or that of a Pico W,
#    "pause": seconds of the first safe mode, "bitten": did the watchdog end the last start?}
#
# The watchdog is the kernel's alarm, so what it does not let live ends at once and in the
# midst of anything, as on a board. The clock of the board is in rtc.json. Both runtimes.
import json
import os
import sys
import time

sys.path.append(__file__.rsplit("/", 1)[0] + "/../../support/ports")

import network_cyw43
import network_esp32


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


class Around(type(network_cyw43.AIR)):
    """What air.json says now. `hang`: the driver does not come back, here or when it begins."""

    def look(self):
        now = air()
        while now["hang"]:
            now = air()
        self.points = now["points"]
        self.now = time.time() * 1000
        self.dhcp_ms = 0 if now["dhcp"] else 1 << 60
        return self


class System:
    """The module `sys` of an ESP32."""

    platform = "esp32"

    def __getattr__(self, name):
        return getattr(sys, name)


PORT = network_esp32 if air().get("port") == "esp32" else network_cyw43
PORT.AIR = Around()
# Its DNS server is here.
PORT._OF_DHCP = ("192.168.1.7", "255.255.255.0", "192.168.1.1", "127.0.0.1")
NETWORK = PORT.Network()
if PORT is network_esp32:
    sys.modules["sys"], sys.modules["esp32"] = System(), NETWORK.idf
    if sys.implementation.name != "micropython":
        sys.modules["gc"] = network_esp32.Gc(network_esp32.Idf(57344, 100000), 57344)


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
    WDT_RESET = 3

    def reset_cause():
        return Machine.WDT_RESET if air().get("bitten") else 1

    def reset():
        raise SystemExit(RESET)


RESET = 42
sys.modules["network"], sys.modules["machine"] = NETWORK, Machine
from slotmq_run import safe, wall  # noqa: E402

safe._PAUSE_S = air().get("pause", 120)

wall._DNS_PORT, wall._PORT = air().get("dns", 53), air().get("ntp", 123)
import main  # noqa: E402,F401
