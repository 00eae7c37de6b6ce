"""A start with `mqtt_versions 3` after one with 5: what version 3 has no word for is left out, and
all else is there."""

import packets5
from journal_case import CONNACK, RESUMED, JournalCase
from packets import PUBACK, PUBCOMP, PUBREL, ack, publish, subscribe

NOTE = b"\x26\0\1a\0\1b"  # a user property
LONG = b"\x26\0\1a\1\xf4" + b"b" * 500  # longer than what a start reads at once
SECOND = b"\x02\0\0\0\1"  # a message's expiry
HOUR = b"\x02\0\0\x0e\x10"
DELAY = b"\x18\0\0\0\x0a"  # of a will


class Version3(JournalCase):
    limits = (("topic_bytes", 64), ("client_id_bytes", 32))

    def reboot_to(self, version):
        self.settings = tuple(dict(self.settings, mqtt_versions=version).items())
        self.reboot()

    def five(self, name, **options):
        """A client of version 5 whose session stays."""
        client = self.come(packets5.connect(name, clean=False, expiry=600, **options))
        found = client.stream.received
        self.assertEqual(bytes(found[2:4]), b"\0\0")
        client._read = 2 + found[1]
        return client

    def send(self, client, *data):
        for one in data:
            client.send(one)
        self.world.turn(3)
        return [packet[0] for packet in client.packets()]

    def away(self, name, text, qos=1):
        """A session that is subscribed, and has no connection."""
        client = self.five(name)
        self.assertEqual(self.send(client, packets5.subscribe(1, text, qos)), [0x90])
        client.leave()
        self.world.turn(3)

    def got(self, name, expected=RESUMED):
        """What waits for a session."""
        client = self.client(name, expected, clean=False)
        for _ in range(5):
            client.answer()
            self.world.turn(3)
        client.leave()
        self.world.turn(3)
        return client.messages

    def retained(self):
        client = self.client("looks")
        client.send(subscribe(1, "#", 1))
        self.world.turn(5)
        client.answer()
        client.leave()
        self.world.turn(3)
        return sorted(client.messages)


class TestProperties(Version3):
    def test_of_retained_messages(self):
        payload = b"p" * 300
        client = self.five("p")
        for n, properties in enumerate((b"", NOTE, LONG, HOUR, NOTE + HOUR)):
            message = packets5.publish(f"r/{n}", payload, 1, 1, properties, retain=True)
            self.assertEqual(self.send(client, message), [0x40])
        for _ in range(2):
            self.reboot_to(3)
            found = [(topic, text) for topic, text, _ in self.retained()]
            self.assertEqual(found, [(b"r/%d" % n, payload) for n in range(5)])
        self.reboot_to(5)
        self.assertEqual(len(self.retained()), 5)

    def test_of_queued_messages(self):
        for qos in (1, 2):
            self.away(f"s{qos}", "t", qos)
        client = self.five("p")
        for n, properties in enumerate((NOTE, HOUR, LONG)):
            self.assertEqual(
                self.send(client, packets5.publish("t", b"%d" % n, 2, n + 1, properties)), [0x50]
            )
        self.reboot_to(3)
        self.reboot()
        for qos in (1, 2):
            wanted = [(b"t", b"%d" % n, qos) for n in range(3)]
            self.assertEqual(self.got(f"s{qos}"), wanted)

    def test_of_held_messages(self):
        self.settings = (("qos2_delivery", "release"),)
        self.reboot()
        self.away("s", "t", 2)
        client = self.five("p")
        self.assertEqual(self.send(client, packets5.publish("t", b"x", 2, 7, NOTE)), [0x50])
        self.reboot_to(3)
        self.reboot()
        client = self.client("p", RESUMED, clean=False)
        self.ask(client, ack(PUBREL, 7), ack(PUBCOMP, 7))
        self.assertEqual(self.got("s"), [(b"t", b"x", 2)])


class TestWills(Version3):
    def will_of(self, properties, leaves=False, expiry=600):
        self.away("s", "w")
        client = self.come(packets5.connect("p", will=("w", "gone", 1, properties), expiry=expiry))
        if leaves:
            client.leave()
        self.world.turn(30, ms=100)
        self.assertEqual(self.send(self.five("later")), [])
        self.reboot_to(3)
        self.reboot()
        self.assertEqual(self.got("s"), [(b"w", b"gone", 1)])
        self.assertEqual(set(self.broker.sessions.will), {0xFFFF})

    def test_with_a_property(self):
        self.will_of(NOTE)

    def test_of_a_session_that_ends_with_its_connection(self):
        self.will_of(NOTE, expiry=0)

    def test_its_expiry_counts_from_its_publication(self):
        self.will_of(SECOND)

    def test_nobody_counts_its_delay(self):
        self.will_of(DELAY)

    def test_one_that_waited(self):
        self.will_of(DELAY + NOTE, leaves=True)


