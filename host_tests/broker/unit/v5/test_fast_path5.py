"""MQTT 5.0 on the fast path: which packets it takes, and what receivers of each version get, byte
by byte."""

# ruff: noqa: RUF005 - MicroPython has no stars in a list
import packets5
from broker_case import BrokerCase
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, packet, publish, subscribe

from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

LIMITS = {
    "connections": 8,
    "tx_bytes": 20480,
    "rx_bytes": 20480,
    "max_packet": 18000,
    "message_bytes": 65536,
}
USER = b"\x26\0\1a\0\2bc"  # a user property


class FastCase(BrokerCase):
    LIMITS = LIMITS
    WITH_PROPERTIES = False  # is fast/properties_cpython.py in place, on CPython?

    def start(self, limits=None, **settings):
        super().start(limits, **settings)
        self.handled = 0
        if self.WITH_PROPERTIES and not MICROPYTHON:
            ondemand.take("v5.quick_properties_cpython", 0).begin(self.broker)
        self.inner = self.broker.handle_fast
        self.broker.handle_fast = self.handle_fast

    def handle_fast(self, columns, conn, buf, at, end):
        stop = self.inner(columns, conn, buf, at, end)
        self.handled += stop - at
        return stop

    def client(
        self, name, level, qos=0, options=0, properties=b"", of_filter=b"", topic="t", expiry=0
    ):
        """A client of that version that has subscribed to the topic; qos None: to nothing."""
        of_5 = packets5.connect(name, properties, clean=True, expiry=expiry)
        client = self.come(of_5 if level == 5 else connect(name))
        if qos is not None and level == 5:
            client.send(packets5.subscribe(1, topic, qos | options, of_filter))
        elif qos is not None:
            client.send(subscribe(1, topic, qos))
        self.world.turn(2)
        client.packets()
        return client

    def is_fast(self, client, data):
        """Send packets; has the fast path handled them all?"""
        self.handled = 0
        client.send(data)
        self.world.turn(3)
        self.assertTrue(self.handled <= len(data))
        return self.handled == len(data)

    def check_fast(self, client, data):
        """Send packets; the fast path must handle them, with properties that of CPython."""
        self.assertTrue(self.is_fast(client, data) or (self.WITH_PROPERTIES and MICROPYTHON))

    def publish(self, level, payload, qos=0, packet_id=0, properties=b"", **more):
        if level == 5:
            return packets5.publish("t", payload, qos, packet_id, properties, **more)
        return publish("t", payload, qos, packet_id, **more)

    def got(self, client):
        return b"".join([bytes(data) for data in client.packets()])


