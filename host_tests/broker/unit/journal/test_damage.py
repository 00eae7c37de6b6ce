"""A journal that rots, is cut off, is foreign or cannot be read: it is set aside and reported, and
the broker starts with what can be restored, and works."""

import os
import unittest
from binascii import crc32

import scratch
from fakes import World
from invariants import broken
from journal_case import collect
from media import Flash, Ram
from packets import DISCONNECT, PUBACK, PUBREC, ack, publish, subscribe
from scratch import content

from slotmq import Broker, Limits, Settings
from slotmq.journal.medium_file import FileMedium
from slotmq.journal.medium_flash import FlashMedium
from slotmq.journal.reader import Reader
from slotmq.journal.records import VERSION
from slotmq.journal.restore import restore
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    import vfs

SNAPSHOT, LIMIT, HEADER = 8000, 60000, 16
SMALL = {"connections": 4, "sessions": 4, "subscriptions": 8, "messages": 16, "deliveries": 32}
STEP = 17 if MICROPYTHON else 1
TOPICS = 6
BLOCK = 512  # of a file system
LAST = TOPICS - 1  # topics that are back if only the last batch is lost


def with_crc(head):
    return head + crc32(head).to_bytes(4, "little")


def flipped(data, at, bits=4):
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


class DamageCase(unittest.TestCase):
    def setUp(self):
        collect()

    def start(self):
        """A start with what the medium contains; the number of retained topics."""
        self.reports = []
        self.broker = Broker(Limits(**SMALL), Settings(sys_interval=0, mqtt_versions=3))
        restore(self.broker, self.open_medium(), self.reports.append)
        self.assertEqual(broken(self.broker), [])
        return self.broker.retained.names.count()

    def write_journal(self):
        """One commit for each topic, and no compaction behind them."""
        self.assertEqual(self.start(), 0)
        world = World(self.broker)
        client = world.client("p", clean=False)
        for n in range(TOPICS):
            client.send(publish(f"r/{n}", b"%d" % n, 1, n + 1, retain=True))
            world.turn(3)
            self.assertEqual(client.packets(), [ack(PUBACK, n + 1)])
        self.broker.journal.medium.close()

    def restart(self):
        """As start(); then a new message is stored, and a second start restores it too."""
        found = self.start()
        reports = self.reports
        world = World(self.broker)
        client = world.client("q")
        client.send(publish("new", b"new", retain=True))
        world.turn(3)
        self.broker.journal.medium.close()
        self.assertEqual(self.start(), found + 1)
        self.assertEqual(self.reports, [])
        self.broker.journal.medium.close()
        self.reports = reports
        return found

    def restart_some(self, at):
        """A start; at some places also what restart() does."""
        if at % 16 == 0:
            return self.restart()
        found = self.start()
        self.broker.journal.medium.close()
        return found


class FileCase(DamageCase):
    kind = FileMedium

    def setUp(self):
        super().setUp()
        self.path = scratch.path()
        self.write_journal()
        self.whole = content(self.path)

    def open_medium(self):
        self.medium = self.kind(self.path, SNAPSHOT, LIMIT)
        return self.medium

    def tearDown(self):
        self.medium.close()

    def put(self, data):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(data)

    def take_copy(self, generation):
        """Remove the copy of a damaged generation, which must be reported; its content or None."""
        name = f"{self.path}.damaged-{generation}"
        found = content(name)
        if found is not None:
            os.remove(name)  # noqa: PTH107
            self.assertEqual([name in text for text in self.reports], [True])
        return found


