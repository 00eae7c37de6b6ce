"""MQTT 5.0: topics longer than the outgoing buffer, and the packets after them."""

import packets5
from broker_case import BrokerCase
from packets import (
    PINGREQ,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connect,
    length,
    publish,
    subscribe,
)

from slotmq import Limits

TX = 64
TOPIC = "a/b/c/" + "x" * 150
HEADS = ("", "a/", "+/", "a/b/", "+/b/", "a/+/", "+/+/", "a/b/c/", "a/b/+/", "a/+/c/", "+/b/c/")
FILTERS = tuple(head + "#" for head in HEADS) + tuple(head + "+" for head in HEADS[-4:]) + (TOPIC,)
DROPPED = 4  # of stats
OTHER_PACKETS = (
    packets5.publish("$y", b"y"),
    packets5.subscribe(1, "$z/" + "z" * 150, 0) * 2,
    PINGREQ * 300,
    b"",
)
TEXT = b"\x03\0\4text"  # Content Type


def identifier(n):
    return b"\x0b" + length(n)


def of_size(size):
    """Identifiers that take so many bytes together."""
    found = []
    while size > 8:
        found.append(2097152 + len(found))
        size -= 5
    found += {4: (16384,), 5: (16384 * 128,), 6: (128, 129), 7: (128, 16384), 8: (16384, 16385)}[
        size
    ]
    return tuple(found)


def slowly(some):
    """A write function: in turn so many bytes, and none."""
    state = [0]

    def write(n):
        state[0] += 1
        return min(n, some) if state[0] & 1 else None

    return write


