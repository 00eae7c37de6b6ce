"""What a client of the broker's program may not do, and what others may not do to it."""

import packets5
from embed_case import EmbedCase
from packets import connect, publish
from tables import counts

_EACCES, _EMFILE, _ENOTCONN = 13, 24, 107


class Case(EmbedCase):
    def receive(self, topic, payload, qos, retained):
        self.received.append((topic, payload))

    def answers(self, first):
        """What a new connection from the network gets."""
        return self.world.come(first).packets()

    def arguments(self, kind, function, *args, **options):
        """Those of the exception that is raised."""
        try:
            function(*args, **options)
        except kind as error:
            return error.args
        raise AssertionError("nothing was raised")


class TestTakeover(Case):
    def check_refused(self, client_id):
        """A client from the network with this id is refused; ours goes on."""
        before = self.broker.connected
        self.assertEqual(self.answers(connect(client_id)), [b"\x20\x02\0\x02"])
        answer = self.answers(packets5.connect(client_id))
        self.assertEqual([each[:4] for each in answer], [b"\x20\x03\0\x85"])
        self.world.turn(2)
        self.world.client("other").send(publish("t", b"still here"))
        self.world.turn(2)
        self.assertEqual(self.received, [("t", b"still here")])
        self.assertEqual(self.broker.connected, before + 1)

    def test_the_clients_id_is_refused_to_the_network(self):
        self.broker.subscribe("t", self.receive)
        self.check_refused("auto-00000001")

    def test_a_named_clients_id_is_refused_to_the_network(self):
        client = self.broker.client("logger", clean=False, will=("gone", "x", 0, False))
        client.subscribe("t", self.receive)
        client.subscribe("gone", self.receive)
        self.check_refused("logger")

    def test_after_its_disconnect_the_id_is_accepted(self):
        client = self.broker.client("logger")
        client.disconnect()
        self.assertEqual(self.answers(connect("logger")), [b"\x20\x02\0\0"])

    def test_it_takes_its_id_over_from_the_network(self):
        other = self.world.client("logger")
        client = self.broker.client("logger")
        self.world.turn(2)
        self.assertTrue(client.is_connected)
        self.assertTrue(other.stream.closed)

    def test_assigned_client_ids_differ_from_its_own(self):
        self.broker.subscribe("t", self.receive)
        self.assertEqual(self.answers(connect("")), [b"\x20\x02\0\0"])
        self.assertEqual(self.broker.connected, 2)


class TestArguments(Case):
    BAD = (
        ("t", lambda *_: None, 3),
        ("t", lambda *_: None, -1),
        ("t", lambda *_: None, "1"),
        ("t", None, 0),
        ("", lambda *_: None, 0),
        ("a\0b", lambda *_: None, 0),
        (b"\xff", lambda *_: None, 0),
        ("x" * 300, lambda *_: None, 0),
        ("/".join("x" * 40), lambda *_: None, 0),
        ("a#", lambda *_: None, 0),
        ("a/+b", lambda *_: None, 0),
        ("#/a", lambda *_: None, 0),
    )

    def test_a_bad_subscription_changes_nothing(self):
        before = counts(self.broker)
        logged = [self.arguments(ValueError, self.broker.subscribe, *bad)[0] for bad in self.BAD]
        for at, word in ((0, "qos"), (3, "callback"), (7, "256 bytes in 16 levels")):
            self.assertIn(word, logged[at])
        self.assertEqual(counts(self.broker), before)
        self.assertEqual(getattr(self.broker, "in_process", None), None)

    def test_bad_arguments_leave_the_subscriptions_of_a_client(self):
        self.broker.subscribe("t", self.receive, 1)
        for bad in self.BAD:
            self.arguments(ValueError, self.broker.subscribe, *bad)
        client = self.broker.client("c")
        client.subscribe("t", self.receive, 1)
        for name in ("", "a#", b"\xff"):
            self.arguments(ValueError, client.unsubscribe, name)
            self.arguments(ValueError, client.hear, name, self.receive)
        self.broker.publish("t", "x", 1)
        self.world.turn(2)
        self.assertEqual(self.received, [("t", b"x")] * 2)

    def test_a_bad_client_or_will_changes_nothing(self):
        self.start(max_qos=1, retain_available=False)
        before = counts(self.broker)
        for options in (
            {"client_id": "x" * 500},
            {"client_id": "a\0"},
            {"clean": False},
            {"will": ("w", "x", 2, False)},
            {"will": ("w", "x", 3, False)},
            {"will": ("w", "x", 1, True)},
            {"will": ("w/#", "x", 0, False)},
            {"will": ("", "x", 0, False)},
            {"will": ("$SYS/w", "x", 0, False)},
            {"will": ("w", "x")},
            {"will": ("w", "x" * 2048, 0, False)},
        ):
            self.arguments(ValueError, self.broker.client, **options)
            self.assertEqual(counts(self.broker), before)

    def test_it_needs_no_id_and_no_user_name(self):
        self.start(allow_zero_length_clientid=False, allow_anonymous=False, max_keepalive=60)
        self.broker.subscribe("t", self.receive)
        self.assertEqual(self.answers(connect("")), [b"\x20\x02\0\x05"])
        self.assertFalse(self.broker.settings.allow_zero_length_clientid)

    def test_a_large_will_is_published(self):
        self.broker.subscribe("w", self.receive)
        self.broker.client("c", will=("w", "x" * 1500, 1, False))
        self.broker.client("c")
        self.world.turn(3)
        self.assertEqual(self.received, [("w", b"x" * 1500)])

    def test_the_same_subscription_twice_calls_back_once(self):
        for _ in range(2):
            self.assertEqual(self.broker.subscribe("t", self.receive, 2), 2)
        self.broker.publish("t", "x")
        self.world.turn(2)
        self.assertEqual(self.received, [("t", b"x")])

    def test_a_full_table_and_a_refusal_of_a_hook_have_different_errors(self):
        class Hooks:
            def may_subscribe(self, client_id, topic_filter, qos):
                return topic_filter != b"closed"

        self.broker.hooks = Hooks()
        found = self.arguments(OSError, self.broker.subscribe, "closed", self.receive)
        self.assertEqual(found[0], _EACCES)
        with self.assertRaises(OSError):
            for n in range(17):
                self.broker.subscribe("t/" + str(n), self.receive)
        found = self.arguments(OSError, self.broker.subscribe, "one/more", self.receive)
        self.assertEqual(found, (_EMFILE, "full: limit subscriptions, limit nodes"))