class TestQos0(FastCase):
    def test_each_version_gets_its_own_packet(self):
        """Remaining lengths of each number of bytes, and where the versions differ in it."""
        receivers = [
            (level, self.client(f"{level}{n}", level)) for n in (1, 2) for level in (3, 5)
        ]
        for level in (3, 5):
            sender = self.client(f"from{level}", level, None)
            sender.send(self.publish(level, b"first"))
            self.world.turn(2)
            for size in [0, 1, 60, 200] + list(range(120, 127)) + list(range(16376, 16379)):
                with self.subTest(level=level, size=size):
                    for _, client in receivers:
                        client.packets()
                    payload = bytes([n & 255 for n in range(size)])
                    data = self.publish(level, payload) + self.publish(level, b"next")
                    self.check_fast(sender, data)
                    for version, client in receivers:
                        wanted = self.publish(version, payload) + self.publish(version, b"next")
                        self.assertEqual(self.got(client), wanted)

    def test_a_length_that_the_fast_path_does_not_know(self):
        of_3, of_5 = self.client("3", 3), self.client("5", 5)
        for level, client in ((3, of_3), (5, of_5)):
            client.send(self.publish(level, b"first"))
            self.world.turn(2)
            for each in (of_3, of_5):
                each.packets()
            payload = b"p" * (16384 - 3 if level == 3 else 16384 - 4)
            self.assertFalse(self.is_fast(client, self.publish(level, payload)))
            for version, each in ((3, of_3), (5, of_5)):
                self.assertEqual(self.got(each), self.publish(version, payload))

    def test_to_one_version_only(self):
        for level in (3, 5):
            for version in (3, 5):
                self.start()
                sender = self.client("s", level, None)
                receiver = self.client("r", version)
                self.assertFalse(self.is_fast(sender, self.publish(level, b"1")))
                self.check_fast(sender, self.publish(level, b"2") * 3)
                wanted = self.publish(version, b"1") + self.publish(version, b"2") * 3
                self.assertEqual(self.got(receiver), wanted)
                self.assertEqual(self.broker.stats[2], 4)
                self.assertEqual(self.broker.conns.counts[1] + self.broker.stats[3], 4)
                self.tearDown()

    def test_to_nobody_and_to_a_session_without_a_connection(self):
        sender = self.client("s", 5, None)
        sender.send(self.publish(5, b"1"))
        self.world.turn(2)
        self.check_fast(sender, self.publish(5, b"2"))
        for level in (3, 5):
            first = self.come(
                packets5.connect("away", clean=False, expiry=60) + packets5.subscribe(1, "t", 0)
                if level == 5
                else connect("away", clean=False) + subscribe(1, "t", 0)
            )
            first.leave()
            self.world.turn(2)
            receiver = self.client("r", 5)
            sender.send(self.publish(5, b"3"))
            self.world.turn(2)
            self.check_fast(sender, self.publish(5, b"4"))
            self.assertEqual(self.got(receiver), self.publish(5, b"3") + self.publish(5, b"4"))
            receiver.leave()
            self.world.turn(2)

    def test_without_space_for_one_nothing_is_sent_twice(self):
        """A receiver of either version is slow: the others get each message once, in order."""
        for level in (3, 5):
            for slow in (3, 5):
                with self.subTest(level=level, slow=slow):
                    self.start()
                    sender = self.client("s", level, None)
                    receivers = [(3, self.client("3", 3)), (5, self.client("5", 5))]
                    (blocked,) = [client for version, client in receivers if version == slow]
                    blocked.stream.write_some = lambda n: None
                    data = [self.publish(level, b"%d" % n + b"p" * 3000) for n in range(20)]
                    for each in data:
                        sender.send(each)
                        self.world.turn(2)
                    for version, client in receivers:
                        if version != slow:
                            of_it = [
                                self.publish(version, b"%d" % n + b"p" * 3000) for n in range(20)
                            ]
                            self.assertEqual(self.got(client), b"".join(of_it))
                    blocked.stream.write_some = lambda n: n
                    self.world.turn(3)
                    found = [bytes(each) for each in blocked.packets()]
                    of_it = [self.publish(slow, b"%d" % n + b"p" * 3000) for n in range(20)]
                    self.assertEqual(found, of_it[: len(found)])
                    self.assertEqual(len(found) + self.broker.stats[4], 20)
                    self.assertTrue(0 < len(found) < 20)
                    self.tearDown()


