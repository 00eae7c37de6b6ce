"""Can whoever guesses tell by the work that it costs which users exist? A statistic of slices,
turns and hashes, which is the same on each machine, however busy that is."""

import unittest

from login_case import BAD_LOGIN, KEYS, LoginCase
from packets import connect

from slotmq.access import login, pbkdf2
from slotmq.platform.runtime import MICROPYTHON

TRIES = 2 if MICROPYTHON else 40  # for each kind of name
# Functions whose calls are counted: slices, hashes and comparisons
COUNTED = (
    (login, "advance"),
    (login, "begin"),
    (login, "hmac"),
    (login, "same"),
    (pbkdf2, "hmac"),
)
KNOWN = tuple(f"known{k}" for k in range(10, 20))
UNKNOWN = tuple(f"other{k}" for k in range(10, 20))


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


class TestStatistic(LoginCase):
    def setUp(self):
        self.calls = [0] * len(COUNTED)
        self.kept = [getattr(*each) for each in COUNTED]
        for k, (module, name) in enumerate(COUNTED):
            setattr(module, name, self.counted(k))
        super().setUp()

    def tearDown(self):
        for k, (module, name) in enumerate(COUNTED):
            setattr(module, name, self.kept[k])
        super().tearDown()

    def counted(self, k):
        def call(*args):
            self.calls[k] += 1
            return self.kept[k](*args)

        return call

    def cost(self, name, password):
        """The turns until the answer has come, and the calls of each function."""
        before = list(self.calls)
        client = self.open(connect("c", username=name, password=password.encode()), turns=0)
        turns = 0
        while not client.stream.received:
            self.world.turn(ms=0)
            turns += 1
        self.assertEqual(client.packets(), [BAD_LOGIN])
        return [turns] + [self.calls[k] - before[k] for k in range(len(COUNTED))]

    def test_each_try_costs_the_same(self):
        """Each name is tried more than once, and neither kind is always the first."""
        self.start("".join([f"{name}:{KEYS}\n" for name in KNOWN]), login_delay_max=0)
        costs = {True: [], False: []}
        for k in range(TRIES):
            for names in (KNOWN, UNKNOWN) if k % 2 else (UNKNOWN, KNOWN):
                found = self.cost(names[k % len(names)], f"guess{k:03}")
                costs[names is KNOWN].append(found)
        self.assertTrue(costs[True][0][1] >= 8, costs)  # slices
        for column in range(1 + len(COUNTED)):
            known, unknown = [[each[column] for each in costs[kind]] for kind in (True, False)]
            self.assertEqual(median(known), median(unknown), column)
            self.assertEqual(sorted(known), sorted(unknown), column)


if __name__ == "__main__":
    unittest.main()
