"""What a start knows of a delivery: was it ever sent? What was not goes without DUP, and expires
and is dropped as before; what may have been at QoS 2 keeps its packet id, whatever the window is.
"""

import unittest

import packets5
from fakes import World
from journal_case import JournalCase
from memory_medium import MemoryMedium
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore

DUP = 8
SOON = b"\x02\0\0\0\x05"  # it expires in five seconds
ANSWER = (None, PUBACK, PUBREC)


class Sent(JournalCase):
    def reader(self, turns=3):
        return self.come(packets5.connect("reader", clean=False, expiry=600), turns)

    def subscribed(self, qos=2):
        """A reader that is there."""
        reader = self.reader()
        reader.packets()
        self.ask(reader, *self.subscription(qos))
        return reader

    def subscription(self, qos):
        return packets5.subscribe(1, "t", qos), b"\x90\x04\0\1\0" + bytes((qos,))

    def publish(self, texts, qos=2, properties=b""):
        sender = self.come(packets5.connect("sender"))
        sender.packets()
        for n, text in enumerate(texts):
            said = packets5.publish("t", text, qos, n + 1, properties)
            self.ask(sender, said, ack(ANSWER[qos], n + 1))
            if qos == 2:
                self.ask(sender, ack(PUBREL, n + 1), ack(PUBCOMP, n + 1))

    def got(self, client):
        """(payload, packet id, is it DUP?) of every PUBLISH."""
        return [self.row(data) for data in client.packets() if data[0] >> 4 == 3]

    def row(self, data):
        flags, _, packet_id, _, text = packets5.read_publish(data)
        return text, packet_id, flags & DUP

    def again(self):
        """What a reader gets that acknowledges it."""
        reader = self.reader(9)
        found = []
        while True:
            rows = self.got(reader)
            if not rows:
                return found
            found += rows
            for _, packet_id, _ in rows:
                reader.send(ack(PUBREC, packet_id))
                self.world.turn(3)
                reader.send(ack(PUBCOMP, packet_id))
                self.world.turn(3)

    def restart(self, in_order):
        if in_order:
            self.world.loop.close()
            self.medium = MemoryMedium(kept=self.medium.kept)
            self.start()
        else:
            self.reboot()


class TestWhatWasNeverSent(Sent):
    def queued(self, qos, in_order, properties=b"", texts=(b"a", b"b")):
        self.setUp()
        reader = self.come(packets5.connect("reader", clean=False, expiry=600))
        reader.send(packets5.subscribe(1, "t", qos) + b"\xe0\0")
        self.world.turn(5)
        self.publish(texts, qos, properties)
        self.restart(in_order)

    def test_it_has_no_dup(self):
        for qos in (1, 2):
            for in_order in (True, False):
                with self.subTest(qos=qos, in_order=in_order):
                    self.queued(qos, in_order)
                    found = [(text, dup) for text, _, dup in self.got(self.reader())]
                    self.assertEqual(found, [(b"a", 0), (b"b", 0)])

    def test_it_expires(self):
        for qos in (1, 2):
            for in_order in (True, False):
                with self.subTest(qos=qos, in_order=in_order):
                    self.queued(qos, in_order, SOON)
                    self.world.turn(80, ms=100)
                    self.assertEqual(self.got(self.reader()), [])

    def test_the_oldest_makes_room(self):
        self.limits = (("queued", 2),)
        self.settings = (("when_full", {"deliveries": "drop_oldest"}),)
        self.queued(2, False)
        self.publish((b"c", b"d"))
        self.assertEqual([text for text, _, _ in self.got(self.reader())], [b"c", b"d"])

    def test_a_second_start_knows_it_too(self):
        self.queued(2, False)
        self.reboot()
        self.assertEqual([dup for _, _, dup in self.got(self.reader())], [0, 0])


class TestWhatMayHaveBeenSent(Sent):
    def lost(self, first, second):
        """Four are sent, the window is made smaller, and three of them expire."""
        self.settings = (("max_inflight_messages", first),)
        self.start()
        reader = self.subscribed()
        self.publish((b"a",))
        self.publish((b"b", b"c", b"d"), properties=SOON)
        sent = self.got(reader)
        self.settings = (("max_inflight_messages", second),)
        self.reboot()
        self.world.turn(80, ms=100)
        self.reboot()
        return sent

    def test_a_smaller_window_forgets_no_packet_id(self):
        sent = self.lost(4, 1)
        self.assertEqual(len(sent), 4)
        self.publish((b"new",))
        found = self.again()
        self.assertEqual(found[:4], [(text, packet_id, DUP) for text, packet_id, _ in sent])
        self.assertEqual([(text, dup) for text, _, dup in found[4:]], [(b"new", 0)])


class TestRaised(Sent):
    """A client of version 3: its window is the broker's, at any time."""

    def reader(self, turns=3):
        return self.come(connect("reader", clean=False), turns)

    def subscription(self, qos):
        return subscribe(1, "t", qos), b"\x90\x03\0\1" + bytes((qos,))

    def row(self, data):
        return data[7:], data[5] << 8 | data[6], data[0] & DUP

    def test_a_window_that_was_raised_meanwhile(self):
        """No row is written when what waits for the window is sent."""
        self.settings = (("max_inflight_messages", 1),)
        self.start()
        reader = self.subscribed()
        self.publish((b"a", b"b", b"c"))
        ((_, packet_id, _),) = self.got(reader)
        self.broker.settings.max_inflight_messages = 3
        self.broker.apply_settings()
        reader.send(ack(PUBREC, packet_id))
        self.world.turn(3)
        reader.send(ack(PUBCOMP, packet_id))
        self.world.turn(3)
        self.publish((b"d", b"e"))
        sent = self.got(reader)
        self.assertEqual([text for text, _, _ in sent], [b"b", b"c", b"d"])
        self.reboot()
        self.assertEqual([dup for _, _, dup in self.again()], [DUP, DUP, DUP, 0])


class TestInterval(Sent):
    def start(self):
        settings = Settings(sys_interval=0)
        self.broker = Broker(Limits(), settings)
        self.world = World(self.broker)
        restore(self.broker, self.medium, self.said.append, False, 1)

    def test_what_was_sent_behind_the_last_commit_may_be_known(self):
        reader = self.subscribed()
        reader.leave()
        self.world.turn(3)
        self.publish((b"a", b"b"))
        self.world.turn(20, ms=100)
        reader = self.reader()
        sent = self.got(reader)
        self.assertEqual([dup for _, _, dup in sent], [0, 0])
        self.reboot()
        found = self.got(self.reader())
        self.assertEqual(found, [(text, packet_id, DUP) for text, packet_id, _ in sent])


if __name__ == "__main__":
    unittest.main()