class TestQos1And2(FastCase):
    def test_both_directions_of_both_versions(self):
        for level in (3, 5):
            for version in (3, 5):
                for qos in (1, 2):
                    self.start()
                    sender = self.client("s", level, None)
                    receiver = self.client("r", version, qos)
                    self.exchange(sender, receiver, level, version, qos, fast=False)
                    self.exchange(sender, receiver, level, version, qos, fast=True)
                    self.exchange(sender, receiver, level, version, qos, fast=True)
                    self.tearDown()

    def exchange(self, sender, receiver, level, version, qos, fast):
        data = self.publish(level, b"payload", qos, 7)
        self.assertEqual(self.is_fast(sender, data), fast)
        self.assertEqual(self.got(sender), ack(PUBACK if qos == 1 else PUBREC, 7))
        (found,) = receiver.packets()
        packet_id = found[5] << 8 | found[6]
        self.assertEqual(bytes(found), self.publish(version, b"payload", qos, packet_id))
        if qos == 2:
            self.check_fast(sender, ack(PUBREL, 7))
            self.assertEqual(self.got(sender), ack(PUBCOMP, 7))
            self.check_fast(receiver, ack(PUBREC, packet_id))
            self.assertEqual(self.got(receiver), ack(PUBREL, packet_id))
        self.check_fast(receiver, ack(PUBACK if qos == 1 else PUBCOMP, packet_id))
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_an_empty_payload(self):
        sender = self.client("s", 5, None)
        receivers = [(3, self.client("3", 3, 1)), (5, self.client("5", 5, 1))]
        for n in range(2):
            self.assertEqual(self.is_fast(sender, self.publish(5, b"", 1, 7)), n > 0)
        for version, client in receivers:
            for found in client.packets():
                packet_id = found[5] << 8 | found[6]
                self.assertEqual(bytes(found), self.publish(version, b"", 1, packet_id))
                client.send(ack(PUBACK, packet_id))
        self.world.turn(2)

    def test_receive_maximum(self):
        sender = self.client("s", 5, None)
        receiver = self.client("r", 5, 1, properties=b"\x21\0\2")
        data = b"".join([self.publish(5, b"%d" % n, 1, n + 1) for n in range(7)])
        sender.send(data[:10])
        self.world.turn(2)
        self.assertFalse(self.is_fast(sender, data[10:]))  # the first was cut
        seen = 0
        while seen < 7:
            found = receiver.packets()
            self.assertTrue(0 < len(found) <= 2)
            for each in found:
                self.assertEqual(bytes(each[8:]), b"%d" % seen)
                seen += 1
                self.check_fast(receiver, ack(PUBACK, each[5] << 8 | each[6]))

    def test_what_was_sent_before_a_reconnect_is_sent_again(self):
        """Within the new connection's Receive Maximum, and with DUP."""
        sender = self.client("s", 5, None)
        name = "r"
        for properties in (b"\x21\0\4", b"\x21\0\2"):
            receiver = self.come(
                packets5.connect(name, properties, clean=False, expiry=60)
                + packets5.subscribe(1, "t", 1)
            )
            if not self.broker.deliveries.count[0]:
                sender.send(b"".join([self.publish(5, b"%d" % n, 1, n + 1) for n in range(4)]))
            self.world.turn(3)
            found = [data for data in receiver.packets() if data[0] >> 4 == 3]
            first = found
            if properties[2] == 4:
                self.assertEqual([data[0] for data in found], [0x32] * 4)
                receiver.leave()
                self.world.turn(2)
        self.assertEqual([data[0] for data in first], [0x3A] * 2)
        for _ in range(3):
            receiver.answer()
            for data in first:
                receiver.send(ack(PUBACK, data[5] << 8 | data[6]))
            first = []
            self.world.turn(3)
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_the_window_of_one_who_comes_back_with_another_version(self):
        """What was queued with a subscription identifier keeps to max_inflight_messages, too."""
        self.broker.deliveries.window[0] = 2
        sender = self.client("s", 5, None)
        receiver = self.come(
            packets5.connect("r", clean=False, expiry=60)
            + packets5.subscribe(1, "t", 1, b"\x0b\x07")
        )
        self.world.turn(2)
        receiver.leave()
        self.world.turn(2)
        sender.send(b"".join([self.publish(5, b"%d" % n, 1, n + 1) for n in range(4)]))
        self.world.turn(2)
        receiver = self.come(connect("r", clean=False))
        self.world.turn(2)
        found = [data for data in receiver.packets() if data[0] >> 4 == 3]
        self.assertEqual([bytes(data[-1:]) for data in found], [b"0", b"1"])
        receiver.send(ack(PUBACK, found[0][5] << 8 | found[0][6]))
        self.world.turn(2)
        self.assertEqual([bytes(data[-1:]) for data in receiver.packets()], [b"2"])

    def test_a_reason_code_is_not_left_out(self):
        """If nobody has subscribed, and for an unknown id."""
        sender = self.client("s", 5, None)
        for _ in range(3):
            self.assertFalse(self.is_fast(sender, self.publish(5, b"", 1, 7)))
            self.assertEqual(self.got(sender), packet(0x40, b"\0\7\x10"))
        self.assertFalse(self.is_fast(sender, ack(PUBREL, 9)))
        self.assertEqual(self.got(sender), packet(0x70, b"\0\x09\x92"))


