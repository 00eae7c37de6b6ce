"""A bridge's connection as states and events: what the other broker answers, sends, or does not
send, in MQTT 3.1.1 and 5.0; then how the bridge connects again."""

from bridge_case import ACCEPTED, BridgeCase, Remote, accept, as_bridge
from packets import (
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    ack,
    connect,
    packet,
    publish,
    section,
    subscribe,
    text,
)

from slotmq.bridge import link
from slotmq.tables import epoch

THREE, FIVE = {}, {"bridge_protocol_version": "mqttv50"}
EDGE = b"\x11\xff\xff\xff\xff\x21\x00\x20\x27\x00\x00\x08\x00"
NAME = "$SYS/broker/connection/edge/state"
UNKNOWN, CLOSE = b"\x20\2\0\1", b""  # unknown: the protocol level
REFUSED, LOST = "refused by 192.0.2.1:1883 (%s)", "lost 192.0.2.1:1883 (%s)"
NO_CONNACK = "cannot connect to 192.0.2.1:1883 (%s)"
MALFORMED, NONE = NO_CONNACK % "malformed CONNACK", NO_CONNACK % "its answer is no CONNACK"

# Options, what CONNECT says
CONNECTS = (
    ({}, as_bridge(connect("edge", False, keep_alive=60))),
    (
        {"remote_username": "u", "remote_password": "p", "cleansession": True}
        | {"keepalive_interval": 9, "try_private": False},
        connect("edge", True, keep_alive=9, username="u", password=b"p"),
    ),
    (
        {"bridge_protocol_version": "mqttv31"},
        connect("edge", False, keep_alive=60, level=3).replace(b"MQIsdp\x03", b"MQIsdp\x83"),
    ),
    ({"notifications": True}, as_bridge(connect("edge", False, (NAME, b"0", 1, True), 60))),
    (FIVE, connect("edge", False, keep_alive=60, level=5, properties=EDGE)),
    (
        FIVE
        | {"bridge_receive_maximum": 7, "bridge_session_expiry_interval": 3600}
        | {"bridge_max_topic_alias": 9},
        connect(
            "edge",
            False,
            keep_alive=60,
            level=5,
            properties=b"\x11\0\0\x0e\x10\x21\0\x07\x27\0\0\x08\0\x22\0\x01",
        ),
    ),
)

# CONNECTING: the version, the answer, what the log says
ANSWERS = [
    (THREE, b"\x20\x02\0\5", REFUSED % "return code 5, not authorized"),
    (THREE, b"\x20\x02\0\x09", REFUSED % "return code 9"),
    (THREE, b"\x20\x02\0", None),
    (THREE, b"\x20\x03\0\0\0", MALFORMED),
    (THREE, publish("a", b"x"), NONE),
    (THREE, b"\x10\0", NONE),
    (THREE, b"\xf0\0", NONE),
    (FIVE, b"\x20\x02\0\3", REFUSED % "return code 3, server unavailable"),
    (FIVE, accept(b"", 0, 0x87), REFUSED % "0x87, not authorized"),
    (FIVE, accept(b"\x1f\0\4full", 0, 0x97), REFUSED % "0x97, quota exceeded: full"),
    (FIVE, accept(b"\x1f\0\5a\n\x1b\xc3\x9b", 0, 0x97), REFUSED % "0x97, quota exceeded: a????"),
    (
        FIVE,
        accept(b"\x1f\0x" + b"x" * 120, 0, 0x97),
        REFUSED % ("0x97, quota exceeded: " + "x" * 100),
    ),
]
BODIES = b"\0\0\5\x21\0\1", b"\0\0\2\x7f\0", b"\0\0\x03\x21\0\0", b"\0\0\0\0", b"\0\0"
BODIES += b"\0\0\x06\x21\0\1\x21\0\1", b"\0\0\2\x25\x02", b"\0\0\x80\x80"
ANSWERS += [(FIVE, packet(0x20, body), MALFORMED) for body in BODIES]