class TestFile(FileCase):
    def newer(self):
        """The same, with HEAD of the next version of the records."""
        generation = self.whole[HEADER + 3 : HEADER + 7]
        head = b"\x01\x05" + bytes([VERSION + 1]) + generation
        head += crc32(generation + head).to_bytes(4, "big")
        return self.whole[:HEADER] + head + self.whole[HEADER + len(head) :]

    def test_a_whole_journal_is_restored_without_a_report(self):
        self.assertEqual(self.restart(), TOPICS)
        self.assertEqual(self.reports, [])

    def test_what_has_no_generation_is_set_aside_whole(self):
        rest = self.whole[HEADER:]
        future = with_crc(self.whole[:7] + b"\x02" + self.whole[8:12]) + rest
        newer = f"version {VERSION + 1}", f"knows {VERSION}", "generation 1"
        vectors = [(future, 0, ("version 2", "knows 1", "kept")), (self.newer(), 1, newer)]
        for data in (b"", b"SQLite format 3\0" * 99, b"\xff" * 3000, rest, b"s"):
            vectors.append((data, 0, ("cannot be read",)))
        for at in range(0, HEADER, 1 if STEP == 1 else 5):
            vectors.append((flipped(self.whole, at, 16), 0, ("cannot be read",)))
        for number in (0x3FFFFFFF, 0x40000000, 0xFFFFFFFF):
            is_valid = number == 0x3FFFFFFF  # but of other records
            head = with_crc(self.whole[:8] + number.to_bytes(4, "little"))
            what = f"generation {number}" if is_valid else "cannot be read"
            vectors.append((head + rest, number if is_valid else 0, (what,)))
        for data, generation, words in vectors:
            self.put(data)
            self.assertEqual((self.start if generation > 9 else self.restart)(), 0)
            self.medium.close()
            self.assertEqual(self.take_copy(generation), data)
            self.assertEqual([word in self.reports[0] for word in words], [True] * len(words))

    def test_of_a_file_that_was_cut_off_the_whole_batches_are_restored(self):
        most = 0
        for n in range(HEADER, len(self.whole), STEP):
            self.put(self.whole[:n])
            found = self.restart_some(n)
            self.assertGreaterEqual(found, most)
            most = found
            copy = self.take_copy(1)
            self.assertEqual(copy is not None, n < HEADER + 34)  # HEAD and two COMMITs
        self.assertEqual(most, LAST)

    def test_a_byte_that_rots_anywhere(self):
        """A copy is made wherever more than the last batch is lost."""
        counts = [0] * (TOPICS + 1)
        for at in range(HEADER, len(self.whole), STEP):
            data = flipped(self.whole, at)
            self.put(data)
            found = self.restart_some(at)
            self.assertEqual(len(self.reports), 1)
            counts[found] += 1
            copy = self.take_copy(1)
            if found < LAST or copy:
                self.assertEqual(copy, data)
        self.assertGreater(min(counts[:TOPICS]), 0)

    def test_rows_that_contradict_each_other_fail_one_start_only(self):
        generation = self.whole[HEADER + 3 : HEADER + 7]
        records = b""
        for body in (b"\x0b\x04\0\0\0\x63", b"\x0d\x04\0\0\0\0"):  # RETAINED of no message
            records += body + crc32(generation + body).to_bytes(4, "big")
        self.put(self.whole + records)
        with self.assertRaises(OSError) as caught:
            self.start()
        self.assertIn("contradicts itself", str(caught.exception))
        self.medium.close()
        self.assertEqual(self.restart(), 0)


