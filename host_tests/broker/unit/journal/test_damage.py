"""What rots, is cut off or is foreign is set aside and said; the broker starts all the same."""

import os
from binascii import crc32

from damage_case import HEADER, SNAPSHOT, STEP, TOPICS, Case, FileCase
from full_media import Flash
from scratch import content

from slotmq.journal.medium_flash import FlashMedium


class TestFiles(FileCase):
    def put(self, data):
        with open(self.path, "wb") as file:  # noqa: PTH123
            file.write(data)

    def aside(self, generation):
        """What is kept of a damaged one; it is there no more."""
        name = f"{self.path}.damaged-{generation}"
        found = content(name)
        if found is not None:
            os.remove(name)  # noqa: PTH107
            self.assertEqual([name in text for text in self.said], [True])
        return found

    def test_a_whole_one_is_taken_over_and_nothing_is_said(self):
        self.assertEqual(self.restart(), TOPICS)
        self.assertEqual(self.said, [])

    def test_a_header_with_a_wrong_byte(self):
        for at in range(0, HEADER, 1 if STEP == 1 else 5):
            data = self.whole[:at] + bytes([self.whole[at] ^ 0x10]) + self.whole[at + 1 :]
            self.put(data)
            self.assertEqual(self.restart(), 0)
            self.assertEqual(self.aside(0), data)

    def test_a_newer_format(self):
        head = self.whole[:7] + b"\x02" + self.whole[8:12]
        data = head + crc32(head).to_bytes(4, "little") + self.whole[HEADER:]
        self.put(data)
        self.assertEqual(self.restart(), 0)
        self.assertEqual(self.aside(0), data)
        self.assertIn("what is there is of version 2, this broker knows 1; kept", self.said[0])

    def test_a_generation_beyond_the_last_one_is_no_header(self):
        for number, is_one in ((0x3FFFFFFF, True), (0x40000000, False), (0xFFFFFFFF, False)):
            head = self.whole[:8] + number.to_bytes(4, "little")
            data = head + crc32(head).to_bytes(4, "little") + self.whole[HEADER:]
            self.put(data)
            self.assertEqual(self.start(), 0)
            self.made.close()
            self.assertEqual("what is there cannot be read" in self.said[0], not is_one)
            self.assertEqual(self.aside(number if is_one else 0), data)

    def test_newer_records(self):
        generation = self.whole[HEADER + 3 : HEADER + 7]
        head = b"\x01\x05\x03" + generation
        head += crc32(generation + head).to_bytes(4, "big")
        data = self.whole[:HEADER] + head + self.whole[HEADER + len(head) :]
        self.put(data)
        self.assertEqual(self.restart(), 0)
        self.assertEqual(self.aside(1), data)
        self.assertIn("generation 1 is of version 3, this broker knows 2; kept", self.said[0])

    def test_what_is_foreign(self):
        for data in (b"", b"SQLite format 3\0" * 99, b"\xff" * 3000, self.whole[HEADER:], b"s"):
            self.put(data)
            self.assertEqual(self.restart(), 0)
            self.assertEqual(self.aside(0), data)

    def test_one_that_is_shorter_than_it_was(self):
        most = 0
        for n in range(HEADER, len(self.whole), STEP):
            self.put(self.whole[:n])
            found = self.restart()
            self.assertGreaterEqual(found, most)
            most = found
            kept = self.aside(1)
            self.assertEqual(kept is not None, n < HEADER + 34)  # HEAD and two COMMITs
        self.assertEqual(most, TOPICS - 1)

    def test_a_byte_that_rots_anywhere(self):
        """The damaged file is kept wherever it lost more than the last batch."""
        counts = [0] * (TOPICS + 1)
        for at in range(HEADER, len(self.whole), STEP):
            data = self.whole[:at] + bytes([self.whole[at] ^ 4]) + self.whole[at + 1 :]
            self.put(data)
            found = self.restart()
            self.assertEqual(len(self.said), 1)
            counts[found] += 1
            kept = self.aside(1)
            if found < TOPICS - 1 or kept:
                self.assertEqual(kept, data)
        self.assertGreater(min(counts[:TOPICS]), 0)

    def test_rows_that_contradict_one_another_end_one_start_and_no_other(self):
        generation = self.whole[HEADER + 3 : HEADER + 7]
        records = b""
        for body in (b"\x0b\x04\0\0\0\x63", b"\x0d\x04\0\0\0\0"):  # RETAINED of no message
            records += body + crc32(generation + body).to_bytes(4, "big")
        self.put(self.whole + records)
        with self.assertRaises(OSError) as caught:
            self.start()
        self.assertIn("contradicts itself", str(caught.exception))
        self.made.close()
        self.assertEqual(self.restart(), 0)