# UP: the version, what it sends, what the log says, the last packet that leaves (None: PINGREQ,
# the connection stays)
PACKETS = (
    (THREE, PINGRESP, "", None),
    (THREE, subscribe(1, "#", 0), LOST % "protocol error", b""),
    (THREE, packet(0xA2, b"\0\1\0\1a"), LOST % "protocol error", b""),
    (THREE, connect("x"), LOST % "protocol error", b""),
    (THREE, ACCEPTED, LOST % "protocol error", b""),
    (THREE, b"\x90\x03\0\1\0", LOST % "protocol error", b""),  # a SUBACK that nobody awaits
    (THREE, b"\x90\x02\xff\xdc", LOST % "malformed packet", b""),
    (THREE, DISCONNECT, LOST % "it leaves: DISCONNECT", b""),
    (FIVE, PINGRESP, "", None),
    (FIVE, packet(0xF0, b"\x18\0"), LOST % "protocol error", b"\xe0"),
    (FIVE, subscribe(1, "#", 0, b""), LOST % "protocol error", b"\xe0"),
    (FIVE, packet(0x90, b"\xff\xdc\1\0\0"), LOST % "malformed packet", b"\xe0"),
    (FIVE, packet(0xE0, b""), LOST % "it leaves: 0x00", b""),
    (
        FIVE,
        packet(0xE0, b"\x8b\x0a\x1f\0\7restart"),
        LOST % "it leaves: 0x8b, server shutting down: restart",
        b"",
    ),
    (FIVE, packet(0xE0, b"\x8b\x02\x7f\0"), LOST % "malformed packet", b"\xe0"),
)

# With 5.0 as the first choice: how connections end (after an answer, the other broker closes), the
# level of each CONNECT, how many seconds later it closes, and from when on the last one comes.
YES = ACCEPTED
VERSIONS = (
    ((UNKNOWN, UNKNOWN, YES), (5, 0x84, 4), 0, (0, 5)),  # as mosquitto does
    ((accept(code=0x84), UNKNOWN, YES), (5, 0x84, 4), 0, (0, 5)),
    ((accept(b"\x1f" + text("no"), code=0x84), UNKNOWN, YES), (5, 0x84, 4), 0, (0, 5)),
    # Old brokers send no CONNACK where they do not know the version. But a first end may be that
    # of the network.
    ((CLOSE, accept()), (5, 5), 0, (20, 25)),
    ((CLOSE, CLOSE, YES), (5, 5, 0x84), 0, (20, 25)),
    ((CLOSE, CLOSE, CLOSE, YES), (5, 5, 0x84, 4), 0, (20, 25)),
    ((CLOSE, CLOSE, UNKNOWN, YES), (5, 5, 0x84, 4), 0, (20, 25)),
    ((CLOSE, UNKNOWN, YES), (5, 5, 0x84), 0, (20, 25)),
    ((CLOSE, accept(), CLOSE, accept()), (5, 5, 5, 5), 0, (60, 90)),
    ((CLOSE, CLOSE, YES, CLOSE, YES), (5, 5, 0x84, 5, 0x84), 0, (40, 45)),
    # One that closes whatever it is asked, as a proxy before a broker that is not there yet
    ((CLOSE,) * 5, (5, 5, 0x84, 4, 5), 0, (40, 90)),
    # A proxy that looks for a broker until its time is up says nothing of the version.
    ((CLOSE,) * 5, (5,) * 5, 3, (80, 130)),
    # One that got 5.0 is asked with it after the next loss.
    (
        (UNKNOWN, YES, accept(), UNKNOWN, YES, b"\x20\2\0\5", accept()),
        (5, 0x84, 5, 5, 0x84, 5, 5),
        0,
        (80, 130),
    ),
)


