"""When the journal is written, and what an orderly stop leaves in it, as against a power cut."""

import packets5
from fakes import World
from journal_case import CONNACK, RESUMED, JournalCase
from memory_medium import MemoryMedium
from packets import DISCONNECT, PUBACK, ack, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore
from slotmq.journal.writer import Journal

DELAY = b"\x18\0\0\0\x0a"  # Will Delay Interval of ten seconds
SECOND = 10  # turns of 100 ms


class TimesCase(JournalCase):
    def second(self, times=1):
        self.world.turn(times * SECOND, ms=100)

    def stop(self):
        """An orderly stop, and a start some time later."""
        self.world.loop.close()
        self.medium = MemoryMedium(kept=self.medium.kept)
        self.start()

    def watcher(self):
        expected = RESUMED if self.has_watched else CONNACK
        watcher = self.client("watcher", expected, clean=False)
        self.has_watched = True
        return watcher

    def seen(self):
        """The wills that the watcher has got since it was last there."""
        watcher = self.watcher()
        watcher.answer()
        self.world.turn(3)
        watcher.send(DISCONNECT)
        self.world.turn(3)
        return sorted(payload for _, payload, _ in watcher.messages)

    def setUp(self):
        super().setUp()
        self.has_watched = False
        self.ask(watcher := self.watcher(), subscribe(1, "will", 1), b"\x90\x03\0\1\1")
        watcher.send(DISCONNECT)
        self.world.turn(3)


class TestWills(TimesCase):
    """One of each kind: without a delay, with one, and one that waits already."""

    def connect(self):
        self.client("clean", will=("will", "clean", 1))
        self.client("kept", clean=False, will=("will", "kept", 1))
        will = ("will", "delayed", 1, DELAY)
        self.come(packets5.connect("delayed", will=will, expiry=60))
        self.come(packets5.connect("gone", will=("will", "waits", 1, DELAY), expiry=60)).leave()
        self.second(4)

    def check(self):
        self.assertEqual(self.seen(), [b"clean", b"kept"])
        self.second(5)  # of the one that had waited four seconds before
        self.assertEqual(self.seen(), [])
        self.second(2)
        self.assertEqual(self.seen(), [b"waits"])
        self.second(4)
        self.assertEqual(self.seen(), [b"delayed"])
        self.reboot()
        self.second(11)
        self.assertEqual(self.seen(), [])

    def test_after_a_power_cut_they_go_out(self):
        self.connect()
        self.broker.compact()  # the time of the last commit is what a start knows
        self.reboot()
        self.check()

    def test_an_orderly_stop_stores_them(self):
        self.connect()
        self.stop()
        self.assertEqual(self.broker.deliveries.count[0], 2)
        self.check()

    def test_who_is_connected_does_not_get_them_at_the_stop(self):
        self.connect()
        self.ask(there := self.client("there"), subscribe(1, "will", 0), b"\x90\x03\0\1\0")
        self.world.loop.close()
        self.assertEqual(there.packets(), [])
        self.assertTrue(there.stream.closed)
        self.reboot()
        self.check()

    def test_who_had_just_gone_has_one_at_the_stop(self):
        self.client("clean", will=("will", "clean", 1))
        self.broker.end(0, 9)  # its connection has broken in this turn
        self.stop()
        self.assertEqual(self.seen(), [b"clean"])

    def test_a_client_that_is_back_in_time_has_none(self):
        self.connect()
        self.stop()
        for name in ("delayed", "gone"):
            self.come(packets5.connect(name, clean=False, expiry=60))
        self.second(12)
        self.assertEqual(self.seen(), [b"clean", b"kept"])

    def test_who_said_goodbye_has_none(self):
        client = self.client("polite", clean=False, will=("will", "no", 1))
        client.send(DISCONNECT)
        self.world.turn(3)
        self.stop()
        self.assertEqual(self.seen(), [])


class TestTime(TimesCase):
    """What runs out goes on where it was: the time is kept too, if anything does."""

    def keep(self):
        """A session and a retained message that both have 12 seconds."""
        expiry = b"\2\0\0\0\x0c"
        client = self.come(packets5.connect("c", clean=False, expiry=12))
        client.send(packets5.publish("r", b"x", 1, 7, expiry, retain=True))
        self.world.turn(3)
        client.leave()
        self.world.turn(3)
        self.assertEqual(self.left(), (2, 1))

    def left(self):
        """Sessions (the watcher's never expires) and retained messages."""
        return self.broker.sessions.names.count(), self.broker.retained.names.count()

    def test_a_stop_keeps_it(self):
        self.keep()
        for _ in range(2):
            self.second(5)
            self.stop()
        self.assertEqual(self.left(), (2, 1))
        self.second(5)
        self.assertEqual(self.left(), (1, 0))

    def test_each_minute_keeps_it(self):
        expiry = b"\2\0\0\0\x64"
        client = self.come(packets5.connect("c"))
        client.send(packets5.publish("r", b"x", 1, 7, expiry, retain=True))
        self.world.turn(3)
        client.leave()
        syncs = self.medium.syncs
        self.second(62)
        self.assertEqual(self.medium.syncs, syncs + 1)
        self.reboot()
        self.second(37)
        self.assertEqual(self.left(), (1, 1))
        self.second(6)
        self.assertEqual(self.left(), (1, 0))

    def test_who_waits_for_a_session_that_expires_as_well(self):
        self.come(packets5.connect("c", clean=False, expiry=100)).leave()
        self.world.turn(3)
        self.second(62)
        self.reboot()
        self.second(37)
        self.assertEqual(self.left(), (2, 0))
        self.second(6)
        self.assertEqual(self.left(), (1, 0))

    def test_where_nothing_runs_out_nothing_is_written(self):
        self.client("c").send(publish("r", b"x", retain=True))
        self.world.turn(3)
        syncs = self.medium.syncs
        self.second(200)
        self.assertEqual(self.medium.syncs, syncs)


