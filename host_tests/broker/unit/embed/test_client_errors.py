"""What a client of the broker's program may not do, and what others may not do to it."""

import unittest

import packets5
from fakes import Client, Stream, World
from invariants import broken
from packets import connect, publish
from tables import counts

from slotmq import Broker, Limits, Settings

_EACCES, _EMFILE, _ENOTCONN = 13, 24, 107


class Case(unittest.TestCase):
    def start(self, limits=None, **settings):
        limits = limits or Limits(connections=4, max_packet=2048, subscriptions=16)
        self.world = World(Broker(limits, Settings(sys_interval=0, **settings)))
        self.broker = self.world.broker
        self.heard = []

    def setUp(self):
        self.start()

    def tearDown(self):
        self.assertEqual(broken(self.broker), [])

    def hear(self, topic, payload, qos, retained):
        self.heard.append((topic, payload))

    def come(self, data):
        """What is answered to somebody on the network."""
        client = Client(Stream())
        self.world.listener.waiting.append(client.stream)
        client.send(data)
        self.world.turn(3)
        return client

    def raised(self, kind, function, *args, **options):
        """What the exception says."""
        try:
            function(*args, **options)
        except kind as error:
            return error.args
        raise AssertionError("nothing was raised")


class TestTakeover(Case):
    def check_is_deaf_to(self, client_id):
        before = self.broker.connected
        self.assertEqual(self.come(connect(client_id)).packets(), [b"\x20\x02\0\x02"])
        answer = self.come(packets5.connect(client_id)).packets()
        self.assertEqual([each[:4] for each in answer], [b"\x20\x03\0\x85"])
        self.world.turn(2)
        self.world.client("other").send(publish("t", b"still here"))
        self.world.turn(2)
        self.assertEqual(self.heard, [("t", b"still here")])
        self.assertEqual(self.broker.connected, before + 1)

    def test_nobody_on_the_network_takes_the_programs_own_client_over(self):
        self.broker.subscribe("t", self.hear)
        self.check_is_deaf_to("auto-00000001")

    def test_nor_one_that_has_a_name_and_a_will(self):
        client = self.broker.client("logger", clean=False, will=("gone", "x", 0, False))
        client.subscribe("t", self.hear)
        client.subscribe("gone", self.hear)
        self.check_is_deaf_to("logger")

    def test_who_has_left_in_order_may_be_followed(self):
        client = self.broker.client("logger")
        client.disconnect()
        self.assertEqual(self.come(connect("logger")).packets(), [b"\x20\x02\0\0"])

    def test_the_program_takes_over_whoever_has_its_id(self):
        other = self.world.client("logger")
        client = self.broker.client("logger")
        self.world.turn(2)
        self.assertTrue(client.is_connected)
        self.assertTrue(other.stream.closed)

    def test_ids_that_are_made_up_go_on_behind_it(self):
        self.broker.subscribe("t", self.hear)
        self.assertEqual(self.come(connect("")).packets(), [b"\x20\x02\0\0"])
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
    )

    def test_a_bad_subscription_changes_nothing(self):
        before = counts(self.broker)
        for bad in self.BAD:
            self.raised(ValueError, self.broker.subscribe, *bad)
        self.assertEqual(counts(self.broker), before)
        self.assertEqual(getattr(self.broker, "in_process", None), None)

    def test_nor_does_it_cost_the_client_that_is_there(self):
        self.broker.subscribe("t", self.hear, 1)
        for bad in self.BAD:
            self.raised(ValueError, self.broker.subscribe, *bad)
        client = self.broker.client("c")
        client.subscribe("t", self.hear, 1)
        for name in ("", "a#", b"\xff"):
            self.raised(ValueError, client.unsubscribe, name)
            self.raised(ValueError, client.hear, name, self.hear)
        self.broker.publish("t", "x", 1)
        self.world.turn(2)
        self.assertEqual(self.heard, [("t", b"x")] * 2)

    def test_it_says_what_would_do(self):
        told = [self.raised(ValueError, self.broker.subscribe, *bad)[0] for bad in self.BAD]
        self.assertEqual(told[0], "qos: 0, 1 or 2")
        self.assertEqual(told[3], "callback: a function")
        self.assertEqual(told[7], "topic filter: at most 256 bytes in 16 levels")

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
            self.raised(ValueError, self.broker.client, **options)
            self.assertEqual(counts(self.broker), before)

    def test_it_needs_no_id_where_others_do(self):
        self.start(allow_zero_length_clientid=False, allow_anonymous=False, max_keepalive=60)
        self.broker.subscribe("t", self.hear)
        self.assertEqual(self.come(connect("")).packets(), [b"\x20\x02\0\x05"])
        self.assertFalse(self.broker.settings.allow_zero_length_clientid)

    def test_a_will_of_many_bytes_goes_out(self):
        self.broker.subscribe("w", self.hear)
        self.broker.client("c", will=("w", "x" * 1500, 1, False))
        self.broker.client("c")
        self.world.turn(3)
        self.assertEqual(self.heard, [("w", b"x" * 1500)])

    def test_the_same_subscription_twice_calls_back_once(self):
        for _ in range(2):
            self.assertEqual(self.broker.subscribe("t", self.hear, 2), 2)
        self.broker.publish("t", "x")
        self.world.turn(2)
        self.assertEqual(self.heard, [("t", b"x")])

    def test_no_room_and_not_allowed_are_told_apart(self):
        class Hooks:
            def may_subscribe(self, client_id, topic_filter, qos):
                return topic_filter != b"closed"

        self.broker.hooks = Hooks()
        told = self.raised(OSError, self.broker.subscribe, "closed", self.hear)
        self.assertEqual(told[0], _EACCES)
        with self.assertRaises(OSError):
            for n in range(17):
                self.broker.subscribe("t/" + str(n), self.hear)
        told = self.raised(OSError, self.broker.subscribe, "one/more", self.hear)
        self.assertEqual(told, (_EMFILE, "full: limit subscriptions, limit nodes"))


