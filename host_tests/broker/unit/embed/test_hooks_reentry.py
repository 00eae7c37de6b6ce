"""Hooks and callbacks that subscribe, make clients, or call what is allowed between turns only."""

import packets
import packets5
from embed_case import EmbedCase
from fakes import Stream
from packets import connect, publish, subscribe

from slotmq.platform import heap

_OWN = b"auto-00000001"
BOTH = (packets, packets5)


class Case(EmbedCase):
    LIMITS = {"connections": 6}  # noqa: RUF012


class Subscriber:
    """Subscribes for its program when the first client connects."""

    def on_connect(self, client_id):
        self.calls.append(("in", client_id))
        self.broker.subscribe("t", self.receive, 1)

    def on_disconnect(self, client_id, reason):
        self.calls.append(("out", client_id))

    def receive(self, topic, payload, qos, retained):
        self.calls.append((topic, payload))


class TestSubscribeInOnConnect(Case):
    def test_it_holds_at_once_and_each_client_is_reported_once(self):
        for kind in BOTH:
            with self.subTest(kind=kind):
                hooks = Subscriber()
                self.start(hooks)
                client = self.world.come(kind.connect("c"))
                self.assertEqual(self.broker.connected, 2)
                client.send(kind.publish("t", b"x", 1, 3))
                self.world.turn(3)
                self.assertEqual(hooks.calls, [("in", b"c"), ("in", _OWN), ("t", b"x")])
                connack, puback = client.packets()
                self.assertEqual((connack[0], puback[0], puback[2:4]), (0x20, 0x40, b"\0\3"))
                self.assertEqual(self.broker.deliveries.count[0], 0)
                self.tearDown()

    def test_the_packets_behind_that_connect_are_handled(self):
        data = connect("c") + subscribe(1, "#", 1) + publish("t", b"p", 1, packet_id=7)
        data += publish("t", b"q")
        for size in (1, 3, 1000):
            hooks = Subscriber()
            self.start(hooks)
            stream = Stream(read=lambda n, size=size: min(n, size))
            client = self.world.come(data, len(data) + 4, stream)
            rest = client.answer()
            self.world.turn(3)
            self.assertEqual(rest, [b"\x20\2\0\0", b"\x90\3\0\1\1", b"\x40\2\0\7"])
            self.assertEqual(sorted(client.messages), [(b"t", b"p", 1), (b"t", b"q", 0)])
            client.send(publish("t", b"r"))
            self.world.turn(10)
            self.assertEqual(hooks.calls[-1], ("t", b"r"))
            self.tearDown()

    def test_a_client_made_between_two_turns_is_reported_in_the_next(self):
        hooks = Subscriber()
        self.start(hooks)
        self.broker.subscribe("u", lambda *_: None)
        self.assertEqual(hooks.calls, [])
        self.world.turn()
        self.assertEqual(hooks.calls, [("in", _OWN)])
        self.assertEqual(self.broker.connected, 1)
        self.broker.publish("t", b"x")
        self.world.turn(2)
        self.assertEqual(hooks.calls[1:], [("t", b"x")])

    def test_a_client_for_each_on_connect_ends_with_the_table_and_not_the_stack(self):
        class Hooks:
            def on_connect(self, client_id):
                self.calls.append(client_id)
                try:
                    self.broker.client()
                except OSError:
                    self.calls.append("full")

        hooks = Hooks()
        self.start(hooks)
        self.world.client("c")
        self.world.turn(10)
        self.assertEqual(len(hooks.calls), 7)
        self.assertEqual(hooks.calls[-1], "full")

    def test_a_disconnect_in_on_connect_is_reported_in_the_next_turn(self):
        class Hooks(Subscriber):
            def on_connect(self, client_id):
                self.calls.append(("in", client_id))
                if client_id == b"c":
                    self.broker.client("brief").disconnect()

        hooks = Hooks()
        self.start(hooks)
        self.world.client("c")
        self.world.turn(2)
        self.assertEqual(hooks.calls, [("in", b"c"), ("in", b"brief"), ("out", b"brief")])
        self.assertEqual(self.broker.conns.count, 1)


class OnPublish:
    def __init__(self):
        self.calls = []

    def may_subscribe(self, client_id, topic_filter, qos):
        return topic_filter != b"#"

    def on_publish(self, topic, payload):
        self.calls.append((topic, payload))


