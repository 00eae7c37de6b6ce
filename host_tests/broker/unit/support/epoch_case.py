# epoch_case.py - a broker whose clock is about to begin a new epoch, and all times that it stores.
import unittest

from fakes import World
from memory_medium import MemoryMedium
from recorder_case import attach

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore
from slotmq.recorder import files
from slotmq.tables import epoch

NONE = 0xFFFF
EPOCH = 259200000  # tenths of a second
MOST = 1 << 30  # below that are small integers
NEVER = MOST - 1
LEAST = -0x20000000
YEARS = 100 * 365 * 86400 * 10
TIMES = YEARS // EPOCH + 1  # epochs in a hundred years


class EpochCase(unittest.TestCase):
    recording = False

    def setUp(self):
        self.medium = MemoryMedium()
        self.start()

    def start(self, journal=True):
        names = {"sys_interval": 10, "retry_interval": 20, "connect_timeout": 15}
        self.broker = Broker(Limits(), Settings(packet_timeout=7, **names))
        self.world = World(self.broker)
        self.five = self.broker.five
        if self.recording:
            self.interceptor = attach(self.broker, record_flush_interval=10, record_events=True)
            self.rec = self.interceptor.rec
        if journal:
            restore(self.broker, self.medium, lambda text: None)

    def tearDown(self):
        if self.recording:
            files.close(self.rec)

    def reboot(self):
        self.medium = self.medium.after_the_cut()
        self.start()

    def come(self, first):
        return self.world.come(first)

    def near(self, tenths):
        """The clock is so long before the next epoch; nothing that is stored gets older."""
        epoch.take(self.broker, self.broker.now - (EPOCH - tenths))
        self.broker.carried[7] -= 1
        self.assertEqual(self.broker.now, EPOCH - tenths)
        self.world.turn(1)

    def tenths(self, n):
        self.world.turn(n, ms=100)

    def times(self):
        """Every time that is stored: (name, time)."""
        b, loop, c = self.broker, self.world.loop, self.broker.conns
        found = [("now", b.now), ("next_tick", loop.next_tick)]
        columns = {"opened": c.opened, "last_activity": c.last_activity}
        columns["buffered_since"] = c.buffered_since
        columns["clock"] = b.clock
        columns["progress"] = b.sessions.progress
        columns["left"] = b.sessions.left
        columns["will_at"] = self.five.will_at
        columns["will_since"] = self.five.will_since
        columns["expires"] = self.five.expires
        if loop.lwip:
            columns["since"] = loop.lwip.since
            found.append(("gone_until", loop.lwip.gone_until))
        for name in columns:
            found += [(name, time) for time in columns[name]]
        found.append(("next_round", b.sys.next_round))
        if self.five.next_due != NEVER:
            found.append(("next_due", self.five.next_due))
        if b.journal:
            found += [("saved", b.journal.saved), ("journal.retry_at", b.journal.retry_at)]
        if b.record:
            it, rec = b.record, b.record.rec
            found += [("due", it.due), ("flushed", it.flushed), ("time_at", it.time_at)]
            found += [("heap_at", it.heap_at), ("rec.now", rec.now)]
            if rec.retry_at != NEVER:
                found.append(("rec.retry_at", rec.retry_at))
        return found

    def check(self):
        self.assertTrue(0 <= self.broker.now < EPOCH)
        self.assertEqual(self.broker.clock[0], self.broker.now)
        for name, time in self.times():
            self.assertTrue(LEAST <= time < MOST, (name, time))
