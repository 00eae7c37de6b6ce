"""The recorder on a disk that fails: each seq is a record or in one gap, whatever happened."""

import os
from struct import unpack

from recorder_case import GAP, RecorderCase, read, records

from slotmq.platform import log
from slotmq.recorder import files

FAILED, OVERWRITTEN = 3, 1
ENDLESS = 1 << 29


class Disk:
    """Files that the recorder opens for writing take `left` more bytes together."""

    def __init__(self):
        self.left = ENDLESS
        self.opens = True
        self.error = 5

    def open(self, path, mode):
        if "w" not in mode:
            return open(path, mode)  # noqa: PTH123
        if not self.opens:
            raise OSError(5)
        return File(self, open(path, mode))  # noqa: PTH123


class File:
    def __init__(self, disk, file):
        self.disk = disk
        self.file = file
        self.flush = file.flush
        self.close = file.close

    def fileno(self):
        return self.file.fileno()

    def write(self, buf, off=0, n=-1):
        n = len(buf) if n < 0 else n
        piece = min(n, self.disk.left)
        self.disk.left -= piece
        self.file.write(bytes(buf[off : off + piece]))
        self.file.flush()
        if piece < n:
            raise OSError(self.disk.error)
        return n


class FullDisk(Disk):
    """A file system of so many bytes, of which `others` are taken."""

    def __init__(self, folder, size):
        self.folder, self.size = folder, size
        self.others = 0
        self.opens = True
        self.error = 28

    @property
    def left(self):
        there = [os.stat(self.folder + name)[6] for name in os.listdir(self.folder)]  # noqa: PTH116, PTH208
        return max(0, self.size - self.others - sum(there))

    @left.setter
    def left(self, value):
        pass


class DiskCase(RecorderCase):
    def check(self, rec, since=0):
        """Each seq is once a record or in a gap; (reason, first seq, lost segment) of the gaps."""
        times = {}
        gaps = []
        for segment in files.look(rec):
            for kind, reason, seq, payload in records(read(rec, segment)):
                times[seq] = times.get(seq, 0) + 1
                if kind == GAP:
                    _, first, count, gone = unpack("<IIII", payload)
                    gaps.append((reason, first, gone))
                    for lost in range(first, first + count):
                        times[lost] = times.get(lost, 0) + 1
        times = {seq: count for seq, count in times.items() if seq >= since}
        self.assertEqual(times, dict.fromkeys(range(since, rec.o[4]), 1))
        return gaps

    def first(self, rec):
        """The seq of the oldest record."""
        return files.header(rec, files.look(rec)[0])[1]


class TestFullFileSystem(DiskCase):
    def setUp(self):
        super().setUp()
        self.disk = FullDisk(self.folder, 6000)
        self.private = files.private
        files.open = files.private = self.disk.open
        self.lines = []
        self.write = log.write
        log.write = lambda kind, text: self.lines.append(text)

    def tearDown(self):
        super().tearDown()
        del files.open
        files.private = self.private
        log.write = self.write

    def fill(self, rec, count):
        for n in range(count):
            rec.now += 1
            self.record(rec, b"%d " % n + b"x" * 90)
        return rec.flush()

    def test_the_oldest_segment_goes_and_the_ring_has_fewer(self):
        rec = self.boot(size=1024, most=16)
        self.assertTrue(self.fill(rec, 200))
        self.assertEqual(rec.most, 5)
        self.assertEqual(len(files.look(rec)), 5)
        text = "Recording: the file system is full; from now on the ring has %d segments."
        self.assertEqual(self.lines, [text % 6, text % 5])
        last = self.payloads(read(rec, rec.segment))[-1]
        self.assertEqual(last[:4], b"199 ")
        reasons = [reason for reason, _, _ in self.check(rec, self.first(rec))]
        self.assertTrue(set(reasons) <= {OVERWRITTEN, FAILED}, reasons)

    def test_what_others_take_later_lowers_it_again_down_to_two(self):
        rec = self.boot(size=1024, most=16)
        self.fill(rec, 60)
        for others in (2000, 3500, 5500):
            self.disk.others = others
            self.fill(rec, 60)
        self.assertEqual(rec.most, 2)
        for _ in range(50):  # nothing is left: it is tried every ten seconds, without a line
            lines = len(self.lines)
            self.disk.others = 6000
            self.fill(rec, 100)
        self.assertEqual(len(self.lines), lines)
        self.disk.others = 0
        rec.now += 200
        self.assertTrue(self.fill(rec, 30))

    def test_a_ring_of_two_says_so_once_and_goes_on(self):
        self.disk.size = 1500
        rec = self.boot(size=1024, most=2)
        for _ in range(100):
            self.fill(rec, 5)
        text = "Recording: the file system is full before the ring's 2 segments are."
        self.assertEqual(self.lines, [text])
        self.assertTrue(0 < rec.lost < 100, rec.lost)  # what was torn
        last = self.payloads(read(rec, rec.segment))[-1]
        self.assertEqual(last[:2], b"4 ")
        self.check(rec, self.first(rec))
        lost = rec.lost
        self.disk.others = 1500
        for _ in range(20):
            self.fill(rec, 60)
            rec.now += 200
        nothing = "Recording: nothing, the file system is full; it is tried again."
        self.assertEqual(self.lines, [text, nothing])
        self.disk.others = 0
        self.assertTrue(self.fill(rec, 3))
        self.assertTrue(rec.lost >= lost + 1195, rec.lost - lost)
        self.assertTrue(self.fill(rec, 60))
        self.disk.others = 1500
        self.fill(rec, 60)
        rec.now += 200
        self.fill(rec, 60)
        self.assertEqual(self.lines, [text, nothing, nothing])

    def test_a_ring_that_stops_says_so_once(self):
        rec = self.boot(size=1024, most=16, stops=True)
        before = files.look(rec)
        for _ in range(20):
            self.fill(rec, 60)
            rec.now += 200
        text = "Recording: nothing, the file system is full; it is tried again."
        self.assertEqual(self.lines, [text])
        self.assertEqual(rec.most, 16)
        self.assertEqual(files.look(rec)[0], before[0])