class TestPublish(Case):
    def setUp(self):
        self.start(max_qos=1, retain_available=False, message_size_limit=10)
        self.broker.subscribe("#", self.receive, 1)
        self.client = self.broker.client("c")
        self.world.turn(2)

    def test_a_publish_beyond_the_settings_is_refused(self):
        before = counts(self.broker)
        for bad, found in (
            (("t", "", 2), "qos: 0 to 1"),
            (("t", "", 3), "qos: 0 to 1"),
            (("t", "", 0, True), "RETAIN: retain_available is false"),
            (("t", "x" * 11), "payload: at most 10 bytes, message_size_limit"),
            (("$SYS/broker/uptime", "0"), "topic name: $SYS and $share are the broker's"),
            (("a/+", ""), "topic name: 1 to 256 bytes of UTF-8 without wildcards"),
        ):
            for publish_it in (self.broker.publish, self.client.publish):
                self.assertEqual(self.arguments(ValueError, publish_it, *bad), (found,))
        self.world.turn(2)
        self.assertEqual(self.received, [])
        self.assertEqual(counts(self.broker), before)

    def test_may_publish_is_called_for_clients_only(self):
        asked = []

        class Hooks:
            def may_publish(self, client_id, topic):
                asked.append((client_id, topic))
                return topic != b"closed"

        self.broker.hooks = Hooks()
        for qos in (0, 1):
            self.assertTrue(self.client.publish("open", "1", qos))
            self.assertFalse(self.client.publish("closed", "2", qos))
        self.assertTrue(self.broker.publish("closed", "3"))
        self.world.turn(2)
        expected = [("closed", b"3"), ("open", b"1"), ("open", b"1")]
        self.assertEqual(sorted(self.received), expected)
        self.assertEqual(asked, [(b"c", b"open"), (b"c", b"closed")] * 2)

    def test_after_disconnect_publish_is_an_error(self):
        self.client.disconnect()
        self.assertEqual(self.arguments(OSError, self.client.publish, "t", "x"), (_ENOTCONN,))
        self.world.turn(2)
        self.assertEqual(self.received, [])

    def test_publish_returns_false_if_the_table_is_full(self):
        limits = {"connections": 4, "messages": 4, "queued": 8, "inflight": 4}
        self.start(None, limits, max_session_share=100, max_offline_share=100)
        kept = self.broker.client("kept", clean=False)
        kept.subscribe("t", self.receive, 1)
        kept.disconnect()
        self.world.turn(2)
        taken = [self.broker.publish("t", "x", 1) for _ in range(6)]
        self.assertEqual(taken, [True] * 4 + [False] * 2)
        self.assertEqual(self.broker.messages.refused, 2)