class TestSizeLimit(FastCase):
    """message_size_limit: a packet that is not longer as a whole needs no look at its payload."""

    def test_each_version_and_qos(self):
        for with_properties in (False, True):
            self.WITH_PROPERTIES = with_properties
            for level in (5, 4):
                for qos in (0, 1, 2):
                    with self.subTest(level=level, qos=qos, more=with_properties):
                        self.start(message_size_limit=40)
                        receiver = self.client("r", level, qos)
                        sender = self.client("s", level, None)
                        sender.send(self.publish(level, b"first"))
                        self.world.turn(2)
                        receiver.packets()
                        more = USER if level == 5 and with_properties else b""
                        packet_id = 1 if qos else 0
                        data = self.publish(level, b"p" * 20, qos, packet_id, more)
                        self.check_fast(sender, data)
                        self.assertEqual(len(receiver.packets()), 1)
                        for size in (39, 40):
                            data = self.publish(
                                level, b"p" * size, qos, packet_id and packet_id + 1, more
                            )
                            self.assertFalse(self.is_fast(sender, data))
                            self.assertEqual(len(receiver.packets()), 1)
                            packet_id += 1 if qos else 0
                        data = self.publish(
                            level, b"p" * 41, qos, packet_id and packet_id + 1, more
                        )
                        self.assertFalse(self.is_fast(sender, data))
                        self.assertEqual(receiver.packets(), [])


class TestQueues(FastCase):
    """queue_qos0_messages: the fast path takes a QoS 0 message unless a receiver is away or has a
    queue."""

    def test_a_receiver_that_is_away_and_one_whose_window_is_full(self):
        for with_properties in (False, True):
            self.WITH_PROPERTIES = with_properties
            for level in (5, 4):
                with self.subTest(level=level, more=with_properties):
                    self.start(queue_qos0_messages=True, max_inflight_messages=1)
                    self.look(level, USER if level == 5 and with_properties else b"")

    def look(self, level, more):
        sender = self.client("s", level, None)
        other = self.client("other", level)
        reader = self.come(connect("r", clean=False))
        reader.send(subscribe(1, "t", 0) + subscribe(2, "q", 1))
        self.world.turn()
        sender.send(self.publish(level, b"first"))
        self.world.turn(3)
        self.check_fast(sender, self.publish(level, b"a"))
        self.assertEqual(reader.packets()[-1], publish("t", b"a"))

        reader.leave()
        self.world.turn(2)
        for properties in (b"", more):
            data = self.publish(level, b"b", properties=properties)
            self.assertFalse(self.is_fast(sender, data))
        reader = self.come(connect("r", clean=False))
        self.assertEqual([data[-1:] for data in reader.packets()], [b"\0", b"b", b"b"])
        self.check_fast(sender, self.publish(level, b"c"))
        self.assertEqual(reader.packets(), [publish("t", b"c")])

        full = [publish("q", payload, 1, 7) for payload in (b"1", b"2")]
        if level == 5:
            full = [packets5.publish("q", payload, 1, 7) for payload in (b"1", b"2")]
        sender.send(b"".join(full))
        self.world.turn(3)
        sent = reader.packets()
        self.assertEqual([data[-1:] for data in sent], [b"1"])
        for properties in (b"", more):
            data = self.publish(level, b"d", properties=properties)
            self.assertFalse(self.is_fast(sender, data))
        self.assertEqual(reader.packets(), [])
        reader.send(ack(PUBACK, sent[0][5] << 8 | sent[0][6]))
        self.world.turn(3)
        sent = reader.packets()
        self.assertEqual([data[-1:] for data in sent], [b"2", b"d", b"d"])
        reader.send(ack(PUBACK, sent[0][5] << 8 | sent[0][6]))
        self.world.turn(2)
        self.check_fast(sender, self.publish(level, b"e"))
        self.assertEqual([data[-1:] for data in other.packets()][-1:], [b"e"])


