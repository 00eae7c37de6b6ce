"""A journal's medium in a file: its generations, its room, and what is not its own."""

import gc
import os
import sys
import unittest
from binascii import crc32

import scratch
from media import Life, fill, goes_on, looked_at, read

from slotmq.journal import location
from slotmq.journal.medium_file import FileMedium
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

HEADER = 16
SNAPSHOT, LIMIT = 1500, 6000
LEFT = LIMIT - 2 * HEADER  # for both generations


class FileCase(unittest.TestCase):
    def setUp(self):
        self.path = scratch.path()
        self.medium = FileMedium(self.path, SNAPSHOT, LIMIT)

    def tearDown(self):
        self.medium.close()

    def again(self):
        self.medium.close()
        self.medium = FileMedium(self.path, SNAPSHOT, LIMIT)
        return self.medium

    def lived(self):
        life = Life(self.medium)
        life.compact(100)
        life.append(7, 300)
        return life

    def refused(self, call, *args):
        with self.assertRaises(OSError) as caught:
            call(*args)
        return caught.exception.errno


class TestLife(FileCase):
    def test_without_a_file_there_is_nothing(self):
        self.assertEqual(self.medium.generations(), [])
        self.assertIsNone(self.medium.set_aside(0))

    def test_bytes_come_back(self):
        life = self.lived()
        self.medium.close()
        looked_at(self, self.again(), [(1, life.synced)])
        self.assertEqual(self.medium.end, 407)
        self.assertEqual(self.medium.readinto(400, bytearray(10), 10), 7)
        self.assertEqual(self.medium.readinto(500, bytearray(10), 10), 0)

    def test_a_file_is_its_header_and_what_was_appended(self):
        life = self.lived()
        self.assertEqual(self.medium.written, HEADER + 407)
        found = scratch.content(self.path)
        self.assertEqual(found[:12], b"slotmqJ\x01\x01\0\0\0")
        self.assertEqual(found[HEADER:], life.synced)

    def test_it_goes_on_after_each_start(self):
        life = self.lived()
        for _ in range(3):
            self.medium.close()
            goes_on(self, self.again, [(life.generation, life.synced)], True)
            life = Life(self.again())
            life.generation = self.medium.generations()[0]
            self.medium.open(life.generation)
            life.synced = read(self.medium, 9999)

    def test_the_current_one_can_be_read_while_another_is_written(self):
        life = self.lived()
        self.medium.begin(2)
        fill(self.medium, bytearray(), 300)
        self.assertEqual(read(self.medium, 407), life.synced)
        self.medium.resume(407)
        life.append(30)
        self.assertEqual(read(self.medium, 437), life.synced)
        self.medium.readinto(5, bytearray(10), 10)
        life.append(20)
        looked_at(self, self.again(), [(1, life.synced)])

    def test_a_new_one_may_be_begun_again(self):
        life = self.lived()
        self.medium.begin(2)
        fill(self.medium, bytearray(), 300)
        life.compact(20)
        looked_at(self, self.again(), [(2, life.synced)])

    def test_what_is_half_written_is_ignored_and_removed(self):
        life = self.lived()
        for resumes in (True, False):
            self.medium.begin(2)
            fill(self.medium, bytearray(), 300)
            self.medium.sync()
            self.assertIsNotNone(scratch.content(self.path + ".new"))
            looked_at(self, self.again(), [(1, life.synced)])
            if resumes:
                self.medium.resume(407)
                self.assertIsNone(scratch.content(self.path + ".new"))
        life.medium = self.medium
        life.compact(20)
        self.assertIsNone(scratch.content(self.path + ".new"))
        self.assertEqual(len(scratch.content(self.path)), HEADER + 20)

    def test_half_a_record_at_the_end_can_be_left_behind(self):
        life = self.lived()
        self.medium.close()
        with open(self.path, "ab") as file:  # noqa: PTH123
            file.write(b"torn")
        goes_on(self, self.again, [(1, life.synced)], False)

    def test_a_closed_one_takes_nothing(self):
        self.lived()
        self.medium.close()
        self.assertEqual(self.refused(self.medium.append, b"a", 0, 1), 28)
        self.assertEqual(self.refused(self.medium.sync), 5)