class TestMatrix(BridgeCase):
    def test_connect(self):
        for options, wanted in self.each(*CONNECTS):
            one = self.bridge(("a/#", "both", 1), **options)
            self.assertEqual(one.text(), "connecting")
            self.remote(accept() if one.is_5 else ACCEPTED)
            self.assertEqual((self.connect, one.text()), ([wanted], "up"))

    def test_connecting(self):
        for options, answer, line in self.each(*ANSWERS):
            one = self.bridge(("a/#",), **options)
            remote = self.remote(answer)
            if line is None:  # half an answer
                self.assertFalse(remote.stream.closed)
                remote.leave()
                line = NO_CONNACK % "closed there before CONNACK"
            self.world.turn(4)
            self.assertTrue(remote.stream.closed, answer)
            self.assertEqual((self.lines, one.losses), ([f"Bridge 'up': {line}."], 0), answer)
            self.assertEqual(self.broker.sessions.conn[one.session], 0xFFFF)
            self.dialled()

    def test_up(self):
        for options, data, line, last in self.each(*PACKETS):
            one = self.bridge(("a/#", "in"), **options)
            remote = self.remote(accept() if options else ACCEPTED)
            remote.packets()
            remote.send(data)
            self.wait(3)
            self.assertEqual(remote.stream.closed, last is not None, data)
            self.assertEqual(self.lines, [f"Bridge 'up': {line}."] if line else [], data)
            sent = remote.packets()
            self.assertEqual((sent or [b""])[-1][:1], last or b"", data)
            self.assertEqual(one.losses, last is not None)

    def test_silence(self):
        """CONNACK, SUBACK, UNSUBACK or PINGRESP does not come."""
        no_suback = LOST % "no SUBACK or UNSUBACK in 20 s"
        for topic, answer, granted, seconds, line in self.each(
            (("a", "in"), b"", 0, 10, NO_CONNACK % "no CONNACK in 10 s"),
            (("a", "in"), ACCEPTED, 0, 20, no_suback),
            (("a", "out"), ACCEPTED, 0, 20, no_suback),  # UNSUBACK
            (
                ("b", "both"),
                ACCEPTED,
                1,
                90,
                LOST % "nothing has come for 90 s: keepalive_interval",
            ),
        ):
            one = self.bridge(topic, bridge_attempt_unsubscribe=True)
            remote = self.remote(answer)
            self.subacks(remote, granted) if granted else remote.packets()
            at = 0
            while not remote.stream.closed and at < 100:
                self.wait(1)
                at += 1
            self.assertEqual(self.lines[:1], [f"Bridge 'up': {line}."])
            self.assertTrue(seconds - 2 <= at <= seconds + 2, (line, at))
            self.assertEqual(one.is_told, granted > 0 or not answer)
            self.dialled()

    def test_version(self):
        for ends, levels, late, seconds in self.each(*VERSIONS):
            self.bridge5(("a/#", "both", 1), restart_timeout=20)
            found = []
            for number, answer in enumerate(ends):
                while len(self.network.streams) == number:
                    self.wait(1)
                at = self.broker.now // 10
                remote = self.remote(answer)
                found.append((self.level(), at))
                self.wait(late)
                remote.leave()
                self.world.turn(3)
            self.assertEqual(tuple(level for level, _ in found), levels, ends)
            took = found[-1][1] - found[0][1]
            self.assertTrue(seconds[0] <= took <= seconds[1], (ends, took))

    def test_after_another_version_everything_is_of_3_1_1(self):
        self.bridge5(("in/#", "in", 1), ("out/#", "out", 1), bridge_receive_maximum=5)
        for answer in (UNKNOWN, UNKNOWN, ACCEPTED):
            remote = self.remote(answer)
            if answer == UNKNOWN:
                remote.leave()
                self.world.turn(3)
        self.assertEqual(self.connect, [connect("edge", False, keep_alive=60)])
        self.assertEqual(self.subacks(remote), [subscribe(65500, "in/#", 1)])
        self.broker.publish("out/x", b"x", 1)
        self.world.turn(3)
        self.assertEqual(remote.packets(), [publish("out/x", b"x", 1, 1)])
        self.assertIn("Bridge 'up': the other broker has no MQTT 5.0: 3.1.1.", self.lines)

    def test_a_client_sends_nothing_that_only_servers_send(self):
        for data in self.each(b"\x90\x03\0\1\0", b"\xb0\2\0\1", PINGRESP, ACCEPTED):
            self.bridge(("a/#",))
            client = self.world.client("c")
            client.send(data)
            self.world.turn(2)
            self.assertTrue(client.stream.closed, data)

    def test_a_will_that_is_not_taken_is_made_simpler(self):
        for code in self.each(0x9A, 0x9B):
            self.bridge5(("a",), notifications=True)
            self.remote(accept(b"", 0, code)).leave()
            self.world.turn(3)
            remote = self.remote(accept(b"\x25\0"))
            will = {"will_properties": b"", "properties": EDGE}
            wanted = connect("edge", False, (NAME, b"0", 0), 60, level=5, **will)
            self.assertEqual(self.connect, [wanted])
            self.assertEqual(remote.packets(), [publish(NAME, b"1", properties=b"")])


