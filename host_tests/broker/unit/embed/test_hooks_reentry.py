"""Hooks and callbacks that subscribe, make clients, or call what is allowed between turns only."""

import unittest

import packets
import packets5
from fakes import Client, Stream, World
from invariants import broken
from packets import connect, publish, subscribe

from slotmq import Broker, Limits, Settings
from slotmq.platform import heap

_OWN = b"auto-00000001"


def start(hooks=None, **settings):
    world = World(Broker(Limits(connections=6), Settings(sys_interval=0, **settings)))
    if hooks:
        hooks.broker = world.broker
        hooks.told = []
        world.broker.hooks = hooks
    return world


class Subscriber:
    """Its program begins to listen when the first client has come."""

    def __init__(self, topic_filter="t"):
        self.filter = topic_filter

    def on_connect(self, client_id):
        self.told.append(("in", client_id))
        self.broker.subscribe(self.filter, self.hear, 1)

    def on_disconnect(self, client_id, reason):
        self.told.append(("out", client_id))

    def hear(self, topic, payload, qos, retained):
        self.told.append((topic, payload))


class TestSubscribeInOnConnect(unittest.TestCase):
    def test_it_is_done_at_once_and_each_client_is_told_once(self):
        world = start(Subscriber())
        hooks = world.broker.hooks
        client = world.client("c")
        self.assertEqual(world.broker.connected, 2)
        client.send(publish("t", b"x", 1, packet_id=3))
        world.turn(3)
        self.assertEqual(hooks.told, [("in", b"c"), ("in", _OWN), ("t", b"x")])
        self.assertEqual(client.packets(), [b"\x40\x02\0\x03"])
        self.assertEqual(world.broker.deliveries.count[0], 0)
        self.assertEqual(broken(world.broker), [])

    def test_the_rest_of_what_came_with_that_connect_is_not_lost(self):
        data = connect("c") + subscribe(1, "#", 1) + publish("t", b"p", 1, packet_id=7)
        data += publish("t", b"q")
        for size in (1, 3, 1000):
            world = start(Subscriber())
            client = Client(Stream(read=lambda n, size=size: min(n, size)))
            world.listener.waiting.append(client.stream)
            client.send(data)
            world.turn(len(data) + 4)
            rest = client.answer()
            world.turn(3)
            self.assertEqual(rest, [b"\x20\2\0\0", b"\x90\3\0\1\1", b"\x40\2\0\7"])
            self.assertEqual(sorted(client.messages), [(b"t", b"p", 1), (b"t", b"q", 0)])
            client.send(publish("t", b"r"))
            world.turn(10)
            self.assertEqual(world.broker.hooks.told[-1], ("t", b"r"))
            self.assertEqual(broken(world.broker), [])

    def test_version_5_as_well(self):
        world = start(Subscriber())
        client = Client(Stream())
        world.listener.waiting.append(client.stream)
        client.send(packets5.connect("c"))
        world.turn(2)
        client.send(packets5.publish("t", b"x", 1, 3))
        world.turn(3)
        self.assertEqual([each[0] for each in client.packets()], [0x20, 0x40])
        self.assertEqual(world.broker.hooks.told[2:], [("t", b"x")])
        self.assertEqual(broken(world.broker), [])

    def test_what_is_made_between_two_turns_is_told_in_the_next(self):
        world = start(Subscriber())
        world.broker.subscribe("u", lambda *_: None)
        self.assertEqual(world.broker.hooks.told, [])
        world.turn()
        self.assertEqual(world.broker.hooks.told, [("in", _OWN)])
        self.assertEqual(world.broker.connected, 1)
        world.broker.publish("t", b"x")
        world.turn(2)
        self.assertEqual(world.broker.hooks.told[1:], [("t", b"x")])

    def test_a_client_for_each_that_comes_ends_with_the_table_and_not_the_stack(self):
        class Hooks:
            def on_connect(self, client_id):
                self.told.append(client_id)
                try:
                    self.broker.client()
                except OSError:
                    self.told.append("full")

        world = start(Hooks())
        world.client("c")
        world.turn(10)
        self.assertEqual(len(world.broker.hooks.told), 7)
        self.assertEqual(world.broker.hooks.told[-1], "full")
        self.assertEqual(broken(world.broker), [])

    def test_one_that_leaves_in_a_hook_is_told_of_in_the_next_turn(self):
        class Hooks(Subscriber):
            def on_connect(self, client_id):
                self.told.append(("in", client_id))
                if client_id == b"c":
                    self.broker.client("brief").disconnect()

        world = start(Hooks())
        world.client("c")
        world.turn(2)
        expected = [("in", b"c"), ("in", b"brief"), ("out", b"brief")]
        self.assertEqual(world.broker.hooks.told, expected)
        self.assertEqual(world.broker.conns.count, 1)