class TestLongTopics(BrokerCase):
    def setUp(self):
        self.start(Limits(tx_bytes=TX, max_packet=2048))
        self.broker.now = 1000

    def subscriber(self, identifiers, qos=2, name="s"):
        """A client with so many subscriptions that match, each with its identifier."""
        client = self.come(packets5.connect(name, b"\x22\0\5"))
        for i, n in enumerate(identifiers):
            properties = identifier(n) if n else b""
            client.send(packets5.subscribe(1, FILTERS[i], qos, properties))
        self.world.turn(12)
        found = client.packets()
        self.assertEqual(len(found), 1 + len(identifiers))
        return client

    def publish(self, client, qos=0, properties=b""):
        client.send(packets5.publish(TOPIC, b"x", qos, 1, properties))
        self.world.turn(20)
        if qos == 2:
            client.send(ack(PUBREL, 1))
            self.world.turn(3)

    def received(self, client, turns=20):
        """Every PUBLISH, acknowledged."""
        self.world.turn(turns)
        found = []
        for data in client.packets():
            if data[0] >> 4 == 3:
                found.append(packets5.read_publish(data))
                qos, packet_id = found[-1][0] >> 1 & 3, found[-1][2]
                if qos:
                    client.send(ack(PUBACK if qos == 1 else PUBREC, packet_id))
            elif data[0] == PUBREL:
                client.send(ack(PUBCOMP, data[2] << 8 | data[3]))
        self.world.turn(3)
        return found

    def check(self, found, identifiers, before=b"", behind=b"", qos=0):
        """One copy, with all identifiers in any order."""
        self.assertEqual(len(found), 1)
        flags, topic, _, properties, body = found[0]
        self.assertEqual((flags >> 1 & 3, topic, body), (qos, TOPIC, b"x"))
        self.assertTrue(properties.startswith(before))
        self.assertTrue(properties.endswith(behind))
        named = properties[len(before) : len(properties) - len(behind)]
        self.assertEqual(len(named), sum([len(identifier(n)) for n in identifiers if n]))
        for n in identifiers:
            if n:
                self.assertIn(identifier(n), named)

    def test_one_copy_has_all_identifiers(self):
        for some in (None, 1, 7, 63):
            for qos in range(3):
                with self.subTest(some=some, qos=qos):
                    self.setUp()
                    numbers = (1, 0, 200, 20000, 3, 3000000, 5)
                    client = self.subscriber(numbers)
                    if some:
                        client.stream.write_some = slowly(some)
                    self.publish(self.come(packets5.connect("p")), qos, TEXT)
                    self.check(self.received(client, 600), numbers, b"", TEXT, qos)

    def test_it_has_the_remaining_expiry_too(self):
        for seconds in (9, 33554432, 0xFFFFFFFF):
            with self.subTest(seconds=seconds):
                self.setUp()
                client = self.subscriber((1, 2, 300))
                expiry = b"\x02" + seconds.to_bytes(4, "big")
                self.publish(self.come(packets5.connect("p")), 1, TEXT + expiry)
                self.check(self.received(client), (1, 2, 300), expiry, TEXT, 1)

    def test_the_rest_waits_for_space_at_every_position(self):
        """The socket takes nothing more while the buffer is full of the topic."""
        numbers = tuple([2097152 + n for n in range(10)])
        client = self.subscriber(numbers)
        sender = self.come(packets5.connect("p"))
        left = [0]

        def write(n):
            n = min(n, left[0])
            left[0] -= n
            return n or None

        client.stream.write_some = write
        for taken in range(0, 215, 3):  # of 215 bytes
            with self.subTest(taken=taken):
                left[0] = taken
                self.publish(sender, 1)
                self.assertEqual(client.packets(), [])
                self.assertEqual(left[0], 0)
                left[0] = 1 << 20
                self.check(self.received(client), numbers, qos=1)

    def test_other_packets_meanwhile_do_not_change_it(self):
        """Other messages are delivered, and other packets are read into the same buffer."""
        numbers = (1, 200, 20000, 3000000)
        others = self.subscriber((7, 8), 0, "others")
        others.send(packets5.subscribe(1, "$y", 0))
        self.world.turn(3)
        others.packets()
        client = self.subscriber(numbers)
        sender = self.come(packets5.connect("p"))
        for qos in range(3):
            for at, sent in enumerate(OTHER_PACKETS):
                for taken in range(10 * (qos + at), 190, 50):
                    with self.subTest(qos=qos, sent=sent[:1], taken=taken):
                        left = [taken]

                        def write(n, left=left):
                            n = min(n, left[0])
                            left[0] -= n
                            return n or None

                        client.stream.write_some = write
                        self.publish(sender, qos)
                        sender.send(sent)
                        self.world.turn(20)
                        left[0] = 1 << 20
                        found = self.received(client, 30)
                        self.check(found[:1], numbers, qos=qos)
                        self.assertEqual(len(found), 1)
                        self.assertEqual(len(others.packets()), 2 if sent[:1] == b"0" else 1)

    def test_identifiers_of_every_length_up_to_the_buffers_size(self):
        """If they do not fit, their receiver gets no message, and each other does."""
        for size in range(49, 60):
            for expiry in (b"", b"\x02\0\0\0\x09"):
                with self.subTest(size=size, expires=bool(expiry)):
                    self.check_size(size, expiry)

    def check_size(self, size, expiry):
        self.setUp()
        numbers = of_size(size)
        client = self.subscriber(numbers, 1)
        other = self.subscriber((7,), 1, "other")
        sender = self.come(packets5.connect("p"))
        self.publish(sender, 1, expiry)
        self.check(self.received(other), (7,), expiry, qos=1)
        dropped = int(size + 11 > TX)  # packet id, length and expiry are put with them
        if dropped:
            self.assertEqual(self.received(client), [])
        else:
            self.check(self.received(client), numbers, expiry, qos=1)
        self.assertEqual(self.broker.stats[DROPPED], dropped)
        self.assertEqual(self.broker.deliveries.count[0], 0)
        sender.send(packets5.publish("small", b"y"))
        self.world.turn(9)
        self.assertEqual([packets5.read_publish(data)[4] for data in client.packets()], [b"y"])

    def test_with_no_local_an_own_message_has_the_identifiers_of_other_subscriptions(self):
        for qos in range(3):
            with self.subTest(qos=qos):
                self.setUp()
                client = self.subscriber((1, 2, 300))
                client.send(packets5.subscribe(1, TOPIC, 2 | 4, identifier(999)))
                self.world.turn(20)
                client.packets()
                self.publish(client, qos)
                self.check(self.received(client), (1, 2, 300), qos=qos)
                self.publish(self.come(packets5.connect("p")), qos)
                self.check(self.received(client), (1, 2, 300, 999), qos=qos)

    def test_a_client_of_version_3_gets_it_without_properties(self):
        older = self.come(connect("o") + subscribe(1, "#", 1))
        older.packets()
        client = self.subscriber((1, 2))
        self.publish(self.come(packets5.connect("p")), 1, TEXT)
        self.check(self.received(client), (1, 2), b"", TEXT, 1)
        found = older.packets()
        self.assertEqual(len(found), 1)
        packet_id = found[0][-3] << 8 | found[0][-2]
        self.assertEqual(found[0], publish(TOPIC, b"x", 1, packet_id))
        older.send(ack(PUBACK, packet_id))
        self.world.turn(3)

    def test_a_client_of_version_3_gets_the_bytes_of_its_own_packets_only(self):
        """Two bytes too many would make a header of the payload's end: a forged packet."""
        older = self.come(connect("o") + subscribe(1, "#", 0))
        older.packets()
        client = self.subscriber((0,))
        sender = self.come(packets5.connect("p"))
        forged = publish("home/door", b"OPEN")
        for properties in (b"", TEXT, b"\x02\0\0\0\x09"):
            for size in range(1, 130):  # the receiver's buffer has 64 bytes
                topic = "x" * size
                sender.send(packets5.publish(topic, forged, 0, 0, properties))
                self.world.turn(6)
                client.packets()
                self.assertEqual(older.packets(), [publish(topic, forged)])
