"""When the journal is written, and its content after an orderly stop and after a power cut."""

import packets5
from journal_case import REFUSED, RESUMED, JournalCase
from packets import DISCONNECT, PINGREQ, PINGRESP, PUBACK, ack, publish, subscribe

from slotmq.journal.writer import Journal

DELAY = b"\x18\0\0\0\x0a"  # Will Delay Interval of ten seconds


class TimesCase(JournalCase):
    """A watcher with a persistent session, subscribed to the topic of the wills."""

    def setUp(self):
        super().setUp()
        watcher = self.subscriber("watcher", "will", 1)
        self.disconnect(watcher)

    def disconnect(self, client):
        client.send(DISCONNECT)
        self.world.turn(3)

    def wills(self):
        """The wills that the watcher gets."""
        watcher = self.receive("watcher", rounds=1)
        self.disconnect(watcher)
        return sorted(payload for _, payload, _ in watcher.messages)


class TestWills(TimesCase):
    def connect(self):
        """Clients without a delay, with one, and one whose will waits already."""
        self.client("clean", will=("will", "clean", 1))
        self.client("kept", clean=False, will=("will", "kept", 1))
        will = ("will", "delayed", 1, DELAY)
        self.come(packets5.connect("delayed", will=will, expiry=60))
        self.come(packets5.connect("gone", will=("will", "waits", 1, DELAY), expiry=60)).leave()
        self.wait(4)

    def check(self):
        """Each will is published once, and those with a delay when it has passed."""
        for seconds, expected in (
            (0, [b"clean", b"kept"]),
            (5, []),  # one had waited four seconds before
            (2, [b"waits"]),
            (4, [b"delayed"]),
        ):
            self.wait(seconds)
            self.assertEqual(self.wills(), expected)
        self.reboot()
        self.wait(11)
        self.assertEqual(self.wills(), [])

    def test_after_a_power_cut_and_after_an_orderly_stop(self):
        for ends in (self.reboot, self.stop):
            self.setUp()
            self.connect()
            self.broker.compact()  # a start knows the time of the last commit
            ends()
            self.assertEqual(self.broker.deliveries.count[0], 2)
            self.check()

    def test_connected_clients_do_not_get_them_at_the_stop(self):
        self.connect()
        self.ask(there := self.client("there"), subscribe(1, "will", 0), b"\x90\x03\0\1\0")
        self.world.loop.close()
        self.assertEqual(there.packets(), [])
        self.assertTrue(there.stream.closed)
        self.reboot()
        self.check()

    def test_a_client_that_reconnects_within_the_delay_has_none(self):
        self.connect()
        self.stop()
        for name in ("delayed", "gone"):
            self.come(packets5.connect(name, clean=False, expiry=60))
        self.wait(12)
        self.assertEqual(self.wills(), [b"clean", b"kept"])

    def test_one_that_broke_in_the_turn_of_the_stop_has_one_and_after_disconnect_none(self):
        self.disconnect(self.client("polite", clean=False, will=("will", "no", 1)))
        self.client("clean", will=("will", "clean", 1))
        self.broker.end(0, 9)
        self.stop()
        self.assertEqual(self.wills(), [b"clean"])