class TestSync(TimesCase):
    """Five seconds between two commits, and nobody waits for them."""

    def start(self):
        self.broker = Broker(Limits(), Settings(sys_interval=0))
        self.world = World(self.broker)
        restore(self.broker, self.medium, self.said.append, *self.sync())

    def sync(self):
        return False, 5

    def test_packets_leave_before_it(self):
        client = self.client("p")
        syncs = self.medium.syncs
        self.ask(client, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.assertEqual(self.medium.syncs, syncs)
        self.second(6)
        self.assertEqual(self.medium.syncs, syncs + 1)
        self.second(20)
        self.assertEqual(self.medium.syncs, syncs + 1)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_what_came_since_is_lost_by_a_power_cut(self):
        client = self.client("p")
        self.second(6)
        self.ask(client, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 0)

    def test_and_kept_by_a_stop_and_by_an_order(self):
        client = self.client("p")
        self.ask(client, publish("r/1", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.broker.compact()
        self.ask(client, publish("r/2", b"x", 1, 8, retain=True), ack(PUBACK, 8))
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)
        self.client("p").send(publish("r/3", b"x", retain=True))
        self.world.turn(3)
        self.stop()
        self.assertEqual(self.broker.retained.names.count(), 2)


class TestFails(TimesCase):
    """A medium that takes nothing: what may wait for `interval` stops no packet."""

    def sync(self):
        return False, 5

    start = TestSync.start

    def fill(self):
        self.publisher = self.client("p")
        self.ask(self.publisher, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.medium.space = 0
        self.second(6)
        self.assertFalse(self.broker.journal.whole)
        self.assertTrue(self.broker.journal_full)

    def test_packets_leave_all_the_same(self):
        self.fill()
        for n in range(8, 12):
            self.ask(self.publisher, publish("t", b"y", 1, n), ack(PUBACK, n))
            self.second()
        self.client("another")
        self.client("kept", b"\x20\x02\0\3", clean=False)

    def test_what_waits_is_kept_as_soon_as_there_is_room(self):
        self.fill()
        self.medium.space = 1 << 30
        self.second(2)
        self.assertTrue(self.broker.journal.whole)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_a_start_without_room_is_told_and_waits_for_nothing(self):
        self.medium.space = 0
        self.start()
        self.assertEqual(self.said, ["there is no room to write"])
        self.client("anybody")


class TestNever(TestSync):
    """An interval of 0: only at the end, or when it is told."""

    def sync(self):
        return False, 0

    def test_packets_leave_before_it(self):
        client = self.client("p")
        syncs = self.medium.syncs
        self.ask(client, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.second(100)
        self.assertEqual(self.medium.syncs, syncs)

    def test_no_interval_is_a_large_number(self):
        """Above 2^30 tenths of a second a board would allocate."""
        journal = Journal(self.broker, self.medium, 1, True, 100000000)
        self.assertLess(journal.interval, 1 << 30)
        self.assertEqual(Journal(self.broker, self.medium, 1, True, 0).interval, (1 << 30) - 1)


class TestEnded(TimesCase):
    """That a delivery has ended is no promise: it waits for the next commit, or so long."""

    def sync(self):
        return True, 5

    start = TestSync.start

    def test_it_waits_for_the_interval(self):
        client = self.client("r", clean=False)
        self.ask(client, subscribe(1, "t", 1), b"\x90\x03\0\1\1")
        self.ask(client, publish("t", b"x", 1, 7), ack(PUBACK, 7), publish("t", b"x", 1, 1))
        syncs = self.medium.syncs
        client.send(ack(PUBACK, 1))
        self.second(2)
        self.assertEqual(self.broker.deliveries.count[0], 0)
        self.assertEqual(self.medium.syncs, syncs)
        self.second(4)
        self.assertEqual(self.medium.syncs, syncs + 1)
        self.reboot()
        self.assertEqual(self.broker.deliveries.count[0], 0)


del JournalCase, TimesCase
