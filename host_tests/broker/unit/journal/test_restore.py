"""What a start finds in a journal and puts back, where rows came and went within one turn."""

import packets5
from invariants import broken
from journal_case import CONNACK, RESUMED, JournalCase
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, publish, read_publish, subscribe


class TestFullTables(JournalCase):
    limits = (("messages", 3),)

    def test_what_a_turn_replaces_needs_no_room_beside_it(self):
        reader = self.client("reader", clean=False)
        self.ask(reader, subscribe(1, "q", 1), b"\x90\x03\0\1\1")
        reader.leave()
        client = self.client("p")
        client.send(b"".join([publish(f"r/{n}", b"old", retain=True) for n in range(3)]))
        self.world.turn(3)
        self.assertEqual(self.broker.messages.count[0], 3)
        # One is cleared, and its slot is another's at once.
        self.ask(
            client, publish("r/1", b"", retain=True) + publish("q", b"x", 1, 7), ack(PUBACK, 7)
        )
        self.assertEqual(self.broker.messages.count[0], 3)
        self.reboot()
        self.assertEqual(self.broker.messages.count[0], 3)
        reader = self.client("reader", RESUMED, clean=False)
        reader.answer()
        self.assertEqual(reader.messages, [(b"q", b"x", 1)])


class TestSubscriptions(JournalCase):
    def test_they_may_have_changed_their_slots_in_one_turn(self):
        client = self.client("s", clean=False)
        for n, name in enumerate(("a", "b")):
            self.ask(client, subscribe(n + 1, name, 1), b"\x90\x03\0" + bytes((n + 1, 1)))
        gone = [b"\xa2\x05\0\x09\0\x01" + name for name in (b"b", b"a")]
        client.send(gone[0] + gone[1] + subscribe(1, "b", 2) + subscribe(2, "c", 0))
        self.world.turn(3)
        tree = self.tree()
        self.assertEqual(self.broker.subscriptions.count, 2)
        self.reboot()
        self.assertEqual(self.tree(), tree)

    def tree(self):
        from slotmq.tables.tree_text import lines

        return sorted(lines(self.broker.subscriptions, self.broker.sessions))


class TestHeld(JournalCase):
    settings = (("qos2_delivery", "release"), ("message_size_limit", 5))

    def test_an_id_whose_message_is_not_wanted_is_kept_as_any_other(self):
        client = self.client("p", clean=False)
        self.ask(client, publish("t", b"too long", 2, 7), ack(PUBREC, 7))
        self.ask(client, publish("t", b"short", 2, 8), ack(PUBREC, 8))
        self.reboot()
        self.assertEqual(sum(self.broker.sessions.id_count), 2)
        self.assertEqual(self.broker.messages.count[0], 1)


class TestHeldNoMore(JournalCase):
    """`qos2_delivery release`, and then `receive`: what was held is published, its id stays."""

    limits = (("messages", 4),)

    def setUp(self):
        self.settings = (("qos2_delivery", "release"),)
        super().setUp()

    def receive(self, **more):
        self.settings = tuple(dict(more, qos2_delivery="receive").items())
        self.reboot()

    def reader(self, expected=CONNACK):
        reader = self.client("reader", expected, clean=False)
        if expected == CONNACK:
            self.ask(reader, subscribe(1, "#", 2), b"\x90\x03\0\1\2")
        for _ in range(4):
            reader.answer()
            self.world.turn(3)
        reader.leave()
        self.world.turn(3)
        return reader.messages

    def test_each_goes_out_once(self):
        self.assertEqual(self.reader(), [])
        p = self.client("p", clean=False)
        for n, text in enumerate((b"a", b"b", b"c")):
            retain = text == b"c"
            self.ask(p, publish("t", text, 2, n + 7, retain=retain), ack(PUBREC, n + 7))
        self.receive()
        p = self.client("p", RESUMED, clean=False)
        self.ask(p, publish("t", b"a", 2, 7, dup=True), ack(PUBREC, 7))
        self.ask(p, ack(PUBREL, 7), ack(PUBCOMP, 7))
        self.reboot()
        p = self.client("p", RESUMED, clean=False)
        for n in (8, 9):
            self.ask(p, ack(PUBREL, n), ack(PUBCOMP, n))
        self.assertEqual(self.reader(RESUMED), [(b"t", text, 2) for text in (b"a", b"b", b"c")])
        self.assertEqual(self.broker.retained.names.count(), 1)
        self.assertEqual(self.broker.messages.count[0], 1)
        self.assertEqual(sum(self.broker.sessions.id_count), 0)

    def test_nobody_wants_it(self):
        p = self.client("p", clean=False)
        self.ask(p, publish("t", b"a", 2, 7), ack(PUBREC, 7))
        self.receive()
        self.assertEqual(self.broker.messages.count[0], 0)
        self.assertEqual(sum(self.broker.sessions.id_count), 1)

    def hold5(self, properties):
        """A client of version 5 publishes, and is subscribed with No Local."""
        self.assertEqual(self.reader(), [])
        p = self.come(packets5.connect("p", clean=False, expiry=600))
        p.send(packets5.subscribe(1, "#", 2 | 4) + packets5.publish("t", b"a", 2, 7, properties))
        self.world.turn(3)
        self.assertEqual(p.stream.received[-4:], ack(PUBREC, 7))
        return p

    def test_one_of_version_5(self):
        self.hold5(b"\x26\0\1a\0\1b")
        self.receive()
        self.assertEqual(self.broker.deliveries.count[0], 1)  # none to its own client
        self.assertEqual(self.reader(RESUMED), [(b"t", b"a", 2)])

    def test_one_that_has_expired(self):
        for version in (5, 3):
            p = self.hold5(b"\x02\0\0\0\1")
            self.world.turn(30, ms=100)
            p.send(packets5.subscribe(2, "other", 1))
            self.world.turn(3)
            self.receive(mqtt_versions=version)
            self.world.turn(30, ms=100)
            self.assertEqual(self.reader(RESUMED), [])
            self.assertEqual(self.broker.messages.count[0], 0)
            self.setUp()


