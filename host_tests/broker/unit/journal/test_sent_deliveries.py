"""A start knows whether a delivery may have been sent. What was never sent has no DUP, expires and
may be dropped; what may have been sent at QoS 2 keeps its packet id, whatever the window is.
"""

import packets5
from journal_case import JournalCase
from packets import DISCONNECT, PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, subscribe

DUP = 8
SOON = b"\x02\0\0\0\x05"  # Message Expiry Interval of 5 s
SECOND = b"\x02\0\0\0\1"
SENT_AGAIN = 0x3C  # the first byte, at QoS 2
ANSWER = (None, PUBACK, PUBREC)


class SentCase(JournalCase):
    def reader(self, turns=3):
        return self.come(packets5.connect("reader", clean=False, expiry=600), turns)

    def subscribed(self, qos=2):
        reader = self.reader()
        reader.packets()
        self.ask(reader, *self.subscription(qos))
        return reader

    def subscription(self, qos):
        return packets5.subscribe(1, "t", qos), b"\x90\x04\0\1\0" + bytes((qos,))

    def publish(self, texts, qos=2, properties=b""):
        sender = self.client5("sender", clean=True, expiry=0)
        for n, text in enumerate(texts):
            sent = packets5.publish("t", text, qos, n + 1, properties)
            self.ask(sender, sent, ack(ANSWER[qos], n + 1))
            if qos == 2:
                self.ask(sender, ack(PUBREL, n + 1), ack(PUBCOMP, n + 1))

    def received(self, client):
        """(payload, packet id, is it DUP?) of every PUBLISH."""
        return [self.row(data) for data in client.packets() if data[0] >> 4 == 3]

    def row(self, data):
        flags, _, packet_id, _, text = packets5.read_publish(data)
        return text, packet_id, flags & DUP

    def received_and_acknowledged(self):
        """The same, until nothing more comes."""
        reader = self.reader(9)
        found = []
        while True:
            rows = self.received(reader)
            if not rows:
                return found
            found += rows
            for _, packet_id, _ in rows:
                self.acknowledge(reader, packet_id)

    def acknowledge(self, reader, packet_id):
        for first in (PUBREC, PUBCOMP):
            reader.send(ack(first, packet_id))
            self.world.turn(3)


class TestNeverSent(SentCase):
    def queued(self, qos, restart, properties=b"", texts=(b"a", b"b")):
        self.setUp()
        self.reader().send(packets5.subscribe(1, "t", qos) + DISCONNECT)
        self.world.turn(5)
        self.publish(texts, qos, properties)
        getattr(self, restart)()

    def test_it_has_no_dup_and_expires(self):
        for qos in (1, 2):
            for restart in ("stop", "reboot"):
                with self.subTest(qos=qos, restart=restart):
                    self.queued(qos, restart)
                    found = [(text, dup) for text, _, dup in self.received(self.reader())]
                    self.assertEqual(found, [(b"a", 0), (b"b", 0)])
                    self.queued(qos, restart, SOON)
                    self.wait(8)
                    self.assertEqual(self.received(self.reader()), [])

    def test_the_oldest_is_dropped_for_a_new_one(self):
        self.limits = (("queued", 2),)
        self.settings = (("when_full", {"deliveries": "drop_oldest"}),)
        self.queued(2, "reboot")
        self.publish((b"c", b"d"))
        self.assertEqual([text for text, _, _ in self.received(self.reader())], [b"c", b"d"])

    def test_a_second_start_still_knows_it(self):
        self.queued(2, "reboot")
        self.reboot()
        self.assertEqual([dup for _, _, dup in self.received(self.reader())], [0, 0])


class TestLoweredWindow(SentCase):
    settings = (("max_inflight_messages", 4),)

    def test_a_smaller_window_forgets_no_packet_id(self):
        """Four are sent, the window becomes smaller, and three of them expire."""
        reader = self.subscribed()
        self.publish((b"a",))
        self.publish((b"b", b"c", b"d"), properties=SOON)
        sent = self.received(reader)
        self.assertEqual(len(sent), 4)
        self.settings = (("max_inflight_messages", 1),)
        self.reboot()
        self.wait(8)
        self.reboot()
        self.publish((b"new",))
        found = self.received_and_acknowledged()
        self.assertEqual(found[:4], [(text, packet_id, DUP) for text, packet_id, _ in sent])
        self.assertEqual([(text, dup) for text, _, dup in found[4:]], [(b"new", 0)])


