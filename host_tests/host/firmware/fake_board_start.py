# fake_board_start.py - firmware/main.py on a computer, with fakes of the modules `network` and
# `machine`. A test controls them by the file air.json in the working directory:
#
#   points   access points: {ssid: password}
#   dhcp     does a DHCP server answer?
#   hang     does the network driver hang?
#   dns      port of the DNS server, on loopback
#   ntp      port of the time server, on loopback
#   port     "esp32"; otherwise a Pico W
#   pause    seconds of the first safe mode
#   bitten   did the watchdog end the last start?
#
# The watchdog is alarm() of the kernel, so it ends the process at any moment, as on a board. The
# board's clock is in rtc.json. Runs on both runtimes.
import json
import os
import socket
import sys
import time

sys.path.append(__file__.rsplit("/", 1)[0] + "/../../support/ports")

import network_cyw43
import network_esp32


def alarm(seconds):
    """Let the kernel end the process in so many seconds; 0: never."""
    try:
        from signal import alarm as set_it
    except ImportError:
        from ffi import open as library

        set_it = library(None).func("I", "alarm", "I")
    set_it(seconds)


def air():
    """The content of air.json; a test replaces the file atomically."""
    with open("air.json") as file:  # noqa: PTH123
        return json.load(file)


class Around(type(network_cyw43.AIR)):
    """The state of the network in air.json. With `hang`, look() does not return."""

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
# The DNS server is on loopback.
PORT._OF_DHCP = ("192.168.1.7", "255.255.255.0", "192.168.1.1", "127.0.0.1")
NETWORK = PORT.Network()
NETWORK.name_server = "127.0.0.1"
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


class Sockets:
    """The module `socket`, with the name server on another port."""

    def getaddrinfo(self, host, port, *more, **named):
        port = air().get("dns", 53) if port == 53 else port
        return socket.getaddrinfo(host, port, *more, **named)

    def __getattr__(self, name):
        return getattr(socket, name)


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
sys.modules["socket"] = Sockets()
from slotmq_run import safe, wall_clock  # noqa: E402

safe._PAUSE_S = air().get("pause", 120)

wall_clock._PORT = air().get("ntp", 123)
import main  # noqa: E402,F401
