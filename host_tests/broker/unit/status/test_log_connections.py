"""The log entries of accepted, refused and ended connections, and of bytes that are not MQTT."""

import unittest

import packets5
from fakes import Client, Stream, World
from packets import DISCONNECT, PINGREQ, connect, packet, publish, section, subscribe, text

from slotmq import Broker, Limits, Settings

NOTICE, EACH = 4, 127
ADDRESS = "192.0.2.7:50123"  # PEER
CURL = b"GET / HTTP/1.1\r\nHost: localhost:1883\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n"
WILL = ("$share/g/t", "x", 0, b"")
EVIL = "a\nError: made up\x1b[31m"


def login(client_id, user, password=b"", level=4):
    """CONNECT with a user name and a password."""
    name = text("MQTT" if level > 3 else "MQIsdp")
    properties = b"\0" if level == 5 else b""
    head = name + bytes((level, 0xC2)) + b"\0\x3c" + properties
    return packet(0x10, head + text(client_id) + text(user) + text(password))


def auth(code):
    properties = b"\x15" + text("M") + b"\x16" + text("no")
    return packet(0xF0, bytes((code,)) + section(properties))


class Hook:
    """Whoever knocks gets this code."""

    def __init__(self, code):
        self.code = code

    def may_connect(self, client_id, user_name, password):
        return self.code


class LogCase(unittest.TestCase):
    def setUp(self):
        self.start()

    def start(self, mask=NOTICE, hooks=None, limits=None, **values):
        limits = limits or Limits(connections=4)
        self.broker = Broker(limits, Settings(sys_interval=0, **values))
        self.broker.hooks = hooks
        self.world = World(self.broker)
        self.lines = []
        self.broker.log = lambda bit, line: self.lines.append(line)
        self.broker.log_mask = mask

    def come(self, said):
        client = Client(Stream())
        client.send(said)
        self.world.listener.waiting.append(client.stream)
        self.world.turn(3)
        return client

    def last(self, said):
        self.come(said)
        return self.lines[-1]


class TestAccepted(LogCase):
    def test_where_from_and_with_which_name(self):
        self.assertEqual(
            self.last(connect("a", keep_alive=60)),
            f"New client connected from {ADDRESS} as 'a' (p4, c1, k60).",
        )
        self.assertEqual(
            self.last(login("b", "user")),
            f"New client connected from {ADDRESS} as 'b' (p4, c1, k60, u'user').",
        )
        self.assertEqual(
            self.last(packets5.connect("c")),
            f"New client connected from {ADDRESS} as 'c' (p5, c1, k0).",
        )

    def test_an_address_of_ipv6(self):
        self.broker.conns.source = Always(("2001:db8::7", 1883, 0, 0))
        self.assertIn("from [2001:db8::7]:1883 as", self.last(connect("a")))

    def test_of_a_long_user_name_no_more_is_kept_than_a_line_needs(self):
        client = self.come(login("b", "\u00e4" * 100))
        self.assertEqual(self.broker.conns.source[0][1], "\u00e4" * 32)
        client.leave()
        self.world.turn(2)
        self.assertIsNone(self.broker.conns.source[0])


class Always:
    """A column that has one value only."""

    def __init__(self, value):
        self.value = value

    def __getitem__(self, at):
        return self.value

    def __setitem__(self, at, value):
        pass


