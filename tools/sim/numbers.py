# numbers.py - random numbers that are the same on every Python.
#
# Wichmann and Hill's three small generators: no step exceeds the small integers of a 32-bit
# MicroPython. Each client, link and disk has its own row of numbers, so that removing one changes
# nothing for the others.

_A, _B, _C = 20829, 29080, 21289  # each generator's factor, to the power of eight


class Numbers:
    """The row of numbers with this seed and this index."""

    def __init__(self, seed, row=0):
        self.a = (seed * 37 + row * 101) % 30268 + 1
        self.b = (seed // 30268 * 11 + seed % 7919 * 3 + row * 17) % 30306 + 1
        self.c = (seed % 30011 + row * 1009) % 30322 + 1
        # Eight steps at once
        self.a = self.a * _A % 30269
        self.b = self.b * _B % 30307
        self.c = self.c * _C % 30323

    def below(self, n):
        self.a = a = self.a * 171 % 30269
        self.b = b = self.b * 172 % 30307
        self.c = c = self.c * 170 % 30323
        return (a ^ b << 3 ^ c << 6) % n

    def between(self, least, most):
        return least + self.below(most - least + 1)

    def choice(self, row):
        return row[self.below(len(row))]

    def one_in(self, n):
        return self.below(n) == 0

    def percent(self, n):
        """True with this probability, in percent."""
        return self.below(100) < n
