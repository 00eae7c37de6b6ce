"""A journal that rots, is cut off or is foreign: it is set aside and reported, and the broker
starts."""

from binascii import crc32

from damage_case import HEADER, SNAPSHOT, STEP, TOPICS, DamageCase, FileDamageCase
from media import Flash

from slotmq.journal.medium_flash import FlashMedium


def with_crc(head):
    return head + crc32(head).to_bytes(4, "little")


class TestFile(FileDamageCase):
    def test_a_whole_journal_is_restored_without_a_report(self):
        self.assertEqual(self.restart(), TOPICS)
        self.assertEqual(self.reports, [])

    def test_a_file_without_a_valid_header_is_set_aside(self):
        vectors = [b"", b"SQLite format 3\0" * 99, b"\xff" * 3000, self.whole[HEADER:], b"s"]
        for at in range(0, HEADER, 1 if STEP == 1 else 5):
            wrong = bytes([self.whole[at] ^ 0x10])
            vectors.append(self.whole[:at] + wrong + self.whole[at + 1 :])
        for data in vectors:
            self.put(data)
            self.assertEqual(self.restart(), 0)
            self.assertEqual(self.take_copy(0), data)

    def test_a_newer_format_is_set_aside(self):
        data = with_crc(self.whole[:7] + b"\x02" + self.whole[8:12]) + self.whole[HEADER:]
        self.put(data)
        self.assertEqual(self.restart(), 0)
        self.assertEqual(self.take_copy(0), data)
        self.check_report("version 2", "knows 1", "kept")

    def test_a_generation_above_the_largest_makes_a_header_invalid(self):
        for number, is_valid in ((0x3FFFFFFF, True), (0x40000000, False), (0xFFFFFFFF, False)):
            head = self.whole[:8] + number.to_bytes(4, "little")
            data = with_crc(head) + self.whole[HEADER:]
            self.put(data)
            self.assertEqual(self.start(), 0)
            self.medium.close()
            self.assertEqual("cannot be read" in self.reports[0], not is_valid)
            self.assertEqual(self.take_copy(number if is_valid else 0), data)

    def test_newer_records_are_set_aside(self):
        generation = self.whole[HEADER + 3 : HEADER + 7]
        head = b"\x01\x05\x04" + generation
        head += crc32(generation + head).to_bytes(4, "big")
        data = self.whole[:HEADER] + head + self.whole[HEADER + len(head) :]
        self.put(data)
        self.assertEqual(self.restart(), 0)
        self.assertEqual(self.take_copy(1), data)
        self.check_report("generation 1", "version 4", "knows 3", "kept")

    def test_of_a_file_that_was_cut_off_the_whole_batches_are_restored(self):
        most = 0
        for n in range(HEADER, len(self.whole), STEP):
            self.put(self.whole[:n])
            found = self.restart()
            self.assertGreaterEqual(found, most)
            most = found
            copy = self.take_copy(1)
            self.assertEqual(copy is not None, n < HEADER + 34)  # HEAD and two COMMITs
        self.assertEqual(most, TOPICS - 1)

    def test_a_byte_that_rots_anywhere(self):
        """A copy is made wherever more than the last batch is lost."""
        counts = [0] * (TOPICS + 1)
        for at in range(HEADER, len(self.whole), STEP):
            data = self.whole[:at] + bytes([self.whole[at] ^ 4]) + self.whole[at + 1 :]
            self.put(data)
            found = self.restart()
            self.assertEqual(len(self.reports), 1)
            counts[found] += 1
            copy = self.take_copy(1)
            if found < TOPICS - 1 or copy:
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

    def test_a_byte_that_rots_anywhere(self):
        for at in range(0, 4096, STEP * 13):
            self.put(self.whole[:at] + bytes([self.whole[at] ^ 4]) + self.whole[at + 1 :])
            found = self.restart()
            self.assertLessEqual(found, TOPICS)
            if found < TOPICS - 1:
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
            self.assertIn("damaged", self.reports[0])
            at = self.whole.find(b"\x0b\x04\x00", at + 1)
        self.assertGreater(len(found), 2)
        self.assertLess(min(found), TOPICS - 1)

    def put_headers(self, change):
        """Every copy of a header is what change(copy) makes of its first 20 bytes."""
        self.put(self.whole)
        found = 0
        for block in range(0, len(self.whole), 1024):
            for copy in (block, block + 128):
                if self.whole[copy : copy + 8] == b"slotmqJ\x01":
                    head = with_crc(change(self.whole[copy : copy + 20]))
                    self.device.data[copy : copy + 24] = head
                    found += 1
        self.assertGreater(found, 0)

    def test_a_newer_format_is_reported(self):
        self.put_headers(lambda head: head[:7] + b"\x02" + head[8:])
        self.assertEqual(self.restart(), 0)
        self.check_report("version 2", "knows 1")

    def test_numbers_above_the_largest_make_a_header_invalid(self):
        for at in (8, 12, 16):  # generation, birth, number
            self.put_headers(lambda head: head[:at] + b"\xff" * 4 + head[at + 4 :])  # noqa: B023
            self.assertEqual(self.restart(), 0)
            self.check_report("cannot be read")

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

    def test_if_the_header_of_the_last_block_rots_that_is_reported(self):
        medium = self.broker.journal.medium
        self.assertGreater(medium.length, 1)
        self.rot(medium.first + medium.length - 1)
        self.assertLess(self.restart(), TOPICS)
        self.check_report("rotted")

    def test_a_generation_that_a_power_cut_left_unfinished_is_not_damage(self):
        """Nor is a part of its first header, whatever follows it in its page."""
        medium = self.broker.journal.medium
        journal = self.broker.journal
        medium.begin(journal.generation + 1)
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