class TestRefused(LogCase):
    def test_a_return_code_in_words(self):
        words = "bad user name or password (return code 4)"
        self.start(hooks=Hook(4))
        self.assertEqual(
            self.last(login("b", "user", "secret")),
            f"Client 'b' [{ADDRESS}, p4, u'user'] refused: {words}.",
        )
        self.assertEqual(
            self.last(login("b", "user", "secret", 3)),
            f"Client 'b' [{ADDRESS}, p3, u'user'] refused: {words}.",
        )
        self.start(allow_anonymous=False)
        self.assertEqual(
            self.last(connect("b")),
            f"Client 'b' [{ADDRESS}, p4] refused: not authorized (return code 5).",
        )

    def test_a_reason_of_version_5(self):
        self.start(hooks=Hook(0x8A))
        self.assertEqual(
            self.last(login("b", "user", "secret", 5)),
            f"Client 'b' [{ADDRESS}, p5, u'user'] refused: banned (reason 0x8a).",
        )

    def test_an_unknown_version(self):
        self.assertEqual(
            self.last(login("b", "user", "secret", 9)),
            f"A client [{ADDRESS}, p9] refused: unsupported protocol version (return code 1).",
        )
        self.start(mqtt_versions=3)
        self.assertEqual(
            self.last(login("b", "user", "secret", 5)),
            f"A client [{ADDRESS}, p5] refused: unsupported protocol version (return code 1).",
        )

    def test_without_an_id(self):
        self.start(allow_zero_length_clientid=False)
        why = "refused: client identifier not valid"
        told = f"Client without an id [{ADDRESS}, p4] {why} (return code 2)."
        self.assertEqual(self.last(connect("")), told)
        told = f"Client without an id [{ADDRESS}, p5] {why} (reason 0x85)."
        self.assertEqual(self.last(packets5.connect("")), told)

    def test_a_connect_that_was_not_read_to_its_id(self):
        said = packets5.connect("b", properties=b"\x21\0\0")  # Receive Maximum 0
        told = f"A client [{ADDRESS}, p5] refused: protocol error (reason 0x82)."
        self.assertEqual(self.last(said), told)

    def test_a_keep_alive_over_max_keepalive(self):
        self.start(max_keepalive=100)
        told = f"Client 'b' [{ADDRESS}, p4] refused: keep-alive of %s, longer than max_keepalive"
        for keep_alive, words in ((200, "200 s"), (0, "0 (none)")):
            line = self.last(connect("b", keep_alive=keep_alive))
            self.assertEqual(line, told % words + " (return code 2).")
        self.start(max_keepalive=100, limits=Limits(connections=4, client_id_bytes=23))
        line = self.last(connect("b" * 24, keep_alive=100))
        self.assertTrue(line.endswith("refused: client identifier not valid (return code 2)."))

    def test_the_code_that_was_sent(self):
        """Of version 5 a reason, whatever the hook said; of version 3 a return code."""
        codes = ((1, 0x84), (2, 0x85), (3, 0x88), (4, 0x86), (5, 0x87), (0x8A, 0x8A))
        for code, reason in codes:
            self.start(hooks=Hook(code))
            client = self.come(packets5.connect("b"))
            self.assertEqual(client.stream.received[3], reason)
            self.assertIn(f" (reason {reason:#x}).", self.lines[-1])
            client = self.come(connect("b"))
            self.assertEqual(client.stream.received[3], min(code, 5))
            self.assertIn(f" (return code {min(code, 5)}).", self.lines[-1])
        self.start(hooks=Hook(3), server_reference="other")
        told = "use another server (reason 0x9c)."
        self.assertTrue(self.last(packets5.connect("b")).endswith(told))

    def test_an_unknown_reason(self):
        self.start(hooks=Hook(0xF0))
        self.assertTrue(
            self.last(packets5.connect("b")).endswith(": an unknown reason (reason 0xf0).")
        )

    def test_each_once(self):
        self.start(hooks=Hook(5))
        for said in (connect("b"), packets5.connect("b")):
            self.lines = []
            self.come(said).leave()
            self.world.turn(20, 100)
            self.assertEqual(len(self.lines), 1)

    def test_a_connect_that_is_too_large(self):
        self.start(max_packet_size=100)
        told = f"A client [{ADDRESS}, p5] refused: packet too large (reason 0x95)."
        self.assertEqual(self.last(login("b", "user", "p" * 100, 5)), told)
        told = f"Connection from {ADDRESS} closed: packet too large."
        self.assertEqual(self.last(login("b", "user", "p" * 100)), told)

    def too_little(self, what, last=None, code="server unavailable (return code 3)"):
        told = self.last(last or connect("z"))
        self.assertTrue(told.endswith(f"] refused: {code}, too little: {what}."), told)

    def test_what_was_too_little(self):
        for n in range(4):
            self.come(connect(str(n)))
        self.too_little("connections")
        unavailable = "server unavailable (reason 0x88)"
        self.too_little("connections", packets5.connect("z"), unavailable)
        self.start(when_full={"sessions": "refuse"}, limits=Limits(connections=3, sessions=4))
        for n in range(4):
            self.come(connect(str(n), clean=False) + DISCONNECT)
        self.too_little("sessions")
        self.too_little("sessions", connect("z", clean=False))
        self.start(limits=Limits(connections=3, sessions=4))
        for n in range(4):  # each holds the id of a message of QoS 2
            self.come(connect(str(n), clean=False) + publish("t", b"", 2, 1) + DISCONNECT)
        self.too_little("persistent sessions", connect("z", clean=False))
        stays = packets5.connect("z", expiry=9)
        self.too_little("persistent sessions", stays, "quota exceeded (reason 0x97)")
        self.start(limits=Limits(connections=2, topic_bytes=64))
        will = ("t" * 65, "gone", 1)
        self.too_little("messages or topic_bytes for the will", connect("z", will=will))
        self.broker.journal_full = True
        self.too_little("space in the journal", connect("z", will=("t", "gone", 1)))

    def test_no_heap(self):
        self.broker.settings.allow_anonymous = False
        broker = self.broker

        class Full:
            def may_connect(self, client_id, user_name, password):
                broker.hooks = None
                raise MemoryError

        broker.hooks = Full()
        self.too_little("heap")
        broker.hooks = Full()
        self.too_little("heap", packets5.connect("z"), "quota exceeded (reason 0x97)")

    def test_in_an_exchange_of_auth(self):
        """Who it was its CONNECT has said; the name, what answers AUTH."""
        begin = packets5.connect("b", properties=b"\x15" + text("M"))
        self.start(hooks=Challenge())
        client = self.come(begin)
        self.assertEqual(self.lines, [])
        client.send(auth(0x18))
        self.world.turn(3)
        told = f"Client 'b' [{ADDRESS}, p5, u'user'] refused: "
        self.assertEqual(self.lines, [told + "not authorized (reason 0x87)."])
        self.start(hooks=Challenge())
        self.come(begin + begin)
        self.assertEqual(self.lines, [told + "protocol error (reason 0x82)."])