class TestVersion5(JournalCase):
    def come5(self, name, present=0):
        client = self.come(packets5.connect(name, clean=False, expiry=600))
        found = client.stream.received
        self.assertEqual(bytes(found[2:4]), bytes((present, 0)))
        client._read = 2 + found[1]
        return client

    def join(self, client, name, options=1, properties=b""):
        client.send(packets5.subscribe(1, name, options, properties))
        self.world.turn(3)
        self.assertEqual([data[0] for data in client.packets()], [0x90])

    def test_several_identifiers(self):
        client = self.come5("s")
        self.join(client, "t/#", 1, b"\x0b\x05")
        self.join(client, "t/a", 1, b"\x0b\x06")
        client.leave()
        publisher = self.client("p")
        self.ask(publisher, publish("t/a", b"x", 1, 7), ack(PUBACK, 7))
        self.reboot()
        (sent,) = self.come5("s", 1).packets()
        self.assertTrue(b"\x0b\x05" in sent and b"\x0b\x06" in sent)

    def test_a_delivery_finds_its_group_in_another_slot(self):
        first = self.come5("first")
        self.join(first, "$share/g/t")
        client = self.come5("s")
        self.join(client, "$share/h/t")
        self.join(client, "$share/i/t")
        first.send(b"\xa2\x0f\0\x01\0\0\x0a$share/g/t")
        self.world.turn(3)
        client.leave()
        publisher = self.client("p")
        self.ask(publisher, publish("t", b"x", 1, 7), ack(PUBACK, 7))
        groups = self.groups()
        self.assertEqual(len(groups), 2)
        self.broker.compact()
        self.reboot()
        self.assertEqual(self.groups(), groups)

    def groups(self):
        names = self.broker.five.shares.names
        buf = bytearray(32)
        found = []
        for entry in range(self.broker.deliveries.slots):
            group = self.broker.five.group[entry]
            if self.broker.deliveries.session[entry] != 0xFFFF:
                found.append(bytes(buf[: names.read(group, buf, 0)]))
        return found


class TestOrder(JournalCase):
    limits = (("deliveries", 8), ("queued", 4), ("inflight", 4))
    settings = (("queue_qos0_messages", True),)

    def test_it_is_that_of_the_queue_where_messages_of_qos_0_are_among_them(self):
        other = self.client("other")
        self.ask(other, subscribe(1, "o", 1), b"\x90\x03\0\1\1")
        reader = self.client("reader", clean=False)
        self.ask(reader, subscribe(1, "t", 1), b"\x90\x03\0\1\1")
        reader.leave()
        publisher = self.client("p")
        for n in range(7):  # until the next slots are the last one and the first ones
            self.ask(publisher, publish("o", b"", 1, n + 1), ack(PUBACK, n + 1))
            other.answer()
            self.world.turn(3)
        publisher.send(publish("t", b"a", 1, 1) + publish("t", b"b") + publish("t", b"c", 1, 2))
        self.world.turn(3)
        self.reboot()
        reader = self.client("reader", RESUMED, clean=False)
        reader.answer()
        self.assertEqual([text for _, text, _ in reader.messages], [b"a", b"c"])


class TestBegun(JournalCase):
    limits = (("inflight", 2), ("queued", 3))

    def start(self):
        super().start()
        self.broker.settings.when_full["deliveries"] = "drop_oldest"
        self.broker.apply_settings()

    def test_what_was_sent_at_qos_2_is_not_dropped_for_another(self):
        reader = self.client("reader", clean=False)
        self.ask(reader, subscribe(1, "t", 2), b"\x90\x03\0\1\2")
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


class TestHeldBack(JournalCase):
    """While a packet is half handled nothing may leave; what waits for that is not forgotten."""

    limits = (("tx_bytes", 160), ("max_packet", 1024))

    def slow(self):
        """Between two others, for whom what is published must be kept."""
        for name in ("before", "slow", "after"):
            client = self.client(name, clean=False)
            qos = int(name != "slow")
            self.ask(client, subscribe(1, "#", qos), b"\x90\x03\0\1" + bytes((qos,)))
            if qos:
                client.leave()
            else:
                slow = client
        return slow

    def test_a_message_larger_than_the_buffer(self):
        client = self.slow()
        publisher = self.client("p")
        publisher.send(publish("t", b"x" * 500, 1, 7) + publish("t", b"y", 0))
        self.world.turn(5)
        client.answer()
        self.assertEqual(sorted([text[:1] for _, text, _ in client.messages]), [b"x", b"y"])
        self.assertEqual(broken(self.broker), [])

    def test_those_behind_it_do_not_overtake_it(self):
        client = self.slow()
        first = self.client("p")
        publisher = self.client("q")
        first.send(publish("t", b"w" * 100, 1, 6))
        publisher.send(publish("t", b"x" * 140, 1, 7) + publish("t", b"y", 1, 8))
        self.world.turn(5)
        client.answer()
        self.assertEqual([text[:1] for _, text, _ in client.messages], [b"w", b"x", b"y"])
