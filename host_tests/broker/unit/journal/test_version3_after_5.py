"""A start with `mqtt_versions 3` after one with 5: what only 5.0 has is left out, all else is
restored."""

import packets5
from journal_case import RESUMED, JournalCase
from packets import PUBACK, PUBCOMP, PUBREL, ack, publish, subscribe

NOTE = b"\x26\0\1a\0\1b"  # a user property
LONG = b"\x26\0\1a\1\xf4" + b"b" * 500  # longer than what a start reads at once
SECOND = b"\x02\0\0\0\1"  # a message's expiry
HOUR = b"\x02\0\0\x0e\x10"
DELAY = b"\x18\0\0\0\x0a"  # of a will


class Version3Case(JournalCase):
    limits = (("topic_bytes", 64), ("client_id_bytes", 32))

    def reboot_to(self, version):
        self.settings = tuple(dict(self.settings, mqtt_versions=version).items())
        self.reboot()

    def send(self, client, data):
        """The first bytes of the packets that come back."""
        client.send(data)
        self.world.turn(3)
        return [packet[0] for packet in client.packets()]

    def offline(self, name, text, qos=1):
        """A session with a subscription."""
        client = self.client5(name)
        self.assertEqual(self.send(client, packets5.subscribe(1, text, qos)), [0x90])
        self.leave(client)

    def messages(self, name):
        """What waits for a session."""
        client = self.receive(name)
        self.leave(client)
        return client.messages

    def retained(self):
        client = self.client("looks")
        client.send(subscribe(1, "#", 1))
        self.world.turn(5)
        client.answer()
        self.leave(client)
        return sorted(client.messages)

    def later(self, client):
        """After 3 s, in which no sweep removes what has expired."""
        self.broker.five.to_sweep = False
        self.wait(3)
        self.assertEqual(self.send(client, packets5.publish("none", b"", 1, 9)), [0x40])
        self.assertEqual(self.send(client, packets5.subscribe(1, "other", 1)), [0x90])


class TestProperties(Version3Case):
    def test_of_retained_and_of_queued_messages(self):
        payload = b"p" * 300
        for qos in (1, 2):
            self.offline(f"s{qos}", "r/+", qos)
        client = self.client5("p")
        for n, properties in enumerate((b"", NOTE, LONG, HOUR, NOTE + HOUR)):
            message = packets5.publish(f"r/{n}", payload, 2, n + 1, properties, retain=True)
            self.assertEqual(self.send(client, message), [0x50])
        for _ in range(2):
            self.reboot_to(3)
            found = [(topic, text) for topic, text, _ in self.retained()]
            self.assertEqual(found, [(b"r/%d" % n, payload) for n in range(5)])
        for qos in (1, 2):
            wanted = [(b"r/%d" % n, payload, qos) for n in range(5)]
            self.assertEqual(self.messages(f"s{qos}"), wanted)
        self.reboot_to(5)
        self.assertEqual(len(self.retained()), 5)

    def test_of_messages_that_wait_for_pubrel(self):
        """Of these too, one that had expired is not delivered."""
        self.settings = (("qos2_delivery", "release"),)
        self.reboot()
        self.offline("s", "t", 2)
        client = self.client5("p")
        for n, properties in enumerate((SECOND, HOUR, NOTE)):
            message = packets5.publish("t", b"%d" % n, 2, n + 1, properties)
            self.assertEqual(self.send(client, message), [0x50])
        self.later(client)
        self.reboot_to(3)
        self.reboot()
        client = self.client("p", RESUMED, clean=False)
        for packet_id in (1, 2, 3):
            self.ask(client, ack(PUBREL, packet_id), ack(PUBCOMP, packet_id))
        self.assertEqual(self.messages("s"), [(b"t", b"1", 2), (b"t", b"2", 2)])

    def test_of_wills(self):
        """Each is published at the start, and only once: its delay is ignored, and its expiry
        counts from its publication."""
        for properties, leaves, expiry in (
            (NOTE, False, 600),
            (NOTE, False, 0),
            (SECOND, False, 600),
            (DELAY, False, 600),
            (DELAY + NOTE, True, 600),
        ):
            self.settings = ()
            self.setUp()
            self.offline("s", "w")
            will = ("w", "gone", 1, properties)
            client = self.come(packets5.connect("p", will=will, expiry=expiry))
            if leaves:
                client.leave()
            self.wait(3)
            self.assertEqual(self.send(self.client5("later"), b""), [])
            self.reboot_to(3)
            self.reboot()
            self.assertEqual(self.messages("s"), [(b"w", b"gone", 1)])
            self.assertEqual(set(self.broker.sessions.will), {0xFFFF})


class TestExpired(Version3Case):
    """What had expired and was not yet removed when the power failed is not delivered."""

    def publish(self, qos, *, retain=False):
        """One message that expires, and one that does not; then 3 s pass."""
        client = self.client5("p")
        for n, (payload, properties) in enumerate(((b"old", SECOND), (b"new", HOUR))):
            topic = "t/" + payload.decode()
            client.send(packets5.publish(topic, payload, qos, n + 1, properties, retain))
            self.send(client, ack(PUBREL, n + 1) if qos == 2 else b"")
        self.later(client)

    def test_retained_and_queued_messages(self):
        for qos in (1, 2):
            self.offline(f"s{qos}", "t/+", qos)
        self.publish(2, retain=True)
        self.assertEqual(self.broker.retained.names.count(), 2)
        self.assertEqual(self.broker.deliveries.count[0], 4)
        self.reboot_to(3)
        self.assertEqual(self.retained(), [(b"t/new", b"new", 1)])
        for qos in (1, 2):  # never sent
            self.assertEqual(self.messages(f"s{qos}"), [(b"t/new", b"new", qos)])

    def test_a_qos_2_message_that_was_sent_is_completed(self):
        reader = self.client5("s")
        self.assertEqual(self.send(reader, packets5.subscribe(1, "t/+", 2)), [0x90])
        self.publish(2)
        self.reboot_to(3)
        self.assertEqual([text for _, text, _ in self.messages("s")], [b"old", b"new"])


class TestShared(Version3Case):
    def test_a_shared_subscription_needs_version_5(self):
        self.offline("s", "$share/g/t")
        before = dict(self.medium.durable)
        for _ in range(2):
            with self.assertRaises(OSError) as caught:
                self.reboot_to(3)
            self.assertIn("mqtt_versions 5", str(caught.exception))
            self.assertEqual(self.medium.durable, before)
        self.reboot_to(5)
        client = self.client("p")
        self.ask(client, publish("t", b"x", 1, 7), ack(PUBACK, 7))
        self.assertEqual(self.messages("s"), [(b"t", b"x", 1)])

    def test_a_deleted_shared_subscription_does_not(self):
        self.offline("s", "$share/g/t")
        self.leave(self.client("s"))
        self.reboot_to(3)
        self.assertEqual(self.broker.subscriptions.count, 0)

    def test_what_was_queued_through_a_shared_subscription_is_delivered(self):
        self.offline("s", "$share/g/t", 2)
        client = self.client5("p")
        self.assertEqual(self.send(client, packets5.publish("t", b"x", 2, 7, NOTE)), [0x50])
        client = self.client5("s", 1)
        self.send(client, b"\xa2\x0f\0\x01\0\0\x0a$share/g/t")
        self.leave(client)
        self.reboot_to(3)
        self.assertEqual(self.messages("s"), [(b"t", b"x", 2)])