class Challenge:
    """Asks for an answer, and takes none."""

    last = b"user"

    def auth(self, conn, method, data):
        return (0x87 if data else 0x18), None

    def forget(self, conn):
        pass


class TestEnded(LogCase):
    def test_why_a_client_goes(self):
        tests = (
            (DISCONNECT, "left"),
            (b"\xf0\0", "protocol error"),
            (subscribe(0, "a", 0), "malformed packet"),
        )
        for said, why in tests:
            with self.subTest(why=why):
                self.assertEqual(
                    self.last(login("b", "user") + said),
                    f"Client 'b' [{ADDRESS}, p4, u'user'] disconnected: {why}.",
                )

    def test_which_time_was_over(self):
        self.start(limits=Limits(connections=4, reassembly=1))
        silent = self.come(connect("a", keep_alive=2))
        self.world.turn(40, 100)
        told = "disconnected: timed out (%s)."
        self.assertTrue(self.lines[-1].endswith(told % "keep-alive"))
        self.assertTrue(silent.stream.closed)
        half = self.come(connect("b"))
        half.send(publish("t", bytes(1000), 1, 1)[:500])
        self.world.turn(120, 100)
        self.assertTrue(self.lines[-1].endswith(told % "packet_timeout"))
        for n in range(2):
            half = self.come(connect("b" * n + "c"))
            half.send(publish("t", bytes(1000), 1, 1)[:500])
            self.world.turn(10, 100)
        self.world.turn(20, 100)
        told = told % "too slow, another waits for its buffer"
        self.assertTrue(self.lines[-1].endswith(told), self.lines)
        self.assertTrue(self.lines[-1].startswith("Client 'c' "))

    def test_of_a_socket_that_fails_while_it_is_told_why(self):
        """Version 5 is told why, which flushes a buffer that is full: it ends once."""
        client = self.come(packets5.connect("b"))
        conns = self.broker.conns
        conns.reserve(0, conns.tx_bytes - 2)

        def fails(n):
            raise OSError(104)

        client.stream.write_some = fails
        self.broker.end(0, 7)  # in the turn in which its buffer was filled
        self.world.turn(20, 100)
        self.assertTrue(client.stream.closed)
        told = [line for line in self.lines if "disconnected" in line]
        self.assertEqual(len(told), 1, told)
        self.assertEqual((conns.count, self.broker.connected), (0, 0))

    def test_it_ends_also_where_the_log_raises(self):
        client = self.come(connect("b"))

        def fails(bit, line):
            raise ValueError

        self.broker.log = fails
        client.send(DISCONNECT)
        with self.assertRaises(ValueError):
            self.world.turn()
        self.assertEqual((self.broker.conns.state[0], self.broker.ending_count), (3, 1))
        self.world.turn(2)
        self.assertTrue(client.stream.closed)

    def test_a_client_that_is_lost_or_taken_over(self):
        first = self.come(connect("b"))
        self.come(connect("b"))
        self.assertEqual(
            self.lines[1],
            f"Client 'b' [{ADDRESS}, p4] disconnected: taken over by the same client id.",
        )
        self.assertTrue(first.stream.closed)

    def test_a_reason_of_version_5(self):
        client = self.come(packets5.connect("b"))
        client.send(auth(0x19))
        self.world.turn(3)
        self.assertEqual(
            self.lines[-1],
            f"Client 'b' [{ADDRESS}, p5] disconnected: protocol error (reason 0x82).",
        )
        self.world.turn(20, 100)  # it lingered
        self.assertEqual(len(self.lines), 2)


