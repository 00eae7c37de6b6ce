"""The log entries of accepted, refused and ended connections, and of bytes that are not MQTT."""

import unittest

import packets
import packets5
from fakes import World
from packets import DISCONNECT, PINGREQ, connect, packet, publish, section, subscribe, text
from web_client import PING, Web, frame

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
    """Returns this code from may_connect."""

    def __init__(self, code):
        self.code = code

    def may_connect(self, client_id, user_name, password):
        return self.code


PASSWORD, VERSION = "bad user name or password", "unsupported protocol version"
ANONYMOUS = {"allow_anonymous": False}
EMPTY, NO_ID = {"allow_zero_length_clientid": False}, "client identifier not valid"
# The code of a hook or settings, the CONNECT, who is refused, and why.
REFUSALS = (
    (4, login("b", "user"), "Client 'b' [p4, u'user']", f"{PASSWORD} (return code 4)"),
    (4, login("b", "user", level=3), "Client 'b' [p3, u'user']", f"{PASSWORD} (return code 4)"),
    (0x8A, login("b", "user", level=5), "Client 'b' [p5, u'user']", "banned (reason 0x8a)"),
    (0xF0, packets5.connect("b"), "Client 'b' [p5]", "an unknown reason (reason 0xf0)"),
    (
        {"allow_anonymous": False},
        connect("b"),
        "Client 'b' [p4]",
        "not authorized (return code 5)",
    ),
    ({}, login("b", "user", level=9), "A client [p9]", f"{VERSION} (return code 1)"),
    ({"mqtt_versions": 3}, packets5.connect("b"), "A client [p5]", f"{VERSION} (return code 1)"),
    (EMPTY, connect(""), "Client without an id [p4]", f"{NO_ID} (return code 2)"),
    (EMPTY, packets5.connect(""), "Client without an id [p5]", f"{NO_ID} (reason 0x85)"),
    # Receive Maximum 0: CONNECT was not read to its id.
    ({}, packets5.connect("b", b"\x21\0\0"), "A client [p5]", "protocol error (reason 0x82)"),
)


class LogCase(unittest.TestCase):
    def setUp(self):
        self.start()

    def start(self, mask=NOTICE, hooks=None, limits=None, odd=False, **values):
        """odd: with allow_control_characters, else such texts are malformed."""
        settings = Settings(sys_interval=0, **values)
        settings.allow_control_characters = odd
        self.broker = Broker(limits or Limits(connections=4), settings)
        self.broker.hooks = hooks
        self.world = World(self.broker)
        self.lines = []
        self.broker.log = lambda bit, line: self.lines.append(line)
        self.broker.log_mask = mask

    def come(self, first):
        return self.world.come(first)

    def last(self, first):
        """The last log entry after a new connection has sent this."""
        self.come(first)
        return self.lines[-1]


