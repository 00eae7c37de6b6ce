"""A bridge that speaks MQTT 5.0, and what the other broker's CONNACK allows."""

from bridge_case import BridgeCase, Remote
from packets import (
    DISCONNECT,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connect,
    packet,
    section,
    subscribe,
    text,
)
from packets import publish as publish3
from packets5 import publish, read_publish

from slotmq.embed import publishing

EDGE = b"\x11\xff\xff\xff\xff\x21\x00\x20\x27\x00\x00\x08\x00"
TOO_LARGE = b"x" * 3000


def accept(properties=b"", present=0, code=0):
    return packet(0x20, bytes((present, code, len(properties))) + properties)


class FiveCase(BridgeCase):
    LIMITS = {"deliveries": 40, "queued": 30, "connections": 9, "sessions": 12, "bridges": 9}  # noqa: RUF012

    def start(self, limits=None, **settings):
        super().start(limits, **settings)
        self.lines = []
        self.broker.log = lambda bit, text: self.lines.append(text)
        self.broker.log_mask = 2

    def bridge5(self, *topics, **options):
        return self.bridge(*topics, bridge_protocol_version="mqttv50", **options)

    def sent(self, remote):
        """(flags, topic, payload) of each PUBLISH that has come, acknowledged at once."""
        found = []
        for _ in range(6):
            for data in remote.packets():
                if data[0] >> 4 == 3:
                    flags, topic, packet_id, _, payload = read_publish(data)
                    found.append((flags, topic, bytes(payload)))
                    if flags & 6:
                        remote.send(ack(PUBACK if flags & 2 else PUBREC, packet_id))
                elif data[0] == PUBREL:
                    remote.send(ack(PUBCOMP, data[2] << 8 | data[3]))
            self.world.turn(2)
        return found


