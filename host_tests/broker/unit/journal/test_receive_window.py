"""What may have been sent at QoS 2 is known after a power cut, whatever stood before it.

With a window of one message a start takes the first one that waits for the one that was
sent. One that ended without PUBCOMP stood there too: that it has gone is kept before the next
is sent."""

import packets5
from journal_case import JournalCase
from packets import PUBCOMP, PUBREC, PUBREL, ack

DUP = 0x3C  # of QoS 2
EXPIRY = b"\x02\0\0\0\x01"  # Message Expiry Interval of a second


class TestWindow(JournalCase):
    settings = (("max_inflight_messages", 1),)

    def setUp(self):
        super().setUp()
        self.reader = self.come(packets5.connect("reader", clean=False, expiry=600))
        self.reader.packets()
        self.ask(self.reader, packets5.subscribe(1, "t", 2), b"\x90\x04\0\1\0\2")
        self.publisher = self.come(packets5.connect("publisher"))
        self.publisher.packets()

    def say(self, payload, packet_id, properties=b""):
        said = packets5.publish("t", payload, 2, packet_id, properties)
        self.ask(self.publisher, said, ack(PUBREC, packet_id))

    def sent(self):
        """First bytes of what the reader gets, and its payloads' ends."""
        return [(packet[0], packet[-1:]) for packet in self.reader.packets()]

    def comes_again(self):
        """After a power cut, and PUBREL for what was released."""
        self.reboot()
        self.reader = self.come(packets5.connect("reader", clean=False, expiry=600))
        found = self.sent()
        self.reader.send(ack(PUBCOMP, 1))
        self.world.turn(3)
        return [(first, end) for first, end in found + self.sent() if first & 0xF0 == 0x30]

    def test_one_that_expired(self):
        self.say(b"A", 1)
        self.assertEqual(self.sent(), [(0x34, b"A")])
        self.ask(self.reader, ack(PUBREC, 1), ack(PUBREL, 1))
        self.say(b"B", 2, EXPIRY)
        self.say(b"C", 3)
        self.world.turn(30, ms=100)
        self.reader.send(ack(PUBCOMP, 1))
        self.world.turn(3)
        self.assertEqual(self.sent(), [(0x34, b"C")])
        self.assertEqual(self.comes_again(), [(DUP, b"C")])

    def test_one_that_its_receiver_refused(self):
        self.say(b"A", 1)
        self.say(b"B", 2)
        self.assertEqual(self.sent(), [(0x34, b"A")])
        self.reader.send(b"\x50\x03\0\1\x97")  # PUBREC: quota exceeded
        self.world.turn(3)
        self.assertEqual(self.sent(), [(0x34, b"B")])
        self.assertEqual(self.comes_again(), [(DUP, b"B")])
