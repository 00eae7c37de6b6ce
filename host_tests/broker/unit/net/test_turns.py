"""The work of a turn is bounded: a client that floods delays no other client."""

import unittest

from fakes import Stream, World
from packets import PINGREQ, PINGRESP, connect, publish, subscribe
from tables import counts

from slotmq import Broker, Limits, Settings
from slotmq.platform import heap
from slotmq.platform.runtime import MICROPYTHON

TURNS = 2  # that a PINGRESP may take, whatever others do
ROUNDS = 50
SHORT = publish("t/a", b"x" * 20)
# What a client sends again and again, and what it sends before that.
FLOODS = (
    (SHORT, b""),
    (publish("t/a", b"x" * 20, 1, 5), b""),
    (publish("t/a", b"x" * 20, 2, 5) + b"\x62\x02\0\5", b""),
    (publish("t/a", b"x" * 1900, 1, 5), b""),
    (SHORT, subscribe(1, "t/#", 0)),  # to itself
    (PINGREQ, b""),
    (subscribe(7, "t/+/a/#", 2), b""),
    (b"".join([publish(f"t/{n}", b"x") for n in range(40)]), b""),  # more topics than routes
)


class Flood(Stream):
    """A client that sends the same bytes without end, and reads without looking at it."""

    def __init__(self, first, again):
        Stream.__init__(self)
        self.sent += first
        self.again = again
        self.taken = 0

    def _read(self, buf, n):
        while self.again and len(self.sent) < n:
            self.sent += self.again
        n = Stream._read(self, buf, n)
        self.taken += n or 0
        if not self.sent:
            self.sent += self.again
        return n

    def _write(self, buf, off, n):
        return n


class TestTurns(unittest.TestCase):
    def setUp(self):
        self.limits = Limits(connections=6)
        self.world = World(Broker(self.limits, Settings(sys_interval=0)))
        self.empty = counts(self.world.broker)

    def flood(self, again, first=b""):
        stream = Flood(connect("flood") + first, again)
        self.world.listener.waiting.append(stream)
        self.world.turn(2)
        return stream

    def end(self, *streams):
        for stream in streams:
            stream.again = b""
            stream.ended = True
        self.world.turn(20)  # until all is read
        self.assertEqual(counts(self.world.broker), self.empty)

    def test_a_ping_beside_a_flood_is_answered_at_once(self):
        """Whether the poller returns the flood first or last."""
        for number, (again, first) in enumerate(FLOODS):
            for flood_is_first in (True, False):
                with self.subTest(number=number, flood_is_first=flood_is_first):
                    if flood_is_first:
                        stream = self.flood(again, first)
                    client = self.world.client("client")
                    if not flood_is_first:
                        stream = self.flood(again, first)
                    before = stream.taken
                    self.ping(client)
                    self.assertGreater(stream.taken, before + ROUNDS)  # it was served as well
                    client.leave()
                    self.end(stream)

    def ping(self, client, is_subscribed=False):
        for _ in range(ROUNDS):
            client.send(PINGREQ)
            self.world.turn(TURNS)
            found = [data for data in client.packets() if data[0] >> 4 != 3 or not is_subscribed]
            self.assertEqual(found, [PINGRESP])

    def test_a_ping_of_a_subscriber_to_the_flood(self):
        """Its PINGRESP follows the messages that are already in its outgoing buffer."""
        client = self.world.client("client")
        client.send(subscribe(1, "t/#", 0))
        self.world.turn(2)
        client.packets()
        stream = self.flood(SHORT)
        self.ping(client, is_subscribed=True)
        client.leave()
        self.end(stream)

    def test_several_floods_are_served_alike(self):
        streams = [Flood(connect(f"flood{n}"), SHORT) for n in range(5)]
        self.world.listener.waiting += streams
        self.world.turn(4)
        client = self.world.client("client")
        self.ping(client)
        taken = [stream.taken for stream in streams]
        self.assertLess(max(taken), 2 * min(taken))
        client.leave()
        self.end(*streams)

    def test_a_ping_beside_new_connections_in_every_turn(self):
        """Eight new ones in each turn, each closed at once by its client."""
        client = self.world.client("client")
        for n in range(ROUNDS):
            for k in range(8):
                stream = Stream()
                stream.sent += connect(f"c{n * 8 + k}")
                stream.ended = True
                self.world.listener.waiting.append(stream)
            client.send(PINGREQ)
            self.world.turn(TURNS)
            self.assertEqual(client.packets(), [PINGRESP])
        while self.world.listener.waiting:
            self.world.turn()
        client.leave()
        self.end()

    def test_a_turn_reads_at_most_one_buffer_from_each(self):
        streams = [Flood(connect(f"flood{n}"), PINGREQ) for n in range(3)]
        self.world.listener.waiting += streams
        self.world.turn(2)
        for _ in range(ROUNDS):
            before = [stream.taken for stream in streams]
            self.world.turn()
            for stream, taken in zip(streams, before):  # noqa: B905
                self.assertLessEqual(stream.taken - taken, self.limits.rx_bytes)
        self.end(*streams)

    def test_connect_timeout_holds_beside_a_flood(self):
        stream = self.flood(SHORT)
        mute = self.world.come(b"", 0)
        self.world.turn(99, ms=100)
        self.assertFalse(mute.stream.closed)
        self.world.turn(10, ms=100)
        self.assertTrue(mute.stream.closed)
        self.end(stream)


