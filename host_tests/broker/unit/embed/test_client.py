"""Clients of the broker's own program behave as clients from the network."""

import packets
import watch
from embed_case import EmbedCase
from fakes import Stream
from packets import publish
from tables import counts


class TestClient(EmbedCase):
    def test_a_callback_gets_messages_of_each_qos(self):
        self.broker.subscribe("news/+", self.receive, 2)
        other = self.world.client("other")
        for qos in (0, 1, 2):
            other.send(publish("news/x", b"m%d" % qos, qos, packet_id=qos))
            self.world.turn(3)
            other.answer()
            self.world.turn(3)
        expected = [("news/x", b"m0", 0, 0), ("news/x", b"m1", 1, 0), ("news/x", b"m2", 2, 0)]
        self.assertEqual(self.received, expected)
        # All was acknowledged: nothing is stored for it.
        self.assertEqual(self.broker.deliveries.count[0], 0)
        self.assertEqual(self.broker.messages.count[0], 0)

    def test_a_callback_gets_retained_messages(self):
        self.broker.publish("state", "on", retain=True)
        self.broker.subscribe("state", self.receive)
        self.world.turn(2)
        self.assertEqual(self.received, [("state", b"on", 0, 1)])

    def test_what_a_callback_publishes_is_sent_in_the_same_turn(self):
        other = self.subscriber("other", "echo")

        def callback(topic, payload, *_):
            self.broker.publish("echo", payload)

        self.broker.subscribe("ask", callback)
        other.send(publish("ask", b"hello"))
        self.world.turn()
        other.answer()
        self.assertEqual(other.messages, [(b"echo", b"hello", 0)])

    def test_its_will_is_published_at_a_takeover_but_not_at_disconnect(self):
        other = self.subscriber("other", "will")
        watch.publish("will", "gone")
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

    def test_its_persistent_session_gets_what_was_queued(self):
        first = self.broker.client("me", clean=False)
        first.subscribe("jobs", self.receive, 1)
        first.disconnect()
        self.world.turn(2)
        self.broker.publish("jobs", "one", 1)
        again = self.broker.client("me", clean=False)
        again.hear("jobs", self.receive)
        self.world.turn(2)
        self.assertEqual(self.received, [("jobs", b"one", 1, 0)])

    def test_messages_beyond_its_inbox_wait(self):
        self.broker.subscribe("#", self.receive, 1)
        other = self.world.client("other")
        sent = [b"%d" % n * 300 for n in range(20)]
        for n, payload in enumerate(sent):
            other.send(publish("big", payload, 1, packet_id=n + 1))
        self.world.turn(60)
        self.assertEqual([message[1] for message in self.received], sent)

    def test_an_exception_of_a_callback_ends_the_turn_and_nothing_else(self):
        def fail(*_):
            raise KeyError("of the application")

        self.broker.subscribe("bad", fail, 1)
        self.broker.subscribe("good", self.receive, 1)
        self.broker.publish("bad", "", 1)
        with self.assertRaises(KeyError):
            self.world.turn(2)
        self.broker.publish("good", "", 1)
        self.world.turn(2)
        self.assertEqual(len(self.received), 1)
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_a_memory_error_of_a_callback_ends_the_turn_and_no_client(self):
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

    def test_after_unsubscribe_the_callback_is_not_called(self):
        client = self.broker.client()
        client.subscribe("a", self.receive)
        client.unsubscribe("a")
        self.broker.publish("a", "x")
        self.world.turn(2)
        self.assertEqual(self.received, [])
        self.assertEqual(counts(self.broker)["subscriptions"], 0)

    def test_without_a_free_connection_it_is_refused(self):
        for _ in range(4):
            self.broker.client()
        with self.assertRaises(OSError):
            self.broker.client()

    def test_an_orderly_stop_ends_it(self):
        client = self.broker.client(will=("will", "w", 0, False))
        self.world.loop.close()
        self.assertFalse(client.is_connected)
        self.assertEqual(self.broker.conns.count, 0)


class Hooks:
    def on_connect(self, client_id):
        self.calls.append(("in", client_id))

    def on_disconnect(self, client_id, reason):
        self.calls.append(("out", client_id, reason))

    def on_publish(self, topic, payload):
        self.calls.append((topic, payload))


class Presence:
    """Publishes who is connected."""

    def __init__(self, qos):
        self.qos = qos

    def on_connect(self, client_id):
        topic = "here/" + client_id.decode()
        self.broker.publish(topic, b"yes", self.qos, retain=True)

    def on_disconnect(self, client_id, reason):
        self.broker.publish("here/" + client_id.decode(), b"no", self.qos, retain=True)


class TestHooks(EmbedCase):
    def test_they_are_called_until_they_are_removed(self):
        hooks = Hooks()
        self.start(hooks)
        client = self.world.client("c")
        client.send(publish("t", b"p"))
        self.world.turn(2)
        client.leave()
        self.world.turn(2)
        calls = [each for each in hooks.calls if each[1] != b"auto-00000001"]
        self.assertEqual(calls, [("in", b"c"), ("t", b"p"), ("out", b"c", 9)])
        self.broker.hooks = None
        self.world.client("d")
        self.assertEqual(hooks.calls[-1], ("out", b"c", 9))

    def test_others_get_what_they_publish_at_each_qos(self):
        for qos in (0, 1, 2):
            self.start(Presence(qos))
            witness = self.subscriber("witness", "here/+", qos)
            self.world.client("c").leave()
            self.world.turn(3)
            for _ in range(4):
                witness.answer()
                self.world.turn(2)
            expected = [(b"here/witness", b"yes"), (b"here/c", b"yes"), (b"here/c", b"no")]
            self.assertEqual(witness.messages, [(topic, text, qos) for topic, text in expected])
            self.assertEqual(self.broker.deliveries.count[0], 0)
            self.tearDown()

    def test_what_they_publish_at_connect_does_not_disturb_the_packets_behind_it(self):
        """CONNECT, SUBSCRIBE and PUBLISH in one piece, or in small ones."""
        data = packets.connect("c") + packets.subscribe(1, "#", 1) + publish("t", b"p", 1, 7)
        for size in (1, 3, 1000):
            self.start(Presence(1))
            stream = Stream(read=lambda n, size=size: min(n, size))
            client = self.world.come(data, len(data) + 4, stream)
            client.answer()
            self.world.turn(3)
            expected = [(b"here/c", b"yes", 1), (b"t", b"p", 1)]
            self.assertEqual(sorted(client.messages), expected)
            self.tearDown()
