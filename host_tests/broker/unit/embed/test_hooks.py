"""Hooks that publish while a packet or a fan-out is being handled do not disturb it; a hook that
finds no heap ends the turn and nothing else."""

import unittest

import packets
import packets5
from fakes import Client, Stream, World
from invariants import broken

from slotmq import Broker, Limits, Settings
from slotmq.platform import heap

_RESET = 104
_PAYLOAD = bytes(90)  # two of them fill a buffer
_FILTERS = (("t",), ("t", "gone/+"), ("t",), ("gone/+",), ("gone/+",))


class Farewell:
    """Tells everybody who has gone."""

    def __init__(self, broker):
        self.broker = broker
        self.left = []

    def on_disconnect(self, client_id, reason):
        self.left.append((client_id, reason))
        self.broker.publish("gone/" + client_id.decode(), b"x", 1)


def reset(n):
    raise OSError(_RESET)


class TestDuringFanOut(unittest.TestCase):
    """The first of three receivers is lost where its full buffer is written; what its hook
    publishes has three as well, and room for one route only."""

    def start(self, kind):
        self.kind = kind
        limits = Limits(
            connections=8, sessions=8, subscriptions=8, tx_bytes=256, routes=1, route_entries=8
        )
        self.world = World(Broker(limits, Settings(sys_interval=0)))
        self.hooks = self.world.broker.hooks = Farewell(self.world.broker)
        self.clients = [self.come("c" + str(n), each) for n, each in enumerate(_FILTERS)]
        self.senders = [self.come("sender" + str(n), ()) for n in range(3)]

    def come(self, name, filters):
        client = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(self.kind.connect(name))
        self.world.turn(2)
        for topic_filter in filters:
            client.send(self.kind.subscribe(1, topic_filter, 1))
            self.world.turn()
        client.packets()
        return client

    def topics(self, client):
        """Of all PUBLISH that have come, in their order."""
        found = [each for each in client.packets() if each[0] >> 4 == 3]
        if self.kind is packets5:
            return [packets5.read_publish(each)[1] for each in found]
        return [packets.read_publish(each)[0].decode() for each in found]

    def check(self, kind, qos):
        self.start(kind)
        last = self.clients.pop(2)  # the first of the route
        last.stream.write_some = reset
        for sender in self.senders:
            sender.send(kind.publish("t", _PAYLOAD, qos, 1 if qos else 0))
        self.world.turn(4)
        self.assertEqual(self.hooks.left, [(b"c2", 9)])
        got = [self.topics(client) for client in self.clients]
        self.assertEqual(got[0], ["t"] * 3)
        self.assertEqual(sorted(got[1]), ["gone/c2"] + ["t"] * 3)
        self.assertEqual(got[2:], [["gone/c2"]] * 2)
        self.assertEqual(broken(self.world.broker), [])

    def test_version_3_at_qos_0(self):
        self.check(packets, 0)

    def test_version_3_at_qos_1(self):
        self.check(packets, 1)

    def test_version_5_at_qos_0(self):
        self.check(packets5, 0)

    def test_version_5_at_qos_1(self):
        self.check(packets5, 1)


class TestWithoutHeap(unittest.TestCase):
    def start(self, hooks):
        world = World(Broker(settings=Settings(sys_interval=0)))
        world.broker.hooks = hooks
        return world

    def test_a_hook_that_finds_none_ends_the_turn(self):
        class Hooks:
            def on_connect(self, client_id):
                raise MemoryError

        world = self.start(Hooks())
        with self.assertRaises(MemoryError):
            world.client("c")
        self.assertEqual((heap._state[0], heap._state[1]), (0, 0))
        self.assertEqual(world.broker.connected, 1)

    def test_what_the_broker_finds_none_for_between_two_packets_waits(self):
        world = self.start(None)
        client = world.client("c")

        def fails():
            raise MemoryError

        world.broker.turn_soon = 1
        works, world.broker.resume_scans = world.broker.resume_scans, fails
        world.exhausted = 1
        world.turn()
        world.broker.resume_scans = works
        client.send(b"\xc0\0")
        world.turn(2)
        self.assertEqual(client.packets(), [b"\xd0\0"])

    def test_a_client_whose_packet_finds_none_is_let_go_and_nobody_else(self):
        class Hooks:
            def may_publish(self, client_id, topic):
                if client_id == b"c":
                    raise MemoryError
                return True

        world = self.start(Hooks())
        client, other = world.client("c"), world.client("d")
        client.send(packets.publish("t", b"x"))
        world.turn(3)
        self.assertEqual(world.broker.connected, 1)
        other.send(b"\xc0\0")
        world.turn()
        self.assertEqual(other.packets(), [b"\xd0\0"])
