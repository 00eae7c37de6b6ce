# board_case.py - the firmware's modules on a fake board. The fake of `network` is that of its port
# (support/ports); a test changes its access points and its cable by AIR. The fake of `machine` is
# here, with watchdog, LED and SPI.
import sys

_HERE = __file__.rsplit("/", 1)[0]
sys.path.append(_HERE + "/../../../../firmware")
sys.path.append(_HERE + "/../../../support/ports")

import network_cyw43  # noqa: E402
import network_esp32  # noqa: E402
import network_wiznet5k  # noqa: E402
from network_base import AIR  # noqa: E402

RP2, W5500, ESP32 = network_cyw43, network_wiznet5k, network_esp32


class Machine:
    """Records the use of watchdog, pins and memory."""

    def __init__(self):
        self.mem32 = {0x40058000: 1 << 30 | 5}
        self.fed = 0
        self.dogs = []
        self.lit = []

    def WDT(self, timeout):  # noqa: N802
        self.dogs.append(timeout)
        return self

    def feed(self):
        self.fed += 1


class Pin:
    OUT = 1
    changes = []  # noqa: RUF012 - of all pins

    def __init__(self, name, _mode=None):
        self.name = name
        if name == "none":
            raise ValueError("unknown named Pin")
        self.on = 0

    def value(self, on=None):
        if on is None:
            return self.on
        self.on = 1 if on else 0
        Pin.changes.append(self.on)
        return None


class SPI:
    def __init__(self, number, baudrate, mosi, miso, sck):
        self.number, self.baudrate = number, baudrate
        self.pins = mosi.name, miso.name, sck.name


Machine.Pin, Machine.SPI = Pin, SPI


def use(port, **facts):
    """Import the firmware on such a port: its network_link and watch, and the two fakes."""
    for name in list(sys.modules):
        if name.startswith("slotmq_run"):
            del sys.modules[name]
    AIR.__init__()
    Pin.changes.clear()
    network, machine = port.Network(**facts), Machine()
    kept = {name: sys.modules.get(name) for name in ("network", "machine")}
    sys.modules["network"], sys.modules["machine"] = network, machine
    try:
        from slotmq_run import network_link, watch
    finally:
        for name in kept:
            if kept[name]:
                sys.modules[name] = kept[name]
            else:
                del sys.modules[name]
    return network_link, watch, network, machine
