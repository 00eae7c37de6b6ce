"""The work of a turn is bounded: a client that floods delays no other client."""

import unittest

from fakes import Client, Stream, World
from packets import PINGREQ, PINGRESP, connect, publish, subscribe
from tables import counts

from slotmq import Broker, Limits, Settings

TURNS = 2  # that a PINGRESP may take, whatever others do
ROUNDS = 50


class Flood(Stream):
    """A client that has always something to say, the same again and again."""

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
        return n  # and it reads, but nobody looks


class TestTurns(unittest.TestCase):
    def setUp(self):
        settings = Settings()
        settings.sys_interval = 0
        self.limits = Limits(connections=6)
        self.world = World(Broker(self.limits, settings))
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
        self.world.turn(20)  # what they had sent is read to its end
        self.assertEqual(counts(self.world.broker), self.empty)

    def ping_beside(self, again, first=b""):
        """Both orders of arrival: the poller names the flood first, and last."""
        for flood_is_first in (True, False):
            with self.subTest(flood_is_first=flood_is_first):
                if flood_is_first:
                    stream = self.flood(again, first)
                client = self.world.client("client")
                if not flood_is_first:
                    stream = self.flood(again, first)
                before = stream.taken
                for _ in range(ROUNDS):
                    client.send(PINGREQ)
                    self.world.turn(TURNS)
                    self.assertEqual(client.packets(), [PINGRESP])
                self.assertGreater(stream.taken, before + ROUNDS)  # it was served as well
                client.leave()
                self.end(stream)

    def test_qos_0_to_nobody(self):
        self.ping_beside(publish("t/a", b"x" * 20))

    def test_qos_1_to_nobody(self):
        self.ping_beside(publish("t/a", b"x" * 20, 1, 5))

    def test_qos_2_and_its_releases(self):
        self.ping_beside(publish("t/a", b"x" * 20, 2, 5) + b"\x62\x02\0\5")

    def test_large_messages(self):
        self.ping_beside(publish("t/a", b"x" * 1900, 1, 5))

    def test_messages_to_itself(self):
        self.ping_beside(publish("t/a", b"x" * 20), subscribe(1, "t/#", 0))

    def test_pings(self):
        self.ping_beside(PINGREQ)

    def test_subscriptions(self):
        self.ping_beside(subscribe(7, "t/+/a/#", 2))

    def test_topics_that_no_route_is_known_for(self):
        topics = [publish(f"t/{n}", b"x") for n in range(40)]
        self.ping_beside(b"".join(topics))

    def test_a_subscriber_of_the_flood(self):
        """Its PINGRESP stands behind what was placed before, and is not locked out."""
        client = self.world.client("client")
        client.send(subscribe(1, "t/#", 0))
        self.world.turn(2)
        client.packets()
        stream = self.flood(publish("t/a", b"x" * 20))
        for _ in range(ROUNDS):
            client.send(PINGREQ)
            self.world.turn(TURNS)
            self.assertEqual(client.packets().count(PINGRESP), 1)
        client.leave()
        self.end(stream)

    def test_more_floods_than_one(self):
        streams = [Flood(connect(f"flood{n}"), publish("t/a", b"x" * 20)) for n in range(5)]
        self.world.listener.waiting += streams
        self.world.turn(4)
        client = self.world.client("client")
        for _ in range(ROUNDS):
            client.send(PINGREQ)
            self.world.turn(TURNS)
            self.assertEqual(client.packets(), [PINGRESP])
        taken = [stream.taken for stream in streams]
        self.assertLess(max(taken), 2 * min(taken))  # and one of them as much as another
        client.leave()
        self.end(*streams)

    def test_connections_without_end(self):
        """New ones in every turn, each gone at once."""
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

    def test_a_turn_reads_no_more_than_its_buffer_from_each(self):
        streams = [Flood(connect(f"flood{n}"), PINGREQ) for n in range(3)]
        self.world.listener.waiting += streams
        self.world.turn(2)
        for _ in range(ROUNDS):
            before = [stream.taken for stream in streams]
            self.world.turn()
            for stream, taken in zip(streams, before):  # noqa: B905
                self.assertLessEqual(stream.taken - taken, self.limits.rx_bytes)
        self.end(*streams)

    def test_who_waits_for_its_connect_has_its_time_beside_a_flood(self):
        stream = self.flood(publish("t/a", b"x" * 20))
        mute = Client(Stream())
        self.world.listener.waiting.append(mute.stream)
        self.world.turn(99, ms=100)
        self.assertFalse(mute.stream.closed)
        self.world.turn(10, ms=100)
        self.assertTrue(mute.stream.closed)
        self.end(stream)


class TestMessagesToTheSender(unittest.TestCase):
    def test_disconnect_behind_what_is_larger_than_the_outgoing_buffer(self):
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