class TestRequests(BridgeCase):
    """SUBSCRIBE and UNSUBSCRIBE, and what is said to them."""

    TOPICS = ("in", "in", 1), ("out", "out"), ("both", "both")

    def test_they_are_asked_for(self):
        for version, accepted, end, options in self.each(
            ("mqttv311", ACCEPTED, b"", 0), ("mqttv50", accept(), b"\0", 12)
        ):
            one = self.bridge(
                *self.TOPICS, bridge_attempt_unsubscribe=True, bridge_protocol_version=version
            )
            remote = self.remote(accepted)
            properties = b"" if options else None
            wanted = [subscribe(65500, "in", 1 | options, properties)]
            wanted.append(subscribe(65501, "both", options, properties))
            wanted.append(packet(0xA2, b"\xff\xde" + end + b"\0\3out"))
            self.assertEqual(remote.packets(), wanted)
            for number, code in enumerate((b"\1", b"\0")):
                remote.send(packet(0x90, b"\xff" + bytes((0xDC + number,)) + end + code))
            self.world.turn(2)
            self.assertFalse(one.is_told)
            remote.send(packet(0xB0, b"\xff\xde" + (end and end + b"\x11")))
            self.world.turn(2)
            self.assertEqual((one.text(), one.is_told), ("up", True))

    def test_refused_filters(self):
        """Of version 5 with a reason, however long that is."""
        refused = "Bridge 'up': the other broker does not grant 'a/#'%s."
        why = " (0x87, not authorized)"
        for accepted, size in self.each(
            (ACCEPTED, 0), (accept(), 100), (accept(), 200), (accept(), 300)
        ):
            self.bridge(("a/#", "in", 1), **FIVE if size else THREE)
            remote = self.remote(accepted)
            (asked,) = [data for data in remote.packets() if data[0] == 0x82]
            reason = (
                section(b"\x1f" + bytes((size >> 8, size & 255)) + b"r" * size) if size else b""
            )
            remote.send(packet(0x90, asked[2:4] + reason + (b"\x87" if size else b"\x80")))
            self.wait(25)
            self.assertEqual(self.lines, [refused % (why if size else "")])
            self.assertFalse(remote.stream.closed)

    def test_what_the_other_broker_has_not_is_not_asked_for(self):
        topics = ("w/#", "in"), ("$share/g/s", "in"), ("p", "in", 1)
        self.bridge5(*topics)
        remote = self.remote(accept(b"\x28\0\x2a\0"))
        self.assertEqual(remote.packets(), [subscribe(65502, "p", 1 | 12, b"")])
        remote.send(packet(0x90, b"\xff\xde\0\x97"))
        self.world.turn(2)
        wanted = [
            "Bridge 'up': the other broker has no wildcards: 'w/#'.",
            "Bridge 'up': the other broker has no shared subscriptions: '$share/g/s'.",
            "Bridge 'up': the other broker does not grant 'p' (0x97, quota exceeded).",
        ]
        self.assertEqual((self.lines, self.one.is_told), (wanted, True))
        remote = self.lose(remote, accept(b"", 1))
        self.assertIn(subscribe(65501, "$share/g/s", 8, b""), remote.packets())

    def test_what_is_larger_than_its_maximum_packet_size_is_not_sent(self):
        long = "a/" + "x" * 40
        self.bridge5((long, "in", 1), ("b", "in"), ("c", "out", 1), notifications=True)
        remote = self.remote(accept(b"\x27\0\0\0\x26"))
        self.assertEqual(remote.packets(), [subscribe(65501, "b", 12, b"")])
        remote.send(packet(0x90, b"\xff\xdd\0\0"))
        self.world.turn(2)
        line = f"Bridge 'up': the other broker has no packets of 50 bytes: '{long}'."
        self.assertEqual((self.lines, self.one.is_told), ([line], True))
        self.broker.publish("c", b"x", 1)  # its state was too large, this is not
        self.world.turn(2)
        self.assertEqual(remote.packets()[0][:5], b"\x32\x07\0\1c")