class TestMessagesToTheSender(unittest.TestCase):
    def test_disconnect_behind_a_message_larger_than_the_outgoing_buffer(self):
        broker = Broker(Limits(tx_bytes=80, max_packet=512), Settings(sys_interval=0))
        world = World(broker)
        for name in "ab":
            client = world.client(name)
            client.send(subscribe(1, "t", 0))
            world.turn(2)
            self.assertEqual(client.packets(), [b"\x90\x03\0\1\0"])
        client.send(publish("t", b"x" * 100) + b"\xe0\0")
        world.turn(5)
        found = client.stream.received[9:]
        self.assertIn(bytes(found[:1]), (b"", b"0"))


class TestIdleTurns(unittest.TestCase):
    """A turn in which nothing happened ends before the loop's finish_turn()."""

    def setUp(self):
        self.world = World(Broker(Limits(connections=6), Settings(sys_interval=0)))
        self.client = self.world.client("c")
        self.world.turn(2)
        self.finished = 0
        self.inner = self.world.loop.finish_turn
        self.world.loop.finish_turn = self.finish
        self.world.broker.conns.counts[5] = 1  # as an interceptor

    def finish(self):
        self.finished += 1
        self.inner()

    def test_without_an_event_nothing_is_finished_until_a_tenth_of_a_second_has_passed(self):
        while not self.finished:
            self.world.turn()
        self.finished = 0
        self.world.turn(99)
        self.assertEqual(self.finished, 0)
        self.world.turn()
        self.assertEqual(self.finished, 1)

    def test_a_packet_and_what_the_program_has_done_are_finished_at_once(self):
        self.client.send(PINGREQ)
        self.world.turn()
        self.assertEqual((self.finished, self.client.packets()), (1, [PINGRESP]))
        self.client.send(subscribe(1, "t", 0))
        self.world.turn(2)
        self.client.packets()
        self.world.broker.publish("t", b"x")
        self.world.turn(1, 0)
        self.assertEqual(self.client.packets(), [publish("t", b"x")])
        self.world.broker.end(0, 9)
        self.world.turn(1, 0)
        self.assertTrue(self.client.stream.closed)

    def test_a_clock_of_30_bits_wraps(self):
        world = self.world
        world.clock.ms = world.broker.conns.counts[2] = (1 << 30) - 60
        now = world.broker.now
        world.clock.ms = 45
        world.turn(1, 0)
        self.assertEqual(world.broker.now - now, 1)
        world.turn(94)
        self.assertEqual(world.broker.now - now, 1)
        world.turn()
        self.assertEqual(world.broker.now - now, 2)

    def test_an_error_while_it_waits_leaves_the_lock_as_it_was(self):
        def fails(timeout_ms):
            raise TypeError

        at_hand = self.world.loop.at_hand
        ipoll = at_hand[3]
        at_hand[3] = fails
        with self.assertRaises(TypeError):
            self.world.turn()
        at_hand[3] = ipoll
        if MICROPYTHON:
            with self.assertRaises(TypeError):
                self.world.loop.turn("1")
        self.assertEqual((heap._state[0], heap._state[1]), (0, 0))
        self.client.send(PINGREQ)
        self.world.turn()
        self.assertEqual(self.client.packets(), [PINGRESP])
