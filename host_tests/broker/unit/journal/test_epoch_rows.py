"""Times in the journal and in the recorder when the clock begins a new epoch, also after a power
cut."""

import packets
import packets5
from epoch_case import EPOCH, NEVER, NONE, TIMES, EpochCase
from memory_medium import MemoryMedium

from slotmq.tables import epoch


class TestRows(EpochCase):
    def test_what_expires(self):
        """After 20 s; an epoch begins, and the power may fail."""
        for k, make, is_there in (
            (0, self.session, lambda: self.broker.sessions.names.count()),
            (60, self.retain, lambda: self.broker.retained.names.count()),
            (TIMES - 1, self.will, lambda: set(self.broker.sessions.will) != {NONE}),
        ):
            for cut in (False, True):
                with self.subTest(epoch=k, cut=cut):
                    self.medium = MemoryMedium()
                    self.start()
                    self.broker.carried[7] = k
                    self.near(60)
                    make()
                    self.tenths(102)
                    self.assertEqual(self.broker.carried[7], k + 1)
                    self.assertTrue(self.broker.journal.whole)
                    if cut:
                        self.broker.compact()
                        self.reboot()
                    self.check()
                    self.tenths(75)
                    self.assertTrue(is_there())
                    self.tenths(50)
                    self.assertFalse(is_there())

    def session(self):
        self.come(packets5.connect("a", clean=False, expiry=20)).leave()

    def will(self):
        will = ("t", "x", 1, b"\x18\0\0\0\x14")
        self.come(packets5.connect("a", will=will, expiry=6000)).leave()

    def retain(self):
        expiry = b"\2\0\0\0\x14"
        client = self.come(packets5.connect("p"))
        client.send(packets5.publish("r", b"x", 1, 7, expiry, retain=True))
        self.tenths(2)

    def test_a_power_cut_before_the_rows_of_the_new_epoch_are_written(self):
        """The generation of the old epoch is restored, with the time that had passed."""
        self.near(20)
        self.retain()
        self.tenths(15)
        self.broker.journal.always = False  # no packet waits for the medium
        self.medium.space = 0
        self.tenths(20)
        self.assertEqual(self.broker.carried[7], 1)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)
        self.tenths(150)
        self.assertEqual(self.broker.retained.names.count(), 1)
        self.tenths(60)
        self.assertEqual(self.broker.retained.names.count(), 0)

    def test_many_epochs_and_starts(self):
        """A message that expires after 136 years, and a session that never does."""
        self.come(packets5.connect("a", clean=False, expiry=0xFFFFFFFF)).leave()
        client = self.come(packets5.connect("p"))
        expiry = b"\2" + b"\xff" * 4
        client.send(packets5.publish("r", b"x", 1, 7, expiry, retain=True))
        self.tenths(3)
        for _ in range(20):
            self.near(5)
            self.age(EPOCH - 1000)
            self.broker.compact()
            self.reboot()
            self.check()
        self.assertEqual(self.broker.sessions.names.count(), 1)
        self.assertEqual(self.broker.retained.names.count(), 1)
        msg = next(m for m in self.broker.retained.msg if m != NONE)
        near = self.five.remaining(self.broker, msg)
        left = near + ((self.five.far[msg] - min(self.five.far[msg], 8)) << 25)
        self.assertTrue(abs(left - (0xFFFFFFFF - self.aged // 10)) < 100)

    aged = 0

    def age(self, by):
        # All that is stored gets older by that.
        epoch.move_rows(self.broker, by)
        self.aged += by


class TestWill(EpochCase):
    def test_its_expiry_begins_when_it_is_published_after_a_hundred_years(self):
        will = ("t", "x", 1, b"\2\0\0\0\x14")
        client = self.come(packets5.connect("a", will=will))
        reader = self.come(packets5.connect("r", clean=False, expiry=6000))
        reader.send(packets5.subscribe(1, "t", 1))
        self.tenths(2)
        reader.leave()
        self.tenths(2)
        for _ in range(TIMES):
            self.near(3)
            self.five.expiry[1] = NEVER  # the reader's session does not expire
            self.tenths(8)
        client.leave()
        self.tenths(2)
        self.assertEqual(self.broker.deliveries.count[0], 1)
        self.tenths(195)
        self.assertEqual(self.broker.deliveries.count[0], 1)
        self.tenths(12)
        self.assertEqual(self.broker.deliveries.count[0], 0)


class TestRecorder(EpochCase):
    recording = True

    def test_all_its_times_move_by_the_same(self):
        interceptor, rec = self.interceptor, self.rec
        rec.wall = [4, 1795320988, 0, 0, 50, EPOCH + 9]
        interceptor.due, interceptor.flushed, interceptor.time_at = EPOCH + 1, EPOCH + 2, EPOCH + 3
        interceptor.heap_at, rec.retry_at, rec.now = EPOCH + 4, EPOCH + 5, EPOCH + 6
        self.broker.now = EPOCH + 10
        before = self.times()
        epoch.record(interceptor, EPOCH)
        epoch.take(self.broker, EPOCH)
        wanted = [(name, then - EPOCH) for name, then in before[-6:]]
        self.assertEqual(self.times()[-6:], wanted)
        self.assertEqual(rec.wall[5], 9)
        rec.retry_at = NEVER
        epoch.take(self.broker, 5)
        self.assertEqual(rec.retry_at, NEVER)

    def test_it_is_still_flushed_and_knows_the_time_of_day(self):
        self.near(50)
        self.rec.wall = [4, 1795320988, 0, self.rec.o[5], 50, self.broker.now]
        self.come(packets.connect("c")).send(packets.publish("t", b"x"))
        self.tenths(200)
        self.assertEqual(self.broker.carried[7], 1)
        self.assertEqual(self.rec.written, self.rec.synced)
        self.assertIn(self.broker.now - self.rec.wall[5], range(200, 204))
        self.check()
