"""Clients of the broker's own program behave as clients from the network."""

import unittest

from fakes import Client, Stream, World
from invariants import broken
from packets import connect, publish, subscribe
from tables import counts

from slotmq import Broker, Limits, Settings


class TestClient(unittest.TestCase):
    def setUp(self):
        settings = Settings()
        settings.sys_interval = 0
        self.world = World(Broker(Limits(connections=4, max_packet=2048), settings))
        self.broker = self.world.broker
        self.heard = []

    def tearDown(self):
        self.assertEqual(broken(self.broker), [])

    def hear(self, *message):
        self.heard.append(message)

    def test_it_hears_every_qos(self):
        self.broker.subscribe("news/+", self.hear, 2)
        other = self.world.client("other")
        for qos in (0, 1, 2):
            other.send(publish("news/x", b"m%d" % qos, qos, packet_id=qos))
            self.world.turn(3)
            other.answer()
            self.world.turn(3)
        expected = [("news/x", b"m0", 0, 0), ("news/x", b"m1", 1, 0), ("news/x", b"m2", 2, 0)]
        self.assertEqual(self.heard, expected)
        # All was acknowledged: nothing is kept for it.
        self.assertEqual(self.broker.deliveries.count[0], 0)
        self.assertEqual(self.broker.messages.count[0], 0)

    def test_what_is_retained_reaches_it(self):
        self.broker.publish("state", "on", retain=True)
        self.broker.subscribe("state", self.hear)
        self.world.turn(2)
        self.assertEqual(self.heard, [("state", b"on", 0, 1)])

    def test_what_a_callback_publishes_leaves_in_the_same_turn(self):
        other = self.world.client("other")
        other.send(subscribe(1, "echo", 0))
        self.world.turn(2)
        other.answer()
        self.broker.subscribe(
            "ask", lambda topic, payload, *_: self.broker.publish("echo", payload)
        )
        other.send(publish("ask", b"hello"))
        self.world.turn()
        other.answer()
        self.assertEqual(other.messages, [(b"echo", b"hello", 0)])

    def test_a_will_goes_out_when_it_is_taken_over_but_not_when_it_leaves(self):
        other = self.world.client("other")
        other.send(subscribe(1, "will", 0))
        self.world.turn(2)
        other.answer()
        first = self.broker.client("me", will=("will", "gone", 0, False))
        self.assertTrue(first.is_connected)
        second = self.broker.client("me", will=("will", "again", 0, False))
        self.world.turn(2)
        self.assertFalse(first.is_connected)
        second.disconnect()
        self.world.turn(2)
        other.answer()
        self.assertEqual(other.messages, [(b"will", b"gone", 0)])
        self.assertEqual(self.broker.conns.count, 1)

    def test_its_session_is_kept_as_any_other(self):
        first = self.broker.client("me", clean=False)
        first.subscribe("jobs", self.hear, 1)
        first.disconnect()
        self.world.turn(2)
        self.broker.publish("jobs", "one", 1)
        again = self.broker.client("me", clean=False)
        again.hear("jobs", self.hear)
        self.world.turn(2)
        self.assertEqual(self.heard, [("jobs", b"one", 1, 0)])

    def test_more_than_its_inbox_holds_waits(self):
        self.broker.subscribe("#", self.hear, 1)
        other = self.world.client("other")
        sent = []
        for n in range(20):
            other.send(publish("big", b"%d" % n * 300, 1, packet_id=n + 1))
            sent.append(b"%d" % n * 300)
        self.world.turn(60)
        self.assertEqual([message[1] for message in self.heard], sent)

    def test_a_callback_that_raises_ends_the_turn_and_nothing_else(self):
        def fail(*_):
            raise KeyError("of the application")

        self.broker.subscribe("bad", fail, 1)
        self.broker.subscribe("good", self.hear, 1)
        self.broker.publish("bad", "", 1)
        with self.assertRaises(KeyError):
            self.world.turn(2)
        self.broker.publish("good", "", 1)
        self.world.turn(2)
        self.assertEqual(len(self.heard), 1)
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_so_does_one_that_finds_no_heap(self):
        """Which is no client's fault: nobody is let go for it, and it is not passed over."""

        def fails(*_):
            raise MemoryError

        client = self.world.client("c")
        for qos in range(3):
            self.broker.subscribe(f"t{qos}", fails, qos)
            client.send(publish(f"t{qos}", b"x", qos, packet_id=3))
            with self.assertRaises(MemoryError):
                self.world.turn(3)
        self.assertEqual(client.packets(), [b"\x40\x02\0\x03", b"\x50\x02\0\x03"])
        self.world.turn(2)
        self.assertEqual(self.broker.connected, 2)
        self.assertEqual(broken(self.broker), [])

    def test_a_filter_that_is_none_is_refused(self):
        for name in ("", "a#", "a/+b", "#/a"):
            with self.assertRaises(ValueError):
                self.broker.subscribe(name, self.hear)

    def test_unsubscribed_it_hears_nothing(self):
        client = self.broker.client()
        client.subscribe("a", self.hear)
        client.unsubscribe("a")
        self.broker.publish("a", "x")
        self.world.turn(2)
        self.assertEqual(self.heard, [])
        self.assertEqual(counts(self.broker)["subscriptions"], 0)

    def test_where_there_is_no_connection_left_it_is_told(self):
        for _ in range(4):
            self.broker.client()
        with self.assertRaises(OSError):
            self.broker.client()

    def test_a_stop_ends_it_in_order(self):
        client = self.broker.client(will=("will", "w", 0, False))
        self.world.loop.close()
        self.assertFalse(client.is_connected)
        self.assertEqual(self.broker.conns.count, 0)


