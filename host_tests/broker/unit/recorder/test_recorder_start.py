"""A recorder that is made before a journal is read and started after it."""

import unittest
from struct import unpack_from

from fakes import World
from recorder_case import new_folder, read

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
    def test_its_first_records_have_the_time_of_the_start(self):
        world = World(Broker(Limits(), Settings(sys_interval=0)))
        settings = world.broker.settings
        settings.record = (b"#",)
        settings.record_segment_size = 4096
        rec = start._made(world.broker, settings, new_folder()).rec
        world.clock.ms += READING_MS
        start.start(App(world.broker))
        rec.flush()
        data = read(rec, 0)
        files.close(rec)
        ondemand.forget_all()
        at, found = HEADER, []
        while at < len(data) and data[at + 4 : at + 6] != b"\xff\xff":
            found.append(unpack_from("<I", data, at + TICKS)[0])
            at += unpack_from("<H", data, at + 4)[0]
        self.assertEqual(found, [READING_MS] * 2)  # EVENT boot, and the ANCHOR of the clock
