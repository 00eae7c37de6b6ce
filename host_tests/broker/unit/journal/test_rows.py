"""The rows of each table survive a power cut; through the real loop."""

from journal_case import RESUMED, JournalCase
from packets import DISCONNECT, PUBACK, PUBCOMP, PUBREC, PUBREL, ack, publish, subscribe


class TestSessions(JournalCase):
    def test_a_persistent_session_is_resumed(self):
        self.client("persistent", clean=False)
        self.client("clean")
        self.reboot()
        self.assertEqual(self.broker.sessions.names.count(), 1)
        self.client("persistent", RESUMED, clean=False)
        self.client("clean")

    def test_a_discarded_session_is_gone(self):
        self.subscriber("s", "t", 1)
        self.client("s", clean=True)
        self.reboot()
        self.assertEqual(self.broker.sessions.names.count(), 0)
        self.client("s", clean=False)
        self.assertEqual(self.broker.subscriptions.count, 0)

    def test_a_will_is_published(self):
        self.subscriber("watcher", "will", 1)
        self.client("clean", will=("will", "of the clean", 1))
        self.client("kept", clean=False, will=("will", "of the kept", 1))
        gone = self.client("gone", will=("will", "of the disconnected", 1))
        gone.send(DISCONNECT)
        self.world.turn(3)
        self.reboot()
        self.assertEqual(sorted(self.payloads("watcher")), [b"of the clean", b"of the kept"])
        self.reboot()
        self.world.turn(3)
        self.assertEqual(self.broker.sessions.names.count(), 2)


class TestSubscriptions(JournalCase):
    def test_filters_are_restored_with_their_qos(self):
        client = self.client("s", clean=False)
        for n, name in enumerate(("a/b", "a/+/c", "#", "$SYS/x", "/")):
            self.ask(client, subscribe(n + 1, name, n % 3), b"\x90\x03\0" + bytes((n + 1, n % 3)))
        self.ask(client, b"\xa2\x07\0\x09\0\x03a/b", b"\xb0\x02\0\x09")
        tree = self.tree()
        self.reboot()
        self.assertEqual(self.tree(), tree)
        self.assertEqual(self.broker.subscriptions.count, 4)


class TestMessages(JournalCase):
    def setUp(self):
        super().setUp()
        self.reader = self.subscriber("reader", "t/#", 2)
        self.publisher = self.client("publisher", clean=False)

    def test_what_was_acknowledged_is_delivered(self):
        self.leave(self.reader)
        for n in range(5):
            self.ask(self.publisher, publish("t/a", b"%d" % n, 1, n + 1), ack(PUBACK, n + 1))
        self.reboot()
        self.assertEqual(self.payloads("reader"), [b"0", b"1", b"2", b"3", b"4"])

    def test_what_was_in_flight_is_sent_again_with_its_id_and_dup(self):
        self.ask(self.publisher, publish("t/a", b"x", 2, 7), ack(PUBREC, 7))
        first = self.reader.packets()
        self.assertEqual(len(first), 1)
        self.reboot()
        again = self.client("reader", RESUMED, clean=False).packets()
        self.assertEqual(again, [bytes((first[0][0] | 8,)) + first[0][1:]])

    def test_pubrel_is_sent_again_if_pubrec_had_come(self):
        self.ask(self.publisher, publish("t/a", b"x", 2, 7), ack(PUBREC, 7))
        sent = self.reader.packets()[0]
        packet_id = sent[7] << 8 | sent[8]
        self.ask(self.reader, ack(PUBREC, packet_id), ack(PUBREL, packet_id))
        self.reboot()
        reader = self.client("reader", RESUMED, clean=False)
        self.assertEqual(reader.packets(), [ack(PUBREL, packet_id)])
        self.ask(reader, ack(PUBCOMP, packet_id))
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_the_id_of_a_received_qos_2_publish_is_restored(self):
        self.ask(self.publisher, publish("t/a", b"x", 2, 7), ack(PUBREC, 7))
        self.reboot()
        publisher = self.client("publisher", RESUMED, clean=False)
        self.ask(publisher, publish("t/a", b"x", 2, 7, dup=True), ack(PUBREC, 7))
        self.ask(publisher, ack(PUBREL, 7), ack(PUBCOMP, 7))
        self.assertEqual(self.broker.deliveries.count[0], 1)
        self.reboot()
        self.assertEqual(self.broker.sessions.id_count[0] + self.broker.sessions.id_count[1], 0)

    def test_what_its_receiver_acknowledged_is_gone(self):
        self.ask(self.publisher, publish("t/a", b"x", 1, 7), ack(PUBACK, 7))
        self.reader.answer()
        self.world.turn(3)
        self.ask(self.publisher, publish("t/a", b"y", 1, 8), ack(PUBACK, 8))
        self.reboot()
        self.assertEqual(self.broker.messages.count[0], 1)

    def test_qos_0_writes_nothing(self):
        syncs = self.medium.syncs
        for _ in range(20):
            self.ask(self.publisher, publish("t/a", b"x"))
        self.assertEqual(len(self.reader.packets()), 20)
        self.assertEqual(self.medium.syncs, syncs)

    def test_qos_2_between_clean_sessions_writes_nothing(self):
        publisher = self.client("clean too")
        self.leave(self.reader)
        clean = self.client("clean")
        self.ask(clean, subscribe(1, "u", 2), b"\x90\x03\0\1\2")
        syncs = self.medium.syncs
        self.ask(publisher, publish("u", b"x", 2, 9), ack(PUBREC, 9))
        self.ask(publisher, ack(PUBREL, 9), ack(PUBCOMP, 9))
        clean.answer()
        self.world.turn(3)
        self.assertEqual([one[1] for one in clean.messages], [b"x"])
        self.assertEqual(self.medium.syncs, syncs)