class Hooks:
    def __init__(self):
        self.told = []

    def may_connect(self, client_id, user_name, password):
        return 5 if client_id == b"nobody" or not client_id else 0

    def on_connect(self, client_id):
        self.told.append(("in", client_id))

    def on_disconnect(self, client_id, reason):
        self.told.append(("out", client_id, reason))

    def on_publish(self, topic, payload):
        self.told.append((topic, payload))


class TestHooks(unittest.TestCase):
    def test_they_are_told_what_happens(self):
        settings = Settings()
        settings.sys_interval = 0
        world = World(Broker(Limits(connections=4), settings))
        hooks = Hooks()
        world.broker.hooks = hooks
        client = world.client("c")
        client.send(publish("t", b"p"))
        world.turn(2)
        client.leave()
        world.turn(2)
        seen = [each for each in hooks.told if each[1] != b"auto-00000001"]
        self.assertEqual(seen, [("in", b"c"), ("t", b"p"), ("out", b"c", 9)])
        world.broker.hooks = None
        world.client("d")
        self.assertEqual(hooks.told[-1], ("out", b"c", 9))


class Presence:
    """Tells everybody who is there."""

    def __init__(self, broker, qos):
        self.broker, self.qos = broker, qos

    def on_connect(self, client_id):
        topic = "here/" + client_id.decode()
        self.broker.publish(topic, b"yes", self.qos, retain=True)

    def on_disconnect(self, client_id, reason):
        self.broker.publish("here/" + client_id.decode(), b"no", self.qos, retain=True)


class TestHooksThatPublish(unittest.TestCase):
    def world(self, qos, **settings):
        settings = Settings(sys_interval=0, **settings)
        made = World(Broker(Limits(connections=4, sessions=4), settings))
        made.broker.hooks = Presence(made.broker, qos)
        return made

    def test_others_hear_of_it_at_every_qos(self):
        for qos in (0, 1, 2):
            world = self.world(qos)
            watcher = world.client("watcher")
            watcher.send(subscribe(1, "here/+", qos))
            world.turn(2)
            watcher.answer()
            other = world.client("c")
            other.leave()
            world.turn(3)
            for _ in range(4):
                watcher.answer()
                world.turn(2)
            expected = [(b"here/watcher", b"yes"), (b"here/c", b"yes"), (b"here/c", b"no")]
            self.assertEqual(watcher.messages, [(topic, text, qos) for topic, text in expected])
            self.assertEqual(world.broker.deliveries.count[0], 0)
            self.assertEqual(broken(world.broker), [])

    def test_who_comes_back_hears_of_itself_after_connack_and_what_waited(self):
        world = self.world(1)
        first = world.client("c", clean=False)
        first.send(subscribe(1, "here/+", 1))
        world.turn(2)
        first.answer()
        world.turn(2)
        first.leave()
        world.turn(2)
        again = Client(Stream())
        world.listener.waiting.append(again.stream)
        again.send(connect("c", clean=False) + publish("here/b", b"behind", 0))
        world.turn(3)
        kinds = [data[0] >> 4 for data in again.packets()]
        self.assertEqual(kinds[0], 2)
        again._read = 0
        again.answer()
        self.assertEqual(
            sorted(again.messages),
            [(b"here/b", b"behind", 0), (b"here/c", b"no", 1), (b"here/c", b"yes", 1)],
        )
        at_qos_1 = [each for each in again.messages if each[2]]
        self.assertEqual([each[1] for each in at_qos_1], [b"no", b"yes"])
        world.turn(2)
        self.assertEqual(broken(world.broker), [])

    def test_a_takeover_is_an_end_and_a_beginning(self):
        world = self.world(1)
        watcher = world.client("watcher")
        watcher.send(subscribe(1, "here/c", 1))
        world.turn(2)
        watcher.answer()
        for _ in range(2):
            world.client("c")
            watcher.answer()
            world.turn(2)
        watcher.answer()
        self.assertEqual([each[1] for each in watcher.messages], [b"yes", b"no", b"yes"])
        self.assertEqual(broken(world.broker), [])

    def test_in_its_own_connect_it_fills_no_buffer_twice(self):
        # CONNECT and SUBSCRIBE and PUBLISH in one piece, byte by byte too
        data = connect("c") + subscribe(1, "#", 1) + publish("t", b"p", 1, packet_id=7)
        for size in (1, 3, 1000):
            world = self.world(1)
            client = Client(Stream(read=lambda n, size=size: min(n, size)))
            world.listener.waiting.append(client.stream)
            client.send(data)
            world.turn(len(data) + 4)
            client.answer()
            world.turn(3)
            expected = [(b"here/c", b"yes", 1), (b"t", b"p", 1)]
            self.assertEqual(sorted(client.messages), expected)
            self.assertEqual(broken(world.broker), [])
