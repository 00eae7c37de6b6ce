"""When the journal is written, and its content after an orderly stop and after a power cut."""

import packets5
from journal_case import REFUSED, JournalCase
from packets import DISCONNECT, PUBACK, ack, publish, subscribe

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

    def test_after_a_power_cut_they_are_published(self):
        self.connect()
        self.broker.compact()  # a start knows the time of the last commit
        self.reboot()
        self.check()

    def test_an_orderly_stop_stores_them(self):
        self.connect()
        self.stop()
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

    def test_a_client_whose_connection_broke_in_the_turn_of_the_stop_has_one(self):
        self.client("clean", will=("will", "clean", 1))
        self.broker.end(0, 9)
        self.stop()
        self.assertEqual(self.wills(), [b"clean"])

    def test_a_client_that_reconnects_within_the_delay_has_none(self):
        self.connect()
        self.stop()
        for name in ("delayed", "gone"):
            self.come(packets5.connect(name, clean=False, expiry=60))
        self.wait(12)
        self.assertEqual(self.wills(), [b"clean", b"kept"])

    def test_a_client_that_sent_disconnect_has_none(self):
        self.disconnect(self.client("polite", clean=False, will=("will", "no", 1)))
        self.stop()
        self.assertEqual(self.wills(), [])


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

    def check_after_a_minute(self, before):
        """100 s in all: the time is stored once a minute, and the power fails after 62 s."""
        syncs = self.medium.syncs
        self.wait(62)
        self.assertEqual(self.medium.syncs, syncs + 1)
        self.reboot()
        self.wait(37)
        self.assertEqual(self.counts(), before)
        self.wait(6)
        self.assertEqual(self.counts(), (1, 0))

    def test_the_time_is_stored_each_minute_for_a_message(self):
        self.retain(self.client5("c", clean=True, expiry=0), 100)
        self.check_after_a_minute((1, 1))

    def test_the_time_is_stored_each_minute_for_a_session(self):
        self.leave(self.client5("c", expiry=100))
        self.check_after_a_minute((2, 0))

    def test_where_nothing_can_expire_nothing_is_written(self):
        self.client("c").send(publish("r", b"x", retain=True))
        self.world.turn(3)
        syncs = self.medium.syncs
        self.wait(200)
        self.assertEqual(self.medium.syncs, syncs)


class TestInterval(TimesCase):
    """Five seconds between two commits, which no packet waits for."""

    commits = (False, 5)

    def publish_before_the_commit(self):
        """PUBACK leaves before anything is written; how often was it synced?"""
        client = self.client("p")
        syncs = self.medium.syncs
        self.ask(client, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.assertEqual(self.medium.syncs, syncs)
        return syncs

    def test_packets_leave_before_the_commit(self):
        syncs = self.publish_before_the_commit()
        for seconds in (6, 20):
            self.wait(seconds)
            self.assertEqual(self.medium.syncs, syncs + 1)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_a_power_cut_loses_what_came_after_the_last_commit(self):
        client = self.client("p")
        self.wait(6)
        self.ask(client, publish("r", b"x", 1, 7, retain=True), ack(PUBACK, 7))
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 0)

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
    """An interval of 0: commits only at a stop and when SIGUSR1 asks for one."""

    commits = (False, 0)

    def test_packets_leave_before_the_commit(self):
        syncs = self.publish_before_the_commit()
        self.wait(100)
        self.assertEqual(self.medium.syncs, syncs)

    def test_any_interval_is_a_small_integer(self):
        """Above 2^30 tenths of a second a board would allocate."""
        journal = Journal(self.broker, self.medium, 1, True, 100000000)
        self.assertLess(journal.interval, 1 << 30)
        self.assertEqual(Journal(self.broker, self.medium, 1, True, 0).interval, (1 << 30) - 1)


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