class TestOnPublish(unittest.TestCase):
    class Hooks:
        def may_subscribe(self, client_id, topic_filter, qos):
            return topic_filter != b"#"

        def on_publish(self, topic, payload):
            self.told.append((topic, payload))

    def test_it_hears_where_nobody_may_subscribe_to_all(self):
        world = start(self.Hooks())
        client = world.client("c")
        client.send(subscribe(1, "#", 0) + publish("t", b"x"))
        world.turn(3)
        self.assertEqual(client.packets(), [b"\x90\3\0\1\x80"])
        self.assertEqual(world.broker.hooks.told, [("t", b"x")])

    def test_it_hears_what_is_published_in_every_way_and_not_what_was_retained_before(self):
        for kind in (packets, packets5):
            world = start()
            world.broker.publish("before", b"x", retain=True)
            world.turn(2)
            world.broker.hooks = hooks = self.Hooks()
            hooks.told = []
            client = Client(Stream())
            world.listener.waiting.append(client.stream)
            client.send(kind.connect("c"))
            world.turn(2)
            expected = []
            for qos in (0, 1, 2):
                for retain in (0, 1):
                    name = f"t/{qos}{retain}"
                    expected.append((name, b"x"))
                    packet = kind.publish(name, b"x", qos, len(expected) if qos else 0)
                    client.send(bytes((packet[0] | retain,)) + packet[1:])
            world.turn(4)
            self.assertEqual(hooks.told, expected)

    def test_where_there_is_no_connection_left_for_it_it_can_be_tried_again(self):
        world = start()
        own = [world.broker.client() for _ in range(6)]
        hooks = self.Hooks()
        hooks.told = []
        with self.assertRaises(OSError):
            world.broker.hooks = hooks
        own[0].disconnect()
        world.turn(2)
        world.broker.hooks = hooks
        world.broker.publish("t", "x")
        world.turn(2)
        self.assertEqual(hooks.told, [("t", b"x")])


class Everywhere:
    """Does what it must not, wherever it is called; keeps what that raised."""

    def __init__(self, *names):
        self.names = names

    def try_all(self, where):
        acts = {
            "turn": lambda: self.broker.turn(0),
            "run": self.broker.run,
            "publish": lambda: self.broker.publish("other", "x"),
            "subscribe": lambda: self.broker.subscribe("other", lambda *_: None),
            "client": self.broker.client,
        }
        for name in self.names:
            before = bytes(heap._state)
            try:
                acts[name]()
                self.told.append((where, name, "nothing"))
            except RuntimeError:
                self.told.append((where, name))
            assert bytes(heap._state) == before

    def may_connect(self, client_id, user_name, password):
        self.try_all("may_connect")
        return 0

    def may_publish(self, client_id, topic):
        self.try_all("may_publish")
        return True

    def may_subscribe(self, client_id, topic_filter, qos):
        self.try_all("may_subscribe")
        return True


class FromCallback(Everywhere):
    def on_connect(self, client_id):
        self.try_all("on_connect")

    def on_disconnect(self, client_id, reason):
        self.try_all("on_disconnect")

    def on_publish(self, topic, payload):
        self.try_all("on_publish")


class TestDuringATurn(unittest.TestCase):
    def check(self, hooks, kind):
        """One client comes, subscribes, hears itself and leaves, whatever the hooks try."""
        world = start(hooks)
        hooks.told = []
        client = Client(Stream())
        world.listener.waiting.append(client.stream)
        client.send(kind.connect("c") + kind.subscribe(1, "t", 1) + kind.publish("t", b"x", 1, 9))
        world.turn(4)
        types = sorted([each[0] & 0xF0 for each in client.packets()])
        self.assertEqual(types, [0x20, 0x30, 0x40, 0x90])
        self.assertEqual(world.broker.connected, 1 if world.broker.conns.count == 1 else 2)
        client.leave()
        world.turn(3)
        self.assertEqual(broken(world.broker), [])
        return hooks.told

    def test_a_turn_within_a_turn_is_refused_and_harms_nothing(self):
        every = ("may_connect", "may_subscribe", "may_publish")
        every += ("on_connect", "on_disconnect", "on_publish")
        for kind in (packets5, __import__("packets")):
            told = self.check(FromCallback("turn", "run"), kind)
            expected = [(where, name) for where in every for name in ("turn", "run")]
            self.assertEqual(sorted(set(told)), sorted(expected))

    def test_in_the_midst_of_a_packet_nothing_is_published_nor_subscribed(self):
        for kind in (packets5, __import__("packets")):
            told = self.check(Everywhere("publish", "subscribe", "client"), kind)
            self.assertEqual([each[2:] for each in told], [()] * 9)

    def test_nor_in_a_callback(self):
        world = start()
        hooks = Everywhere("turn", "run")
        hooks.broker, hooks.told = world.broker, []
        world.broker.subscribe("t", lambda *_: hooks.try_all("callback"))
        for _ in range(2):
            world.broker.publish("t", "x")
            world.turn(2)
        self.assertEqual(hooks.told, [("callback", "turn"), ("callback", "run")] * 2)

    def test_what_says_so_comes_out_of_the_turn_and_the_next_one_is_as_ever(self):
        world = start()
        world.broker.subscribe("t", lambda *_: world.broker.turn(0))
        world.broker.publish("t", "x")
        with self.assertRaises(RuntimeError):
            world.turn(2)
        self.assertFalse(any(heap._state))
        world.broker.subscribe("u", lambda *_: None)
        world.turn(2)
        self.assertEqual(broken(world.broker), [])