class TestRoom(FileCase):
    def test_a_new_generation_always_finds_room(self):
        medium = self.medium
        self.assertEqual(medium.capacity, LEFT - SNAPSHOT)
        self.lived()
        for generation in range(2, 6):
            medium.append(bytes(medium.capacity), 0, medium.capacity - medium.end)
            self.assertEqual(self.refused(medium.append, b"a", 0, 1), 28)
            medium.begin(generation)
            medium.append(bytes(SNAPSHOT), 0, SNAPSHOT)
            self.assertEqual(self.refused(medium.append, b"a", 0, 1), 28)
            medium.switch()
            self.assertEqual(medium.end, SNAPSHOT)

    def test_one_that_was_given_up_takes_none(self):
        life = self.lived()
        for _ in range(3):
            life.compact(500, 500, give_up=True)
        life.append(self.medium.capacity - 407)
        looked_at(self, self.again(), [(1, life.synced)])

    def test_after_an_error_it_takes_nothing_until_a_new_generation(self):
        life = self.lived()
        for call in (lambda: self.medium.append(b"abc", 0, 3), self.medium.sync):
            kept, self.medium.new = self.medium.new, Full()
            self.assertEqual(self.refused(call), 28)
            self.medium.new = kept
            self.assertEqual(self.refused(self.medium.append, b"a", 0, 1), 28)
            self.assertEqual(self.refused(self.medium.sync), 5)
            self.medium.resume(407)
        looked_at(self, self.again(), [(1, life.synced)])
        life.medium = self.medium
        life.compact(10)
        life.append(20)
        looked_at(self, self.again(), [(2, life.synced)])


class Full:
    def write(self, *args):
        raise OSError(28, "full")

    flush = write


class Broken:
    """A file that can be made, and takes nothing."""

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
    def test_a_header_with_any_bit_wrong_is_none(self):
        life = self.lived()
        whole = scratch.content(self.path)
        for at in range(HEADER):
            for bit in range(0, 8, 3):
                self.put(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
                self.assertEqual(self.again().generations(), [])
        for n in range(HEADER):
            self.put(whole[:n])
            self.assertEqual(self.again().generations(), [])
        self.put(whole)
        looked_at(self, self.again(), [(1, life.synced)])

    def test_a_header_of_another_format_is_none(self):
        self.lived()
        head = scratch.content(self.path)[:7] + b"\x02" + scratch.content(self.path)[8:12]
        self.put(head + crc32(head).to_bytes(4, "little"))
        self.assertEqual(self.again().generations(), [])
        self.assertEqual(self.medium.set_aside(0), self.path + ".damaged-0")

    def test_what_was_set_aside_before_stays(self):
        for n in range(3):
            self.put(b"%d" % n)
            self.medium.set_aside(0)
        found = [scratch.content(self.path + ".damaged-0" + end) for end in ("", "-2", "-3")]
        self.assertEqual(found, [b"0", b"1", b"2"])

    def test_what_has_been_copied_is_not_copied_again(self):
        """A start that is cut or refused behind the copy finds the same file again."""
        self.lived()
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

    def test_a_copy_that_fails_leaves_nothing(self):
        self.lived()
        start = ondemand.take("journal.medium_file_start", 0)
        start.open = fails_to_copy
        try:
            self.assertIsNone(self.medium.set_aside(1, True))
        finally:
            del start.open
        self.assertIsNone(scratch.content(self.path + ".damaged-1"))
        name = self.medium.set_aside(1, True)
        self.assertEqual(scratch.content(name), scratch.content(self.path))

    def put(self, whole):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(whole)

    def test_a_damaged_file_is_kept_under_another_name(self):
        self.lived()
        whole = scratch.content(self.path)
        looked_at(self, self.again(), [(1, bytes(whole[HEADER:]))])
        name = self.medium.set_aside(1)
        self.assertEqual(name, self.path + ".damaged-1")
        self.assertEqual(scratch.content(name), whole)
        self.assertEqual(self.medium.generations(), [])
        life = Life(self.medium)
        life.compact(LEFT - 20)
        looked_at(self, self.again(), [(1, life.synced)])

    def test_what_stands_in_the_way_is_an_error_and_not_an_empty_journal(self):
        os.mkdir(self.path)  # noqa: PTH102
        with self.assertRaises(OSError):
            self.medium.generations()


class TestPromises(FileCase):
    def test_what_kind_of_file_system_it_is(self):
        wanted = ("VfsPosix", None) if MICROPYTHON else ("host", True)
        self.assertEqual(location.promises(self.path), wanted)
        self.assertEqual(location.promises("journal"), wanted)


class TestHeap(unittest.TestCase):
    def test_what_only_a_start_needs_can_go(self):
        if MICROPYTHON:  # a module of its own, since the others go on
            kept = sys.modules.pop("slotmq.journal.medium_file")
            __import__("slotmq.journal.medium_file")
            module = sys.modules["slotmq.journal.medium_file"]
            sys.modules["slotmq.journal.medium_file"] = kept
            before = used()
            module.forget()
            self.assertGreater(before - used(), 300)


def used():
    gc.collect()
    return gc.mem_alloc()