class TestHoles(FileCase):
    """A block of zeros, which a computer's file system may leave where it wrote later blocks
    before the power failed: in the last batch that is a torn end, elsewhere damage."""

    def write_journal(self):
        """The last batch has a message of several blocks."""
        super().write_journal()
        self.assertEqual(self.start(), TOPICS)
        self.world = World(self.broker)
        self.client = self.world.client("writer")
        self.append(b"first" * 60)
        self.begin = self.append(b"x" * 1700) + HEADER
        self.end = self.append(b"") + HEADER
        self.broker.journal.medium.close()

    def append(self, payload):
        """One commit; where it begins."""
        at = self.broker.journal.medium.end
        self.client.send(publish("last", payload, 1, 1, retain=True))
        self.world.turn(9)
        self.assertEqual(self.client.packets(), [ack(PUBACK, 1)])
        return at

    def test_zeros_in_the_last_batch_are_a_torn_end(self):
        whole = self.whole[: self.end]
        begin, holes = self.begin, 0
        while begin < len(whole) - 10:
            end = min(begin // BLOCK * BLOCK + BLOCK, len(whole))
            self.put(whole[:begin] + bytes(end - begin) + whole[end:])
            self.assertEqual(self.restart(), TOPICS + 1)
            report = "its end was cut off: what was written last does not count"
            self.assertEqual(self.reports, [report])
            self.assertIsNone(self.take_copy(2))
            begin, holes = end, holes + 1
        self.assertGreater(holes, 3)

    def test_zeros_before_the_last_batch_and_other_bytes_in_it_are_damage(self):
        begin = self.begin // BLOCK * BLOCK + BLOCK
        end = begin + BLOCK
        zeros = self.whole[:begin] + bytes(BLOCK) + self.whole[end:]
        others = self.whole[:begin] + b"y" * BLOCK + self.whole[end : self.end]
        for data in (zeros, others):
            self.put(data)
            self.assertEqual(self.restart(), TOPICS + 1)
            self.assertIn("damaged behind byte", self.reports[0])
            self.assertEqual(self.take_copy(2), data)


WHOLE = (2, 1, 2, 3)  # sessions, ids between PUBLISH and PUBREL, deliveries, retained messages
EACH = 3 if STEP == 1 else 7  # bytes
RESTORED = [(0, 0, 0, 0), (2, 0, 0, 0), (2, 1, 0, 0), (2, 1, 2, 0), WHOLE]


class TestTables(FileCase):
    """A file begins with one COMMIT behind each table: the tables before a damage are restored."""

    def write_journal(self):
        """A row of each table, in a generation that a start has written."""
        self.start()
        world = World(self.broker)
        world.client("reader", clean=False).send(subscribe(1, "t", 1) + DISCONNECT)
        world.turn(3)
        sender = world.client("sender", clean=False)
        sender.send(publish("x", b"held", 2, 7))
        for n in range(2):
            sender.send(publish("t", b"%d" % n, 1, n + 1))
        for n in range(3):
            sender.send(publish(f"r/{n}", b"%d" % n, 1, n + 3, retain=True))
        world.turn(9)
        answers = [ack(PUBREC, 7)] + [ack(PUBACK, n + 1) for n in range(5)]
        self.assertEqual(sender.packets(), answers)
        self.broker.journal.medium.close()
        self.assertEqual(self.restored(), WHOLE)

    def restored(self):
        """The number of rows of each table after a start."""
        self.start()
        broker = self.broker
        found = (broker.sessions.names.count(), sum(broker.sessions.id_count))
        found += (broker.deliveries.count[0], broker.retained.names.count())
        broker.journal.medium.close()
        return found

    def check(self, journals):
        seen = set()
        for data in journals:
            self.put(data)
            found = self.restored()
            self.assertEqual(self.take_copy(2), data)
            lost = [n for n in range(4) if found[n] != WHOLE[n]]
            self.assertEqual(lost, list(range(4))[4 - len(lost) :])  # all behind the damage
            self.assertEqual([found[n] for n in lost], [0] * len(lost))
            seen.add(found)
        self.assertEqual(sorted(seen), RESTORED)

    def test_a_wrong_bit(self):
        self.check(flipped(self.whole, at) for at in range(HEADER, len(self.whole), EACH))

    def test_a_missing_end(self):
        """No power cut does that: the file was synced before it got its name. Also between two
        records."""
        medium = self.open_medium()
        reader = Reader(medium, medium.generations()[0], 512)
        at, records = 0, []
        while at < medium.end:
            self.assertTrue(reader.find(at))
            records.append(HEADER + at)
            at = reader.next
        medium.close()
        for ends in (range(HEADER, len(self.whole), EACH), records[1:]):
            self.check(self.whole[:n] for n in ends)


class Unreadable(FileMedium):
    """The file system can no longer read its end."""

    def readinto(self, at, buf, n):
        if at + n > 150:
            raise OSError(5)
        return FileMedium.readinto(self, at, buf, n)


class Opened:
    """A file whose read fails."""

    def __init__(self, errno):
        self.errno = errno

    def read(self, n):
        raise OSError(self.errno, "read")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class TestReading(FileCase):
    def start_with(self, errno):
        """A start that gets this error when it reads the file."""

        def opened(path, mode, **options):
            if path == self.path and mode == "rb":
                return Opened(errno)
            return open(path, mode, **options)  # noqa: PTH123

        module = ondemand.take("journal.medium_file_start", 0)
        module.open = opened
        try:
            return self.start()
        finally:
            del module.open

    def test_what_stands_before_an_unreadable_part_is_restored(self):
        self.kind = Unreadable
        self.assertTrue(0 < self.start() < TOPICS)

    def test_a_file_whose_header_cannot_be_read_is_set_aside(self):
        """EIO of a computer's disk, 84 of littlefs."""
        for errno in (5, 84):
            before = content(self.path)
            self.assertEqual(self.start_with(errno), 0)
            self.medium.close()
            self.assertEqual(self.take_copy(0), before)
            self.assertEqual(self.restart(), 0)

    def test_a_folder_in_its_place_fails_the_start_and_is_not_moved(self):
        """Some systems open a folder, and fail to read it."""
        with self.assertRaises(OSError):
            self.start_with(21)
        self.assertEqual(content(self.path), self.whole)


class TestFlash(DamageCase):
    def setUp(self):
        super().setUp()
        self.device = Flash(12, 1024)
        self.write_journal()
        self.whole = bytes(self.device.data)

    def open_medium(self):
        return FlashMedium(self.device, SNAPSHOT // 2)

    def put(self, data):
        self.device.data[:] = data

    def check_report(self, *words):
        self.assertEqual([word in self.reports[0] for word in words], [True] * len(words))

    def test_a_byte_that_rots_anywhere(self):
        for at in range(0, 4096, STEP * 13):
            self.put(flipped(self.whole, at))
            found = self.restart()
            self.assertLessEqual(found, TOPICS)
            if found < LAST:
                self.assertEqual(len(self.reports), 1)
                self.assertIn("damaged", self.reports[0])
                if "behind byte" in self.reports[0]:  # a region has no space for a copy
                    self.assertIn("no copy", self.reports[0])

    def test_a_type_that_rots_to_the_value_of_padding(self):
        found = []
        at = self.whole.find(b"\x0b\x04\x00")
        while at >= 0:  # RETAINED rows, in the middle of pages
            self.put(self.whole[:at] + b"\xff" + self.whole[at + 1 :])
            found.append(self.restart())
            self.assertEqual(len(self.reports), 1)
            self.check_report("damaged")
            at = self.whole.find(b"\x0b\x04\x00", at + 1)
        self.assertGreater(len(found), 2)
        self.assertLess(min(found), LAST)

    def put_headers(self, at, value):
        """Every copy of a header has that value; its CRC is right."""
        self.put(self.whole)
        found = 0
        for copy in range(0, len(self.whole), 128):
            head = self.whole[copy : copy + 20]
            if head[:8] == b"slotmqJ\x01":
                head = head[:at] + value + head[at + len(value) :]
                self.device.data[copy : copy + 24] = with_crc(head)
                found += 1
        self.assertGreater(found, 0)

    def test_a_newer_format_and_numbers_above_the_largest(self):
        for at, value, words in (
            (7, b"\x02", ("version 2", "knows 1")),
            (8, b"\xff" * 4, ("cannot be read",)),  # generation
            (12, b"\xff" * 4, ("cannot be read",)),  # birth
            (16, b"\xff" * 4, ("cannot be read",)),  # number
        ):
            self.put_headers(at, value)
            self.assertEqual(self.restart(), 0)
            self.check_report(*words)

    def test_foreign_bytes_are_reported_and_an_erased_region_is_not(self):
        for byte, reports in ((b"\0", 1), (b"x", 1), (b"\xff", 0)):
            self.put(byte * len(self.whole))
            self.assertEqual(self.restart(), 0)
            self.assertEqual(len(self.reports), reports)

    def rot(self, block):
        """Both copies of a block's header are wrong."""
        self.put(self.whole)
        for at in (9, 128 + 9):
            self.device.data[1024 * block + at] ^= 1

    def test_if_a_header_of_the_newest_generation_rots_the_one_before_is_restored(self):
        medium = self.broker.journal.medium
        self.assertGreater(medium.length, 1)
        self.rot(medium.first + medium.length - 1)
        self.assertLess(self.restart(), TOPICS)
        self.check_report("rotted")
        self.put(self.whole)
        self.assertEqual(self.start(), TOPICS)  # in generation 2
        self.whole = bytes(self.device.data)
        medium = self.broker.journal.medium
        for block in range(medium.first, medium.first + medium.length):
            self.rot(block)
            self.start()
            self.assertEqual(len(self.reports), 1)
            self.check_report("rotted")
            self.assertEqual(self.start(), self.broker.retained.names.count())
            self.assertEqual(self.reports, [])

    def test_a_generation_that_a_power_cut_left_unfinished_is_not_damage(self):
        """Nor is a part of its first header, whatever follows it in its page."""
        medium = self.broker.journal.medium
        medium.begin(self.broker.journal.generation + 1)
        for _ in range(40):
            medium.append(b"x" * 50, 0, 50)
        base = medium.base * 1024
        header = bytes(self.device.data[medium.first * 1024 :][:256])
        unfinished = bytes(self.device.data)
        for n in range(0, 24, 3):
            for rest in (b"\xff", b"\x5a"):
                self.put(unfinished)
                self.device.data[base : base + 256] = header[:n] + rest * (256 - n)
                self.assertEqual(self.start(), TOPICS)
                self.assertEqual(self.reports, [])


class OnLittlefs(DamageCase):
    """The chip below the file system rots."""

    def setUp(self):
        super().setUp()
        self.device = Ram(40, 512)
        vfs.VfsLfs2.mkfs(self.device)
        vfs.mount(vfs.VfsLfs2(self.device), "/j")
        self.write_journal()
        vfs.umount("/j")
        self.whole = bytes(self.device.data)

    def open_medium(self):
        return FileMedium("/j/f", SNAPSHOT // 2, LIMIT)

    def test_a_byte_that_rots_in_any_block(self):
        unreadable = 0
        for at in range(0, len(self.whole), 512):
            for byte in (0, 1, 3, 100):
                self.device.data[:] = self.whole
                self.device.data[at + byte] ^= 0x55
                unreadable += self.is_unreadable()
        self.assertGreater(unreadable, 0)

    def is_unreadable(self):
        """Does the start report that the header cannot be read?"""
        try:
            vfs.mount(vfs.VfsLfs2(self.device), "/j")
        except OSError:
            return False  # no file system is left
        try:
            self.assertLessEqual(self.start(), TOPICS)
            self.broker.journal.medium.close()
        finally:
            vfs.umount("/j")
        return "cannot be read" in "".join(self.reports)


if MICROPYTHON:

    class TestLittlefs(OnLittlefs):
        pass
else:

    class TestMode(FileCase):
        def test_the_journal_and_its_copy_are_readable_by_their_owner_only(self):
            self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)  # noqa: PTH116
            self.put(flipped(self.whole, 40))
            self.start()
            name = self.reports[0].split()[-1]
            self.assertEqual(os.stat(name).st_mode & 0o777, 0o600)  # noqa: PTH116


del DamageCase, FileCase, OnLittlefs
