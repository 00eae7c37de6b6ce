"""Hooks that publish while a packet or a fan-out is handled do not disturb it. A MemoryError of a
hook ends the turn and nothing else."""

import unittest

import packets
import packets5
from fakes import World
from invariants import broken

from slotmq import Broker, Limits, Settings
from slotmq.platform import heap

_RESET = 104
_PAYLOAD = bytes(90)  # two of them fill a buffer
_FILTERS = (("t",), ("t", "gone/+"), ("t",), ("gone/+",), ("gone/+",))


class Farewell:
    """Publishes who has gone."""

    def __init__(self, broker):
        self.broker = broker
        self.left = []

    def on_disconnect(self, client_id, reason):
        self.left.append((client_id, reason))
        self.broker.publish("gone/" + client_id.decode(), b"x", 1)


def reset(n):
    raise OSError(_RESET)


class TestDuringFanOut(unittest.TestCase):
    """The first of three receivers is lost when its full buffer is written. What on_disconnect
    publishes has three receivers too, and the route cache has one entry."""

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
        client = self.world.come(self.kind.connect(name))
        for topic_filter in filters:
            client.send(self.kind.subscribe(1, topic_filter, 1))
            self.world.turn()
        client.packets()
        return client

    def topics(self, client):
        """Those of all received PUBLISH, in order."""
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

    def test_every_other_receiver_gets_each_message_once(self):
        for kind in (packets, packets5):
            for qos in (0, 1):
                with self.subTest(kind=kind, qos=qos):
                    self.check(kind, qos)


class TestMemoryError(unittest.TestCase):
    def start(self, hooks):
        world = World(Broker(settings=Settings(sys_interval=0)))
        world.broker.hooks = hooks
        return world

    def test_one_of_on_connect_ends_the_turn(self):
        class Hooks:
            def on_connect(self, client_id):
                raise MemoryError

        world = self.start(Hooks())
        with self.assertRaises(MemoryError):
            world.client("c")
        self.assertEqual((heap._state[0], heap._state[1]), (0, 0))
        self.assertEqual(world.broker.connected, 1)

    def test_one_of_the_broker_between_two_packets_is_tried_again(self):
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

    def test_one_of_may_publish_ends_the_publishing_client_only(self):
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
