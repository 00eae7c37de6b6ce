"""The power is cut at every byte that a conversation writes: every message is delivered, and those
of QoS 2 once."""

import unittest

from fakes import Client, Stream, World
from invariants import broken
from journal_case import collect
from memory_medium import MemoryMedium, PowerCut
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore
from slotmq.platform.runtime import MICROPYTHON

SETTINGS = {"sys_interval": 0}
STEP = 17 if MICROPYTHON else 1  # there a start takes longer
SMALL = {"connections": 4, "sessions": 4, "subscriptions": 8, "messages": 16, "deliveries": 32}


class Publisher:
    """Sends numbered messages until each is acknowledged, on as many connections as it takes."""

    def __init__(self, count):
        self.todo = {n: 1 + n % 2 for n in range(1, count + 1)}  # packet id: QoS
        self.released = set()  # sent PUBREL, no PUBCOMP yet
        self.subscribed = False

    def first_packets(self, again):
        sent = b""
        for n in sorted(self.todo):
            if n in self.released:
                sent += ack(PUBREL, n)
            else:
                sent += publish(f"t/{n}", b"%d" % n, self.todo[n], n, retain=n == 3, dup=again)
        return sent

    def handle(self, packets):
        sent = b""
        for one in packets:
            n = one[2] << 8 | one[3]
            if one[0] == PUBREC:
                self.released.add(n)
                sent += ack(PUBREL, n)
            elif one[0] in (PUBACK, PUBCOMP):
                self.released.discard(n)
                del self.todo[n]
        return sent


class Conversation:
    """A publisher and a reader, who connect again after each power cut."""

    def __init__(self, medium):
        self.medium = medium
        self.publisher = Publisher(4)
        self.payloads = []  # that the reader got
        self.reading = set()  # packet ids of QoS 2 between PUBLISH and PUBREL
        self.cuts = 0

    def run(self):
        again = False
        while True:
            try:
                self.start()
                self.talk(again)
                return
            except PowerCut:
                self.cuts += 1
                self.medium = self.medium.after_the_cut()
                again = True

    def start(self):
        self.world = World(Broker(Limits(**SMALL), Settings(**SETTINGS)))
        restore(self.world.broker, self.medium, lambda text: None)
        found = broken(self.world.broker)
        assert not found, found

    def connect(self, name):
        client = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(connect(name, clean=False))
        self.world.turn(3)
        return client

    def talk(self, again):
        reader = self.connect("reader")
        if not self.publisher.subscribed:
            reader.send(subscribe(1, "t/#", 2))
        publisher = self.connect("publisher")
        self.read(reader)
        publisher.packets()
        publisher.send(self.publisher.first_packets(again))
        for _ in range(12):
            try:
                self.world.turn()
            finally:  # what was received before the cut counts
                publisher.send(self.publisher.handle(publisher.packets()))
                self.read(reader)

    def read(self, reader):
        """Acknowledge what came, and note a QoS 2 message once for each packet id."""
        for one in reader.packets():
            if one[0] >> 4 == 3:
                topic_end = 4 + one[3]
                packet_id = one[topic_end] << 8 | one[topic_end + 1]
                if one[0] & 6 == 2:
                    reader.send(ack(PUBACK, packet_id))
                else:
                    reader.send(ack(PUBREC, packet_id))
                    if packet_id in self.reading:
                        continue
                    self.reading.add(packet_id)
                self.payloads.append(int(one[topic_end + 2 :]))
            elif one[0] == PUBREL:
                packet_id = one[2] << 8 | one[3]
                self.reading.discard(packet_id)
                reader.send(ack(PUBCOMP, packet_id))
            elif one[0] == 0x90:
                self.publisher.subscribed = True


class TestCuts(unittest.TestCase):
    def setUp(self):
        collect()

    def check(self, conversation):
        self.assertEqual(conversation.publisher.todo, {})
        self.assertEqual(sorted(set(conversation.payloads)), [1, 2, 3, 4])
        for n in (1, 3):  # QoS 2
            self.assertEqual(conversation.payloads.count(n), 1)
        broker = conversation.world.broker
        self.assertEqual(broker.deliveries.count[0], 0)
        self.assertEqual(broker.retained.names.count(), 1)
        self.assertEqual(broker.messages.count[0], 1)
        self.assertEqual(broken(broker), [])

    def test_a_cut_after_each_byte(self):
        conversation = Conversation(MemoryMedium())
        conversation.run()
        self.check(conversation)
        written = (1 << 30) - conversation.medium.power
        self.assertTrue(written > 300)
        for power in range(0, written, STEP):
            medium = MemoryMedium()
            medium.power = power
            conversation = Conversation(medium)
            conversation.run()
            self.assertEqual(conversation.cuts, 1)
            self.check(conversation)