class TestOtherCode(FastCase):
    """What the fast path leaves to the handlers, before and after it has remembered the route."""

    def test_properties(self):
        sender = self.client("s", 5, None)
        receivers = [(3, self.client("3", 3)), (5, self.client("5", 5))]
        for _ in range(2):
            self.assertFalse(self.is_fast(sender, self.publish(5, b"p", properties=USER)))
            for version, client in receivers:
                wanted = self.publish(version, b"p", properties=USER)
                self.assertEqual(self.got(client), wanted)
        self.check_fast(sender, self.publish(5, b"p"))
        for qos in (1, 2):
            data = self.publish(5, b"p", qos, 7, USER)
            self.assertFalse(self.is_fast(sender, data))
        sender.send(ack(PUBREL, 7))
        self.world.turn(2)

    def test_retained_messages_and_retain_as_published(self):
        sender = self.client("s", 5, None)
        of_3, of_5 = self.client("3", 3), self.client("5", 5)
        as_published = self.client("rap", 5, options=8)
        for _ in range(2):
            self.assertTrue(not self.is_fast(sender, self.publish(5, b"p", retain=True)))
            self.assertEqual(self.got(as_published), self.publish(5, b"p", retain=True))
            self.assertEqual(self.got(of_5), self.publish(5, b"p"))
            self.assertEqual(self.got(of_3), self.publish(3, b"p"))
        self.check_fast(sender, self.publish(5, b"q"))
        self.assertEqual(self.got(as_published), self.publish(5, b"q"))
        sender.send(self.publish(5, b"", retain=True))
        self.world.turn(2)

    def test_retained_messages_by_a_wildcard(self):
        """Short and long ones, with an identifier, and to a client that takes no long packet."""
        sender = self.client("s", 5, None)
        for size in (1, 119, 120, 121, 122, 200):
            payload = b"p" * size
            sender.send(packets5.publish("a/b", payload, retain=True))
            self.world.turn(2)
            for level, of_filter in ((3, b""), (5, b""), (5, b"\x0b\7")):
                client = self.client("r", level, 0, 0, b"", of_filter, "none")
                if level == 5:
                    client.send(packets5.subscribe(2, "a/+", 0, of_filter))
                else:
                    client.send(subscribe(2, "a/+", 0))
                self.world.turn(2)
                got = client.packets()[1:]
                if level == 5:
                    wanted = packets5.publish("a/b", payload, 0, 0, of_filter, retain=True)
                else:
                    wanted = publish("a/b", payload, retain=True)
                self.assertEqual([bytes(data) for data in got], [wanted])
                client.leave()
                self.world.turn(2)
        for most, count in ((127, 1), (300, 2)):  # the SUBACK, and the message if it fits
            client = self.client("m", 5, None, 0, b"\x27" + most.to_bytes(4, "big"))
            client.send(packets5.subscribe(2, "a/+", 0))
            self.world.turn(2)
            self.assertEqual(len(client.packets()), count)
            client.leave()
            self.world.turn(2)
        sender.send(packets5.publish("a/b", b"", retain=True))
        self.world.turn(2)

    def test_no_local(self):
        sender = self.client("s", 5, options=4)
        receiver = self.client("r", 5)
        for _ in range(3):
            self.assertFalse(self.is_fast(sender, self.publish(5, b"p")))
            self.assertEqual(self.got(sender), b"")
            self.assertEqual(self.got(receiver), self.publish(5, b"p"))

    def test_identifiers(self):
        sender = self.client("s", 3, None)
        receiver = self.client("r", 5, 1, of_filter=b"\x0b\5")
        for _ in range(3):
            self.assertFalse(self.is_fast(sender, self.publish(3, b"p")))
            self.assertEqual(self.got(receiver), self.publish(5, b"p", properties=b"\x0b\5"))
        sender.send(self.publish(3, b"p", 1, 7))
        self.world.turn(2)
        (found,) = receiver.packets()
        packet_id = found[5] << 8 | found[6]
        self.assertEqual(bytes(found), self.publish(5, b"p", 1, packet_id, b"\x0b\5"))
        self.check_fast(receiver, ack(PUBACK, packet_id))

    def test_a_shared_subscription(self):
        sender = self.client("s", 5, None)
        members = [self.client(f"m{n}", 5, topic="$share/g/t") for n in range(2)]
        for _ in range(4):
            self.assertFalse(self.is_fast(sender, self.publish(5, b"p")))
        for client in members:
            self.assertEqual(self.got(client), self.publish(5, b"p") * 2)

    def test_aliases_of_a_receiver(self):
        sender = self.client("s", 5, None, topic="long")
        receiver = self.client("r", 5, properties=b"\x22\0\1", topic="long")
        data = packets5.publish("long", b"p")
        for n in range(3):
            self.assertFalse(self.is_fast(sender, data))
            topic = "" if n else "long"
            self.assertEqual(
                self.got(receiver), packets5.publish(topic, b"p", properties=b"\x23\0\1")
            )

    def test_the_largest_packet_of_a_receiver(self):
        sender = self.client("s", 3, None)
        receiver = self.client("r", 5, properties=b"\x27\0\0\0\x28")
        for size in (30, 34, 35, 36):
            self.assertFalse(self.is_fast(sender, self.publish(3, b"p" * size)))
        wanted = [self.publish(5, b"p" * size) for size in (30, 34)]
        self.assertEqual(self.got(receiver), b"".join(wanted))

    def test_a_session_that_comes_back_with_the_other_version(self):
        sender = self.client("s", 5, None)
        expiry = {"clean": False, "expiry": 60}
        for level in (5, 3, 5, 3):
            first = packets5.connect("r", **expiry) if level == 5 else connect("r", clean=False)
            receiver = self.come(first)
            if level == 5:
                receiver.send(packets5.subscribe(1, "t", 0))
            self.world.turn(2)
            receiver.packets()
            for n in range(3):
                fast = self.is_fast(sender, self.publish(5, b"p"))
                self.assertEqual(fast, n > 0 and level == 5)
                self.assertEqual(self.got(receiver), self.publish(level, b"p"))
            receiver.leave()
            self.world.turn(2)

    def test_malformed_packets(self):
        """They end the connection, as without the fast path."""
        for body in (b"\0\1t", b"\0\1t\1", b"\0\1t\x80", b"\0\1t\2\1\2"):
            sender = self.client("s", 5, None)
            sender.send(self.publish(5, b"p") * 2)
            self.world.turn(2)
            sender.send(packet(0x30, body))
            self.world.turn(3)
            self.assertEqual(self.got(sender)[:2], b"\xe0\2")
            self.wait(2)
            self.assertTrue(sender.stream.closed)

    def test_a_client_that_comes_and_goes_does_not_clear_the_routes(self):
        sender = self.client("s", 5, None)
        self.client("r", 5)
        sender.send(self.publish(5, b"p"))
        self.world.turn(2)
        other = self.client("other", 5, None)
        self.check_fast(sender, self.publish(5, b"p"))
        other.leave()
        self.world.turn(2)
        self.check_fast(sender, self.publish(5, b"p"))


