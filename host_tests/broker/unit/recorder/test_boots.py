"""Who a recorder is, and which start this is: no identity of a record comes twice."""

import os
import unittest

import scratch
from fakes import World

from slotmq import Broker, Limits, Settings
from slotmq.recorder import files, start


def full(*_):
    """In place of what writes: there is no room."""
    raise OSError(28, "No space left on device")


class TestRecordBoots(unittest.TestCase):
    def setUp(self):
        self.folder = scratch.path() + "/"
        os.mkdir(self.folder)  # noqa: PTH102

    def attach(self):
        """The recorder of a start."""
        settings = Settings(sys_interval=0)
        settings.record = (b"#",)
        broker = Broker(Limits(), settings)
        World(broker)
        return start.attach(broker, settings, self.folder).rec

    def boot(self):
        """(board, boot, segment) of a start."""
        rec = self.attach()
        self.assertTrue(rec.flush())
        files.close(rec)
        return rec.board, rec.boot, rec.segment

    def test_each_start_counts_up_and_begins_a_segment(self):
        found = [self.boot() for _ in range(3)]
        self.assertEqual(len({board for board, _, _ in found}), 1)
        self.assertEqual([each[1:] for each in found], [(1, 0), (2, 1), (3, 2)])

    def test_a_start_that_lost_its_identity_goes_on_behind_the_newest_segment(self):
        for _ in range(3):
            self.boot()
        os.remove(self.folder + "ring")  # noqa: PTH107
        self.assertEqual(self.boot()[1:], (4, 3))

    def test_a_ring_that_was_emptied_counts_on(self):
        board, _, _ = self.boot()
        os.remove(self.folder + "00000000.seg")  # noqa: PTH107
        self.assertEqual(self.boot(), (board, 2, 0))

    def on_a_full_disk(self):
        keep, begin = files.keep, files.begin
        files.keep = files.begin = full
        try:
            return self.attach()
        finally:
            files.keep, files.begin = keep, begin

    def test_on_a_full_disk_a_start_records_as_soon_as_there_is_room(self):
        board, _, _ = self.boot()
        rec = self.on_a_full_disk()
        self.assertEqual((rec.board, rec.boot, rec.is_open), (board, 2, False))
        rec.now = rec.retry_at
        rec.message(65535, b"t", 0, 1, 0, b"21.5", 0, 4)
        self.assertTrue(rec.flush())
        self.assertEqual(files.header(rec, rec.segment)[0], 2)
        files.close(rec)
        self.assertEqual(self.boot()[:2], (board, 3))

    def test_a_first_start_on_a_full_disk_has_no_name_to_record_under(self):
        with self.assertRaises(OSError):
            self.on_a_full_disk()

    def test_a_boot_whose_numbers_end_became_another_one(self):
        board, _, _ = self.boot()
        files.keep(self.folder, board, 2)  # as recorder/segments.py does then
        self.assertEqual(self.boot()[:2], (board, 3))