class TestConnecting(FiveCase):
    def test_a_broker_without_it_is_asked_with_3_1_1(self):
        """As mosquitto does: 5, 0x84, 4."""
        unknown = b"\x20\2\0\1"
        for refusal in (unknown, accept(code=0x84), accept(b"\x1f" + text("no"), code=0x84)):
            self.start()
            self.bridge5(("in/#", "in", 1), ("out/#", "out", 1), bridge_receive_maximum=5)
            levels = []
            for answer in (refusal, unknown, b"\x20\2\0\0"):
                remote = self.remote(answer)
                at = self.connect[0].index(b"MQTT") + 4
                levels.append(self.connect[0][at])
                if answer != b"\x20\2\0\0":
                    remote.leave()
                    self.world.turn(3)
            self.assertEqual(levels, [5, 0x84, 4])
            self.assertEqual(self.connect, [connect("edge", False, keep_alive=60)])
            self.assertEqual(self.subacks(remote), [subscribe(65500, "in/#", 1)])
            self.broker.publish("out/x", b"x", 1)
            self.world.turn(3)
            self.assertEqual(remote.packets(), [publish3("out/x", b"x", 1, 1)])
            self.assertIn("Bridge 'up': the other broker has no MQTT 5.0: 3.1.1.", self.lines)
            self.tearDown()
        self.start()

    def levels(self, *ends, late=0):
        """The protocol level of each CONNECT; an end: what the other broker answers, b"": it
        closes. After an acceptance it closes, too. late: after so many seconds."""
        found = []
        for number, answer in enumerate(ends):
            while len(self.network.streams) == number:
                self.wait(1)
            at = self.broker.now // 10
            remote = self.remote(answer)
            found.append((self.connect[0][self.connect[0].index(b"MQTT") + 4], at))
            self.wait(late)
            remote.leave()
            self.world.turn(3)
        first = found[0][1]
        return [(level, at - first) for level, at in found]

    def test_a_broker_that_closes_is_asked_with_3_1_1(self):
        """Old brokers send no CONNACK where they do not know the version. But a first end may be
        that of the network."""
        yes, no = b"\x20\2\0\0", b"\x20\2\0\1"
        for ends, levels in (
            ((b"", accept()), [5, 5]),
            ((b"", b"", yes), [5, 5, 0x84]),
            ((b"", b"", b"", yes), [5, 5, 0x84, 4]),
            ((b"", b"", no, yes), [5, 5, 0x84, 4]),
            ((b"", no, yes), [5, 5, 0x84]),
            ((b"", accept(), b"", accept()), [5, 5, 5, 5]),
        ):
            self.start()
            self.bridge5(("a/#", "in", 1), restart_timeout=20)
            found = self.levels(*ends)
            self.assertEqual([level for level, _ in found], levels, ends)
            if ends[-1] == yes:
                self.assertLess(found[-1][1], 25, "one pause")
            self.tearDown()
        self.start()

    def test_it_is_asked_at_once_the_next_time(self):
        yes = b"\x20\2\0\0"
        self.bridge5(("a/#", "in", 1), restart_timeout=20)
        found = self.levels(b"", b"", yes, b"", yes)
        self.assertEqual([level for level, _ in found], [5, 5, 0x84, 5, 0x84])
        self.assertLess(found[-1][1], 45, "two pauses")

    def test_one_that_closes_whatever_it_is_asked_is_left_alone(self):
        """As a proxy does before a broker that is not there yet."""
        self.bridge5(("a/#", "in", 1), restart_timeout=20)
        found = self.levels(*[b""] * 7)
        self.assertEqual([level for level, _ in found], [5, 5, 0x84, 4, 5, 0x84, 4])
        self.assertGreaterEqual(found[4][1], 40, "two pauses")

    def test_one_that_closes_late_says_nothing_of_the_version(self):
        """A proxy that looks for a broker until its time is up: when that is back, the bridge has
        5.0 and No Local."""
        self.bridge5(("a/#", "both", 1), restart_timeout=20)
        found = self.levels(*[b""] * 5, late=3)
        self.assertEqual([level for level, _ in found], [5] * 5)

    def test_a_broker_that_got_5_0_is_asked_with_it_after_the_next_loss(self):
        yes, no = b"\x20\2\0\0", b"\x20\2\0\1"
        self.bridge5(("in/#", "in", 1), restart_timeout=20)
        found = self.levels(no, yes, accept(), no, yes, b"\x20\2\0\5", accept())
        self.assertEqual([level for level, _ in found], [5, 0x84, 5, 5, 0x84, 5, 5])
        self.dialled()
        remote = self.remote(accept())
        self.assertEqual(remote.packets(), [packet(0x82, b"\xff\xdc\0\0\4in/#\x0d")])

    def test_a_connection_that_nobody_took_says_nothing_of_the_version(self):
        self.network.down.add(1)
        self.bridge5(("a/#", "in", 1), addresses=("h:1", "h:2"), restart_timeout=5)
        self.dialled()
        self.remote(accept())
        self.assertEqual(self.connect[0][8], 5)

    def test_the_first_address_answers_with_many_properties(self):
        """The code may be the fifth byte of CONNACK, or the sixth."""
        many = b"".join([b"\x26" + text("name") + text("value" * 4)] * 5)
        for size, code, is_back in (
            (many, 0, True),
            (many, 0x97, False),
            (b"", 0x97, False),
            (b"", 0, True),
            (b"", 0x84, True),
        ):
            for step in (1, 3, 500):
                self.start()
                self.network.down.add(1)
                self.bridge5(("a/#", "out", 1), addresses=("h:1", "h:2"), restart_timeout=5)
                self.wait(2)
                second = self.remote(accept())
                self.network.down.clear()
                self.wait(40)
                second.send(PINGRESP)
                self.wait(22)
                first = Remote(self.network.streams[-1])
                answer = packet(0x20, bytes((0, code)) + section(size))
                for at in range(0, min(len(answer), 12), step):
                    first.send(answer[at : at + step])
                    self.world.turn(2)
                left = DISCONNECT in second.packets()
                self.assertEqual(left, is_back, (answer, step))
                self.tearDown()
        self.start()

    def test_a_suback_with_a_long_reason_is_counted_too(self):
        for number, size in enumerate((100, 200, 300)):  # 200: a length that begins with 0xD0
            one = self.bridge5(("a/#", "in", 1), remote_clientid=f"c{number}")
            remote = self.remote(accept())
            (asked,) = [data for data in remote.packets() if data[0] == 0x82]
            reason = section(b"\x1f" + bytes((size >> 8, size & 255)) + b"r" * size)
            remote.send(packet(0x90, asked[2:4] + reason + b"\x87"))
            self.wait(25)
            text = "Bridge 'up': the other broker does not grant 'a/#' (0x87, not authorized)."
            self.assertIn(text, self.lines)
            self.assertFalse(remote.stream.closed)
            self.lines.clear()
            one.due = 1 << 29
            self.broker.end(one.conn, 9)
            self.world.turn(3)

    def test_it_says_why_it_leaves_also_with_prefixes(self):
        """Then the connection lingers, and is half closed."""
        for more in ((), ("", "far/")):
            name = f"c{len(more)}"
            one = self.bridge5(("a", "in", 1) + more, remote_clientid=name)  # noqa: RUF005
            remote = self.remote(accept())
            remote.packets()
            remote.send(subscribe(1, "#", 0, b""))
            self.world.turn(2)
            self.assertEqual(remote.packets(), [packet(0xE0, b"\x82\0")])
            self.wait(3)
            self.assertTrue(remote.stream.closed)
            one.due = 1 << 29  # it does not come back

    def test_its_packets(self):
        self.bridge5(("in/#", "in", 1), ("out/#", "out", 2), bridge_attempt_unsubscribe=True)
        remote = self.remote(accept())
        wanted = connect("edge", False, keep_alive=60, level=5, properties=EDGE)
        self.assertEqual(self.connect, [wanted])
        found = remote.packets()
        wanted = [subscribe(65500, "in/#", 1 | 4 | 8, b""), packet(0xA2, b"\xff\xdd\0\0\5out/#")]
        self.assertEqual(found, wanted)
        remote.send(packet(0x90, b"\xff\xdc\0\1") + packet(0xB0, b"\xff\xdd\0\x11"))
        self.world.turn(2)
        self.assertEqual((self.one.text(), self.one.is_told), ("up", True))
        self.world.loop.close()
        self.assertEqual(remote.packets(), [DISCONNECT])
        self.broker.bridges.every.clear()

    def test_its_keys(self):
        self.bridge5(
            ("a",),
            bridge_receive_maximum=7,
            bridge_session_expiry_interval=3600,
            bridge_max_topic_alias=9,
        )
        self.remote(accept())
        wanted = b"\x11\0\0\x0e\x10\x21\0\x07\x27\0\0\x08\0\x22\0\x01"
        self.assertEqual(
            self.connect, [connect("edge", False, keep_alive=60, level=5, properties=wanted)]
        )

    def test_keep_alive_of_the_other_broker(self):
        self.bridge5(("a",))
        remote = self.remote(accept(b"\x13\0\x05"))
        self.wait(5)
        self.assertEqual(remote.packets(), [b"\xc0\0"])
        remote.send(b"\xd0\0")
        self.world.turn(2)

    def test_a_refusal_is_logged_with_its_reason(self):
        for answer, why in (
            (accept(b"\x1f\0\4full", 0, 0x97), "0x97, quota exceeded: full"),
            (accept(b"\x1f\0\5a\n\x1b\xc3\x9b", 0, 0x97), "0x97, quota exceeded: a????"),
            (accept(b"\x1f\0x" + b"x" * 120, 0, 0x97), "0x97, quota exceeded: " + "x" * 100),
            (accept(b"", 0, 0x87), "0x87, not authorized"),
            (b"\x20\x02\0\3", "return code 3, server unavailable"),
        ):
            self.lines.clear()
            self.bridge5(("a",), remote_clientid=f"c{len(answer)}")
            self.remote(answer)
            self.assertEqual(self.lines, [f"Bridge 'up': refused by 192.0.2.1:1883 ({why})."])
            self.one.due = 1 << 29

    def test_what_is_malformed_ends_the_connection(self):
        for number, answer in enumerate(
            (
                b"\x20\x02\0\0",
                packet(0x20, b"\0\0\5\x21\0\1"),
                packet(0x20, b"\0\0\2\x7f\0"),
                packet(0x20, b"\0\0\x03\x21\0\0"),
                packet(0x20, b"\0\0\x06\x21\0\1\x21\0\1"),
                packet(0x20, b"\0\0\0\0"),
                packet(0x20, b"\0\0\2\x25\x02"),
                packet(0x20, b"\0\0\x80\x80"),
            )
        ):
            self.bridge5(("a",), remote_clientid=f"c{number}")
            remote = self.remote(answer)
            self.world.turn(2)
            self.assertTrue(remote.stream.closed, answer)
            self.assertIn("(malformed CONNACK)", self.lines[-1])
            self.one.due = 1 << 29

    def test_a_will_that_is_not_taken_is_made_simpler(self):
        name = "$SYS/broker/connection/edge/state"
        self.bridge5(("a",), notifications=True, notifications_local_only=False)
        for code in (0x9A,):
            remote = self.remote(accept(b"", 0, code))
            remote.leave()
            self.world.turn(3)
        remote = self.remote(accept(b"\x25\0"))
        wanted = connect(
            "edge",
            False,
            (name, b"0", 0),
            60,
            level=5,
            properties=EDGE,
            will_properties=b"",
        )
        self.assertEqual(self.connect, [wanted])
        self.assertEqual(self.sent(remote), [(0, name, b"1")])
        publishing.send(self.broker, name.encode(), b"", 0, True)

    def test_why_it_leaves_and_what_only_clients_may_send(self):
        self.bridge5(("a",))
        remote = self.remote(accept())
        remote.send(packet(0xE0, b"\x8b\x0a\x1f\0\7restart"))
        self.world.turn(2)
        self.wait(2)
        self.assertTrue(remote.stream.closed)
        self.assertEqual(
            self.lines,
            ["Bridge 'up': lost 192.0.2.1:1883 (it leaves: 0x8b, server shutting down: restart)."],
        )
        for number, wrong in enumerate((packet(0xF0, b"\x18\0"), subscribe(1, "#", 0, b""))):
            self.bridge5(("a",), remote_clientid=f"c{number}")
            remote = self.remote(accept())
            remote.send(wrong)
            self.wait(2)
            self.assertTrue(remote.stream.closed, wrong)
            self.assertEqual(remote.packets()[-1][:1], b"\xe0")
            self.one.due = 1 << 29

    def test_a_timeout_is_no_disconnect_of_a_client(self):
        self.bridge5(("a",), keepalive_interval=2)
        remote = self.remote(accept())
        self.wait(8)
        self.assertEqual([data[0] for data in remote.packets()], [0xC0])


