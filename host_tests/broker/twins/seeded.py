# seeded.py - random numbers and bytes that are the same on every Python.
from slotmq_tools.sim import numbers


class Numbers(numbers.Numbers):
    """A sequence of numbers from a seed."""

    def bytes(self, n, of=None):
        """n bytes, of those in `of` if it is given."""
        if of is None:
            return bytes([self.below(256) for _ in range(n)])
        return bytes([of[self.below(len(of))] for _ in range(n)])


def shown(data):
    """Bytes as hexadecimal digits; more than 24 as a checksum."""
    if len(data) <= 24:
        return "".join(["%02x" % byte for byte in data]) or "-"  # noqa: UP031
    total = 0
    for byte in data:
        total = (total * 31 + byte) & 0xFFFFFF
    return "%d:%06x" % (len(data), total)  # noqa: UP031
