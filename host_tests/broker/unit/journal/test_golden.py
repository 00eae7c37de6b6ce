"""Journals of every version of the format: the broker restores exactly what is listed here. The
files in host_tests/support/golden/journal are never written again."""

import unittest

import scratch
from invariants import broken
from media import Ram
from stored_state import tables

from slotmq import Broker, Limits, Settings
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.reader import Reader, last_commit
from slotmq.journal.restore import restore

# ruff: noqa: PTH123, RUF005 - MicroPython has no pathlib, and no stars in a tuple
FOLDER = __file__.rsplit("/", 4)[0] + "/support/golden/journal/"
LIMITS = {"connections": 6, "sessions": 8, "subscriptions": 12, "messages": 24, "deliveries": 24}
SNAPSHOT = 3840
NEVER = 0x3FFFFFFF

# What the scene of dev/golden_journal.py stores.
NOTE = b"&\0\1a\0\1b"
FIRST = (b"news/first", b"1st", 4, b"", 0, 0)
N0 = (b"news/0", b"n0" * 20, 4, b"", 0, 0)
N1 = (b"news/1", b"n1" * 20, 12, NOTE, 0, 0)
N2 = (b"news/2", b"n2" * 20, 12, NOTE, 35840, 0)
HELD = (b"news/held", b"71", 4, b"", 0, 0)
WAITS = (b"last/away", b"not back", 13, NOTE, 36000, 0)  # from when its will was set
VERSION_1 = {
    "sessions": [
        (b"away", 0, 1, 600, -245, WAITS, 60, 355, 0),
        (b"five", 0, 1, NEVER, 0, None),
        (b"old", 0, 0, NEVER, -500, None),
        (b"reader", 0, 0, NEVER, 0, None),
        (b"writer", 0, 0, NEVER, 0, None),
    ],
    "subscriptions": [
        (b"away", b"jobs/+", 1, 0, 7, b"g"),
        (b"away", b"news/#", 2, 12, 300, b""),
        (b"old", b"+/b", 0, 0, 0, b""),
        (b"old", b"news/#", 1, 0, 0, b""),
        (b"reader", b"news/#", 2, 0, 0, b""),
        (b"reader", b"once", 1, 0, 0, b""),
    ],
    "received": [
        (b"writer", 72, (b"news/held", b"72", 5, b"", 0, 0)),
        (b"writer", 73, (b"news/held", b"73", 4, b"", 0, 0)),
    ],
    "deliveries": [
        (b"away", 0, 3, 0, 12, FIRST, b"", 300),
        (b"away", 1, 7, 0, 12, N0, b"", 300),
        (b"away", 2, 10, 0, 12, N1, b"", 300),
        (b"away", 3, 13, 0, 12, N2, b"", 300),
        (b"away", 4, 14, 0, 10, (b"jobs/1", b"do it", 10, NOTE, 0, 0), b"g", 7),
        (b"away", 5, 18, 0, 12, HELD, b"", 300),
        (b"old", 0, 2, 0, 10, FIRST, b"", 0),
        (b"old", 1, 6, 0, 10, N0, b"", 0),
        (b"old", 2, 9, 0, 10, N1, b"", 0),
        (b"old", 3, 12, 0, 10, N2, b"", 0),
        (b"old", 4, 17, 0, 10, HELD, b"", 0),
        (b"reader", 0, 1, 3, 4, None, b"", 0),  # after PUBREC, before the compaction
        (b"reader", 1, 5, 3, 4, None, b"", 0),  # the same, after it
        (b"reader", 2, 8, 0, 12, N1, b"", 0),
        (b"reader", 3, 11, 0, 12, N2, b"", 0),
        (b"reader", 4, 16, 0, 12, HELD, b"", 0),
    ],
    "retained": [
        (b"last/fleeting", b"gone", 11, NOTE, 0, 0),  # a will: the power cut ended its connection
        (b"state/a", bytes(range(256)), 13, NOTE, 35630, 0),
        (b"state/b", b"second", 3, b"", 0, 0),
        (b"state/far", b"0", 9, b"", 335543970, 63),
    ],
}