class TestMessages(FiveCase):
    def test_both_ways_with_properties_and_without_echo(self):
        self.bridge5(("#", "both", 2))
        remote = self.remote(accept())
        self.assertEqual(remote.packets(), [subscribe(65500, "#", 2 | 12, b"")])
        client = self.world.client("c")
        client.send(subscribe(1, "#", 1))
        self.world.turn(2)
        client.packets()
        remote.send(publish("a", b"1", 1, 5, b"\x01\1") + publish("b", b"0"))
        remote.send(publish("c", b"kept", 0, 0, b"", True))
        self.world.turn(3)
        self.assertEqual(remote.packets(), [ack(PUBACK, 5)])
        client.answer()
        wanted = [(b"a", b"1", 1), (b"b", b"0", 0), (b"c", b"kept", 0)]
        self.assertEqual(sorted(client.messages), wanted)
        five = self.broker.publish
        self.assertTrue(five("own", b"x", 2))
        self.assertTrue(five("own", b"y", 0))
        self.world.turn(2)
        self.assertEqual(sorted(self.sent(remote)), [(0, "own", b"y"), (4, "own", b"x")])
        five("c", b"", 0, True)

    def test_prefixes_and_topic_aliases(self):
        self.bridge5(("t/#", "both", 1, "", "far/"), bridge_max_topic_alias=5)
        remote = self.remote(accept(b"\x22\0\5"))
        remote.packets()
        client = self.world.client("c")
        client.send(subscribe(1, "t/in", 0))
        self.world.turn(2)
        client.packets()
        for payload in (b"1", b"2"):
            self.broker.publish("t/out", payload, 1)
        self.world.turn(2)
        self.assertEqual([each[1] for each in self.sent(remote)], ["far/t/out", ""])
        remote.send(publish("far/t/in", b"1", 0, 0, b"\x23\0\1"))
        remote.send(publish("", b"2", 0, 0, b"\x23\0\1"))
        self.world.turn(3)
        client.answer()
        self.assertEqual(client.messages, [(b"t/in", b"1", 0), (b"t/in", b"2", 0)])

    def test_receive_maximum(self):
        self.bridge5(("a", "out", 1))
        remote = self.remote(accept(b"\x21\0\2"))
        for k in range(5):
            self.broker.publish("a", b"%d" % k, 1)
        self.world.turn(3)
        first = remote.packets()
        self.assertEqual(len(first), 2)
        remote.send(ack(PUBACK, read_publish(first[0])[2]))
        self.world.turn(2)
        second = remote.packets()
        self.assertEqual([bytes(read_publish(data)[4]) for data in second], [b"2"])
        second.append(first[1])
        for data in second:
            remote.send(ack(PUBACK, read_publish(data)[2]))
        self.world.turn(2)
        self.assertEqual([each[2] for each in self.sent(remote)], [b"3", b"4"])

    def test_a_message_that_is_too_large_there_does_not_block_the_queue(self):
        for key, answer in (("", accept(b"\x27\0\0\0\x50")), ("size", accept())):
            options = {"bridge_max_packet_size": 128} if key else {}
            self.lines.clear()
            one = self.bridge5(("a", "out", 2), remote_clientid="c" + key, **options)
            remote = self.remote(answer)
            for qos in (0, 1, 2):
                self.broker.publish("a", b"x" * 200, qos)
                self.broker.publish("a", b"small", qos)
            self.world.turn(3)
            self.assertEqual([each[2] for each in self.sent(remote)], [b"small"] * 3)
            self.assertEqual(one.refusals, {"out/size": 3})
            most = 128 if key else 80
            text = f"Bridge 'up': dropped: 207 bytes, and there at most {most}."
            self.assertEqual(self.lines, [text])
            self.assertEqual(self.broker.sessions.head[one.session], 0xFFFF)
            self.broker.end(one.conn, 9)
            self.world.turn(2)
            one.due = 1 << 29

    def test_maximum_qos_and_no_retain(self):
        self.network.down.add(1883)
        one = self.bridge5(("a", "out", 2))
        self.broker.publish("a", b"waited", 2)
        self.broker.publish("a", b"kept", 1, True)
        self.network.down.clear()
        self.dialled()
        remote = self.remote(accept(b"\x24\1\x25\0"))
        self.broker.publish("a", b"new", 2)
        self.world.turn(2)
        self.assertEqual(
            self.sent(remote),
            [
                (2, "a", each) for each in (b"waited", b"kept", b"kept", b"new")
            ],  # kept: retained too
        )
        self.broker.publish("a", b"two", 2)
        self.world.turn(2)
        remote.packets()  # it is on its way, at QoS 1
        remote = self.lose(remote, accept(b"\x24\0\x25\0"))
        self.assertEqual(self.sent(remote), [(0, "a", b"two"), (0, "a", b"kept")])
        self.assertEqual(self.broker.sessions.inflight[one.session], 0)
        self.broker.publish("a", b"", 0, True)

    def test_no_wildcards_and_no_shared_subscriptions(self):
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
        self.assertEqual(self.lines, wanted)
        self.assertTrue(self.one.is_told)
        remote = self.lose(remote, accept(b"", 1))
        self.assertIn(subscribe(65501, "$share/g/s", 8, b""), remote.packets())

    def test_a_subscribe_that_is_larger_than_its_maximum_packet_size_is_not_sent(self):
        long = "a/" + "x" * 40
        self.bridge5((long, "in", 1), ("b", "in"), ("c", "out", 1), notifications=True)
        remote = self.remote(accept(b"\x27\0\0\0\x26"))
        self.assertEqual(remote.packets(), [subscribe(65501, "b", 12, b"")])
        remote.send(packet(0x90, b"\xff\xdd\0\0"))
        self.world.turn(2)
        text = f"Bridge 'up': the other broker has no packets of 50 bytes: '{long}'."
        self.assertEqual(self.lines, [text])
        self.assertEqual((self.one.text(), self.one.is_told), ("up", True))
        self.broker.publish("c", b"x", 1)  # its state was too large, this is not
        self.assertEqual(self.sent(remote), [(2, "c", b"x")])
        publishing.send(self.broker, b"$SYS/broker/connection/edge/state", b"", 0, True)

    def test_what_is_refused_there_is_counted(self):
        one = self.bridge5(("a", "out", 2))
        remote = self.remote(accept())
        for qos in (1, 2, 1):
            self.broker.publish("a", b"x", qos)
        self.world.turn(2)
        for data in remote.packets():
            flags, _, packet_id, _, _ = read_publish(data)
            remote.send(
                packet(PUBACK if flags & 2 else PUBREC, packet_id.to_bytes(2, "big") + b"\x87")
            )
        self.world.turn(2)
        self.assertEqual(one.refusals, {"out/refused": 3})
        self.assertEqual(
            self.lines, ["Bridge 'up': dropped: refused there (0x87, not authorized)."]
        )
        self.assertEqual(self.broker.deliveries.count[0], 0)


