"""The space that a journal reserves in a file beside it: other programs cannot take it."""

import os
import unittest

import scratch
from full_media import OnDisk
from journal_case import RESUMED, JournalCase
from packets import PINGREQ, PINGRESP, PUBACK, ack, publish

from slotmq.journal.medium_file import FileMedium
from slotmq.platform.runtime import MICROPYTHON
from slotmq_tools.sim.flash import PowerCut

if not MICROPYTHON:
    import media_disk

HEADER = 16
SNAPSHOT, LIMIT = 1500, 6000
SMALL = {"sessions": 4, "subscriptions": 8, "deliveries": 60, "messages": 60}


class TestFile(unittest.TestCase):
    def setUp(self):
        self.path = scratch.path()
        self.reopen()

    def reopen(self):
        self.medium = FileMedium(self.path, SNAPSHOT, LIMIT)

    def tearDown(self):
        self.medium.close()

    def begin(self, generation, byte, n):
        self.medium.begin(generation)
        self.medium.append(byte * n, 0, n)

    def write(self, generation, byte, n):
        self.begin(generation, byte, n)
        self.medium.switch()

    def test_the_header_is_reserved_too(self):
        self.write(1, b"a", 10)
        for n in (1024, 2 * SNAPSHOT):
            self.assertTrue(self.medium.spare(n))
            reserved = len(scratch.content(self.path + ".reserve"))
            self.assertGreaterEqual(reserved, min(n, SNAPSHOT) + HEADER)

    def test_nothing_stands_behind_a_shorter_generation(self):
        """Bytes of what was reserved, or of an unfinished generation, would count."""
        for generation, byte, n in ((1, b"a", 900), (2, b"b", 300), (3, b"c", 20)):
            self.write(generation, byte, n)
            self.medium.spare(1200)
            self.assertEqual(scratch.content(self.path)[HEADER:], byte * n)
        self.begin(4, b"d", 900)
        self.medium.sync()
        self.medium.close()
        self.reopen()
        self.assertEqual(self.medium.generations(), [3])
        self.medium.open(3)
        self.write(4, b"e", 20)
        self.assertEqual(scratch.content(self.path)[HEADER:], b"e" * 20)
        self.assertIsNone(scratch.content(self.path + ".new"))


class CutAtRename:
    """`os`, but the power fails behind a rename."""

    def __init__(self):
        self.synced = []  # lengths of the files

    def __getattr__(self, name):
        return getattr(os, name)

    def open_file(self, *how):
        return open(*how)  # noqa: PTH123

    def fsync(self, file):
        self.synced.append(os.fstat(file).st_size)
        os.fsync(file)

    def rename(self, old, new):
        os.rename(old, new)  # noqa: PTH104
        raise PowerCut


class ComputerFile(TestFile):
    def test_the_generation_before_becomes_the_reserve_and_is_shortened(self):
        self.write(1, b"a", 2 * SNAPSHOT)
        current = os.stat(self.path).st_ino  # noqa: PTH116
        self.write(2, b"b", 10)
        self.assertTrue(self.medium.spare(100))
        self.assertEqual(os.stat(self.path + ".reserve").st_ino, current)  # noqa: PTH116
        self.assertEqual(len(scratch.content(self.path + ".reserve")), SNAPSHOT + HEADER)

    def test_a_longer_unfinished_generation_is_cut_off_before_the_rename(self):
        """If the power fails behind the rename, its end would be read as records."""
        self.write(1, b"a", 10)
        self.begin(2, b"b", 900)
        self.medium.sync()
        self.medium.close()
        self.reopen()
        self.medium.generations()
        self.medium.open(1)
        self.begin(2, b"c", 20)
        disk = media_disk.mount(CutAtRename())
        try:
            self.assertRaises(PowerCut, self.medium.switch)
        finally:
            media_disk.mount(None)
        self.assertEqual(disk.synced[-1], HEADER + 20)
        self.assertEqual(scratch.content(self.path)[HEADER:], b"c" * 20)

    def test_a_hard_link_that_somebody_made_is_not_written_over(self):
        self.write(1, b"a", 100)
        os.link(self.path, self.path + ".copy")
        for generation in range(2, 5):
            self.write(generation, b"b", 50)
            self.medium.spare(1200)
        self.assertEqual(scratch.content(self.path + ".copy")[HEADER:], b"a" * 100)

    def test_a_reserve_that_is_the_journal_itself_is_not_written_over(self):
        """A power cut within switch() may leave that."""
        self.write(1, b"a", 100)
        self.medium.close()
        os.link(self.path, self.path + ".reserve")
        self.reopen()
        self.begin(2, b"b", 50)
        self.medium.sync()
        self.assertEqual(scratch.content(self.path)[HEADER:], b"a" * 100)


class TakenDisk(OnDisk, JournalCase):
    """Another program writes until the disk is full, and takes each byte that becomes free."""

    limits = tuple(SMALL.items())
    SNAPSHOT = 19_100  # the rows of these tables when all are full

    def setUp(self):
        super().setUp()
        self.subscriber("reader", "t/#", 1).leave()
        self.publisher = self.client("publisher", clean=False)
        self.ids = 0
        for _ in range(5):
            self.publish()
        self.disk.fill(0)
        self.disk.is_wanted = True

    def publish(self):
        self.ids += 1
        self.ask(self.publisher, publish("t/a", b"x" * 40, 1, self.ids), ack(PUBACK, self.ids))

    def test_each_compaction_has_the_reserved_space(self):
        for _ in range(4):
            self.assertTrue(self.broker.journal.try_compaction())
            self.ask(self.publisher, PINGREQ, PINGRESP)
            self.assertIn("/j/f.reserve", self.disk.names)

    def test_clients_are_answered_however_long_it_lasts(self):
        for _ in range(55):
            self.publish()
        self.assertTrue(self.broker.journal_full)
        for _ in range(3):
            self.world.turn(110, ms=100)
            self.publish()

    def test_each_start_has_it(self):
        for _ in range(3):
            self.medium.close()
            self.start()
            self.assertEqual(self.reports, [])
            self.publisher = self.client("publisher", RESUMED, clean=False)
            self.publish()

    def test_an_unfinished_generation_is_reserved_space_too(self):
        sync = self.disk.fsync

        def fails(what):
            raise OSError(5, "sync")

        self.disk.fsync = fails
        for _ in range(2):
            self.assertFalse(self.broker.journal.try_compaction())
        self.disk.fsync = sync
        self.world.turn(20, ms=100)
        self.ask(self.publisher, PINGREQ, PINGRESP)
        self.publish()


if not MICROPYTHON:

    class TestComputerFile(ComputerFile):
        pass

    class TestTakenDisk(TakenDisk):
        pass


del ComputerFile, TakenDisk
