"""The board id and boot number of a recorder: no two records have the same identity."""

import os
import unittest
from struct import unpack_from

import recorder_case
from fakes import World

from slotmq import Broker, Limits, Settings
from slotmq.platform import ondemand
from slotmq.recorder import files, start


class App:
    def __init__(self, broker):
        self.broker = broker
        self.lines = {}


def fails(*_):
    raise OSError(28, "No space left on device")


class TestBoots(unittest.TestCase):
    def setUp(self):
        self.folder = recorder_case.new_folder()

    def attach(self):
        """The recorder of a start."""
        broker = Broker(Limits(), Settings(sys_interval=0))
        World(broker)
        return recorder_case.attach(broker, self.folder).rec

    def boot(self):
        """(board, boot, segment) of a start."""
        rec = self.attach()
        self.assertTrue(rec.flush())
        files.close(rec)
        return rec.board, rec.boot, rec.segment

    def test_each_start_has_the_next_boot_number_and_a_new_segment(self):
        found = [self.boot() for _ in range(3)]
        self.assertEqual(len({board for board, _, _ in found}), 1)
        self.assertEqual([each[1:] for each in found], [(1, 0), (2, 1), (3, 2)])

    def test_the_ring_file_and_the_newest_segment_tell_the_boot_number(self):
        """Each does, if the other is gone."""
        boards = {self.boot()[0] for _ in range(3)}
        os.remove(self.folder + "ring")  # noqa: PTH107
        self.assertEqual(self.boot()[1:], (4, 3))
        for n in range(4):
            os.remove(f"{self.folder}{n:08x}.seg")  # noqa: PTH107
        self.assertEqual(self.boot()[1:], (5, 0))
        self.assertEqual(len(boards), 1)

    def on_a_full_disk(self):
        keep, begin = files.keep, files.begin
        files.keep = files.begin = fails
        try:
            return self.attach()
        finally:
            files.keep, files.begin = keep, begin

    def test_after_a_start_on_a_full_disk_it_records_as_soon_as_there_is_space(self):
        board, _, _ = self.boot()
        rec = self.on_a_full_disk()
        self.assertEqual((rec.board, rec.boot, rec.is_open), (board, 2, False))
        rec.now = rec.retry_at
        rec.message(65535, b"t", 0, 1, 0, b"21.5", 0, 4)
        self.assertTrue(rec.flush())
        self.assertEqual(files.header(rec, rec.segment)[0], 2)
        files.close(rec)
        self.assertEqual(self.boot()[:2], (board, 3))

    def test_a_first_start_on_a_full_disk_fails(self):
        with self.assertRaises(OSError):
            self.on_a_full_disk()

    def test_a_boot_whose_numbers_end_became_another_one(self):
        board, _, _ = self.boot()
        files.keep(self.folder, board, 2)  # as recorder/segments.py does then
        self.assertEqual(self.boot()[:2], (board, 3))

    def test_the_first_records_have_the_time_of_the_start(self):
        """The recorder is made before a journal is read, and started after that."""
        world = World(Broker(Limits(), Settings(sys_interval=0)))
        settings = world.broker.settings
        settings.record = (b"#",)
        settings.record_segment_size = 4096
        rec = start._made(world.broker, settings, self.folder).rec
        world.clock.ms += 3000
        start.start(App(world.broker))
        rec.flush()
        data = recorder_case.read(rec, 0)
        files.close(rec)
        ondemand.forget_all()
        at, found = 32, []
        while at < len(data) and data[at + 4 : at + 6] != b"\xff\xff":
            found.append(unpack_from("<I", data, at + 12)[0])
            at += unpack_from("<H", data, at + 4)[0]
        self.assertEqual(found, [3000] * 2)  # EVENT boot, and the ANCHOR of the clock
