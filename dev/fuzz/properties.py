"""Property sections of MQTT 5.0 from a seed, mostly legal."""

import random
from collections.abc import Callable

from slotmq_tools.codec import length, section, string

_NUMBERS_32 = [0, 1, 1, 2, 60, 100_000_000, 100_000_001, 0x3FFFFFFF, 0xFFFFFFFF]
_SIZES = [0, 3, 4, 20, 100, 2000, 0xFFFFFFFF]
_COUNTS = [0, 1, 1, 2, 20, 65535]
_ALIASES = [1, 1, 2, 2, 3, 4, 4, 5, 0, 65535]
_IDENTIFIERS = [1, 127, 128, 16384, 268435455, 0]
_TEXTS = [b"", b"f", b"f/a", b"SCRAM-SHA-256", b"\xff", b"x" * 150]
_FIRST_MESSAGE = b"n,,n=user,r=fuzz"  # of SCRAM-SHA-256
# The identifiers that each packet may have [5.0, 2.2.2.2]
LEGAL = {
    "connect": b"\x11\x11\x21\x27\x22\x19\x17\x26",
    "will": b"\x18\x18\x01\x02\x03\x08\x09\x26",
    "publish": b"\x23\x23\x02\x01\x03\x08\x09\x26",
    "ack": b"\x1f\x26",
    "subscribe": b"\x0b\x0b\x26",
    "unsubscribe": b"\x26",
    "disconnect": b"\x11\x1f\x26",
    "auth": b"\x1f\x26",
}
_NUMBERS = {0x01: 1, 0x02: 4, 0x11: 4, 0x13: 2, 0x17: 1, 0x18: 4, 0x19: 1, 0x21: 2, 0x22: 2,
            0x23: 2, 0x24: 1, 0x25: 1, 0x27: 4, 0x28: 1, 0x29: 1, 0x2A: 1}  # fmt: skip
_CHOICES = {0x11: _NUMBERS_32, 0x18: _NUMBERS_32, 0x02: _NUMBERS_32, 0x27: _SIZES, 0x21: _COUNTS,
            0x22: _COUNTS, 0x23: _ALIASES}  # fmt: skip


class Properties:
    """Makes random sections."""

    def __init__(self, source: random.Random) -> None:
        self.random = source

    def section(self, packet: str) -> bytes:
        """A property section for this packet."""
        names = self.random.sample(LEGAL[packet], min(self._count(), len(LEGAL[packet])))
        if self.random.random() < 0.05:
            names.append(self.random.randrange(256))
        elif self.random.random() < 0.9:
            names = list(dict.fromkeys(names))
        properties = b"".join(map(self._property, names))
        if self.random.random() < 0.02:
            return length(self.random.choice([len(properties) + 1, 268435455])) + properties
        return section(properties)

    def authentication(self) -> bytes:
        """Authentication method and optional data, for CONNECT and AUTH."""
        method = self.random.choice([b"SCRAM-SHA-256"] * 3 + _TEXTS)
        data = self.random.choice([_FIRST_MESSAGE, _FIRST_MESSAGE, b"c=biws,r=fuzz,p=AA==", b""])
        properties = b"\x15" + string(method) + (b"\x16" + string(data) if data else b"")
        return section(properties)

    def _count(self) -> int:
        return self.random.choice([0, 0, 1, 1, 2, 4])

    def _property(self, name: int) -> bytes:
        head = bytes([name])
        if name in _NUMBERS:
            size = _NUMBERS[name]
            number = self.random.choice(_CHOICES.get(name, [0, 1, 1, 2]))
            return head + (number & (1 << 8 * size) - 1).to_bytes(size, "big")
        if name == 0x0B:
            return head + length(self.random.choice(_IDENTIFIERS))
        value: Callable[[], bytes] = lambda: string(self.random.choice(_TEXTS))  # noqa: E731
        if name == 0x26:
            return b"".join(head + value() + value() for _ in range(self._count()))
        return head + value()