class TestExpiry(TimesCase):
    """Expiry goes on after a restart: the time is stored where anything can expire."""

    def counts(self):
        """Sessions (the watcher's never expires) and retained messages."""
        return self.broker.sessions.names.count(), self.broker.retained.names.count()

    def retain(self, client, expiry):
        client.send(packets5.publish("r", b"x", 1, 7, b"\2\0\0\0" + bytes((expiry,)), retain=True))
        self.world.turn(3)
        self.leave(client)

    def test_a_stop_stores_the_time(self):
        self.retain(self.client5("c", expiry=12), 12)
        self.assertEqual(self.counts(), (2, 1))
        for _ in range(2):
            self.wait(5)
            self.stop()
        self.assertEqual(self.counts(), (2, 1))
        self.wait(5)
        self.assertEqual(self.counts(), (1, 0))

    def test_the_time_is_stored_each_minute(self):
        """100 s in all: the power fails after 62 s."""
        for make, before in (
            (lambda: self.retain(self.client5("c", clean=True, expiry=0), 100), (1, 1)),
            (lambda: self.leave(self.client5("c", expiry=100)), (2, 0)),
        ):
            self.setUp()
            make()
            syncs = self.medium.syncs
            self.wait(62)
            self.assertEqual(self.medium.syncs, syncs + 1)
            self.reboot()
            self.wait(37)
            self.assertEqual(self.counts(), before)
            self.wait(6)
            self.assertEqual(self.counts(), (1, 0))

    def test_where_nothing_can_expire_nothing_is_written(self):
        self.client("c").send(publish("r", b"x", retain=True))
        self.world.turn(3)
        syncs = self.medium.syncs
        self.wait(200)
        self.assertEqual(self.medium.syncs, syncs)