class TestTimes(BridgeCase):
    """Pauses and addresses, keep-alive, an epoch."""

    def pauses(self, stands, **options):
        """The pause after each connection that stood for so many seconds."""
        self.network.noise = -1  # the longest pause each time
        self.bridge(("a/#",), **options)
        found = []
        for seconds in stands:
            remote = self.remote()
            for _ in range(seconds // 20):
                self.wait(20)
                remote.send(PINGRESP)
            self.wait(seconds % 20)
            remote.leave()
            self.world.turn(2)
            found.append(self.one.pause)
            self.dialled()
        return found

    def test_one_that_stood_for_less_than_the_last_pause_has_failed(self):
        """So a broker that accepts and closes is left alone for longer."""
        for options, stands, wanted in self.each(
            ((2, 60), (0, 0, 0, 0, 0, 69, 0), [59, 176, 527, 600, 600, 59, 176]),
            ((2, 60, 3), (2, 2, 4, 2), [59, 176, 59, 176]),  # for how long may be said
            (4, (0, 0), [40, 40]),
        ):
            self.assertEqual(self.pauses(stands, restart_timeout=options), wanted)

    def test_pauses_grow_within_their_bounds(self):
        self.network.down.add(1883)
        self.network.noise = (1 << 24) - 1
        one = self.bridge(("a/#",), restart_timeout=(2, 7))
        pauses = set()
        for _ in range(900):
            self.world.turn(1, 100)
            pauses.add(one.pause)
        self.assertTrue(min(pauses) >= 20 and max(pauses) <= 70 and len(pauses) > 1)
        self.assertLess(len(self.network.addresses), 46)

    def test_addresses(self):
        """Which is tried next: its port, then the port that is down, how often it is accepted."""
        for options, down, count, ports in self.each(
            ({}, {1}, 0, [1, 2, 1, 2]),
            ({}, {1}, 1, [1, 2, 1, 2]),
            ({}, set(), 2, [1, 1, 2]),  # the first one accepts and closes
            ({"round_robin": True}, set(), 3, [1, 2, 1, 2]),
        ):
            self.network.down |= down
            self.bridge(("a",), addresses=("h:1", "h:2"), restart_timeout=5, **options)
            for _ in range(count):
                while not self.network.streams or self.network.streams[-1].closed:
                    self.wait(1)
                self.remote().leave()
                self.world.turn(3)
            while len(self.network.addresses) < len(ports):
                if self.network.streams:
                    self.network.streams[-1].ended = True
                self.wait(1)
            self.assertEqual([port for _, port in self.network.addresses], ports)

    def test_what_the_log_says_of_addresses(self):
        self.network.down.add(1)
        self.broker.log_mask = 2 | 4
        self.bridge(("a/#",), addresses=("h:1", "h:2"), restart_timeout=5)
        self.wait(2)
        remote = self.remote()
        self.network.down.clear()
        remote.leave()
        self.world.turn(3)
        wanted = ["cannot connect to h:1 (refused)", "the next attempt in 1 s, h:2", "up, h:2"]
        wanted += ["lost h:2 (closed there)", "the next attempt in 5 s, h:1"]
        said = [line for line in self.lines if line.startswith("Bridge")]
        self.assertEqual(said, [f"Bridge 'up': {line}." for line in wanted])

    def test_an_address_of_its_own_that_it_does_not_have_is_named(self):
        def dial(*_):
            raise OSError(99, "Cannot assign requested address")

        link.dial = dial
        self.bridge(("a", "out", 1), bridge_bind_address="192.0.2.5")
        why = "bridge_bind_address 192.0.2.5 is not of this computer"
        self.assertEqual(self.lines, [f"Bridge 'up': {NO_CONNACK % why}."])

    def test_a_name_is_looked_for_again_in_a_moment(self):
        """And not after the next wait for events, of 250 ms."""
        answers = [None] * 6 + [[("h", 1883)]]
        link.find = lambda host, port, now: answers.pop(0)
        self.bridge(("a/#",), addresses=("h",))
        while answers:
            self.assertEqual(self.broker.turn_soon, 2)
            self.world.turn()
        self.assertEqual(self.network.addresses, [("h", 1883)])
        self.remote()
        self.assertEqual(self.broker.turn_soon, 0)

    def test_without_heap_it_tries_again(self):
        failing = ["find", "dial", "find"]

        def unless(name, function):
            def call(*args):
                if failing[:1] == [name]:
                    failing.pop(0)
                    raise MemoryError
                return function(*args)

            return call

        link.find = unless("find", self.network.find)
        link.dial = unless("dial", self.network.dial)
        one = self.bridge(("a", "out", 1))
        self.assertEqual((one.text(), self.network.streams), ("waiting", []))
        self.broker.publish("a", b"x", 1)
        self.dialled()
        remote = self.remote()
        self.deliver(remote)
        self.assertEqual((failing, remote.messages), ([], [(b"a", b"x", 1)]))
        self.assertEqual(one.text(), "up")

    def test_keep_alive(self):
        """Its own, or what the other broker says."""
        for options, answer, seconds in self.each(
            ({"keepalive_interval": 10}, ACCEPTED, 10),
            (FIVE, accept(b"\x13\0\x05"), 5),
            (FIVE | {"keepalive_interval": 2}, accept(), 2),
            ({"keepalive_interval": 0}, ACCEPTED, 0),
        ):
            self.bridge(("a/#",), **options)
            remote = self.remote(answer)
            for _ in range(3):
                self.wait(seconds or 200)
                self.assertEqual(remote.packets(), [PINGREQ] if seconds else [])
                remote.send(PINGRESP)
            self.wait(seconds * 2)
            # No DISCONNECT of 5.0: a client may not say that keep-alive has passed.
            self.assertEqual(set(remote.packets()), {PINGREQ} if seconds else set())
            self.assertEqual(remote.stream.closed, seconds > 0)

    def test_an_epoch_moves_all_its_times(self):
        """An attribute that is about as large as the time is one."""
        self.broker.now = now = 259200000 - 7000
        self.world.turn()
        addresses = ("h:1", "h:2")
        one = self.bridge(("a/#", "both", 1), addresses=addresses, keepalive_interval=10)
        self.network.streams[-1].ended = True
        self.dialled()
        remote = self.remote()
        self.subacks(remote)
        self.wait(1)
        remote.send(PINGRESP)
        self.world.turn(2)
        before = {}
        for name in dir(one):
            value = getattr(one, name)
            if isinstance(value, int) and value > now - 1000:
                before[name] = value
        times = {"due", "suback_due", "wake", "next_probe", "began", "pong"}
        self.assertTrue(times <= set(before), before)
        epoch.take(self.broker, 259200000)
        for name, value in before.items():
            self.assertEqual(getattr(one, name), value - 259200000, name)
        # What they are for goes on: PINGREQ, and the way back to the first address.
        remote.packets()
        count = len(self.network.addresses)
        for _ in range(7):
            self.wait(10)
            self.assertEqual(remote.packets(), [PINGREQ])
            remote.send(PINGRESP)
        self.assertEqual(self.network.addresses[count:], [("h", 1)])


class TestProbes(BridgeCase):
    """While it is connected to a later address, the first one is tried each minute."""

    def start_with_the_second(self, **options):
        self.network.down.add(1)
        self.is_5 = bool(options)
        topics = ("a/#", "out", 1)
        self.bridge(topics, addresses=("h:1", "h:2"), restart_timeout=5, **options)
        self.wait(2)
        self.second = self.remote(accept() if options else ACCEPTED)

    def tried(self, *pieces):
        """A minute later the first address is tried: it accepts, and answers so."""
        count = len(self.network.addresses)
        for seconds in (31, 31):
            self.wait(seconds)
            self.second.send(PINGRESP)
        self.assertEqual(self.network.addresses[count:], [("h", 1)])
        first = Remote(self.network.streams[-1])
        level = {"level": 5, "properties": EDGE} if self.is_5 else {}
        wanted = connect("edge", False, keep_alive=60, **level)
        self.assertEqual(first.packets(), [wanted if self.is_5 else as_bridge(wanted)])
        for piece in pieces:
            first.send(piece)
            self.world.turn(3)
        return first

    def test_it_moves_as_soon_as_the_first_lets_it_in(self):
        self.start_with_the_second()
        self.wait(61)
        self.assertEqual(self.network.addresses, [("h", 1), ("h", 2), ("h", 1)])
        self.second.send(PINGRESP)
        self.network.down.clear()
        first = self.tried(ACCEPTED)
        self.assertEqual((first.packets(), first.stream.closed), ([DISCONNECT], True))
        self.assertEqual((self.second.packets()[-1], self.one.losses), (DISCONNECT, 0))
        self.assertEqual(self.network.addresses[3:], [("h", 1), ("h", 1)])
        self.broker.publish("a/x", b"x", 1)
        remote = self.remote()
        self.deliver(remote)
        self.assertEqual(remote.messages, [(b"a/x", b"x", 1)])
        self.wait(70)
        self.assertEqual(len(self.network.addresses), 5)

    def test_answers_of_the_first_address(self):
        """None of a proxy whose broker is away moves the bridge. The code may be the fifth byte of
        CONNACK, or the sixth."""
        many = b"".join([b"\x26" + text("name") + text("value" * 4)] * 5)
        for answer, options, is_back in self.each(
            (b"", THREE, False),
            (b"\x20\x02\0\3", THREE, False),
            (b"H", THREE, False),
            (b"HTTP/1.1 400", THREE, False),
            (UNKNOWN, THREE, True),  # it is there, and knows no bridges
            (ACCEPTED, THREE, True),
            (packet(0x20, b"\0\0" + section(many)), FIVE, True),
            (packet(0x20, b"\0\x97" + section(many)), FIVE, False),
            (accept(code=0x97), FIVE, False),
            (accept(code=0x9A), FIVE, True),
            (accept(code=0x84), FIVE, True),
        ):
            for step in (1, 3, 500):
                self.tearDown()
                self.start()
                self.start_with_the_second(**options)
                self.network.down.clear()
                self.wait(2)
                answer = answer[:12]  # what follows is not waited for
                first = self.tried(*[answer[at : at + step] for at in range(0, len(answer), step)])
                self.assertEqual(DISCONNECT in self.second.packets(), is_back, (answer, step))
                self.assertEqual(first.stream.closed, bool(answer), answer)

    def test_one_that_closes_without_an_answer(self):
        self.start_with_the_second()
        self.network.down.clear()
        first = self.tried()
        first.leave()
        self.world.turn(2)
        self.assertEqual((first.stream.closed, self.second.stream.closed), (True, False))


class TestLazyAndOnce(BridgeCase):
    def test_once(self):
        self.bridge(("a",), start_type="once")
        remote = self.remote(UNKNOWN)
        remote.leave()
        self.world.turn(3)
        remote = self.remote()  # as a client
        self.broker.log_mask = 4
        remote.leave()
        self.wait(60)
        self.assertEqual(len(self.network.streams), 2)
        self.assertEqual(self.lines[-1], "Bridge 'up': no further attempt: start_type once.")

    def test_lazy(self):
        one = self.bridge(("a", "out", 1), start_type="lazy", threshold=3, idle_timeout=20)
        self.assertEqual(self.network.streams, [])
        for k in range(3):
            self.broker.publish("a", b"%d" % k, 1)
            self.wait(1)
        remote = self.remote()
        self.deliver(remote)
        self.assertEqual(len(remote.messages), 3)
        self.wait(15)
        remote.send(publish("a", b"in", 1, 9))  # that is a message too
        self.wait(15)
        self.assertEqual(remote.packets(), [ack(PUBACK, 9)])
        self.wait(7)
        self.assertEqual(remote.packets(), [DISCONNECT])
        self.assertTrue(remote.stream.closed)
        self.broker.publish("a", b"3", 1)
        self.wait(60)
        self.assertEqual((one.text(), len(self.network.streams)), ("waiting", 1))
        for count in (2, 3, 4):
            # It has left in order, though it did not stand for long: there is no pause
            self.broker.publish("a", b"4", 1)
            self.broker.publish("a", b"5", 1)
            self.wait(1)
            self.assertEqual(len(self.network.streams), count)
            remote = self.remote()
            self.deliver(remote)
            self.wait(22)
            self.assertEqual(remote.packets(), [DISCONNECT])
            self.broker.publish("a", b"3", 1)
            self.wait(1)

    def test_a_disconnect_of_the_other_broker_and_one_of_its_own_are_told_apart(self):
        self.broker.log_mask = 2 | 4
        self.bridge(("a", "out", 1), start_type="lazy", threshold=1, idle_timeout=1)
        for leaves, losses in ((False, 0), (True, 1)):
            self.broker.publish("a", b"x", 1)
            self.dialled()
            remote = self.remote()
            self.deliver(remote)
            if leaves:
                remote.send(DISCONNECT)
            self.wait(2)
            self.assertEqual(self.one.losses, losses)
        wanted = ["leaves 192.0.2.1:1883", LOST % "it leaves: DISCONNECT"]
        found = [line for line in self.lines if ": le" in line or ": lo" in line]
        self.assertEqual(found, [f"Bridge 'up': {line}." for line in wanted])