class TestRaisedWindow(SentCase):
    """The window of a client of version 3 is always the broker's."""

    settings = (("max_inflight_messages", 1),)

    def reader(self, turns=3):
        return self.come(connect("reader", clean=False), turns)

    def subscription(self, qos):
        return subscribe(1, "t", qos), b"\x90\x03\0\1" + bytes((qos,))

    def row(self, data):
        return data[7:], data[5] << 8 | data[6], data[0] & DUP

    def test_what_a_raised_window_let_through_has_dup(self):
        """No row is written when what waits for the window is sent."""
        reader = self.subscribed()
        self.publish((b"a", b"b", b"c"))
        ((_, packet_id, _),) = self.received(reader)
        self.broker.settings.max_inflight_messages = 3
        self.broker.apply_settings()
        self.acknowledge(reader, packet_id)
        self.publish((b"d", b"e"))
        sent = self.received(reader)
        self.assertEqual([text for text, _, _ in sent], [b"b", b"c", b"d"])
        self.reboot()
        self.assertEqual(
            [dup for _, _, dup in self.received_and_acknowledged()], [DUP, DUP, DUP, 0]
        )


class TestInterval(SentCase):
    commits = (False, 1)

    def test_what_was_sent_after_the_last_commit_has_dup(self):
        self.leave(self.subscribed())
        self.publish((b"a", b"b"))
        self.wait(2)
        reader = self.reader()
        sent = self.received(reader)
        self.assertEqual([dup for _, _, dup in sent], [0, 0])
        self.reboot()
        found = self.received(self.reader())
        self.assertEqual(found, [(text, packet_id, DUP) for text, packet_id, _ in sent])


class TestWindow(JournalCase):
    """With a window of one message, the first waiting QoS 2 delivery counts as sent. So if the one
    before it ends without PUBCOMP, that is stored before the next is sent."""

    settings = (("max_inflight_messages", 1),)

    def setUp(self):
        super().setUp()
        self.reader = self.client5("reader")
        self.ask(self.reader, packets5.subscribe(1, "t", 2), b"\x90\x04\0\1\0\2")
        self.publisher = self.client5("publisher", clean=True, expiry=0)

    def publish(self, payload, packet_id, properties=b""):
        sent = packets5.publish("t", payload, 2, packet_id, properties)
        self.ask(self.publisher, sent, ack(PUBREC, packet_id))
        # Receive Maximum is 1 for the publisher too [MQTT-3.3.4-7]: PUBCOMP comes before the next.
        self.ask(self.publisher, ack(PUBREL, packet_id), ack(PUBCOMP, packet_id))

    def received(self):
        """The first byte of what the reader gets, and the last one of its payload."""
        return [(packet[0], packet[-1:]) for packet in self.reader.packets()]

    def received_after_a_reboot(self):
        """The PUBLISH packets; the reader sends PUBCOMP too, for what was released."""
        self.reboot()
        self.reader = self.client5("reader", 1)
        found = self.received()
        self.reader.send(ack(PUBCOMP, 1))
        self.world.turn(3)
        return [(first, end) for first, end in found + self.received() if first & 0xF0 == 0x30]

    def test_the_one_before_expired(self):
        self.publish(b"A", 1)
        self.assertEqual(self.received(), [(0x34, b"A")])
        self.ask(self.reader, ack(PUBREC, 1), ack(PUBREL, 1))
        self.publish(b"B", 2, SECOND)
        self.publish(b"C", 3)
        self.wait(3)
        self.reader.send(ack(PUBCOMP, 1))
        self.world.turn(3)
        self.assertEqual(self.received(), [(0x34, b"C")])
        self.assertEqual(self.received_after_a_reboot(), [(SENT_AGAIN, b"C")])

    def test_the_receiver_refused_the_one_before(self):
        self.publish(b"A", 1)
        self.publish(b"B", 2)
        self.assertEqual(self.received(), [(0x34, b"A")])
        self.reader.send(b"\x50\x03\0\1\x97")  # PUBREC: quota exceeded
        self.world.turn(3)
        self.assertEqual(self.received(), [(0x34, b"B")])
        self.assertEqual(self.received_after_a_reboot(), [(SENT_AGAIN, b"B")])