class TestDiskErrors(DiskCase):
    def setUp(self):
        super().setUp()
        self.disk = Disk()
        self.private = files.private
        files.open = files.private = self.disk.open

    def tearDown(self):
        super().tearDown()
        del files.open
        files.private = self.private

    def recover(self, rec):
        """The disk takes everything again, and the recorder has waited."""
        self.disk.left = ENDLESS
        self.disk.opens = True
        rec.now += 200
        self.record(rec, b"again")
        self.assertTrue(rec.flush())

    def test_wherever_a_write_fails_each_seq_is_found_once(self):
        for left in list(range(0, 40, 3)) + list(range(40, 1400, 41)):
            rec = self.boot(size=1024, most=64)
            self.disk.left = left
            before = rec.o[4]
            for n in range(40):
                self.record(rec, b"%d" % n + b"x" * (n * 23 % 400), b"t/%d" % (n % 5))
            self.assertTrue(rec.o[4] >= before + 40)
            rec.flush()
            self.recover(rec)
            self.assertEqual([reason for reason, _, _ in self.check(rec)], [FAILED])
            self.clear(rec)

    def test_a_write_that_fails_within_a_record_loses_one_seq(self):
        rec = self.boot(size=4096)
        self.record(rec, b"first")
        self.disk.left = 300
        before = rec.o[4]
        self.record(rec, b"x" * 900)  # its header is made before its second block fails
        self.assertEqual(rec.o[4], before + 1)
        self.recover(rec)
        self.assertEqual(self.check(rec)[0][1], before)

    def test_nothing_is_written_behind_a_torn_record(self):
        rec = self.boot(size=4096)
        self.record(rec, b"x" * 300)
        self.disk.left = 100
        self.record(rec, b"y" * 900)
        torn = read(rec, 0)
        self.disk.left = ENDLESS
        for _ in range(3):
            self.record(rec, b"z" * 300)
            self.assertFalse(rec.settle(True) or rec.flush())
        self.recover(rec)
        self.assertEqual(read(rec, 0), torn)

    def test_a_disk_that_fails_for_long_loses_no_older_segment_and_needs_no_memory(self):
        rec = self.boot(size=1024, most=3)
        for n in range(150):
            self.record(rec, b"%03d" % n)
        rec.flush()
        there = files.look(rec)
        self.disk.left = 0
        for _ in range(50):
            rec.now += 200
            self.record(rec, b"x" * 300)
            rec.flush()
        self.assertEqual(set(there) - set(files.look(rec)), {there[0]})
        self.assertTrue(len(rec.gaps) <= 3)
        self.recover(rec)
        gaps = self.check(rec, since=self.first(rec))
        self.assertEqual([reason for reason, _, _ in gaps].count(FAILED), 1)
        self.assertEqual([gone for _, _, gone in gaps].count(there[0]), 1)

    def test_an_overwritten_segment_is_a_gap_in_the_next_one_that_can_be_opened(self):
        rec = self.boot(size=1024, most=3)
        while files.look(rec) != [0, 1, 2]:
            self.record(rec, b"x" * 100)
        rec.flush()
        self.disk.opens = False
        for _ in range(12):
            self.record(rec, b"x" * 100)
        for _ in range(5):
            rec.now += 200
            self.record(rec, b"lost")
        self.recover(rec)
        gaps = self.check(rec)
        self.assertEqual(sorted(reason for reason, _, _ in gaps), [OVERWRITTEN, FAILED])