class TestAccepted(LogCase):
    def test_it_has_address_id_version_keep_alive_and_user_name(self):
        for first, who in (
            (connect("a", keep_alive=60), "'a' (p4, c1, k60)"),
            (login("b", "user"), "'b' (p4, c1, k60, u'user')"),
            (packets5.connect("c"), "'c' (p5, c1, k0)"),
        ):
            self.assertEqual(self.last(first), f"New client connected from {ADDRESS} as {who}.")

    def test_an_ipv6_address_is_in_brackets(self):
        self.broker.conns.source = Always(("2001:db8::7", 1883, 0, 0))
        self.assertIn("from [2001:db8::7]:1883 as", self.last(connect("a")))

    def test_a_long_user_name_is_cut_and_freed_at_the_end(self):
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
    def test_each_has_the_client_its_version_and_the_code(self):
        for cause, first, who, why in REFUSALS:
            with self.subTest(who=who, why=why):
                if isinstance(cause, dict):
                    self.start(**cause)
                else:
                    self.start(hooks=Hook(cause))
                who = who.replace("[", f"[{ADDRESS}, ")
                self.assertEqual(self.last(first), f"{who} refused: {why}.")

    def test_a_keep_alive_over_max_keepalive(self):
        self.start(max_keepalive=100)
        for keep_alive in (200, 0):
            line = self.last(connect("b", keep_alive=keep_alive))
            why = f"{NO_ID} (return code 2), keep-alive {keep_alive} s, max_keepalive 100"
            self.assertEqual(line, f"Client 'b' [{ADDRESS}, p4] refused: {why}.")
        self.start(max_keepalive=100, limits=Limits(connections=4, client_id_bytes=23))
        line = self.last(connect("b" * 24, keep_alive=100))
        self.assertTrue(line.endswith(f"refused: {NO_ID} (return code 2)."), line)

    def test_each_refusal_is_logged_once(self):
        self.start(hooks=Hook(5))
        for first in (connect("b"), packets5.connect("b")):
            self.lines = []
            self.come(first).leave()
            self.world.turn(20, 100)
            self.assertEqual(len(self.lines), 1)

    def test_a_connect_that_is_too_large(self):
        self.start(max_packet_size=100)
        expected = f"A client [{ADDRESS}, p5] refused: packet too large (reason 0x95)"
        expected += ", 124 bytes, max_packet_size 100."
        self.assertEqual(self.last(login("b", "user", "p" * 100, 5)), expected)
        expected = (
            f"Connection from {ADDRESS} closed: packet too large, 123 bytes, max_packet_size 100."
        )
        self.assertEqual(self.last(login("b", "user", "p" * 100)), expected)

    def too_little(self, what, last=None, code="server unavailable (return code 3)"):
        expected = self.last(last or connect("z"))
        self.assertTrue(expected.endswith(f"] refused: {code}, too little: {what}."), expected)

    def test_the_exhausted_table_is_named(self):
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
        self.too_little("topic_bytes for the will", connect("z", will=will))
        self.broker.journal_full = True
        self.too_little("space in the journal", connect("z", will=("t", "gone", 1)))

    def test_a_memory_error_is_reported_as_heap(self):
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

    def test_during_an_authentication(self):
        """The id is that of the CONNECT, the user name that of the authentication."""
        begin = packets5.connect("b", properties=b"\x15" + text("M"))
        self.start(hooks=Challenge())
        client = self.come(begin)
        self.assertEqual(self.lines, [])
        client.send(auth(0x18))
        self.world.turn(3)
        expected = f"Client 'b' [{ADDRESS}, p5, u'user'] refused: "
        self.assertEqual(self.lines, [expected + "not authorized (reason 0x87)."])
        self.start(hooks=Challenge())
        self.come(begin + begin)
        self.assertEqual(self.lines, [expected + "protocol error (reason 0x82)."])


class Challenge:
    """Sends a challenge, and refuses each answer."""

    last = b"user"

    def auth(self, conn, method, data):
        return (0x87 if data else 0x18), None

    def forget(self, conn):
        pass


