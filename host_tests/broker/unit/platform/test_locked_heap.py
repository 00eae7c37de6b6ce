"""A MemoryError while the heap is locked is a defect: it is logged and counted, and no client's
stream continues in the middle of a packet. Each place of the data plane is made to raise one. On
MicroPython one of them is a real allocation."""

import sys
import unittest

import packets
from fakes import World

from slotmq import Broker, Settings, broker
from slotmq.delivery import retain, routing
from slotmq.net import loop, timers
from slotmq.platform import heap
from slotmq.protocol import dispatch
from slotmq.protocol import publish as handling

MICROPYTHON = sys.implementation.name == "micropython"


QOS_2 = packets.publish("t2", b"x", 2, 7)


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
        """The function raises once during act(): only the client `ended` is disconnected."""
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
        """A new client is served, and the reader, if it is still connected."""
        again = self.world.client("again")
        again.send(packets.PINGREQ)
        self.world.turn(2)
        self.assertEqual(again.packets(), [packets.PINGRESP])
        if not self.reader.stream.closed:
            again.send(packets.publish("t1", b"later", 1, 9))
            self.world.turn(3)
            self.reader.answer()
            self.assertEqual(self.reader.messages[-1], (b"t1", b"later", 1))

    def publish(self, more=b"", qos=2):
        return lambda: self.client.send(packets.publish(f"t{qos}", b"x", qos, 7) + more)

    def test_one_in_the_data_plane_ends_the_client_whose_packet_it_was(self):
        retained = packets.publish("t1", b"x", 1, 7, retain=True)
        for place, name, data in (
            (None, "handle_fast", packets.publish("t0", b"x")),
            (loop, "receive", QOS_2),
            (dispatch, "next_packet", packets.publish("t1", b"x", 1, 7)),
            (routing, "take_message", QOS_2),
            (routing, "fan", QOS_2),
            (handling, "put_ack", QOS_2),
            (retain, "set_message", retained),
        ):
            with self.subTest(name=name):
                self.setUp()
                if name == "next_packet":
                    self.broker.log_mask = 65  # no fast path
                self.check(
                    place or self.broker,
                    name,
                    lambda data=data: self.client.send(data),
                    self.client,
                )

    def test_one_in_a_handler_ends_its_client(self):
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

    def test_a_real_one_is_located_in_the_log(self):
        self.check(routing, "take_message", self.publish(), self.client, WAY)
        self.assertNotIn("unknown", self.lines[0][1])

    def test_packets_behind_it_in_the_same_read_are_not_handled(self):
        """Its first packet is lost, so none behind it may be answered."""
        self.check(routing, "take_message", self.publish(packets.PINGREQ), self.client)
        self.assertEqual(self.client.packets(), [])

    def test_one_in_a_flush_ends_the_client_that_is_written_to(self):
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

    def test_one_in_a_drain_ends_the_client_of_the_queue(self):
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

    def test_one_in_the_tick_ends_no_client_and_is_counted(self):
        def act():
            self.world.clock.ms += 300

        self.check(timers, "_count", act, None)
        self.check_count(b"1")

    def check_count(self, wanted):
        client = self.world.client("s")
        client.send(packets.subscribe(1, "$SYS/broker/heap/exhausted", 0))
        self.world.turn(4)
        self.assertTrue(client.packets()[-1].endswith(b"exhausted" + wanted))

    def test_the_unacknowledged_message_is_delivered_when_it_is_sent_again(self):
        for qos in (1, 2):
            with self.subTest(qos=qos):
                self.setUp()
                self.check(routing, "take_message", self.publish(qos=qos), self.client)
                again = packets.publish(f"t{qos}", b"again", qos, 7, dup=True)
                self.world.come(packets.connect("c", clean=False) + again, 4)
                self.reader.answer()
                self.assertEqual(self.reader.messages[-1], (f"t{qos}".encode(), b"again", qos))
