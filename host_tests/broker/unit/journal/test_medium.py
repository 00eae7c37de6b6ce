"""What a journal may expect of its medium, in a file and in raw flash; then what only one has."""

import os
import unittest

import scratch
from fakes import lock
from media import Flash, Life, MediumCase, Quiet, fill, goes_on, looked_at, read, text

from slotmq import Broker, Limits
from slotmq.journal import location, restore
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_file_start import JoinedFile
from slotmq.journal.medium_flash import FlashMedium
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON

micropython = __import__("micropython") if MICROPYTHON else None

BLOCKS, SIZE = 8, 1024
DATA = SIZE - 256  # bytes of the journal in a block
SNAPSHOT, CAPACITY = 2 * DATA, 6 * DATA
HEADER = 16  # of a file
SECOND = 128  # the second copy of a header in flash


class Full:
    def write(self, *args):
        raise OSError(28, "full")

    flush = write


class OnFile:
    whole = 1  # bytes to which a generation is rounded up when it is opened
    error = 28  # what its errors become

    def setUp(self):
        self.path = scratch.path()
        self.medium = FileMedium(self.path, SNAPSHOT, CAPACITY + SNAPSHOT + 2 * HEADER)

    def tearDown(self):
        self.medium.close()

    def reopened(self):
        self.medium.close()
        self.medium = FileMedium(self.path, SNAPSHOT, CAPACITY + SNAPSHOT + 2 * HEADER)
        return self.medium

    def fails(self, call):
        """The errno of a call while nothing can be written."""
        file, self.medium.new = self.medium.new, Full()
        found = self.refused(call)
        self.medium.new = file
        return found

    def put(self, whole):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(whole)


class OnFlash:
    whole, error = DATA, 5

    def setUp(self):
        self.device = Flash(BLOCKS, SIZE)
        self.medium = FlashMedium(self.device, SNAPSHOT)

    def reopened(self):
        self.medium = FlashMedium(self.device, SNAPSHOT)
        return self.medium

    def fails(self, call):
        write = self.device.writeblocks
        self.device.writeblocks = lambda block, buf, off: 1
        found = self.refused(call)
        self.device.writeblocks = write
        return found