class TestEnded(LogCase):
    def test_each_has_the_reason(self):
        for first, who, why in (
            (login("b", "user") + DISCONNECT, "p4, u'user'", "left"),
            (login("b", "user") + b"\xf0\0", "p4, u'user'", "protocol error"),
            (connect("b") + subscribe(0, "a", 0), "p4", "malformed packet"),
            (packets5.connect("b") + auth(0x19), "p5", "protocol error (reason 0x82)"),
        ):
            with self.subTest(why=why):
                self.start()
                expected = f"Client 'b' [{ADDRESS}, {who}] disconnected: {why}."
                self.assertEqual(self.last(first), expected)
                self.world.turn(20, 100)  # perhaps it lingers
                self.assertEqual(len(self.lines), 2)

    def test_the_timeout_is_named(self):
        self.start(limits=Limits(connections=4, reassembly=1))
        silent = self.come(connect("a", keep_alive=2))
        self.world.turn(40, 100)
        expected = "disconnected: timed out (%s)."
        self.assertTrue(self.lines[-1].endswith(expected % "keep-alive"))
        self.assertTrue(silent.stream.closed)
        half = self.come(connect("b"))
        half.send(publish("t", bytes(1000), 1, 1)[:500])
        self.world.turn(120, 100)
        self.assertTrue(self.lines[-1].endswith(expected % "packet_timeout"))
        for n in range(2):
            half = self.come(connect("b" * n + "c"))
            half.send(publish("t", bytes(1000), 1, 1)[:500])
            self.world.turn(10, 100)
        self.world.turn(20, 100)
        expected = expected % "too slow, another waits for its buffer"
        self.assertTrue(self.lines[-1].endswith(expected), self.lines)
        self.assertTrue(self.lines[-1].startswith("Client 'c' "))

    def test_a_socket_that_fails_at_disconnect_ends_once(self):
        """DISCONNECT flushes a buffer that is full; the error of that ends the connection once."""
        client = self.come(packets5.connect("b"))
        conns = self.broker.conns
        conns.reserve(0, conns.tx_bytes - 2)

        def fails(n):
            raise OSError(104)

        client.stream.write_some = fails
        self.broker.end(0, 7)  # in the turn in which its buffer was filled
        self.world.turn(20, 100)
        self.assertTrue(client.stream.closed)
        expected = [line for line in self.lines if "disconnected" in line]
        self.assertEqual(len(expected), 1, expected)
        self.assertEqual((conns.count, self.broker.connected), (0, 0))

    def test_an_exception_of_the_log_does_not_keep_the_connection(self):
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

    def test_a_takeover(self):
        first = self.come(connect("b"))
        self.come(connect("b"))
        self.assertEqual(
            self.lines[1],
            f"Client 'b' [{ADDRESS}, p4] disconnected: taken over by the same client id.",
        )
        self.assertTrue(first.stream.closed)

    def test_a_will_is_named_if_there_is_one(self):
        for will in (("gone", "x", 0, b""), None):
            for code in (4, 0):
                with self.subTest(will=will, code=code):
                    leave = b"\xe0\x01" + bytes((code,))
                    line = self.last(packets5.connect("a", will=will) + leave)
                    why = "left with its will" if will and code else "left"
                    self.assertIn(f"] disconnected: {why}.", line)


class TestPacketTooLarge(LogCase):
    def test_size_topic_and_key_are_named(self):
        limits = Limits(connections=4, max_packet=500, message_bytes=4096)
        large, cut = publish("home/light", bytes(600)), ", 615 bytes to b'home/light', "
        for values, key in (
            ({}, "limit max_packet 500"),
            ({"max_packet_size": 99}, "max_packet_size 99"),
        ):
            self.start(limits=limits, **values)
            for first in (connect("b"), packets5.connect("b")):
                line = self.last(first + large)
                self.assertTrue(line.endswith(": packet too large" + cut + key + "."), line)
        self.assertIn("packet too large, 615 bytes, ", self.last(connect("b") + large[:3]))