class TestExpired(Version3):
    """What had expired at the end, and was there still, is not delivered."""

    def published(self, qos, *, retain=False):
        """Three seconds ago."""
        client = self.five("p")
        for n, (payload, properties) in enumerate(((b"old", SECOND), (b"new", HOUR))):
            topic = "t/" + payload.decode()
            client.send(packets5.publish(topic, payload, qos, n + 1, properties, retain))
            self.send(client, ack(PUBREL, n + 1) if qos == 2 else b"")
        self.later(client)

    def later(self, client):
        # Nobody sweeps: the power goes in that moment.
        self.broker.five.to_sweep = 0
        self.broker.five.goes_on = False
        self.world.turn(30, ms=100)
        self.assertEqual(self.send(client, packets5.publish("none", b"", 1, 9)), [0x40])
        self.assertEqual(self.send(client, packets5.subscribe(1, "other", 1)), [0x90])

    def test_retained_ones(self):
        self.published(1, retain=True)
        self.assertEqual(self.broker.retained.names.count(), 2)
        self.reboot_to(3)
        self.assertEqual(self.retained(), [(b"t/new", b"new", 1)])

    def test_queued_ones(self):
        self.away("s", "t/+")
        self.published(1)
        self.assertEqual(self.broker.deliveries.count[0], 2)
        self.reboot_to(3)
        self.assertEqual(self.got("s"), [(b"t/new", b"new", 1)])

    def test_one_that_was_never_sent_at_qos_2(self):
        self.away("s", "t/+", 2)
        self.published(2)
        self.reboot_to(3)
        self.assertEqual([text for _, text, _ in self.got("s")], [b"new"])

    def test_one_that_was_sent_at_qos_2_goes_on(self):
        reader = self.come(packets5.connect("s", clean=False, expiry=600))
        self.assertEqual(self.send(reader, packets5.subscribe(1, "t/+", 2)), [0x20, 0x90])
        self.published(2)
        self.reboot_to(3)
        self.assertEqual([text for _, text, _ in self.got("s")], [b"old", b"new"])

    def test_held_ones(self):
        self.settings = (("qos2_delivery", "release"),)
        self.reboot()
        self.away("s", "t", 2)
        client = self.five("p")
        for n, properties in enumerate((SECOND, HOUR)):
            self.send(client, packets5.publish("t", b"%d" % n, 2, n + 1, properties))
        self.later(client)
        self.reboot_to(3)
        client = self.client("p", RESUMED, clean=False)
        for packet_id in (1, 2):
            self.ask(client, ack(PUBREL, packet_id), ack(PUBCOMP, packet_id))
        self.assertEqual(self.got("s"), [(b"t", b"1", 2)])


class TestShared(Version3):
    def test_a_shared_subscription_needs_version_5(self):
        self.away("s", "$share/g/t")
        before = dict(self.medium.kept)
        for _ in range(2):
            with self.assertRaises(OSError) as caught:
                self.reboot_to(3)
            self.assertIn("mqtt_versions 5", str(caught.exception))
            self.assertEqual(self.medium.kept, before)
        self.reboot_to(5)
        client = self.client("p")
        self.ask(client, publish("t", b"x", 1, 7), ack(PUBACK, 7))
        self.assertEqual(self.got("s"), [(b"t", b"x", 1)])

    def test_one_that_has_gone_does_not(self):
        self.away("s", "$share/g/t")
        client = self.client("s", CONNACK)
        client.leave()
        self.world.turn(3)
        self.reboot_to(3)
        self.assertEqual(self.broker.subscriptions.count, 0)

    def test_what_such_a_one_was_given_is_delivered(self):
        self.away("s", "$share/g/t", 2)
        client = self.five("p")
        self.assertEqual(self.send(client, packets5.publish("t", b"x", 2, 7, NOTE)), [0x50])
        client = self.come(packets5.connect("s", clean=False, expiry=600))
        self.send(client, b"\xa2\x0f\0\x01\0\0\x0a$share/g/t")
        client.leave()
        self.world.turn(3)
        self.reboot_to(3)
        self.assertEqual(self.got("s"), [(b"t", b"x", 2)])
