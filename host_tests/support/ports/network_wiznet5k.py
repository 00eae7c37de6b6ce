# network_wiznet5k.py - `network` of the rp2 port with a W5500 and lwIP (WIZNET5K_WITH_LWIP_STACK).
# Written from extmod/network_wiznet5k.c and ports/rp2/mpnetworkport.c of MicroPython 1.25 and
# 1.26.
#
# Unlike on a board, its delays (160 and 250 ms) take no time.
import network_base
from network_base import AIR

_OF_DHCP = ("192.168.1.8", "255.255.255.0", "192.168.1.1", "192.168.1.1")
_TICK_MS = 64  # LWIP_TICK_RATE_MS of rp2: how often a chip without an INT pin is polled


class WIZNET5K:
    nics = []  # noqa: RUF012 - one object; the arguments of the last constructor call count

    def __new__(cls, *pins):
        # Without arguments: the pins of the board's firmware (MICROPY_HW_WIZNET_*), if any.
        if len(pins) not in (0, 3, 4):
            raise TypeError("function missing required positional arguments")
        if not cls.nics:
            cls.nics.append(object.__new__(cls))
            cls.nics[0].since = None
        nic = cls.nics[0]
        nic.wired = pins[:3]
        nic.intn = pins[3] if len(pins) > 3 else None
        nic.is_active = False  # netif.flags = 0: down until active(True)
        nic.addresses = ("0.0.0.0",) * 4
        nic.dhcp = False
        return nic

    @property
    def late_ms(self):
        """How long a packet may wait in the chip until it is read."""
        return 0 if self.intn is not None and self.is_active else _TICK_MS

    def active(self, on=None):
        if on is None:
            return self.is_active
        if on and not self.is_active:
            AIR.attempts += 1
            self.since = AIR.now
            self.addresses = ("0.0.0.0",) * 4
            self.dhcp = True  # dhcp_start() of wiznet5k_lwip_init()
        self.is_active = bool(on)
        return None

    def _look(self):
        around = AIR.look()
        asks = self.is_active and self.dhcp and around.cable
        if asks and around.now - self.since >= around.dhcp_ms:
            self.addresses = _OF_DHCP
        return around

    def isconnected(self):
        around = self._look()
        return around.cable and self.is_active and self.addresses[0] != "0.0.0.0"

    def status(self, *what):
        if what:
            raise ValueError("unknown status param")
        return (2 if self.is_active else 1) if AIR.look().cable else 0

    def ifconfig(self, given=None):
        if given is None:
            self._look()
            return self.addresses
        if given == "dhcp":
            raise AssertionError("it would wait for up to 10 s")
        addresses = network_base.parse(given)
        self.dhcp = False
        self.addresses = addresses  # the next active(True) overwrites them, unless it is up
        return None

    def config(self, *names, **settings):
        if not settings:
            if len(names) != 1:
                raise TypeError("must query one param")
            if names[0] != "mac":
                raise ValueError("unknown config param")
            return b"\2\0\0\0\0\1"
        if names:
            raise TypeError("can't specify pos and kw args")
        for name in settings:
            if name not in ("mac", "trace"):
                raise ValueError("unknown config param")
        return None


class Network(network_base.Module):
    def __init__(self):
        super().__init__()
        WIZNET5K.nics.clear()
        self.WIZNET5K = WIZNET5K