class TestEach(LogCase):
    """With debug lines: each PUBLISH that comes and goes, with its topic."""

    def start(self, **values):
        super().start(EACH, **values)

    def published(self):
        found = [line for line in self.lines if "PUBLISH" in line]
        self.lines.clear()
        return found

    def test_a_publish_is_shown_as_it_comes_and_as_it_goes(self):
        for kind in (packets, packets5):
            self.start()
            reader = self.come(kind.connect("r") + kind.subscribe(1, "t/#", 1))
            more = 0 if kind is packets else 1
            self.come(
                kind.connect("w") + kind.publish("t/a", b"xyz") + kind.publish("t/b", b"", 1, 9)
            )
            self.world.turn(3)
            self.assertEqual(
                self.published(),
                [
                    f"Received PUBLISH from 'w' (d0, q0, r0, 't/a', {10 + more} bytes)",
                    f"Received PUBLISH from 'w' (d0, q1, r0, 't/b', {9 + more} bytes)",
                    f"Sending PUBLISH to 'r' (d0, q0, r0, 't/a', {10 + more} bytes)",
                    f"Sending PUBLISH to 'r' (d0, q1, r0, 't/b', {9 + more} bytes)",
                ],
            )
            reader.packets()

    def test_large_ones_in_pieces_to_a_slow_reader(self):
        sizes = (10, 3000, 20, 700, 900, 5000, 1)
        for most in (7, 300, 9999):
            self.start(limits=Limits(connections=4, max_packet=8192, message_bytes=65536))
            reader = self.come(connect("r") + subscribe(1, "t", 1))
            reader.answer()
            reader.stream.write_some = lambda n, most=most: min(n, most)
            writer = self.come(connect("w"))
            for n, size in enumerate(sizes):
                writer.send(publish("t", bytes(size), n % 2, n + 1))
            for _ in range(1800):
                self.world.turn()
                reader.answer()
            found = [line for line in self.published() if line.startswith("Sending")]
            self.assertEqual(len(found), len(reader.messages))
            self.assertGreater(len(found), 4)

    def test_over_websocket(self):
        web = Web()
        lines = []
        web.broker.log = lambda bit, line: lines.append(line)
        web.broker.log_mask = EACH
        reader = web.client(frame(connect("r") + subscribe(1, "t", 0)))
        writer = web.world.client("w")
        for n in range(5):
            web.send(reader, frame(b"x", PING))
            writer.send(publish("t", bytes(60 * n)))
            web.world.turn(3)
        found = [line for line in lines if line.startswith("Sending")]
        sizes = [5, 65, 125, 186, 246]
        wanted = [f"Sending PUBLISH to 'r' (d0, q0, r0, 't', {size} bytes)" for size in sizes]
        self.assertEqual(found, wanted)

    def test_a_topic_that_is_no_utf8_is_shown_as_bytes(self):
        self.come(connect("w") + b"\x30\4\0\2\xff\xfe")
        self.assertIn("Received PUBLISH from 'w' (d0, q0, r0, b'\\xff\\xfe', 6 bytes)", self.lines)


class TestTopic(LogCase):
    """A topic longer than topic_bytes."""

    def test_it_is_the_reported_reason(self):
        why = ", its topic is longer than topic_bytes."
        self.start(limits=Limits(connections=4, topic_bytes=64))
        expected = f"Client 'b' [{ADDRESS}, p4] disconnected: malformed packet"
        self.assertEqual(self.last(connect("b") + publish("t" * 65, b"")), expected + why)
        self.assertIn("from", self.last(connect("b") + publish("t" * 64, b"")))
        self.assertEqual(self.last(connect("b") + publish("+", b"")), expected + ".")
        expected = f"Client 'b' [{ADDRESS}, p5] disconnected: topic name invalid (reason 0x90)"
        long = packets5.publish("t" * 65, b"")
        self.assertEqual(self.last(packets5.connect("b") + long), expected + why)

    def test_the_next_malformed_packet_has_another_reason(self):
        self.start(limits=Limits(connections=4, topic_bytes=64))
        self.come(connect("b") + publish("t" * 65, b""))
        expected = f"Client 'c' [{ADDRESS}, p4] disconnected: malformed packet."
        self.assertEqual(self.last(connect("c") + b"\x36\x10\0\x04t"), expected)


class MaySubscribe:
    def may_subscribe(self, client_id, topic_filter, qos):
        return topic_filter != b"forbidden"


FULL = "too little: subscriptions, nodes, name_bytes"
INVALID = "topic filter invalid, too long or too deep: topic_bytes, levels"
# Limits, is the journal full, filters (the last is denied), why, the code of version 5.
DENIALS = (
    ({"subscriptions": 1}, False, ("a", "evil\n/#"), FULL, 0x97),
    ({"subscriptions": 1}, True, ("a", "b"), f"{FULL}, the journal's space", 0x97),
    ({"topic_bytes": 64}, False, ("x" * 64, "x" * 65), INVALID, 0x8F),
    ({}, False, ("a", "forbidden"), "not authorized", 0x87),
    ({"shares": 0}, False, ("$share/g/a",), "shared subscriptions not supported", 0x9E),
    ({"shares": 1}, False, ("$share/g/a", "$share/h/a"), f"{FULL}, shares", 0x97),
)


