# network_wiznet5k.py - `network` of rp2 with a W5500: extmod/network_wiznet5k.c of MicroPython
# 1.25 and 1.26 with lwIP (WIZNET5K_WITH_LWIP_STACK), ports/rp2/mpnetworkport.c. Both runtimes.
#
# What it does otherwise than a board: its delays (160 and 250 ms) take no time.
import air
from air import AIR

_OF_DHCP = ("192.168.1.8", "255.255.255.0", "192.168.1.1", "192.168.1.1")
_TICK_MS = 64  # LWIP_TICK_RATE_MS of rp2: how often a chip without an INT pin is looked at


class WIZNET5K:
    nics = []  # noqa: RUF012 - one object in all; the last constructor's arguments count

    def __new__(cls, *pins):
        # With none: those of the board's firmware, where it knows them (MICROPY_HW_WIZNET_*).
        if len(pins) not in (0, 3, 4):
            raise TypeError("function missing required positional arguments")
        if not cls.nics:
            cls.nics.append(object.__new__(cls))
            cls.nics[0].since = None
        nic = cls.nics[0]
        nic.wired = pins[:3]
        nic.intn = pins[3] if len(pins) > 3 else None
        nic.is_active = False  # netif.flags = 0: down while it is configured
        nic.addresses = ("0.0.0.0",) * 4
        nic.dhcp = False
        return nic

    @property
    def late_ms(self):
        """How long a packet that has come may wait until somebody looks."""
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
        addresses = air.parse(given, self.addresses)
        self.dhcp = False
        self.addresses = addresses  # which the next active(True) writes over, if it is not up
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


class Network(air.Module):
    def __init__(self):
        super().__init__()
        WIZNET5K.nics.clear()
        self.WIZNET5K = WIZNET5K
