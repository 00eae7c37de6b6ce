"""A start with lower limits than the journal needs names the limit to raise, and leaves the
journal as it is."""

import packets5
from invariants import broken
from journal_case import JournalCase
from packets import PUBACK, PUBREC, ack, publish, subscribe

from slotmq.config.capacities import fields

PUBACK_7 = ack(PUBACK, 7)
LONG = "/".join(["level" * 3] * 14)  # 223 bytes


def numbers(text):
    words = text.split()
    return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


ROOMY = numbers("""
connections 2 sessions 8 subscriptions 8 nodes 40 levels 16 topic_bytes 300 client_id_bytes 200
retained 8 retained_name_bytes 1024 messages 16 message_bytes 4096 message_block 64 deliveries 16
inflight 4 queued 8 received 48 max_packet 1024 route_entries 16""")
TOO_LOW = numbers("""
sessions 2 subscriptions 1 nodes 3 name_bytes 64 levels 4 topic_bytes 100 client_id_bytes 23
retained 1 retained_name_bytes 240 messages 2 message_bytes 320 deliveries 4 received 32
shares 0""")
LOWER = numbers("""
users 1 connections 1 message_block 16 inflight 1 queued 1 max_packet 308 tx_bytes 64 tcp_bytes 0
tls_connections 0 rx_bytes 64 tail_bytes 16 reassembly 1 routes 1 route_topic_bytes 8
route_entries 8 aliases 0 acl_rules 0 acl_bytes 0 bridges 0 bridge_topics 0""")


class LimitsCase(JournalCase):
    limits = tuple(ROOMY.items())

    def error_with(self, **values):
        """The power fails, and the broker starts with other limits; the error or None."""
        self.cut_power()
        before = dict(self.medium.durable)
        more = {"max_packet": 308} if "message_bytes" in values else {}
        self.limits = tuple(dict(ROOMY, **dict(values, **more)).items())
        try:
            self.start()
        except OSError as error:
            self.assertEqual(self.medium.durable, before)
            return str(error)
        finally:
            self.limits = tuple(ROOMY.items())
        self.assertEqual(broken(self.broker), [])
        return None

    def refused(self, name):
        """It does not start with that limit as low as in TOO_LOW."""
        for _ in range(2):
            error = self.error_with(**{name: TOO_LOW[name]})
            self.assertIn(name, error or f"{name}: it starts")
            self.assertIn("raise the limit", error)

    def counts(self):
        broker = self.broker
        found = [broker.sessions.names.count(), broker.subscriptions.count]
        found += [broker.deliveries.count[0], broker.messages.count[0]]
        found += [broker.retained.names.count(), sum(broker.sessions.id_count)]
        return found

    def offline_session(self, name, *filters):
        """A session with these subscriptions."""
        client = self.client(name, clean=False)
        for n, text in enumerate(filters):
            self.ask(client, subscribe(n + 1, text, 1), b"\x90\x03\0" + bytes((n + 1, 1)))
        self.leave(client)

    def share(self, group, topic):
        """A client of 5.0 with this shared subscription."""
        client = self.client5("five")
        client.send(packets5.subscribe(1, f"$share/{group}/{topic}", 1))
        self.world.turn(3)
        return client


class TestEachLimit(LimitsCase):
    def fill(self):
        self.offline_session("i" * 150, LONG, "q")
        publisher = self.client("p", clean=False)
        for n in range(6):
            self.ask(publisher, publish("q", b"x" * 40, 1, n + 1), ack(PUBACK, n + 1))
        for topic in (LONG, "r/1", "r/2"):
            self.ask(publisher, publish(topic, b"kept", 1, 9, retain=True), ack(PUBACK, 9))
        for n in range(40):
            self.ask(publisher, publish("none", b"", 2, n + 1), ack(PUBREC, n + 1))
        self.leave(publisher)
        self.leave(self.share("group", "t"))

    def test_each_one_is_too_low_or_low_enough(self):
        self.fill()
        counts = self.counts()
        names = [field[0] for field in fields()]
        self.assertEqual(sorted(list(TOO_LOW) + list(LOWER)), sorted(names))
        for name in names:
            with self.subTest(limit=name):
                if name in TOO_LOW:
                    self.refused(name)
                else:
                    self.assertEqual(self.error_with(**{name: LOWER[name]}), None)
                    self.assertEqual(self.counts(), counts)
        self.reboot()
        self.assertEqual(self.counts(), counts)


class TestTopicBytes(LimitsCase):
    """Each kind of row with a topic."""

    def test_a_filter_with_the_name_of_its_group(self):
        self.share("g" * 40, "t" * 53)
        self.refused("topic_bytes")
        self.assertEqual(self.error_with(topic_bytes=101), None)
        self.assertEqual(self.broker.subscriptions.count, 1)

    def test_a_filter_a_message_and_a_will(self):
        for what in (
            lambda: self.offline_session("s", LONG),
            lambda: self.ask(self.client("p"), publish(LONG, b"x", 1, 7, retain=True), PUBACK_7),
            lambda: self.queue(),
            lambda: self.client("w", will=(LONG, b"gone", 1)),
        ):
            self.setUp()
            what()
            self.refused("topic_bytes")

    def queue(self):
        self.offline_session("s", "#")
        self.ask(self.client("p"), publish(LONG, b"x", 1, 7), PUBACK_7)

    def test_a_deleted_row_does_not_count(self):
        self.offline_session("i" * 150, LONG)
        self.leave(self.client("i" * 150))
        self.assertEqual(self.error_with(topic_bytes=100, client_id_bytes=23, levels=4), None)
        self.assertEqual(self.counts()[:2], [0, 0])


class TestCompaction(LimitsCase):
    """A compaction does not replace a journal by one that no start could read."""

    def check_refused(self):
        before = self.medium.after_the_cut().durable
        self.broker.compact()
        self.assertEqual(self.medium.after_the_cut().durable, before)
        self.assertEqual(self.broker.journal.failures, 1)

    def test_a_client_id_longer_than_the_buffer(self):
        self.offline_session("i" * 150)
        self.broker.journal.buf = bytearray(100)
        self.check_refused()

    def test_a_filter_longer_than_topic_bytes_also_with_the_name_of_its_group(self):
        for make in (
            lambda: self.offline_session("s", LONG),
            lambda: self.share("g" * 60, "t" * 41),
        ):
            self.setUp()
            make()
            self.broker.limits.topic_bytes = 100
            self.check_refused()