class TestDeniedFilters(LogCase):
    def test_the_last_filter_is_denied_with_the_reason(self):
        for limits, journal_full, names, why, code in DENIALS:
            for level in (5,) if names[0].startswith("$share") else (4, 5):
                with self.subTest(names=names, level=level):
                    sizes = Limits(connections=4, **limits)
                    self.start(hooks=MaySubscribe(), limits=sizes, odd=True)
                    self.broker.journal_full = journal_full
                    self.subscribe(level, *names)
                    sent = code if level == 5 else 0x80
                    line = f"Denied SUBSCRIBE from 'b' to {names[-1]!r}: {why} ({sent:#04x})."
                    self.assertEqual(self.lines[1:], [line])

    def subscribe(self, level, *names):
        kind = packets5 if level == 5 else packets
        asks = b"".join([kind.subscribe(1, name, 0) for name in names])
        self.come(kind.connect("b") + asks)

    def test_without_notices_nothing_is_logged(self):
        self.start(mask=2, limits=Limits(connections=4, subscriptions=1))
        self.subscribe(4, "a", "b")
        self.assertEqual(self.lines, [])


class TestReservedTopics(LogCase):
    def test_a_publish_to_a_reserved_topic(self):
        """It is acknowledged, and logged once a minute for all clients together."""
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

    def test_a_will_for_a_reserved_topic(self):
        for first in (connect("b", will=("$share/g/t", "x", 0)), packets5.connect("b", will=WILL)):
            self.lines = []
            self.come(first)
            self.assertEqual(self.lines[0], "Denied the will from 'b' to '$share/g/t'.")
            self.assertIn("New client connected", self.lines[-1])


class TestNoMqtt(LogCase):
    def closed(self, why):
        self.assertEqual(self.lines, [f"Connection from {ADDRESS} closed: {why}."])
        self.lines = []

    def test_the_first_bytes_are_shown(self):
        for first, why in (
            (CURL, "malformed packet, no CONNECT but b'GET / HTTP/1.1'"),
            (b"\x32\x10half of it", "protocol error, no CONNECT but b'2\\x10ha'"),
            (b"\x16\x03\x01\2\0\1\0\1\xfc\3\3", "TLS, and this port speaks MQTT without it"),
            (PINGREQ, "protocol error, no CONNECT but b'\\xc0\\x00'"),
        ):
            self.come(first)
            self.closed(why)

    def test_an_http_request_in_pieces(self):
        client = self.come(CURL[:1])
        for at in range(1, len(CURL)):
            client.send(CURL[at : at + 1])
            self.world.turn()
        self.world.turn(2)
        self.closed("protocol error, no CONNECT but b'G'")

    def test_a_connection_without_a_byte(self):
        self.come(PINGREQ)  # its bytes are in no later entry
        self.lines = []
        self.come(b"").leave()
        self.world.turn(2)
        self.closed("lost")

    def test_a_partial_connect_is_not_shown(self):
        for first in (b"\x10", b"\x1f"):  # MQTT 3.1 leaves the flags undefined
            self.come(first + login("b", "user", "secret")[1:-1])
            self.world.turn(120, 100)
            self.closed("timed out (connect_timeout)")


class TestEscaped(LogCase):
    def test_control_characters_of_clients_are_escaped(self):
        self.start(mask=EACH, odd=True)
        self.come(login(EVIL, EVIL) + subscribe(1, "x\ny\x9b", 0) + DISCONNECT)
        self.start(EACH, Hook(5), odd=True)
        self.come(login(EVIL, EVIL))
        self.assertTrue(self.lines)
        for line in self.lines:
            self.assertNotIn("\n", line)
            self.assertNotIn("\x1b", line)
            self.assertNotIn("\x9b", line)

    def test_control_characters_in_the_tree_are_escaped(self):
        from slotmq.tables import tree_text

        self.start(odd=True)
        self.come(connect(EVIL) + subscribe(1, EVIL, 0))
        lines = list(tree_text.lines(self.broker.subscriptions, self.broker.sessions))
        escaped = "a\\nError: made up\\x1b[31m"
        self.assertEqual(lines, ["$SYS", f"{escaped} ({escaped}:0)"])
