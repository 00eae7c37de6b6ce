"""After a power cut with a window of one message, the first waiting QoS 2 delivery counts as sent.
So if the one before it ends without PUBCOMP, that is stored before the next is sent."""

import packets5
from journal_case import JournalCase
from packets import PUBCOMP, PUBREC, PUBREL, ack

DUP = 0x3C  # of QoS 2
EXPIRY = b"\x02\0\0\0\x01"  # Message Expiry Interval of a second


class TestWindow(JournalCase):
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
        self.publish(b"B", 2, EXPIRY)
        self.publish(b"C", 3)
        self.wait(3)
        self.reader.send(ack(PUBCOMP, 1))
        self.world.turn(3)
        self.assertEqual(self.received(), [(0x34, b"C")])
        self.assertEqual(self.received_after_a_reboot(), [(DUP, b"C")])

    def test_the_receiver_refused_the_one_before(self):
        self.publish(b"A", 1)
        self.publish(b"B", 2)
        self.assertEqual(self.received(), [(0x34, b"A")])
        self.reader.send(b"\x50\x03\0\1\x97")  # PUBREC: quota exceeded
        self.world.turn(3)
        self.assertEqual(self.received(), [(0x34, b"B")])
        self.assertEqual(self.received_after_a_reboot(), [(DUP, b"B")])