class TestTooLarge(FiveCase):
    """A packet that is larger than max_packet is skipped, however it comes."""

    def test_it_is_dropped_and_does_not_come_again(self):
        every = ((3000, ""), (7, ""), (1, ""), (50, "p/"))
        for number, (pieces, prefix) in enumerate(every + every):
            if number == 4:  # as with a hook whose answers are not kept
                self.broker.fast_path = None
                for each in self.broker.bridges.every:
                    each.due = 1 << 29
                    self.broker.end(each.conn, 9)
            self.lines.clear()
            one = self.bridge(("a/#", "in", 2, prefix), remote_clientid=f"c{number}")
            remote = self.remote()
            self.subacks(remote)
            data = b"".join(publish3("a/x", TOO_LARGE, qos, 5 + qos) for qos in (0, 1, 2))
            data += publish3("a/x", b"small", 1, 9) + publish3("a/" + "t" * 2500, b"", 1, 10)
            for at in range(0, len(data), pieces):
                remote.send(data[at : at + pieces])
                self.world.turn(1 if pieces < 100 else 30)
            self.world.turn(10)
            wanted = [ack(PUBACK, 6), ack(PUBREC, 7), ack(PUBACK, 9), ack(PUBACK, 10)]
            self.assertEqual(remote.packets(), wanted)
            self.assertEqual(sum(one.refusals.values()), 4)
            text = "Bridge 'up': dropped: a packet of %d bytes, limit max_packet."
            self.assertEqual(self.lines, [text % (3008 + len(prefix))])
            self.assertFalse(remote.stream.closed)

    def test_one_that_is_malformed_ends_the_connection(self):
        for number, data in enumerate((b"\x36\xff\x7f\0\1a\0\1", b"\x32\xff\x7f\0\1a\0\0")):
            self.bridge(("a", "in", 2), remote_clientid=f"c{number}")
            remote = self.remote()
            self.subacks(remote)
            remote.send(data + bytes(16400))
            self.world.turn(60)
            self.assertTrue(remote.stream.closed)
            self.one.due = 1 << 29

    def test_half_of_one_and_a_lost_connection(self):
        self.bridge(("a", "in", 2))
        remote = self.remote()
        self.subacks(remote)
        remote.send(b"\x32\xff\x7f\0\1a\0\7xx")
        self.world.turn(3)
        self.assertEqual(len(self.broker.bridges.slow), 1)
        remote = self.lose(remote)
        self.assertEqual(self.broker.bridges.slow, {})
        self.assertFalse(remote.stream.closed)

    def test_a_client_is_still_ended(self):
        self.bridge(("a", "in"))
        client = self.world.client("c")
        client.send(b"\x32\xff\x7f\0\1a\0\7xx")
        self.world.turn(3)
        self.assertTrue(client.stream.closed)

    def test_a_prefix_counts_for_the_size_of_a_packet(self):
        for key, answer in (("mqttv50", accept(b"\x27\0\0\0\x80")), ("mqttv311", b"\x20\2\0\0")):
            limit = {} if key == "mqttv50" else {"bridge_max_packet_size": 128}
            options = {"bridge_protocol_version": key, "remote_clientid": key} | limit
            one = self.bridge(("#", "out", 1, "a/", "far/away/"), **options)
            remote = self.remote(answer)
            room = 128 - 2 - 2 - len("far/away/1") - 2 - (key == "mqttv50")
            for size in (room, room + 1, 100, 1):
                self.broker.publish("a/1", b"x" * size, 1)
            self.world.turn(3)
            sizes = []
            for _ in range(6):
                for data in remote.packets():
                    sizes.append(len(data))
                    at = 4 + data[3]
                    remote.send(ack(PUBACK, data[at] << 8 | data[at + 1]))
                self.world.turn(2)
            self.assertEqual(sizes, [128, 128 - room + 100, 128 - room + 1])
            self.assertEqual(one.refusals, {"out/size": 1})
            self.broker.end(one.conn, 9)
            self.world.turn(2)

    def test_bridge_max_packet_size_to_mqtt_3(self):
        one = self.bridge(("a", "out", 1), bridge_max_packet_size=128)
        remote = self.remote()
        for qos in (0, 1):
            self.broker.publish("a", b"x" * 200, qos)
            self.broker.publish("a", b"small", qos)
        self.deliver(remote)
        self.assertEqual(sorted(remote.messages), [(b"a", b"small", 0), (b"a", b"small", 1)])
        self.assertEqual(one.refusals, {"out/size": 2})
