"""The room that a journal's file holds beside it: on a computer nobody else gets a byte of it."""

import os
import unittest

import scratch
from fakes import World
from full_media import OnDisk
from journal_case import RESUMED, JournalCase
from packets import PINGREQ, PINGRESP, PUBACK, ack, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.location import snapshot_bytes
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.restore import restore
from slotmq.platform.runtime import MICROPYTHON

if not MICROPYTHON:
    import media_disk

HEADER = 16
SNAPSHOT, LIMIT = 1500, 6000
SMALL = {"sessions": 4, "subscriptions": 8, "deliveries": 60, "messages": 60}


class TestSpared(unittest.TestCase):
    def setUp(self):
        self.path = scratch.path()
        self.again()

    def again(self):
        self.medium = FileMedium(self.path, SNAPSHOT, LIMIT)

    def tearDown(self):
        self.medium.close()

    def made(self, generation, byte, n):
        self.medium.begin(generation)
        self.medium.append(byte * n, 0, n)

    def switched(self, generation, byte, n):
        self.made(generation, byte, n)
        self.medium.switch()

    def test_there_is_room_for_the_header_too(self):
        self.switched(1, b"a", 10)
        for n in (1024, 2 * SNAPSHOT):
            self.assertTrue(self.medium.spare(n))
            self.assertGreaterEqual(
                len(scratch.content(self.path + ".room")), min(n, SNAPSHOT) + HEADER
            )

    def test_what_was_given_up_is_not_read(self):
        """A start begins with the number that the one before had, so its records would count."""
        self.switched(1, b"a", 10)
        self.made(2, b"b", 900)
        self.medium.sync()
        self.medium.close()
        self.again()
        self.assertEqual(self.medium.generations(), [1])
        self.medium.open(1)
        self.switched(2, b"c", 20)
        self.assertEqual(scratch.content(self.path)[HEADER:], b"c" * 20)
        self.assertIsNone(scratch.content(self.path + ".new"))

    def test_nothing_behind_a_shorter_generation(self):
        for generation, byte, n in ((1, b"a", 900), (2, b"b", 300), (3, b"c", 20)):
            self.switched(generation, byte, n)
            self.medium.spare(1200)
            self.assertEqual(scratch.content(self.path)[HEADER:], byte * n)


class CutAtRename:
    """As `os`, until a file has its new name."""

    def __init__(self):
        self.synced = []  # so long was what was synced

    def __getattr__(self, name):
        return getattr(os, name)

    def open_file(self, *how):
        return open(*how)  # noqa: PTH123

    def fsync(self, file):
        self.synced.append(os.fstat(file).st_size)
        os.fsync(file)

    def rename(self, old, new):
        os.rename(old, new)  # noqa: PTH104
        raise media_disk.Cut


class OnComputer(TestSpared):
    def test_what_was_current_is_the_room_and_no_longer_than_it_may_be(self):
        self.switched(1, b"a", 2 * SNAPSHOT)
        current = os.stat(self.path).st_ino  # noqa: PTH116
        self.switched(2, b"b", 10)
        self.assertTrue(self.medium.spare(100))
        self.assertEqual(os.stat(self.path + ".room").st_ino, current)  # noqa: PTH116
        self.assertEqual(len(scratch.content(self.path + ".room")), SNAPSHOT + HEADER)

    def test_what_is_behind_goes_before_the_file_has_its_name(self):
        """The power fails with the rename: what was given up would be read as records."""
        self.switched(1, b"a", 10)
        self.made(2, b"b", 900)
        self.medium.sync()
        self.medium.close()
        self.again()
        self.medium.generations()
        self.medium.open(1)
        self.made(2, b"c", 20)
        disk = media_disk.mount(CutAtRename())
        try:
            self.assertRaises(media_disk.Cut, self.medium.switch)
        finally:
            media_disk.mount(None)
        self.assertEqual(disk.synced[-1], HEADER + 20)
        self.assertEqual(scratch.content(self.path)[HEADER:], b"c" * 20)

    def test_somebody_elses_copy_by_another_name_stays_as_it_is(self):
        self.switched(1, b"a", 100)
        os.link(self.path, self.path + ".copy")
        for generation in range(2, 5):
            self.switched(generation, b"b", 50)
            self.medium.spare(1200)
        self.assertEqual(scratch.content(self.path + ".copy")[HEADER:], b"a" * 100)

    def test_a_room_that_is_the_journal_itself_is_not_written_over(self):
        """So a power cut within switch() may leave it."""
        self.switched(1, b"a", 100)
        self.medium.close()
        os.link(self.path, self.path + ".room")
        self.again()
        self.made(2, b"b", 50)
        self.medium.sync()
        self.assertEqual(scratch.content(self.path)[HEADER:], b"a" * 100)


class Taken(OnDisk, JournalCase):
    """Another program writes until the disk is full, and takes each byte that becomes free."""

    SNAPSHOT = snapshot_bytes(Limits(**SMALL))

    def start(self):
        self.broker = Broker(Limits(**SMALL), Settings(sys_interval=0))
        self.world = World(self.broker)
        restore(self.broker, self.made(), self.said.append)

    def setUp(self):
        super().setUp()
        reader = self.client("reader", clean=False)
        self.ask(reader, subscribe(1, "t/#", 1), b"\x90\x03\0\1\1")
        reader.leave()
        self.publisher = self.client("publisher", clean=False)
        self.ids = 0
        for _ in range(5):
            self.say()
        self.disk.is_wanted = True
        self.disk.take()

    def say(self):
        self.ids += 1
        self.ask(self.publisher, publish("t/a", b"x" * 40, 1, self.ids), ack(PUBACK, self.ids))

    def test_each_compaction_has_the_room_that_was_held(self):
        for _ in range(4):
            self.assertTrue(self.broker.journal.compacted())
            self.ask(self.publisher, PINGREQ, PINGRESP)
            self.assertIn("/j/f.room", self.disk.names)

    def test_all_are_answered_however_long_it_lasts(self):
        for _ in range(55):
            self.say()
        self.assertTrue(self.broker.journal_full)
        for _ in range(3):
            self.world.turn(110, ms=100)
            self.say()

    def test_a_start_has_it_too(self):
        for _ in range(3):
            self.medium.close()
            self.start()
            self.assertEqual(self.said, [])
            self.publisher = self.client("publisher", RESUMED, clean=False)
            self.say()

    def test_what_was_given_up_is_room_as_well(self):
        sync = self.disk.fsync

        def fails(what):
            raise OSError(5, "sync")

        self.disk.fsync = fails
        for _ in range(2):
            self.assertFalse(self.broker.journal.compacted())
        self.disk.fsync = sync
        self.world.turn(20, ms=100)
        self.ask(self.publisher, PINGREQ, PINGRESP)
        self.say()


if not MICROPYTHON:

    class TestOnComputer(OnComputer):
        pass

    class TestTaken(Taken):
        pass


del JournalCase, OnComputer, Taken