class Contract(MediumCase):
    def written(self, *sizes):
        """Generation 1 of 100 bytes and these."""
        life = Life(self.medium)
        life.compact(100)
        life.append(*sizes or (7, 300))
        return life

    def check(self, life):
        looked_at(self, self.reopened(), [(life.generation, life.synced)])

    def test_without_bytes_there_is_no_generation(self):
        self.assertEqual(self.medium.generations(), [])
        self.assertIsNone(self.medium.set_aside(0))

    def test_what_was_written_can_be_read(self):
        life = self.written()
        self.check(life)
        end = -(-len(life.synced) // self.whole) * self.whole
        self.assertEqual(self.medium.end, end)
        self.assertEqual(read(self.medium, 9999)[len(life.synced) :].strip(b"\xff"), b"")
        for at, n in ((end - 7, 7), (end, 0), (end + 5, 0)):
            self.assertEqual(self.medium.readinto(at, bytearray(10), 10), n)

    def test_it_is_appended_to_and_compacted_after_each_start(self):
        life = self.written()
        for _ in range(3):
            goes_on(self, self.reopened, [(life.generation, life.synced)], True)
            life = Life(self.reopened())
            life.generation = self.medium.generations()[0]
            self.medium.open(life.generation)
            life.synced = bytes(read(self.medium, 833))

    def test_the_current_generation_can_be_read_while_the_next_is_written(self):
        life = self.written()
        self.medium.begin(2)
        fill(self.medium, bytearray(), 300)
        self.assertEqual(read(self.medium, len(life.synced)), life.synced)
        self.medium.resume(len(life.synced))
        life.append(30)
        self.medium.readinto(5, bytearray(10), 10)
        life.append(20)
        self.assertEqual(read(self.medium, len(life.synced)), life.synced)
        self.check(life)

    def test_an_unfinished_generation_counts_nothing(self):
        """Nor do its bytes stand behind the next of its number, which is shorter."""
        life = self.written()
        for resumes in (True, False, False):
            self.medium.begin(2)
            fill(self.medium, bytearray(), 2 * DATA)
            self.medium.sync()
            self.check(life)
            if resumes:
                self.medium.resume(len(life.synced))
        life.medium = self.medium
        self.medium.begin(2)
        fill(self.medium, bytearray(), 300)
        life.compact(20)  # begins it again
        self.check(life)
        self.assertLessEqual(self.medium.end, self.whole + 20)

    def test_an_empty_generation(self):
        self.medium.begin(7)
        self.medium.switch()
        self.medium.begin(8)  # which does not change it
        self.assertEqual(self.reopened().generations(), [7])
        self.medium.open(7)
        self.assertEqual(read(self.medium, DATA).strip(b"\xff"), b"")
        self.medium.resume(0)
        life = Life(self.medium)
        life.generation = 7
        life.append(900)
        self.check(life)

    def test_a_generation_that_is_set_aside_is_gone_and_takes_no_space(self):
        self.written()
        self.reopened().generations()
        self.medium.open(1)
        self.medium.set_aside(1)
        self.assertEqual(self.medium.generations(), [])
        life = Life(self.medium)
        life.compact(SNAPSHOT)
        life.append(3 * DATA)
        self.check(life)

    def test_a_closed_medium_takes_nothing(self):
        self.written()
        self.medium.close()
        self.check_closed()

    def test_a_new_generation_always_has_space(self):
        """Wherever in the ring the current one lies, and however full it is."""
        medium = self.medium
        self.assertEqual(medium.capacity, CAPACITY)
        self.written()
        for generation in range(2, 20):
            size = 1 + 97 * generation % 700
            end = medium.end
            while end + size <= CAPACITY:
                medium.append(text(0, size), 0, size)
                medium.sync()
                end = medium.end
            self.assertEqual(self.refused(medium.append, text(0, size), 0, size), 28)
            self.assertEqual(medium.end, end)
            medium.begin(generation)
            medium.append(text(0, SNAPSHOT), 0, SNAPSHOT)
            if end > CAPACITY - DATA:
                space = CAPACITY + SNAPSHOT - end if self.whole == 1 else SNAPSHOT
                more = space - SNAPSHOT + 1
                self.assertEqual(self.refused(medium.append, bytes(more), 0, more), 28)
            medium.switch()
            self.assertEqual(medium.end, SNAPSHOT)

    def test_a_full_or_resumed_generation_has_the_same_space(self):
        life = self.written()
        self.check(life)
        self.medium.resume(len(life.synced))
        left = CAPACITY - len(life.synced)
        self.assertEqual(self.refused(self.medium.append, bytes(left + 1), 0, left + 1), 28)
        life.medium = self.medium
        life.append(left)
        self.assertEqual(self.refused(self.medium.append, b"a", 0, 1), 28)
        self.check(life)

    def test_unfinished_generations_take_no_space(self):
        life = self.written(10)
        for _ in range(20):
            life.compact(SNAPSHOT, DATA, give_up=True)
        life.append(5 * DATA - 100)
        self.check(life)

    def test_after_an_error_it_takes_nothing_until_the_next_generation(self):
        for call in (lambda: self.medium.append(bytes(600), 0, 600), lambda: self.medium.sync()):
            self.medium.close()
            self.setUp()
            life = self.written()
            self.medium.append(b"x", 0, 1)
            self.assertEqual(self.fails(call), self.error)
            self.check_closed()
            life.compact(700)
            life.append(20)
            self.check(life)


class TestFile(OnFile, Contract):
    def test_it_is_its_header_and_what_was_appended(self):
        life = self.written()
        self.assertEqual(self.medium.written, HEADER + 407)
        found = scratch.content(self.path)
        self.assertEqual(found[:12], b"slotmqJ\x01\x01\0\0\0")
        self.assertEqual(found[HEADER:], life.synced)
        life.compact(20)
        self.assertIsNone(scratch.content(self.path + ".new"))
        self.assertEqual(len(scratch.content(self.path)), HEADER + 20)

    def test_a_compaction_drops_a_torn_end(self):
        life = self.written()
        self.medium.close()
        with open(self.path, "ab") as file:  # noqa: PTH123
            file.write(b"torn")
        goes_on(self, self.reopened, [(1, life.synced)], False)

    def test_a_header_with_a_wrong_bit_or_a_missing_end_is_no_header(self):
        self.written()
        whole = scratch.content(self.path)
        wrong = [whole[:n] for n in range(HEADER)]
        for at in range(HEADER):
            for bit in range(0, 8, 3):
                wrong.append(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        for data in wrong:
            self.put(data)
            self.assertEqual(self.reopened().generations(), [])

    def test_a_file_of_mosquitto_is_called_so(self):
        mosquitto = b"\0\xb5\0mosquitto db" + bytes(40)
        for data, what in ((mosquitto, "mosquitto's"), (b"x" * 55, "cannot be read")):
            self.put(data)
            reports = []
            restore.read_back(Broker(Limits()), self.reopened(), reports.append)
            (report,) = reports
            self.assertTrue(what in report and self.path + ".damaged-0" in report, report)
            self.assertEqual("mosquitto" in report, data is mosquitto)

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
        for name in (first, first + "-2"):
            for _ in range(3):
                self.assertEqual(self.medium.set_aside(1, True), name)
            self.assertEqual(scratch.content(name), scratch.content(self.path))
            self.medium.append(b"more", 0, 4)
            self.medium.sync()
        self.assertIsNone(scratch.content(first + "-3"))
        self.assertEqual(scratch.content(first) + b"more", scratch.content(first + "-2"))

    def test_a_copy_that_fails_leaves_no_file(self):
        def fails_to_copy(path, mode, opener=None):
            if mode == "wb":
                open(path, mode).close()  # noqa: PTH123
                raise OSError(28, "full")
            return open(path, mode)  # noqa: PTH123

        self.written()
        start = ondemand.take("journal.medium_file_start", 0)
        start.open = fails_to_copy
        try:
            self.assertIsNone(self.medium.set_aside(1, True))
        finally:
            del start.open
        self.assertIsNone(scratch.content(self.path + ".damaged-1"))

    def test_a_folder_in_its_place_is_an_error_and_not_an_empty_journal(self):
        os.mkdir(self.path)  # noqa: PTH102
        self.assertRaises(OSError, self.medium.generations)

    def test_the_file_system_and_whether_it_survives_a_power_cut(self):
        wanted = ("VfsPosix", None) if MICROPYTHON else ("host", True)
        for path in (self.path, "journal"):
            self.assertEqual(location.promises(path), wanted)


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
        self.sizes.append(-1)


class TestJoinedFile(unittest.TestCase):
    """What MicroPython has on a computer, where a write() is a system call."""

    def test_what_fits_the_buffer_is_one_write(self):
        for sizes, expected in (
            ((10, 20, 70), [100, 0]),
            ((4000, 90, 6), [4096, 0]),
            ((4000, 90, 7), [4090, 7, 0]),
            ((5, 5000, 5), [5, 5000, 5, 0]),
            ((4096, 4096), [4096, 4096, 0]),
            ((), [0]),
        ):
            inner = Counted()
            file = JoinedFile(inner)
            sent = bytes(k % 251 for k in range(sum(sizes)))
            at = 0
            for n in sizes:
                file.write(sent, at, n)
                at += n
            file.flush()
            self.assertEqual(inner.sizes, expected)
            self.assertEqual(bytes(inner.data), sent)

    def test_nothing_waits_after_it_is_closed_or_an_error(self):
        inner = Counted()
        file = JoinedFile(inner)
        file.write(b"abc", 0, 3)
        file.close()
        file.write(b"abc", 0, 3)
        file.file = Full()
        self.assertRaises(OSError, file.flush)
        file.file = inner
        file.flush()
        self.assertEqual(inner.sizes, [-1, 0])


class TestFlash(OnFlash, Contract):
    def two(self):
        """Generations 1 and 2, of two blocks each."""
        life = self.written(DATA)
        first = life.synced
        life.compact(DATA + 200)
        return first, life.synced

    def flip(self, block, *places):
        for at in places:
            self.device.data[block * SIZE + at] ^= 1 << at % 8

    def test_bytes_of_something_else_have_no_name(self):
        self.device.data[:] = bytes(BLOCKS * SIZE)
        self.assertEqual(self.medium.generations(), [])
        self.assertEqual(self.medium.set_aside(0), "")

    def test_the_generation_before_can_be_read_until_the_ring_comes_round(self):
        first, _ = self.two()
        self.assertEqual(self.reopened().generations(), [2, 1])
        self.assertIsNone(self.medium.set_aside(2))
        looked_at(self, self.reopened(), [(1, first)])

    def test_a_sync_pads_to_a_page_and_no_further(self):
        medium = self.medium
        medium.begin(1)
        for appended, end in ((1, 256), (255, 512), (256, 768), (0, 768), (257, 1280)):
            medium.append(text(0, appended), 0, appended)
            for _ in range(2):
                medium.sync()
                self.assertEqual(medium.end, end)

    def test_rot_of_one_copy_of_a_header_has_no_effect_and_of_both_loses_the_generation(self):
        first, second = self.two()
        for at in range(24):
            for places, expected in (
                ((at,), (2, second)),
                ((SECOND + at,), (2, second)),
                ((at, SECOND + at), (1, first)),
            ):
                self.flip(2, *places)
                looked_at(self, self.reopened(), [expected])
                self.flip(2, *places)
        self.medium.resume(len(second))
        self.medium.append(text(0, 900), 0, 900)
        self.medium.sync()
        self.flip(3, 0, SECOND)  # in the middle of the generation
        goes_on(self, self.reopened, [(1, first)], True)

    def test_all_blocks_are_erased_about_equally_often(self):
        life = Life(self.medium)
        for generation in range(100):
            life.compact(1 + generation * 613 % SNAPSHOT)
            for _ in range(generation % 5):
                life.append(300)
            life.compact(1000, give_up=generation % 3 == 0)
        erases = self.device.erases
        self.assertLessEqual(max(erases), min(erases) + 30)
        self.assertEqual(self.medium.erased, sum(erases) * SIZE)
        self.assertEqual(self.medium.written, self.device.programmed)

    def test_a_synced_append_of_100_bytes(self):
        """On 64 blocks of 4 KB, with compactions: these figures are in FORMAT.md."""
        medium = FlashMedium(Flash(64, 4096), 8000)
        medium.begin(1)
        medium.switch()
        for n in range(4000):
            if medium.end + 256 > medium.capacity:
                medium.begin(n)
                medium.append(bytes(8000), 0, 8000)
                medium.switch()
            medium.append(bytes(100), 0, 100)
            medium.sync()
        for figure in (medium.written, medium.erased):
            self.assertLess(abs(figure // 4000 - 283), 4)

    def test_nothing_is_allocated(self):
        medium = FlashMedium(Quiet(BLOCKS, SIZE), SNAPSHOT)
        medium.begin(1)
        medium.switch()
        record = text(1, 100)
        if hasattr(micropython, "alloc_emergency_exception_buf"):
            micropython.alloc_emergency_exception_buf(100)  # like the poller
        full = 0
        lock()
        try:
            while not full:
                try:
                    medium.append(record, 0, 100)
                    medium.append(record, 50, 50)
                    medium.sync()
                except OSError as error:
                    full = error.errno
        finally:
            heap.unlock()
        self.assertEqual(full, 28)
        self.assertGreater(medium.end, 5 * DATA)


del Contract
