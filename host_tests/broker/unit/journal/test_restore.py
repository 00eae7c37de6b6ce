"""What a start restores where rows were added and deleted within one turn, and in rare orders."""

import packets5
from invariants import broken
from journal_case import RESUMED, JournalCase
from packets import PUBCOMP, PUBREC, PUBREL, ack, publish, read_publish


class TestWaitsForPubrel(JournalCase):
    settings = (("qos2_delivery", "release"), ("message_size_limit", 5))

    def test_the_id_of_a_message_over_the_size_limit_is_restored(self):
        client = self.client("p", clean=False)
        self.ask(client, publish("t", b"too long", 2, 7), ack(PUBREC, 7))
        self.ask(client, publish("t", b"short", 2, 8), ack(PUBREC, 8))
        self.reboot()
        self.assertEqual(sum(self.broker.sessions.id_count), 2)
        self.assertEqual(self.broker.messages.count[0], 1)


class TestNoLongerWaitsForPubrel(JournalCase):
    """`qos2_delivery release`, then `receive`: the message is published, its id stays."""

    limits = (("messages", 4),)

    def setUp(self):
        self.settings = (("qos2_delivery", "release"),)
        super().setUp()

    def reboot_with_receive(self, **more):
        self.settings = tuple(dict(more, qos2_delivery="receive").items())
        self.reboot()

    def messages(self):
        """The messages of the reader, which goes offline again."""
        reader = self.receive("reader")
        self.leave(reader)
        return reader.messages

    def test_each_message_is_published_once(self):
        self.leave(self.subscriber("reader", "#", 2))
        p = self.client("p", clean=False)
        for n, text in enumerate((b"a", b"b", b"c")):
            retain = text == b"c"
            self.ask(p, publish("t", text, 2, n + 7, retain=retain), ack(PUBREC, n + 7))
        self.reboot_with_receive()
        p = self.client("p", RESUMED, clean=False)
        self.ask(p, publish("t", b"a", 2, 7, dup=True), ack(PUBREC, 7))
        self.ask(p, ack(PUBREL, 7), ack(PUBCOMP, 7))
        self.reboot()
        p = self.client("p", RESUMED, clean=False)
        for n in (8, 9):
            self.ask(p, ack(PUBREL, n), ack(PUBCOMP, n))
        self.assertEqual(self.messages(), [(b"t", text, 2) for text in (b"a", b"b", b"c")])
        self.assertEqual(self.broker.retained.names.count(), 1)
        self.assertEqual(self.broker.messages.count[0], 1)
        self.assertEqual(sum(self.broker.sessions.id_count), 0)

    def test_a_message_without_subscribers(self):
        p = self.client("p", clean=False)
        self.ask(p, publish("t", b"a", 2, 7), ack(PUBREC, 7))
        self.reboot_with_receive()
        self.assertEqual(self.broker.messages.count[0], 0)
        self.assertEqual(sum(self.broker.sessions.id_count), 1)

    def publish5(self, properties):
        """A client of version 5, subscribed with No Local, publishes."""
        self.leave(self.subscriber("reader", "#", 2))
        p = self.client5("p")
        p.send(packets5.subscribe(1, "#", 2 | 4) + packets5.publish("t", b"a", 2, 7, properties))
        self.world.turn(3)
        self.assertEqual(p.stream.received[-4:], ack(PUBREC, 7))
        return p

    def test_a_message_of_version_5(self):
        self.publish5(b"\x26\0\1a\0\1b")
        self.reboot_with_receive()
        self.assertEqual(self.broker.deliveries.count[0], 1)  # No Local
        self.assertEqual(self.messages(), [(b"t", b"a", 2)])

    def test_an_expired_message(self):
        for version in (5, 3):
            p = self.publish5(b"\x02\0\0\0\1")
            self.wait(3)
            p.send(packets5.subscribe(2, "other", 1))
            self.world.turn(3)
            self.reboot_with_receive(mqtt_versions=version)
            self.wait(3)
            self.assertEqual(self.messages(), [])
            self.assertEqual(self.broker.messages.count[0], 0)
            self.setUp()


class TestDropOldest(JournalCase):
    limits = (("inflight", 2), ("queued", 3))

    def start(self):
        super().start()
        self.broker.settings.when_full["deliveries"] = "drop_oldest"
        self.broker.apply_settings()

    def test_what_was_sent_at_qos_2_is_not_dropped(self):
        reader = self.subscriber("reader", "t", 2)
        publisher = self.client("p")
        for n in range(4):
            self.ask(publisher, publish("t", b"%d" % n, 2, n + 1), ack(PUBREC, n + 1))
            self.ask(publisher, ack(PUBREL, n + 1), ack(0x70, n + 1))
        sent = [read_publish(data)[1:] for data in reader.packets()]
        self.assertEqual(len(sent), 2)
        self.reboot()
        publisher = self.client("p")
        self.ask(publisher, publish("t", b"4", 2, 5), ack(PUBREC, 5))
        reader = self.client("reader", RESUMED, clean=False)
        again = [read_publish(data)[1:] for data in reader.packets()]
        self.assertEqual(again, sent)


class TestFullOutgoingBuffer(JournalCase):
    """Nothing may leave before the commit at the end of a turn: a buffer that is full until then
    loses nothing."""

    limits = (("tx_bytes", 160), ("max_packet", 1024))

    def setUp(self):
        """A QoS 0 subscriber between two offline sessions that store what is published."""
        super().setUp()
        self.subscriber("before", "#", 1).leave()
        self.reader = self.subscriber("reader", "#", 0)
        self.subscriber("after", "#", 1).leave()
        self.world.turn(3)

    def test_messages_that_do_not_fit_keep_their_order(self):
        first, second = self.client("p"), self.client("q")
        first.send(publish("t", b"w" * 100, 1, 6))
        second.send(publish("t", b"x" * 140, 1, 7) + publish("t", b"y", 1, 8))
        second.send(publish("t", b"z" * 500, 1, 9))  # larger than the buffer
        self.world.turn(9)
        self.reader.answer()
        self.assertEqual(
            [text[:1] for _, text, _ in self.reader.messages], [b"w", b"x", b"y", b"z"]
        )
        self.assertEqual(broken(self.broker), [])
