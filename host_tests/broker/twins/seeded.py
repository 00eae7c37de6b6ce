# seeded.py - random numbers that are the same on every Python.


class Numbers:
    """A sequence of numbers from a seed."""

    def __init__(self, seed):
        self._state = seed * 2 + 1

    def below(self, n):
        self._state = (self._state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self._state >> 8) % n

    def between(self, least, most):
        return least + self.below(most - least + 1)

    def choice(self, row):
        return row[self.below(len(row))]

    def one_in(self, n):
        return self.below(n) == 0

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