class TestTopic(LogCase):
    """One that is longer than topic_bytes."""

    def test_it_is_told(self):
        why = ", its topic is longer than topic_bytes."
        self.start(limits=Limits(connections=4, topic_bytes=64))
        told = f"Client 'b' [{ADDRESS}, p4] disconnected: malformed packet"
        self.assertEqual(self.last(connect("b") + publish("t" * 65, b"")), told + why)
        self.assertIn("from", self.last(connect("b") + publish("t" * 64, b"")))
        self.assertEqual(self.last(connect("b") + publish("+", b"")), told + ".")
        told = f"Client 'b' [{ADDRESS}, p5] disconnected: topic name invalid (reason 0x90)"
        long = packets5.publish("t" * 65, b"")
        self.assertEqual(self.last(packets5.connect("b") + long), told + why)

    def test_not_of_another_that_ends_half_way(self):
        self.start(limits=Limits(connections=4, topic_bytes=64))
        self.come(connect("b") + publish("t" * 65, b""))
        told = f"Client 'c' [{ADDRESS}, p4] disconnected: malformed packet."
        self.assertEqual(self.last(connect("c") + b"\x36\x10\0\x04t"), told)


class TestDeniedFilters(LogCase):
    def denied(self, level, what, why, code):
        code = code if level == 5 else 0x80
        line = f"Denied SUBSCRIBE from 'b' to {what!r}: {why} ({code:#04x})."
        self.assertEqual([line for line in self.lines if line.startswith("Denied")], [line])

    def come_for(self, level, *names):
        said = packets5.connect("b") if level == 5 else connect("b")
        ask = packets5.subscribe if level == 5 else subscribe
        return self.come(said + b"".join([ask(1, name, 0) for name in names]))

    def test_where_there_is_no_room(self):
        for level in (4, 5):
            self.start(limits=Limits(connections=4, subscriptions=1))
            self.come_for(level, "a", "evil\n/#")
            why = "too little: subscriptions, nodes, node_bytes"
            self.denied(level, "evil\n/#", why, 0x97)
            self.lines.clear()
            self.broker.journal_full = True
            self.come_for(level, "a", "b")
            self.denied(level, "b", why + ", the journal's space", 0x97)

    def test_where_it_is_too_long(self):
        why = "topic filter invalid, too long or too deep: topic_bytes, levels"
        for level in (4, 5):
            self.start(limits=Limits(connections=4, topic_bytes=64))
            self.come_for(level, "x" * 64, "x" * 65)
            self.denied(level, "x" * 65, why, 0x8F)

    def test_where_a_hook_forbids_it(self):
        class Hooks:
            def may_subscribe(self, client_id, topic_filter, qos):
                return topic_filter != b"b"

        for level in (4, 5):
            self.start(hooks=Hooks())
            self.come_for(level, "a", "b", "c")
            self.denied(level, "b", "not authorized", 0x87)

    def test_a_shared_one(self):
        self.start(limits=Limits(connections=4, shares=0))
        self.come_for(5, "$share/g/a")
        self.denied(5, "$share/g/a", "shared subscriptions not supported", 0x9E)
        self.start(limits=Limits(connections=4, shares=1))
        self.come_for(5, "$share/g/a", "$share/h/a")
        why = "too little: subscriptions, nodes, node_bytes, shares"
        self.denied(5, "$share/h/a", why, 0x97)

    def test_not_where_the_log_has_no_notices(self):
        self.start(mask=2, limits=Limits(connections=4, subscriptions=1))
        self.come_for(4, "a", "b")
        self.assertEqual(self.lines, [])


