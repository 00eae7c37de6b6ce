"""A recorder that begins when a journal has been read: what it writes then is of then."""

import os
import unittest
from struct import unpack_from

import scratch
from fakes import World

from slotmq import Broker, Limits, Settings
from slotmq.platform import ondemand
from slotmq.recorder import files, start

HEADER = 32
TICKS = 12  # of a record
READING_MS = 3000


class App:
    def __init__(self, broker):
        self.broker = broker
        self.lines = {}


class TestStart(unittest.TestCase):
    def test_its_first_records_are_of_its_start(self):
        world = World(Broker(Limits(), Settings(sys_interval=0)))
        settings = world.broker.settings
        settings.record = (b"#",)
        settings.record_segment_size = 4096
        folder = scratch.path() + "/"
        os.mkdir(folder)  # noqa: PTH102
        rec = start._made(world.broker, settings, folder).rec
        world.clock.ms += READING_MS
        start.start(App(world.broker))
        rec.flush()
        with open(files.path(rec, 0), "rb") as file:  # noqa: PTH123
            data = file.read()
        files.close(rec)
        ondemand.forget_all()
        at, found = HEADER, []
        while at < len(data) and data[at + 4 : at + 6] != b"\xff\xff":
            found.append(unpack_from("<I", data, at + TICKS)[0])
            at += unpack_from("<H", data, at + 4)[0]
        self.assertEqual(found, [READING_MS] * 2)  # EVENT boot, and the ANCHOR of the clock


if __name__ == "__main__":
    unittest.main()