class TestPublish(Case):
    def setUp(self):
        self.start(max_qos=1, retain_available=False, message_size_limit=10)
        self.broker.subscribe("#", self.hear, 1)
        self.client = self.broker.client("c")
        self.world.turn(2)

    def test_what_no_client_may_send_is_refused(self):
        before = counts(self.broker)
        for bad, told in (
            (("t", "", 2), "qos: 0 to 1"),
            (("t", "", 3), "qos: 0 to 1"),
            (("t", "", 0, True), "RETAIN: retain_available is false"),
            (("t", "x" * 11), "payload: at most 10 bytes, message_size_limit"),
            (("$SYS/broker/uptime", "0"), "topic name: $SYS and $share are the broker's"),
            (("a/+", ""), "topic name: 1 to 256 bytes of UTF-8 without wildcards"),
        ):
            for publish_it in (self.broker.publish, self.client.publish):
                self.assertEqual(self.raised(ValueError, publish_it, *bad), (told,))
        self.world.turn(2)
        self.assertEqual(self.heard, [])
        self.assertEqual(counts(self.broker), before)

    def test_the_hook_is_asked_for_a_client_and_not_for_the_broker(self):
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
        self.assertEqual(sorted(self.heard), expected)
        self.assertEqual(asked, [(b"c", b"open"), (b"c", b"closed")] * 2)

    def test_a_client_that_has_left_publishes_nothing(self):
        self.client.disconnect()
        self.assertEqual(self.raised(OSError, self.client.publish, "t", "x"), (_ENOTCONN,))
        self.world.turn(2)
        self.assertEqual(self.heard, [])

    def test_a_full_table_is_told(self):
        limits = Limits(connections=4, messages=4, queued=8, inflight=4)
        self.start(limits, max_session_share=100, max_offline_share=100)
        kept = self.broker.client("kept", clean=False)
        kept.subscribe("t", self.hear, 1)
        kept.disconnect()
        self.world.turn(2)
        taken = [self.broker.publish("t", "x", 1) for _ in range(6)]
        self.assertEqual(taken, [True] * 4 + [False] * 2)
        self.assertEqual(self.broker.messages.refused, 2)