class TestInterval(TimesCase):
    """Five seconds between two commits, which no packet waits for."""

    commits = (False, 5)

    def test_packets_leave_before_the_commit(self):
        """With an interval of 0 it comes only at a stop and when SIGUSR1 asks for it."""
        for interval in (5, 0):
            self.commits = (False, interval)
            self.setUp()
            client = self.client("p")
            syncs = self.medium.syncs
            self.ask(client, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
            self.assertEqual(self.medium.syncs, syncs)
            self.wait(6 if interval else 100)
            self.assertEqual(self.medium.syncs, syncs + bool(interval))
            self.ask(client, publish("s", b"x", 1, 7, retain=True), ack(PUBACK, 7))
            self.reboot()  # what came after the last commit is lost
            self.assertEqual(self.broker.retained.names.count(), int(bool(interval)))

    def test_sigusr1_and_a_stop_store_it(self):
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


class TestIntervalZero(TestInterval):
    commits = (False, 0)

    def test_any_interval_is_a_small_integer(self):
        """Above 2^30 tenths of a second a board would allocate."""
        for seconds, tenths in (
            (0, (1 << 30) - 1),
            (100000000, 1000000000),
            (1 << 28, (1 << 30) - 1),
        ):
            journal = Journal(self.broker, self.medium, 1, True, seconds)
            self.assertEqual(journal.interval, tenths)


class TestFailedCommit(TimesCase):
    """If the medium fails a commit that packets need not wait for, they still leave."""

    commits = (False, 5)

    def fill(self):
        self.publisher = self.client("p")
        self.ask(self.publisher, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.medium.space = 0
        self.wait(6)
        self.assertFalse(self.broker.journal.whole)
        self.assertTrue(self.broker.journal_full)

    def test_packets_leave_and_new_sessions_are_refused(self):
        self.fill()
        for n in range(8, 12):
            self.ask(self.publisher, publish("t", b"y", 1, n), ack(PUBACK, n))
            self.wait(1)
        self.client("another")
        self.client("kept", REFUSED, clean=False)

    def test_what_waits_is_stored_as_soon_as_there_is_space(self):
        self.fill()
        self.medium.space = 1 << 30
        self.wait(2)
        self.assertTrue(self.broker.journal.whole)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_a_start_without_space_is_reported_and_clients_are_served(self):
        self.medium.space = 0
        self.start()
        self.assertEqual(len(self.reports), 1)
        self.assertIn("no space", self.reports[0])
        self.client("anybody")


class TestEndedDelivery(TimesCase):
    """The end of a delivery need not be stored before packets leave: it waits for the interval."""

    commits = (True, 5)

    def test_it_waits_for_the_interval(self):
        client = self.subscriber("r", "t", 1)
        self.ask(client, publish("t", b"x", 1, 7), ack(PUBACK, 7), publish("t", b"x", 1, 1))
        syncs = self.medium.syncs
        client.send(ack(PUBACK, 1))
        self.wait(2)
        self.assertEqual(self.broker.deliveries.count[0], 0)
        self.assertEqual(self.medium.syncs, syncs)
        self.wait(4)
        self.assertEqual(self.medium.syncs, syncs + 1)
        self.reboot()
        self.assertEqual(self.broker.deliveries.count[0], 0)


LOST = 9  # a reason of conns
SUBSCRIBE = 8


def interrupted(broker, conn, pkt, buf):
    raise KeyboardInterrupt


def reset(_n):
    raise OSError(104)


class Presence:
    """Hooks of a program that publishes who has disconnected."""

    def __init__(self, broker):
        self.broker = broker

    def on_disconnect(self, client_id, reason):
        self.broker.publish(b"gone/" + client_id, b"x", 2, True)


class StopCase(JournalCase):
    """Only what is stored leaves the broker at its end."""

    def interrupt(self):
        """Ctrl-C while a SUBSCRIBE is handled, after a PUBLISH in this turn; its publisher."""
        publisher = self.client5("p")
        other = self.client("other")
        publisher.send(packets5.publish("r", b"x", 1, 7, retain=True))
        other.send(subscribe(1, "x", 1))
        handlers = list(self.broker.handlers)
        handlers[SUBSCRIBE] = interrupted
        self.broker.handlers = tuple(handlers)
        with self.assertRaises(KeyboardInterrupt):
            self.world.turn()
        self.stop()
        return publisher


class TestStop(StopCase):
    commits = (True, 1800)

    def test_what_a_program_publishes_at_the_stop_leaves_only_if_it_is_stored(self):
        """Otherwise the next start could give its packet id to another message."""
        self.broker.hooks = Presence(self.broker)
        watcher = self.subscriber("watcher", "gone/+", 2)
        self.client("a")
        other = self.subscriber("b", "gone/+", 2)
        other.stream.write_some = reset  # noticed while the end of `a` is published
        self.broker.end(1, LOST)
        self.stop()
        sent = [data for data in watcher.packets() if data[0] & 0xF0 == 0x30]
        self.assertTrue(watcher.stream.closed)
        watcher = self.client("watcher", RESUMED, clean=False)
        self.world.turn(3)
        back = [data for data in watcher.packets() if data[0] & 0xF0 == 0x30]
        self.assertEqual([data[0] & 8 for data in back[: len(sent)]], [8] * len(sent))
        self.assertEqual([data[1:] for data in back[: len(sent)]], [data[1:] for data in sent])

    def test_a_packet_of_the_turn_that_ctrl_c_interrupts_is_not_acknowledged(self):
        publisher = self.interrupt()
        self.assertEqual(publisher.packets(), [])
        self.assertTrue(publisher.stream.closed)
        self.assertEqual(self.broker.retained.names.count(), 0)

    def test_connected_clients_get_acknowledgements_and_disconnect(self):
        five = self.client5("five")
        publisher = self.client("p")
        publisher.send(publish("r", b"x", 1, 7, retain=True) + PINGREQ)
        self.world.turn(2)
        self.stop()
        self.assertEqual(publisher.packets(), [b"\x40\x02\0\7", PINGRESP])
        self.assertEqual(five.packets(), [b"\xe0\x02\x8b\0"])
        self.assertEqual(self.broker.retained.names.count(), 1)


class TestStopWithInterval(StopCase):
    commits = (False, 1800)

    def test_ctrl_c_within_a_packet_stores_what_waited_for_a_commit(self):
        self.interrupt()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_wills_that_a_full_medium_cannot_store_are_published(self):
        watcher = self.subscriber("watcher", "will", 2)
        self.broker.compact()
        self.client("c", will=("will", "dead", 1))
        self.medium.space = 0
        self.world.loop.close()
        self.assertEqual(watcher.packets(), [b"\x32\x0c\0\4will\0\1dead"])
