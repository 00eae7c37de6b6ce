"""A journal's medium in a file: its generations, its free space, and damaged files."""

import os
import unittest

import scratch
from media import Life, MediumCase, fill, goes_on, looked_at, read

from slotmq import Broker, Limits
from slotmq.journal import location, restore
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_file_start import JoinedFile
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

HEADER = 16
SNAPSHOT, LIMIT = 1500, 6000
LEFT = LIMIT - 2 * HEADER  # for both generations


class FileCase(MediumCase):
    def setUp(self):
        self.path = scratch.path()
        self.medium = FileMedium(self.path, SNAPSHOT, LIMIT)

    def tearDown(self):
        self.medium.close()

    def reopened(self):
        self.medium.close()
        self.medium = FileMedium(self.path, SNAPSHOT, LIMIT)
        return self.medium

    def written(self):
        """Generation 1, of 407 bytes."""
        life = Life(self.medium)
        life.compact(100)
        life.append(7, 300)
        return life

    def put(self, whole):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(whole)


class TestGenerations(FileCase):
    def test_without_a_file_there_is_no_generation(self):
        self.assertEqual(self.medium.generations(), [])
        self.assertIsNone(self.medium.set_aside(0))

    def test_what_was_written_can_be_read(self):
        life = self.written()
        self.medium.close()
        looked_at(self, self.reopened(), [(1, life.synced)])
        self.assertEqual(self.medium.end, 407)
        self.assertEqual(self.medium.readinto(400, bytearray(10), 10), 7)
        self.assertEqual(self.medium.readinto(500, bytearray(10), 10), 0)

    def test_a_file_is_its_header_and_what_was_appended(self):
        life = self.written()
        self.assertEqual(self.medium.written, HEADER + 407)
        found = scratch.content(self.path)
        self.assertEqual(found[:12], b"slotmqJ\x01\x01\0\0\0")
        self.assertEqual(found[HEADER:], life.synced)

    def test_it_is_appended_to_and_compacted_after_each_start(self):
        life = self.written()
        for _ in range(3):
            self.medium.close()
            goes_on(self, self.reopened, [(life.generation, life.synced)], True)
            life = Life(self.reopened())
            life.generation = self.medium.generations()[0]
            self.medium.open(life.generation)
            life.synced = read(self.medium, 9999)

    def test_the_current_generation_can_be_read_while_the_next_is_written(self):
        life = self.written()
        self.medium.begin(2)
        fill(self.medium, bytearray(), 300)
        self.assertEqual(read(self.medium, 407), life.synced)
        self.medium.resume(407)
        life.append(30)
        self.assertEqual(read(self.medium, 437), life.synced)
        self.medium.readinto(5, bytearray(10), 10)
        life.append(20)
        looked_at(self, self.reopened(), [(1, life.synced)])

    def test_a_generation_may_be_begun_again(self):
        life = self.written()
        self.medium.begin(2)
        fill(self.medium, bytearray(), 300)
        life.compact(20)
        looked_at(self, self.reopened(), [(2, life.synced)])

    def test_an_unfinished_generation_is_ignored_and_removed(self):
        life = self.written()
        for resumes in (True, False):
            self.medium.begin(2)
            fill(self.medium, bytearray(), 300)
            self.medium.sync()
            self.assertIsNotNone(scratch.content(self.path + ".new"))
            looked_at(self, self.reopened(), [(1, life.synced)])
            if resumes:
                self.medium.resume(407)
                self.assertIsNone(scratch.content(self.path + ".new"))
        life.medium = self.medium
        life.compact(20)
        self.assertIsNone(scratch.content(self.path + ".new"))
        self.assertEqual(len(scratch.content(self.path)), HEADER + 20)

    def test_a_compaction_drops_a_torn_end(self):
        life = self.written()
        self.medium.close()
        with open(self.path, "ab") as file:  # noqa: PTH123
            file.write(b"torn")
        goes_on(self, self.reopened, [(1, life.synced)], False)

    def test_a_closed_medium_takes_nothing(self):
        self.written()
        self.medium.close()
        self.check_closed()


class TestSpace(FileCase):
    def test_a_new_generation_always_has_space(self):
        medium = self.medium
        self.assertEqual(medium.capacity, LEFT - SNAPSHOT)
        self.written()
        for generation in range(2, 6):
            medium.append(bytes(medium.capacity), 0, medium.capacity - medium.end)
            self.assertEqual(self.refused(medium.append, b"a", 0, 1), 28)
            medium.begin(generation)
            medium.append(bytes(SNAPSHOT), 0, SNAPSHOT)
            self.assertEqual(self.refused(medium.append, b"a", 0, 1), 28)
            medium.switch()
            self.assertEqual(medium.end, SNAPSHOT)

    def test_an_unfinished_generation_takes_none(self):
        life = self.written()
        for _ in range(3):
            life.compact(500, 500, give_up=True)
        life.append(self.medium.capacity - 407)
        looked_at(self, self.reopened(), [(1, life.synced)])

    def test_after_an_error_it_takes_nothing_until_the_next_generation(self):
        life = self.written()
        for call in (lambda: self.medium.append(b"abc", 0, 3), self.medium.sync):
            file, self.medium.new = self.medium.new, Full()
            self.assertEqual(self.refused(call), 28)
            self.medium.new = file
            self.check_closed()
            self.medium.resume(407)
        looked_at(self, self.reopened(), [(1, life.synced)])
        life.medium = self.medium
        life.compact(10)
        life.append(20)
        looked_at(self, self.reopened(), [(2, life.synced)])