class TestDenied(LogCase):
    def test_a_publish_to_a_topic_of_the_brokers_own(self):
        """Which is acknowledged: once a minute, whoever it was."""
        client = self.come(connect("b"))
        for acks in (5, 4):  # the first with CONNACK
            self.lines = []
            for topic in ("$share/g/t", "$SYS/x", "$SLOTMQ/x", "$share/g/t"):
                client.send(publish(topic, b"x", 1, 1))
                self.world.turn(2)
            self.assertEqual(self.lines, ["Denied PUBLISH from 'b' to '$share/g/t'."])
            self.assertEqual(len(client.packets()), acks)
            self.world.turn(601, 100)
        client.send(publish("$SLOTMQ/time", b"x") + publish("$free", b"x"))
        self.world.turn(2)
        self.assertEqual(len(self.lines), 1)

    def test_a_will(self):
        for said in (connect("b", will=("$share/g/t", "x", 0)), packets5.connect("b", will=WILL)):
            self.lines = []
            self.come(said)
            self.assertEqual(self.lines[0], "Denied the will from 'b' to '$share/g/t'.")
            self.assertIn("New client connected", self.lines[-1])


class TestNoMqtt(LogCase):
    def closed(self, why):
        self.assertEqual(self.lines, [f"Connection from {ADDRESS} closed: {why}."])
        self.lines = []

    def test_a_request_of_http_in_one_line(self):
        self.come(CURL)
        self.closed("malformed packet, no CONNECT but b'GET / HTTP/1.1'")

    def test_in_pieces(self):
        client = self.come(CURL[:1])
        for at in range(1, len(CURL)):
            client.send(CURL[at : at + 1])
            self.world.turn()
        self.world.turn(2)
        self.closed("protocol error, no CONNECT but b'G'")

    def test_half_a_packet(self):
        self.come(b"\x32\x10half of it")
        self.closed("protocol error, no CONNECT but b'2\\x10half of it'")

    def test_tls(self):
        self.come(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        self.closed("TLS, and this port speaks MQTT without it")

    def test_another_packet(self):
        self.come(PINGREQ)
        self.closed("protocol error, no CONNECT but b'\\xc0\\x00'")

    def test_nothing(self):
        self.come(PINGREQ)  # whose bytes are nobody else's
        self.lines = []
        self.come(b"").leave()
        self.world.turn(2)
        self.closed("lost")

    def test_of_a_connect_no_password_is_shown(self):
        for first in (b"\x10", b"\x1f"):  # MQTT 3.1 leaves the flags undefined
            self.come(first + login("b", "user", "secret")[1:-1])
            self.world.turn(120, 100)
            self.closed("timed out (connect_timeout)")


class TestEscaped(LogCase):
    def test_ids_names_and_filters(self):
        self.start(mask=EACH)
        self.come(login(EVIL, EVIL) + subscribe(1, "x\ny\x9b", 0) + DISCONNECT)
        self.start(EACH, Hook(5))
        self.come(login(EVIL, EVIL))
        self.assertTrue(self.lines)
        for line in self.lines:
            self.assertNotIn("\n", line)
            self.assertNotIn("\x1b", line)
            self.assertNotIn("\x9b", line)

    def test_the_tree(self):
        from slotmq.tables import tree_text

        self.come(connect(EVIL) + subscribe(1, EVIL, 0))
        lines = list(tree_text.lines(self.broker.subscriptions, self.broker.sessions))
        escaped = "a\\nError: made up\\x1b[31m"
        self.assertEqual(lines, ["$SYS", f"{escaped} ({escaped}:0)"])
