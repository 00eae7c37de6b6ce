"""What is promised survives a reboot: the rows of each table, through the real loop."""

from journal_case import RESUMED, JournalCase
from packets import DISCONNECT, PUBACK, PUBCOMP, PUBREC, PUBREL, ack, publish, subscribe


class TestSessions(JournalCase):
    def test_one_that_is_kept_is_present_again(self):
        self.client("kept", clean=False)
        self.client("clean")
        self.reboot()
        self.assertEqual(self.broker.sessions.names.count(), 1)
        self.client("kept", RESUMED, clean=False)
        self.client("clean")

    def test_one_that_was_discarded_stays_so(self):
        client = self.client("s", clean=False)
        self.ask(client, subscribe(1, "t", 1), b"\x90\x03\0\1\1")
        self.client("s", clean=True)
        self.reboot()
        self.assertEqual(self.broker.sessions.names.count(), 0)
        self.client("s", clean=False)
        self.assertEqual(self.broker.subscriptions.count, 0)

    def test_a_will_goes_out_after_the_cut(self):
        watcher = self.client("watcher", clean=False)
        self.ask(watcher, subscribe(1, "will", 1), b"\x90\x03\0\1\1")
        self.client("clean", will=("will", "of the clean", 1))
        self.client("kept", clean=False, will=("will", "of the kept", 1))
        gone = self.client("gone", will=("will", "of who left", 1))
        gone.send(DISCONNECT)
        self.world.turn(3)
        self.reboot()
        watcher = self.client("watcher", RESUMED, clean=False)
        watcher.answer()
        found = sorted(payload for _, payload, _ in watcher.messages)
        self.assertEqual(found, [b"of the clean", b"of the kept"])
        self.reboot()
        self.world.turn(3)
        self.assertEqual(self.broker.sessions.names.count(), 2)


class TestSubscriptions(JournalCase):
    def test_filters_are_there_with_their_qos(self):
        client = self.client("s", clean=False)
        for n, name in enumerate(("a/b", "a/+/c", "#", "$SYS/x", "/")):
            self.ask(client, subscribe(n + 1, name, n % 3), b"\x90\x03\0" + bytes((n + 1, n % 3)))
        self.ask(client, b"\xa2\x07\0\x09\0\x03a/b", b"\xb0\x02\0\x09")
        tree = self.tree()
        self.reboot()
        self.assertEqual(self.tree(), tree)
        self.assertEqual(self.broker.subscriptions.count, 4)

    def tree(self):
        from slotmq.tables.tree_text import lines

        return sorted(lines(self.broker.subscriptions, self.broker.sessions))


class TestMessages(JournalCase):
    def setUp(self):
        super().setUp()
        reader = self.client("reader", clean=False)
        self.ask(reader, subscribe(1, "t/#", 2), b"\x90\x03\0\1\2")
        self.reader = reader
        self.publisher = self.client("publisher", clean=False)

    def back(self):
        return self.client("reader", RESUMED, clean=False)

    def test_what_is_acknowledged_is_delivered(self):
        self.reader.leave()
        self.world.turn(3)
        for n in range(5):
            self.ask(self.publisher, publish("t/a", b"%d" % n, 1, n + 1), ack(PUBACK, n + 1))
        self.reboot()
        reader = self.back()
        reader.answer()
        self.assertEqual(
            [payload for _, payload, _ in reader.messages], [b"0", b"1", b"2", b"3", b"4"]
        )

    def test_what_was_in_flight_comes_again_with_its_id_and_dup(self):
        self.ask(self.publisher, publish("t/a", b"x", 2, 7), ack(PUBREC, 7))
        first = self.reader.packets()
        self.assertEqual(len(first), 1)
        self.reboot()
        again = self.back().packets()
        self.assertEqual(again, [bytes((first[0][0] | 8,)) + first[0][1:]])

    def test_pubrel_where_pubrec_had_come(self):
        self.ask(self.publisher, publish("t/a", b"x", 2, 7), ack(PUBREC, 7))
        sent = self.reader.packets()[0]
        packet_id = sent[7] << 8 | sent[8]
        self.ask(self.reader, ack(PUBREC, packet_id), ack(PUBREL, packet_id))
        self.reboot()
        reader = self.back()
        self.assertEqual(reader.packets(), [ack(PUBREL, packet_id)])
        self.ask(reader, ack(PUBCOMP, packet_id))
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_a_received_id_is_not_forgotten(self):
        self.ask(self.publisher, publish("t/a", b"x", 2, 7), ack(PUBREC, 7))
        self.reboot()
        publisher = self.client("publisher", RESUMED, clean=False)
        self.ask(publisher, publish("t/a", b"x", 2, 7, dup=True), ack(PUBREC, 7))
        self.ask(publisher, ack(PUBREL, 7), ack(PUBCOMP, 7))
        self.assertEqual(self.broker.deliveries.count[0], 1)
        self.reboot()
        self.assertEqual(self.broker.sessions.id_count[0] + self.broker.sessions.id_count[1], 0)

    def test_what_was_acknowledged_by_its_receiver_is_gone(self):
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

    def test_nor_does_qos_2_to_sessions_that_end_with_their_connection(self):
        publisher = self.client("clean too")
        self.reader.leave()
        self.world.turn(3)
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


class TestTheEnd(JournalCase):
    def test_a_full_medium_holds_what_it_cannot_keep_and_goes_on_later(self):
        client = self.client("p")
        self.medium.space = 0
        self.ask(client, publish("r", b"x", 0, retain=True) + b"\xc0\0")
        self.medium.space = 1 << 20
        self.world.turn(30, ms=100)
        self.assertEqual(client.packets(), [b"\xd0\0"])
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)

    def test_compaction_forgets_what_is_gone(self):
        client = self.client("p")
        for _ in range(100):
            client.send(publish("r", b"x" * 50, retain=True))
            self.world.turn(2)
        before = self.medium.end
        self.broker.compact()
        self.assertTrue(self.medium.end < before / 20)
        self.reboot()
        self.assertEqual(self.broker.retained.names.count(), 1)


class TestMixed(JournalCase):
    """QoS 0 that waits between others is not kept, and those keep their order."""

    settings = (("queue_qos0_messages", True),)

    def test_the_order_of_what_is_kept(self):
        for before in (0, 74, 75, 76):  # so that the slots begin anew in their midst
            self.setUp()
            self.check(before)

    def check(self, before):
        reader = self.client("reader", clean=False)
        self.ask(reader, subscribe(1, "t", 2), b"\x90\x03\0\1\2")
        publisher = self.client("publisher", clean=False)
        for _ in range(before):
            publisher.send(publish("t", b"", 1, 1))
            self.world.turn(2)
            reader.answer()
            self.world.turn(2)
        reader.leave()
        self.world.turn(3)
        said = b""
        for n in range(12):
            qos = (1, 0, 2, 1)[n % 4]
            said += publish("t", b"%d" % n, qos, n + 1 if qos else 0)
        publisher.send(said)  # all in one turn, so in one commit
        self.world.turn(3)
        self.assertEqual(self.broker.deliveries.count[0], 12)
        self.reboot()
        reader = self.client("reader", RESUMED, clean=False)
        for _ in range(4):
            reader.answer()
            self.world.turn(2)
        found = [int(payload) for _, payload, _ in reader.messages]
        self.assertEqual(found, [n for n in range(12) if n % 4 != 1])