class TestOnPublish(Case):
    def test_it_is_called_although_clients_may_not_subscribe_to_all(self):
        hooks = OnPublish()
        self.start(hooks)
        client = self.world.client("c")
        client.send(subscribe(1, "#", 0) + publish("t", b"x"))
        self.world.turn(3)
        self.assertEqual(client.packets(), [b"\x90\3\0\1\x80"])
        self.assertEqual(hooks.calls, [("t", b"x")])

    def test_it_is_called_for_each_publish_and_not_for_older_retained_messages(self):
        for kind in BOTH:
            self.start()
            self.broker.publish("before", b"x", retain=True)
            self.world.turn(2)
            self.broker.hooks = hooks = OnPublish()
            client = self.world.come(kind.connect("c"))
            expected = []
            for qos in (0, 1, 2):
                for retain in (False, True):
                    name = f"t/{qos}{retain}"
                    expected.append((name, b"x"))
                    client.send(kind.publish(name, b"x", qos, len(expected), retain=retain))
            self.world.turn(4)
            self.assertEqual(hooks.calls, expected)

    def test_it_needs_a_connection_and_can_be_set_again_when_there_is_one(self):
        own = [self.broker.client() for _ in range(6)]
        hooks = OnPublish()
        with self.assertRaises(OSError):
            self.broker.hooks = hooks
        own[0].disconnect()
        self.world.turn(2)
        self.broker.hooks = hooks
        self.broker.publish("t", "x")
        self.world.turn(2)
        self.assertEqual(hooks.calls, [("t", b"x")])


class MayHooks:
    """Each calls what it must not, and notes whether RuntimeError was raised."""

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
                self.calls.append((where, name, "nothing"))
            except RuntimeError:
                self.calls.append((where, name))
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


class AllHooks(MayHooks):
    def on_connect(self, client_id):
        self.try_all("on_connect")

    def on_disconnect(self, client_id, reason):
        self.try_all("on_disconnect")

    def on_publish(self, topic, payload):
        self.try_all("on_publish")


class TestDuringATurn(Case):
    def check(self, hooks, kind):
        """One client connects, subscribes, gets its own message and leaves; -> the notes."""
        self.start(hooks)
        hooks.calls = []
        first = kind.connect("c") + kind.subscribe(1, "t", 1) + kind.publish("t", b"x", 1, 9)
        client = self.world.come(first, 4)
        types = sorted([each[0] & 0xF0 for each in client.packets()])
        self.assertEqual(types, [0x20, 0x30, 0x40, 0x90])
        self.assertEqual(self.broker.connected, self.broker.conns.count)
        client.leave()
        self.world.turn(3)
        self.tearDown()
        return hooks.calls

    def test_a_turn_within_a_turn_is_refused(self):
        every = ("may_connect", "may_subscribe", "may_publish")
        every += ("on_connect", "on_disconnect", "on_publish")
        for kind in BOTH:
            calls = self.check(AllHooks("turn", "run"), kind)
            expected = [(where, name) for where in every for name in ("turn", "run")]
            self.assertEqual(sorted(set(calls)), sorted(expected))

    def test_while_a_packet_is_handled_publish_subscribe_and_client_are_refused(self):
        for kind in BOTH:
            calls = self.check(MayHooks("publish", "subscribe", "client"), kind)
            self.assertEqual([each[2:] for each in calls], [()] * 9)

    def test_a_turn_in_a_callback_is_refused(self):
        hooks = MayHooks("turn", "run")
        hooks.broker, hooks.calls = self.broker, []
        self.broker.subscribe("t", lambda *_: hooks.try_all("callback"))
        for _ in range(2):
            self.broker.publish("t", "x")
            self.world.turn(2)
        self.assertEqual(hooks.calls, [("callback", "turn"), ("callback", "run")] * 2)

    def test_a_turn_that_the_program_keeps_or_wraps_is_refused_too(self):
        """Also when what calls it is added later."""
        turns, refused = [], []
        kept = self.broker.turn

        def wrapped(timeout_ms):
            turns.append(timeout_ms)
            kept(timeout_ms)

        self.broker.turn = wrapped

        def receive(*_):
            for turn in (kept, self.broker.turn):
                try:
                    turn(0)
                except RuntimeError:
                    refused.append(turn)

        self.broker.subscribe("t", receive)
        self.broker.hooks = Subscriber()
        self.broker.publish("t", "x")
        self.broker.turn(1)
        self.assertEqual((turns, refused), ([1, 0], [kept, wrapped]))

    def test_its_error_leaves_the_turn_and_the_next_one_works(self):
        self.broker.subscribe("t", lambda *_: self.broker.turn(0))
        self.broker.publish("t", "x")
        with self.assertRaises(RuntimeError):
            self.world.turn(2)
        self.assertFalse(any(heap._state))
        self.broker.subscribe("u", lambda *_: None)
        self.world.turn(2)