class TestProperties(FastCase):
    """What fast/properties_cpython.py takes, and leaves; twins/properties.py has the bytes too."""

    WITH_PROPERTIES = True

    def test_each_version_gets_its_own_packet(self):
        """Byte by byte, with each property that is passed on, in short and in long sections."""
        long = b"\x26\0\1a\0\x96" + b"v" * 150
        sections = [
            b"\1\1",
            b"\3\0\4text",
            b"\x08\0\3a/b",
            b"\x09\0\2\0\xff",
            USER,
            USER * 3,
            long,
        ]
        sections += [b"\2\0\0\0\x09", b"\2\0\0\0\x09" + USER, b"".join(sections[:6])]
        sender = self.client("s", 5, None)
        receivers = [
            (level, self.client(f"{level}{n}", level)) for n in (1, 2) for level in (3, 5)
        ]
        sender.send(self.publish(5, b"first"))
        self.world.turn(2)
        for size in (0, 1, 100, 126, 400):
            for section in sections:
                with self.subTest(size=size, section=section):
                    for _, client in receivers:
                        client.packets()
                    data = self.publish(5, b"p" * size, properties=section)
                    data += self.publish(5, b"next", properties=USER) + self.publish(5, b"last")
                    self.check_fast(sender, data)
                    for level, client in receivers:
                        wanted = self.publish(level, b"p" * size, properties=section)
                        wanted += self.publish(level, b"next", properties=USER)
                        self.assertEqual(self.got(client), wanted + self.publish(level, b"last"))

    def test_sections_that_the_fast_path_does_not_know(self):
        sender = self.client("s", 5, None)
        receivers = [(level, self.client(f"{level}", level, 1)) for level in (3, 5)]
        value = b"v" * 16390
        section = b"\x26\0\1a" + bytes((len(value) >> 8, len(value) & 255)) + value
        for qos in (0, 1):
            for _ in range(2):
                sender.send(self.publish(5, b"p", qos, 9 if qos else 0, section))
                self.world.turn(3)
                for level, client in receivers:
                    (found,) = client.packets()
                    packet_id = 0
                    if qos:
                        at = 7 if level == 5 else 5
                        packet_id = found[at] << 8 | found[at + 1]
                        client.send(ack(PUBACK, packet_id))
                    wanted = self.publish(level, b"p", qos, packet_id, section)
                    self.assertEqual(bytes(found), wanted)
                self.world.turn(2)

    def test_what_is_wrong_goes_to_the_handlers(self):
        """Twice, cut, no UTF-8, not of PUBLISH: they end the connection."""
        wrong = (
            b"\1\2",
            b"\1\0\1\0",
            b"\3\0\1\xff",
            b"\3\0\1a\3\0\1a",
            b"\x08\0\1+",
            b"\x08\0\0",
            b"\x23\0\0",
            b"\x23\0\1\x23\0\1",
            b"\x0b\1",
            b"\x26\0\1a",
            b"\x26\0\1a\0\5b",
            b"\2\0\0\0",
            b"\x7f\0",
        )
        self.client("r", 5)
        for section in wrong:
            with self.subTest(section=section):
                sender = self.client("s", 5, None)
                sender.send(self.publish(5, b"p", properties=USER) * 2)
                self.world.turn(2)
                data = self.publish(5, b"p", properties=section)
                self.assertFalse(self.is_fast(sender, data))
                self.assertEqual(self.got(sender)[:2], b"\xe0\2")
                self.wait(2)
                self.assertTrue(sender.stream.closed)

    def test_aliases_in_both_directions(self):
        sender = self.client("s", 5, None)
        plain = self.client("p", 5, topic="long")
        with_alias = self.client("a", 5, properties=b"\x22\0\1", topic="long")
        of_3 = self.client("3", 3, topic="long")
        set_it = packets5.publish("long", b"p", properties=b"\x23\0\1")
        self.assertFalse(self.is_fast(sender, set_it))
        for section in (b"", USER):
            data = packets5.publish("", b"q", properties=section + b"\x23\0\1")
            for client in (plain, with_alias, of_3):
                client.packets()
            self.check_fast(sender, data + set_it)
            wanted = packets5.publish("long", b"q", properties=section)
            self.assertEqual(self.got(plain), wanted + packets5.publish("long", b"p"))
            known = packets5.publish("", b"q", properties=b"\x23\0\1" + section)
            known += packets5.publish("", b"p", properties=b"\x23\0\1")
            self.assertEqual(self.got(with_alias), known)
            self.assertEqual(self.got(of_3), publish("long", b"q") + publish("long", b"p"))

    def test_messages_that_expire(self):
        """At QoS 1 and 2: what is left when it leaves, and nothing once it has expired."""
        for qos in (1, 2):
            sender = self.client("s", 5, None)
            receiver = self.client("r", 5, qos, properties=b"\x21\0\1")
            sender.send(self.publish(5, b"first"))
            self.world.turn(2)
            receiver.packets()
            data = self.publish(5, b"p", qos, 9, b"\2\0\0\0\x0a" + USER)
            data += self.publish(5, b"q", qos, 10, b"\2\0\0\0\x02")
            self.check_fast(sender, data)
            (found,) = receiver.packets()
            packet_id = found[5] << 8 | found[6]
            wanted = self.publish(5, b"p", qos, packet_id, b"\2\0\0\0\x0a" + USER)
            self.assertEqual(bytes(found), wanted)
            self.wait(4)
            receiver.send(ack(PUBACK if qos == 1 else PUBREC, packet_id))
            self.world.turn(2)
            qos == 2 and receiver.send(ack(PUBCOMP, packet_id))
            self.world.turn(2)
            rest = [data for data in receiver.packets() if data[0] >> 4 == 3]
            self.assertEqual(rest, [])
            self.assertEqual(self.broker.messages.count[0], 0)
            sender.leave()
            receiver.leave()
            self.world.turn(2)

    def test_what_waits_has_less_time_left(self):
        sender = self.client("s", 5, None)
        receiver = self.client("r", 5, 1, properties=b"\x21\0\1")
        for n in (9, 10):
            self.is_fast(sender, self.publish(5, b"p", 1, n, b"\2\0\0\1\0"))
        (found,) = receiver.packets()
        self.wait(6)
        receiver.send(ack(PUBACK, found[5] << 8 | found[6]))
        self.world.turn(2)
        (found,) = receiver.packets()
        left = found[9] << 24 | found[10] << 16 | found[11] << 8 | found[12]
        self.assertEqual(found[8], 2)
        self.assertTrue(249 <= left <= 251, left)