class TestRetained(JournalCase):
    def test_set_replaced_and_cleared(self):
        client = self.client("p")
        client.send(publish("r/1", b"one", retain=True) + publish("r/2", b"two", retain=True))
        client.send(publish("r/1", b"another", retain=True) + publish("r/2", b"", retain=True))
        self.world.turn(3)
        self.reboot()
        client = self.client("p")
        client.send(subscribe(1, "#", 0))
        self.world.turn(3)
        self.assertEqual(client.packets()[1:], [publish("r/1", b"another", retain=True)])


class TestMedium(JournalCase):
    def test_with_a_full_medium_answers_wait_until_there_is_space(self):
        client = self.client("p")
        self.medium.space = 0
        self.ask(client, publish("r", b"x", 0, retain=True) + b"\xc0\0")
        self.medium.space = 1 << 20
        self.wait(3)
        self.assertEqual(client.packets(), [b"\xd0\0"])
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_a_compaction_drops_replaced_rows(self):
        client = self.client("p")
        for _ in range(100):
            client.send(publish("r", b"x" * 50, retain=True))
            self.world.turn(2)
        before = self.medium.end
        self.broker.compact()
        self.assertTrue(self.medium.end < before / 20)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)


class TestOrder(JournalCase):
    """Queued QoS 0 messages are not stored; those between them keep their order."""

    settings = (("queue_qos0_messages", True),)

    def test_stored_messages_keep_their_order(self):
        for before in (0, 74, 75, 76):  # the last slot and the first ones are among those used
            self.setUp()
            self.check(before)

    def check(self, before):
        reader = self.subscriber("reader", "t", 2)
        publisher = self.client("publisher", clean=False)
        for _ in range(before):
            publisher.send(publish("t", b"", 1, 1))
            self.world.turn(2)
            reader.answer()
            self.world.turn(2)
        self.leave(reader)
        sent = b""
        for n in range(12):
            qos = (1, 0, 2, 1)[n % 4]
            sent += publish("t", b"%d" % n, qos, n + 1 if qos else 0)
        publisher.send(sent)  # in one turn, so in one commit
        self.world.turn(3)
        self.assertEqual(self.broker.deliveries.count[0], 12)
        self.reboot()
        found = [int(payload) for payload in self.payloads("reader")]
        self.assertEqual(found, [n for n in range(12) if n % 4 != 1])
