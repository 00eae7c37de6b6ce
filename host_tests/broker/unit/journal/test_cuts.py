"""The power is cut at every byte that a conversation writes: no promise is broken."""

import gc
import sys
import unittest

from fakes import Client, Stream, World
from invariants import broken
from memory_medium import MemoryMedium, PowerCut
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.journal.restore import restore

SETTINGS = {"sys_interval": 0}
# Each one differs in every byte: on MicroPython a start takes longer.
STEP = 1 if sys.implementation.name == "cpython" else 17
SMALL = {"connections": 4, "sessions": 4, "subscriptions": 8, "messages": 16, "deliveries": 32}


class Publisher:
    """Sends numbered messages until each is acknowledged, on as many connections as it takes."""

    def __init__(self, count):
        self.todo = {n: 1 + n % 2 for n in range(1, count + 1)}  # packet id: QoS
        self.released = set()  # sent PUBREL, no PUBCOMP yet
        self.done = []
        self.subscribed = False

    def first(self, again):
        said = b""
        for n in sorted(self.todo):
            if n in self.released:
                said += ack(PUBREL, n)
            else:
                said += publish(f"t/{n}", b"%d" % n, self.todo[n], n, retain=n == 3, dup=again)
        return said

    def hear(self, found):
        said = b""
        for one in found:
            n = one[2] << 8 | one[3]
            if one[0] == PUBREC:
                self.released.add(n)
                said += ack(PUBREL, n)
            elif one[0] in (PUBACK, PUBCOMP):
                self.done.append(n)
                self.released.discard(n)
                del self.todo[n]
        return said


class Story:
    """Starts, conversations and cuts over one medium."""

    def __init__(self, medium):
        self.medium = medium
        self.publisher = Publisher(4)
        self.seen = []  # by the reader: payloads
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
        self.turn(client)
        return client

    def turn(self, *clients):
        for _ in range(3):
            self.world.turn()

    def talk(self, again):
        reader = self.connect("reader")
        if not self.publisher.subscribed:
            reader.send(subscribe(1, "t/#", 2))
        publisher = self.connect("publisher")
        self.read(reader)
        publisher.packets()
        publisher.send(self.publisher.first(again))
        for _ in range(12):
            try:
                self.world.turn()
            finally:  # what had come before the power went was promised
                publisher.send(self.publisher.hear(publisher.packets()))
                self.read(reader)

    def read(self, reader):
        # As a client does that forgets nothing: QoS 2 once for each packet id.
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
                self.seen.append(int(one[topic_end + 2 :]))
            elif one[0] == PUBREL:
                packet_id = one[2] << 8 | one[3]
                self.reading.discard(packet_id)
                reader.send(ack(PUBCOMP, packet_id))
            elif one[0] == 0x90:
                self.publisher.subscribed = True


class TestCuts(unittest.TestCase):
    def setUp(self):
        gc.collect()
        getattr(gc, "freeze", gc.collect)()  # a start collects garbage many times

    def check(self, story):
        self.assertEqual(story.publisher.todo, {})
        self.assertEqual(sorted(set(story.seen)), [1, 2, 3, 4])
        for n in (1, 3):  # QoS 2
            self.assertEqual(story.seen.count(n), 1)
        broker = story.world.broker
        self.assertEqual(broker.deliveries.count[0], 0)
        self.assertEqual(broker.retained.names.count(), 1)
        self.assertEqual(broker.messages.count[0], 1)
        self.assertEqual(broken(broker), [])

    def test_after_every_byte(self):
        story = Story(MemoryMedium())
        story.run()
        self.check(story)
        written = (1 << 30) - story.medium.power
        self.assertTrue(written > 300)
        for power in range(0, written, STEP):
            medium = MemoryMedium()
            medium.power = power
            story = Story(medium)
            story.run()
            self.assertEqual(story.cuts, 1)
            self.check(story)