class TestFlash(Case):
    def setUp(self):
        super().setUp()
        self.device = Flash(12, 1024)
        self.live()
        self.whole = bytes(self.device.data)

    def medium(self):
        return FlashMedium(self.device, SNAPSHOT // 2)

    def put(self, data):
        self.device.data[:] = data

    def test_a_byte_that_rots_anywhere(self):
        for at in range(0, 4096, STEP * 13):
            self.put(self.whole[:at] + bytes([self.whole[at] ^ 4]) + self.whole[at + 1 :])
            found = self.restart()
            self.assertLessEqual(found, TOPICS)
            if found < TOPICS - 1:
                self.assertEqual(len(self.said), 1)
                self.assertIn("damaged", self.said[0])
                if "behind byte" in self.said[0]:  # a region has no room for a copy
                    self.assertIn("; no copy of it is kept", self.said[0])

    def test_a_type_that_rots_to_what_padding_is(self):
        found = []
        at = self.whole.find(b"\x0b\x04\x00")
        while at >= 0:  # RETAINED rows, in the midst of pages
            self.put(self.whole[:at] + b"\xff" + self.whole[at + 1 :])
            found.append(self.restart())
            self.assertEqual(len(self.said), 1)
            self.assertIn("damaged", self.said[0])
            at = self.whole.find(b"\x0b\x04\x00", at + 1)
        self.assertGreater(len(found), 2)
        self.assertLess(min(found), TOPICS - 1)

    def test_a_newer_version_is_said(self):
        at = self.whole.find(b"slotmqJ\x01")
        data = self.whole
        while at >= 0:
            head = data[at : at + 7] + b"\x02" + data[at + 8 : at + 20]
            head += crc32(head).to_bytes(4, "little")
            data = data[:at] + head + data[at + len(head) :]
            at = data.find(b"slotmqJ\x01")
        self.put(data)
        self.assertEqual(self.restart(), 0)
        self.assertIn("what is there is of version 2, this broker knows 1", self.said[0])

    def test_numbers_that_no_broker_reaches_are_no_header(self):
        whole = self.whole
        for at in (8, 12, 16):  # generation, birth, number
            self.put(whole)
            for block in range(0, len(whole), 1024):
                for copy in (block, block + 128):
                    head = whole[copy : copy + at] + b"\xff" * 4 + whole[copy + at + 4 : copy + 20]
                    if whole[copy : copy + 8] == b"slotmqJ\x01":
                        head += crc32(head).to_bytes(4, "little")
                        self.device.data[copy : copy + 24] = head
            self.assertEqual(self.restart(), 0)
            self.assertIn("what is there cannot be read", self.said[0])

    def test_what_is_foreign(self):
        for byte in (b"\0", b"x"):
            self.put(byte * len(self.whole))
            self.assertEqual(self.restart(), 0)
            self.assertEqual(len(self.said), 1)

    def rot(self, block):
        """Both copies of a block's header are wrong."""
        self.put(self.whole)
        for at in (9, 128 + 9):
            self.device.data[1024 * block + at] ^= 1

    def test_the_header_of_the_newest_generation(self):
        """What is gone is said; the generation before it takes its place."""
        self.assertEqual(self.start(), TOPICS)  # in generation 2
        self.whole = bytes(self.device.data)
        medium = self.broker.journal.medium
        for block in range(medium.first, medium.first + medium.length):
            self.rot(block)
            self.start()
            self.assertEqual(len(self.said), 1)
            self.assertIn("what was newer has rotted", self.said[0])
            self.assertEqual(self.start(), self.broker.retained.names.count())
            self.assertEqual(self.said, [])

    def test_the_header_of_the_last_block(self):
        medium = self.broker.journal.medium
        self.assertGreater(medium.length, 1)
        self.rot(medium.first + medium.length - 1)
        self.assertLess(self.restart(), TOPICS)
        self.assertIn("what was newer has rotted", self.said[0])

    def test_a_generation_that_a_power_cut_left_is_no_damage(self):
        """Nor is a piece of its first header, whatever follows it in its page."""
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
                self.assertEqual(self.said, [])

    def test_an_erased_region_is_no_damage(self):
        self.put(b"\xff" * len(self.whole))
        self.assertEqual(self.restart(), 0)
        self.assertEqual(self.said, [])


del Case, FileCase