class TestJoinedFile(unittest.TestCase):
    """What MicroPython has on a computer, where a write() is a system call."""

    def test_what_fits_the_buffer_is_one_write(self):
        for sizes, expected in (
            ((10, 20, 70), [100]),
            ((4000, 90, 6), [4096]),
            ((4000, 90, 7), [4090, 7]),
            ((5, 5000, 5), [5, 5000, 5]),
            ((4096, 4096), [4096, 4096]),
            ((), []),
        ):
            inner = Counted()
            file = JoinedFile(inner)
            sent = bytes(k % 251 for k in range(sum(sizes)))
            at = 0
            for n in sizes:
                file.write(sent, at, n)
                at += n
            file.flush()
            self.assertEqual(inner.sizes, expected + [0])  # noqa: RUF005 - MicroPython has no star there
            self.assertEqual(bytes(inner.data), sent)

    def test_what_was_not_flushed_is_not_written_when_it_is_closed(self):
        inner = Counted()
        file = JoinedFile(inner)
        file.write(b"abc", 0, 3)
        file.close()
        self.assertEqual(inner.sizes, ["closed"])

    def test_after_an_error_nothing_waits(self):
        inner = Full()
        file = JoinedFile(inner)
        file.write(b"abc", 0, 3)
        self.assertRaises(OSError, file.flush)
        file.file = inner = Counted()
        file.flush()
        self.assertEqual(inner.sizes, [0])


class Counted:
    """A file of which the sizes of writes are counted; 0: a flush."""

    def __init__(self):
        self.sizes = []
        self.data = bytearray()

    def write(self, buf, off, n):
        self.sizes.append(n)
        self.data += buf[off : off + n]

    def flush(self):
        self.sizes.append(0)

    def close(self):
        self.sizes.append("closed")


class Full:
    def write(self, *args):
        raise OSError(28, "full")

    flush = write


class Broken:
    """A file that can be created but not written."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.file.close()

    def write(self, data):
        raise OSError(28, "full")


def fails_to_copy(path, mode, opener=None):
    file = open(path, mode)  # noqa: PTH123, SIM115
    return Broken(file) if mode == "wb" else file


class TestDamage(FileCase):
    def test_a_header_with_a_wrong_bit_or_a_missing_end_is_no_header(self):
        life = self.written()
        whole = scratch.content(self.path)
        for at in range(HEADER):
            for bit in range(0, 8, 3):
                self.put(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
                self.assertEqual(self.reopened().generations(), [])
        for n in range(HEADER):
            self.put(whole[:n])
            self.assertEqual(self.reopened().generations(), [])
        self.put(whole)
        looked_at(self, self.reopened(), [(1, life.synced)])

    def test_a_file_of_mosquitto_is_called_so(self):
        for data, what in (
            (b"\0\xb5\0mosquitto db" + bytes(40), "mosquitto's"),
            (b"x" * 55, "read"),
        ):
            self.put(data)
            reports = []
            restore.read_back(Broker(Limits()), self.reopened(), reports.append)
            (report,) = reports
            self.assertTrue(what in report and self.path + ".damaged-0" in report, report)
            self.assertEqual("mosquitto" in report, what != "read")

    def test_what_was_set_aside_is_never_replaced(self):
        for n in range(3):
            self.put(b"%d" % n)
            self.medium.set_aside(0)
        found = [scratch.content(self.path + ".damaged-0" + end) for end in ("", "-2", "-3")]
        self.assertEqual(found, [b"0", b"1", b"2"])

    def test_the_same_file_is_copied_once(self):
        """A start that fails after the copy finds the same file again."""
        self.written()
        first = self.path + ".damaged-1"
        for _ in range(3):
            self.assertEqual(self.medium.set_aside(1, True), first)
        self.assertEqual(scratch.content(first), scratch.content(self.path))
        self.medium.append(b"more", 0, 4)
        self.medium.sync()
        for _ in range(3):
            self.assertEqual(self.medium.set_aside(1, True), first + "-2")
        self.assertEqual(scratch.content(first + "-2"), scratch.content(self.path))
        self.assertIsNone(scratch.content(first + "-3"))
        self.assertEqual(scratch.content(first) + b"more", scratch.content(self.path))

    def test_a_copy_that_fails_leaves_no_file(self):
        self.written()
        start = ondemand.take("journal.medium_file_start", 0)
        start.open = fails_to_copy
        try:
            self.assertIsNone(self.medium.set_aside(1, True))
        finally:
            del start.open
        self.assertIsNone(scratch.content(self.path + ".damaged-1"))
        name = self.medium.set_aside(1, True)
        self.assertEqual(scratch.content(name), scratch.content(self.path))

    def test_a_file_that_is_set_aside_is_renamed_and_takes_no_space(self):
        self.written()
        whole = scratch.content(self.path)
        self.assertEqual(self.reopened().set_aside(1), self.path + ".damaged-1")
        self.assertEqual(scratch.content(self.path + ".damaged-1"), whole)
        self.assertEqual(self.medium.generations(), [])
        life = Life(self.medium)
        life.compact(LEFT - 20)
        looked_at(self, self.reopened(), [(1, life.synced)])

    def test_a_folder_in_its_place_is_an_error_and_not_an_empty_journal(self):
        os.mkdir(self.path)  # noqa: PTH102
        self.assertRaises(OSError, self.medium.generations)


class TestFileSystem(FileCase):
    def test_its_name_and_whether_it_survives_a_power_cut(self):
        wanted = ("VfsPosix", None) if MICROPYTHON else ("host", True)
        self.assertEqual(location.promises(self.path), wanted)
        self.assertEqual(location.promises("journal"), wanted)
