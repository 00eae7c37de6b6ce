"""Who a recorder is, and which start this is: no identity of a record comes twice."""

import os
import unittest

import scratch
from fakes import World

from slotmq import Broker, Limits, Settings, record, record_file


class TestRecordBoots(unittest.TestCase):
    def setUp(self):
        self.folder = scratch.path() + "/"
        os.mkdir(self.folder)  # noqa: PTH102

    def boot(self):
        """(board, boot, segment) of a start."""
        settings = Settings(sys_interval=0)
        settings.record = (b"#",)
        broker = Broker(Limits(), settings)
        World(broker)
        rec = record.attach(broker, settings, self.folder).rec
        self.assertTrue(rec.flush())
        record_file.close(rec)
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

    def test_a_boot_whose_numbers_end_became_another_one(self):
        board, _, _ = self.boot()
        record_file.keep(self.folder, board, 2)  # as record_control.py does then
        self.assertEqual(self.boot()[:2], (board, 3))