# Version 2 stores what was never sent: that has no DUP.
VERSION_2 = dict(VERSION_1)
_SENT = [row for row in VERSION_1["deliveries"] if row[0] == b"reader" or row[:2] == (b"away", 0)]
VERSION_2["deliveries"] = [
    row[:4] + (row[4] if row in _SENT else row[4] & ~8,) + row[5:]
    for row in VERSION_1["deliveries"]
]


def on_flash(name):
    device = Ram(8, 4096)
    with open(FOLDER + name, "rb") as file:
        file.readinto(device.data)
    return lambda: FlashMedium(device, SNAPSHOT)


def in_a_file(name):
    with open(FOLDER + name, "rb") as file:
        path = scratch.write(file.read())
    return lambda: FileMedium(path, SNAPSHOT, 1 << 20)


class TestVersion1(unittest.TestCase):
    maxDiff = None
    file, flash = "version-1.file", "version-1.flash"
    stored = VERSION_1

    def settings(self):
        return Settings(sys_interval=0, qos2_delivery="release")

    def restored(self, medium, settings=None):
        reports = []
        broker = Broker(Limits(**LIMITS), settings or self.settings())
        restore(broker, medium, reports.append)
        medium.close()
        self.assertEqual(reports, [])
        self.assertEqual(broken(broker), [])
        return broker

    def check(self, make):
        found = tables(self.restored(make()))
        for name in self.stored:
            self.assertEqual(found[name], self.stored[name])
        self.assertEqual(sorted(found), sorted(self.stored))
        # The start has written it anew: that is restored too.
        self.assertEqual(tables(self.restored(make())), found)

    def test_a_file_is_restored(self):
        self.check(in_a_file(self.file))

    def test_a_region_of_flash_is_restored(self):
        self.check(on_flash(self.flash))

    def test_both_have_every_kind_of_record(self):
        for medium in (in_a_file(self.file)(), on_flash(self.flash)()):
            reader = Reader(medium, medium.generations()[0], 512)
            end, torn = last_commit(reader)
            kinds, at = set(), 0
            while at < end:
                at = reader.after(at)
                self.assertTrue(reader.find(at))
                kinds.add(reader.kind)
                at = reader.next
            medium.close()
            self.assertEqual((sorted(kinds), torn), (list(range(1, 14)), 0))


class TestVersion2(TestVersion1):
    file, flash = "version-2.file", "version-2.flash"
    stored = VERSION_2


class TestVersion2InOneCommit(TestVersion2):
    """Before a file's first rows were committed table by table."""

    file = "version-2-one-commit.file"


class TestVersion3(TestVersion2):
    """A session may have a user."""

    file, flash = "version-3.file", "version-3.flash"

    def settings(self):
        rules = scratch.write(b"pattern readwrite #\n")
        return Settings(sys_interval=0, qos2_delivery="release", acl_file=rules)

    def test_sessions_belong_to_their_users(self):
        broker = self.restored(in_a_file(self.file)())
        sessions, owners = broker.sessions, broker.owners
        users = [(sessions.client_id(n), owners.name(n)) for n in range(8) if sessions.used(n)]
        named = [(b"away", b"a"), (b"five", b"f"), (b"old", None), (b"reader", b"r")]
        self.assertEqual(sorted(users), named + [(b"writer", b"w")])
        old = sessions.find(b"old", 0, 3)
        self.assertEqual(owners.user[old], 0xFFFD)  # known to have no user name

    def test_a_broker_without_users_reads_it(self):
        for medium in (in_a_file(self.file)(), on_flash(self.flash)()):
            broker = TestVersion2.restored(self, medium, TestVersion2.settings(self))
            self.assertEqual(tables(broker)["sessions"], self.stored["sessions"])


class TestOlderSessions(TestVersion2):
    """A journal without users, and a broker that asks for them."""

    settings = TestVersion3.settings

    def test_nobody_knows_whose_they_are(self):
        owners = self.restored(in_a_file(self.file)()).owners
        self.assertEqual(set(owners.user), {0xFFFE})
