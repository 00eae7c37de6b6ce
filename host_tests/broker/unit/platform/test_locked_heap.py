"""A MemoryError while the heap is locked is a defect: it is logged and counted, and no client's
stream continues in the middle of a packet. Each place of the data plane is made to raise one; on
MicroPython one of them is real."""

import sys
import unittest

import packets
from fakes import Stream, World

from slotmq import Broker, Settings, broker
from slotmq.delivery import retain, routing
from slotmq.net import loop, timers
from slotmq.platform import heap
from slotmq.protocol import dispatch
from slotmq.protocol import publish as handling

MICROPYTHON = sys.implementation.name == "micropython"


def fails(a=0, b=0, c=0, d=0):
    raise MemoryError


def allocates():
    return [0] * 100


WAY = allocates if MICROPYTHON else fails


class TestLockedHeap(unittest.TestCase):
    def setUp(self):
        self.world = World(Broker(settings=Settings(mqtt_versions=3)))
        self.broker = self.world.broker
        self.lines = []
        self.broker.log = lambda bit, text: self.lines.append((bit, text))
        self.broker.log_mask = 1
        self.reader = self.world.client("reader")
        self.client = self.world.client("c", clean=False)
        for qos in range(3):
            self.reader.send(packets.subscribe(1 + qos, f"t{qos}", qos))
        self.world.turn(3)
        self.reader.packets()
        self.assertEqual(self.lines, [])

    def check(self, place, name, act, ended, way=fails):
        """It raises once while act() is done: who has `ended` then, and who has not."""
        works = getattr(place, name)
        self.world.exhausted = 1

        def once(a=0, b=0, c=0, d=0, e=0, f=0, g=0):  # *args would allocate
            setattr(place, name, works)
            way()
            raise MemoryError

        setattr(place, name, once)
        try:
            act()
            self.world.turn(2)
        finally:
            setattr(place, name, works)
        self.assertEqual(self.broker.loop.exhausted, 1)
        self.assertEqual((heap._state[0], heap._state[1]), (0, 0))
        self.assertEqual(len(self.lines), 1, self.lines)
        self.assertEqual(self.lines[0][0], 1)
        self.assertIn("heap locked", self.lines[0][1])
        for one in (self.client, self.reader):
            self.assertEqual(one.stream.closed, one is ended, self.lines)
        self.healthy()

    def healthy(self):
        """Who is still there is served, and who was ended comes back."""
        again = self.world.client("again")
        again.send(packets.PINGREQ)
        self.world.turn(2)
        self.assertEqual(again.packets(), [packets.PINGRESP])
        if not self.reader.stream.closed:
            again.send(packets.publish("t1", b"later", 1, 9))
            self.world.turn(3)
            self.reader.answer()
            self.assertEqual(self.reader.messages[-1], (b"t1", b"later", 1))

    def publish(self, qos, more=b""):
        return lambda: self.client.send(packets.publish(f"t{qos}", b"x", qos, 7) + more)

    def test_the_fast_path(self):
        self.check(self.broker, "handle_fast", self.publish(0), self.client)

    def test_receive(self):
        self.check(loop, "receive", self.publish(2), self.client)

    def test_the_next_packet(self):
        self.broker.log_mask = 65  # no fast path
        self.check(dispatch, "next_packet", self.publish(1), self.client)

    def test_handlers_of_every_type(self):
        kinds = {
            3: packets.publish("t2", b"x", 2, 7),
            4: packets.ack(packets.PUBACK, 7),
            5: packets.ack(packets.PUBREC, 7),
            6: packets.ack(packets.PUBREL, 7),
            7: packets.ack(packets.PUBCOMP, 7),
            12: packets.PINGREQ,
        }
        works = self.broker.handlers
        for kind in sorted(kinds):
            with self.subTest(kind=kind):
                self.setUp()
                made = list(works)
                made[kind] = fails
                self.broker.handlers = tuple(made)
                self.broker.fast_path = None
                self.client.send(kinds[kind])
                self.world.exhausted = 1
                self.world.turn()
                self.broker.handlers = works
                self.world.turn(2)
                self.assertEqual(self.broker.loop.exhausted, 1)
                self.assertTrue(self.client.stream.closed)
                self.assertFalse(self.reader.stream.closed)

    def test_storing(self):
        self.check(routing, "take_message", self.publish(2), self.client)

    def test_a_real_one(self):
        self.check(routing, "take_message", self.publish(2), self.client, WAY)
        self.assertNotIn("unknown", self.lines[0][1])

    def test_fanning_out(self):
        self.check(routing, "fan", self.publish(2), self.client)

    def test_the_answer(self):
        self.check(handling, "put_ack", self.publish(2), self.client)

    def test_keeping(self):
        def act():
            self.client.send(packets.publish("t1", b"x", 1, 7, retain=True))

        self.check(retain, "set_message", act, self.client)

    def test_the_rest_of_that_read_is_not_handled(self):
        """Its first packet is lost: none behind it may be answered as if it were not."""
        self.check(routing, "take_message", self.publish(2, packets.PINGREQ), self.client)
        self.assertEqual(self.client.packets(), [])

    def test_a_flush_ends_who_is_written(self):
        def once(n):
            self.reader.stream.write_some = lambda n: n
            raise MemoryError

        self.reader.stream.write_some = once
        self.client.send(packets.publish("t1", b"x", 1, 7))
        self.world.exhausted = 1
        self.world.turn(2)
        self.assertTrue(self.reader.stream.closed)
        self.assertFalse(self.client.stream.closed)
        self.assertEqual(self.client.packets(), [packets.ack(packets.PUBACK, 7)])

    def test_a_drain_ends_whose_it_is(self):
        self.reader.stream.write_some = lambda n: None  # it does not read
        self.client.send(packets.publish("t1", b"x" * 500, 1, 7) * 40)
        self.world.turn(6)
        self.reader.stream.write_some = lambda n: n
        works = broker.routing.drain

        def once(_, session):
            broker.routing.drain = works
            raise MemoryError

        broker.routing.drain = once
        self.world.exhausted = 1
        self.world.turn(2)
        self.assertTrue(broker.routing.drain is works)
        self.assertTrue(self.reader.stream.closed)
        self.assertFalse(self.client.stream.closed)

    def test_the_tick_ends_nobody(self):
        def act():
            self.world.clock.ms += 300

        self.check(timers, "_count", act, None)
        self.check_count(b"1")

    def check_count(self, wanted):
        client = self.world.client("s")
        client.send(packets.subscribe(1, "$SYS/broker/heap/exhausted", 0))
        self.world.turn(4)
        self.assertTrue(client.packets()[-1].endswith(b"exhausted" + wanted))

    def test_what_was_not_acknowledged_is_delivered_when_it_is_sent_again(self):
        for qos in (1, 2):
            with self.subTest(qos=qos):
                self.setUp()
                self.check(routing, "take_message", self.publish(qos), self.client)
                back = Stream()
                self.world.listener.waiting.append(back)
                back.sent += packets.connect("c", clean=False)
                back.sent += packets.publish(f"t{qos}", b"again", qos, 7, dup=True)
                self.world.turn(4)
                self.reader.answer()
                self.assertEqual(self.reader.messages[-1], (f"t{qos}".encode(), b"again", qos))
