"""Messages over a bridge, both ways, in MQTT 3.1.1 and 5.0: once and in order, with what the other
broker allows; and those that are too large."""

import packets5
import scratch
from bridge_case import ACCEPTED, RESUMED, BridgeCase, accept, payloads
from packets import (
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    packet,
    publish,
    read_publish,
    subscribe,
)

FIVE = {"bridge_protocol_version": "mqttv50"}
TOO_LARGE = b"x" * 3000


class MessageCase(BridgeCase):
    LIMITS = {"deliveries": 40, "queued": 30, "connections": 9, "sessions": 12, "bridges": 9}  # noqa: RUF012

    def up(self, *topics, answer=None, **options):
        """A bridge whose SUBSCRIBEs are granted; -> the other end."""
        one = self.bridge(*topics, **options)
        remote = self.remote(answer or (accept() if one.is_5 else ACCEPTED))
        if not one.is_5:
            self.subacks(remote, len(one.ins))
        else:
            remote.packets()
        return remote

    def sent(self, remote):
        """(flags, topic, payload) of each PUBLISH of 5.0 that has come, acknowledged at once."""
        found = []
        for _ in range(6):
            for data in remote.packets():
                if data[0] >> 4 == 3:
                    flags, topic, packet_id, _, payload = packets5.read_publish(data)
                    found.append((flags, topic, bytes(payload)))
                    if flags & 6:
                        remote.send(ack(PUBACK if flags & 2 else PUBREC, packet_id))
                elif data[0] == PUBREL:
                    remote.send(ack(PUBCOMP, data[2] << 8 | data[3]))
            self.world.turn(2)
        return found


class TestMessages(MessageCase):
    def test_out_with_each_qos_and_retain(self):
        remote = self.up(("a/#", "out", 2))
        client = self.world.client("c")
        client.send(publish("a/0", b"0") + publish("a/1", b"1", 1, 1, retain=False))
        client.send(publish("a/2", b"2", 2, 2) + publish("b", b"not this") + ack(PUBREL, 2))
        self.world.turn(3)
        self.deliver(remote)
        wanted = [(b"a/0", b"0", 0), (b"a/1", b"1", 1), (b"a/2", b"2", 2)]
        self.assertEqual(sorted(remote.messages), wanted)
        for payload in (b"r", b""):
            client.send(publish("a/r", payload, 0, retain=True))
            self.world.turn(3)
            self.assertEqual(remote.packets(), [publish("a/r", payload, retain=True)])

    def test_both_ways_and_no_echo(self):
        for options, kind, properties in self.each(
            ({}, publish, None), (FIVE, packets5.publish, b"\x01\1")
        ):
            remote = self.up(("#", "both", 2), **options)
            client = self.reader("#", qos=2)
            last = () if properties is None else (properties,)
            remote.send(kind("x", b"0") + kind("x", b"1", 1, 1, *last) + kind("x", b"2", 2, 2))
            self.world.turn(3)
            self.assertEqual(remote.packets(), [ack(PUBACK, 1), ack(PUBREC, 2)])
            remote.send(ack(PUBREL, 2))
            self.world.turn(2)
            self.assertEqual(remote.packets(), [ack(PUBCOMP, 2)])
            for _ in range(4):
                client.answer()
                self.world.turn()
            self.assertEqual(sorted(client.messages), [(b"x", b"%d" % k, k) for k in range(3)])
            self.broker.publish("own", b"y")
            self.world.turn(2)
            self.assertEqual(remote.packets(), [kind("own", b"y")])

    def test_a_broker_that_knows_no_bridges_sends_it_back_once(self):
        """Then it is here twice, and does not go round."""
        remote = self.up(("#", "both", 1), try_private=False)
        client = self.reader("#")
        client.send(publish("a", b"x", 1, 5))
        self.world.turn(3)
        (data,) = remote.packets()
        remote.send(ack(PUBACK, read_publish(data)[3]) + publish("a", b"x", 1, 7))
        self.world.turn(6)
        self.assertEqual(remote.packets(), [ack(PUBACK, 7)])
        self.assertEqual(payloads(client), [(b"a", b"x")] * 2)

    def test_what_nobody_asked_for_keeps_its_topic_and_needs_the_same_rights(self):
        rules = scratch.write("topic read #\nuser u\ntopic here/#\n")
        for user, wanted in self.each((None, [b"here/in", b"other"]), ("u", [b"here/in"])):
            self.start(acl_file=rules)
            remote = self.up(("in", "in", 1, "here/", "there/"), local_username=user)
            client = self.reader("#")
            remote.send(publish("there/in", b"x", 1, 1) + publish("other", b"x", 1, 2))
            self.world.turn(4)
            self.assertEqual(remote.packets(), [ack(PUBACK, 1), ack(PUBACK, 2)])
            self.assertEqual([topic for topic, _ in payloads(client)], wanted)

    def test_requests_come_in_only_by_a_topic_that_names_them(self):
        """Else whoever may publish below a prefix there would rule here."""
        own = "$SLOTMQ/time", "$SLOTMQ/record/b/get", "$SYS/broker/connection/up/state"
        ways = [(("#", "both", 1, "", "r/"), None), (("#", "in", 1), None)]
        ways += [(("$SLOTMQ/time", "in", 1, "", "r/"), own[0]), ((own[0], "in", 1), own[0])]
        ways += [(("time", "in", 1, "$SLOTMQ/", "r/"), own[0]), (("$SYS/#", "in", 1), own[2])]
        for options, kind in (({}, publish), (FIVE, packets5.publish)):
            for way, wanted in self.each(*ways):
                self.broker.log_mask = 4
                remote = self.up(way, **options)
                client = self.reader("$SLOTMQ/#", "$SYS/broker/connection/#")
                for name in own:
                    for sent in (name, "r/" + name, "r/" + name.split("/")[-1]):
                        remote.send(kind(sent, b"{}"))
                        self.world.turn(3)
                seen = {topic.decode() for topic, _ in payloads(client)}
                self.assertEqual(seen, {wanted} - {None}, way)
                denied = [text for text in self.lines if text.startswith("Denied PUBLISH")]
                self.assertEqual(len(denied), 1, self.lines)

    def test_prefixes(self):
        remote = self.up(("t/#", "both", 1, "here/", "over/there/"))
        client = self.reader("here/#", qos=1)
        large = b"x" * 1500  # more than a buffer
        client.send(publish("here/t/1", large, 1, 5) + publish("here/t/0", b""))
        self.world.turn(8)
        remote.send(publish("over/there/t/in", large, 1, 9) + PINGRESP)
        self.deliver(remote, 12)
        wanted = [(b"over/there/t/0", b"", 0), (b"over/there/t/1", large, 1)]
        self.assertEqual(sorted(remote.messages), wanted)
        for _ in range(4):
            client.answer()
            self.world.turn(2)
        self.assertIn((b"here/t/in", large, 1), client.messages)

    def test_prefixes_and_topic_aliases(self):
        five = FIVE | {"bridge_max_topic_alias": 5}
        remote = self.up(("t/#", "both", 1, "", "far/"), answer=accept(b"\x22\0\5"), **five)
        client = self.reader("t/in")
        for payload in (b"1", b"2"):
            self.broker.publish("t/out", payload, 1)
        self.world.turn(2)
        self.assertEqual([each[1] for each in self.sent(remote)], ["far/t/out", ""])
        for topic, payload in (("far/t/in", b"1"), ("", b"2")):
            remote.send(packets5.publish(topic, payload, 0, 0, b"\x23\0\1"))
        self.world.turn(3)
        self.assertEqual(payloads(client), [(b"t/in", b"1"), (b"t/in", b"2")])

    def test_it_says_why_it_leaves_also_with_prefixes(self):
        """Then the connection lingers, and is half closed."""
        remote = self.up(("a", "in", 1, "", "far/"), **FIVE)
        remote.send(subscribe(1, "#", 0, b""))
        self.world.turn(2)
        self.assertEqual(remote.packets(), [packet(0xE0, b"\x82\0")])
        self.wait(3)
        self.assertTrue(remote.stream.closed)

    def test_retained_messages_go_to_a_broker_that_has_not_had_them(self):
        kept = publish("a", b"kept", retain=True)
        self.broker.publish("a", b"kept", 0, True)
        remote = self.up(("a", "out", 1), answer=RESUMED)
        for answer, found in ((RESUMED, []), (ACCEPTED, [kept])):
            remote = self.lose(remote, answer)
            self.assertEqual(remote.packets(), found)
        self.broker.publish("a", b"", 0, True)

    def test_out_without_retain(self):
        self.broker.publish("a", b"kept", 0, True)
        self.bridge(("a", "out", 1), bridge_outgoing_retain=False)
        remote = self.remote()
        self.broker.publish("a", b"new", 0, True)
        self.world.turn(2)
        self.assertEqual(remote.packets(), [publish("a", b"kept"), publish("a", b"new")])
        self.broker.publish("a", b"", 0, True)


class TestCuts(MessageCase):
    """What waits and what is on its way; host_tests/sim/bridges cuts at each packet, and power."""

    def test_what_waits_passes_in_order(self):
        self.network.down.add(1883)
        self.bridge(("a", "out", 2))
        client = self.world.client("c")
        for k in range(12):
            client.send(publish("a", b"%d" % k, 1, k + 1))
            self.world.turn(2)
        self.network.down.clear()
        self.dialled()
        remote = self.remote()
        self.deliver(remote, 20)
        self.assertEqual(remote.messages, [(b"a", b"%d" % k, 1) for k in range(12)])
        self.assertEqual(self.broker.sessions.queued[self.one.session], 0)

    def test_ids_that_the_other_broker_has_forgotten_are_free(self):
        """MQTT 3.1 does not say whether the session is there: what has come counts as known."""
        for options, version, second in self.each(
            ({"qos2_delivery": "receive"}, "mqttv311", [b"first", b"second"]),
            ({"qos2_delivery": "release"}, "mqttv311", [b"first", b"second"]),
            ({}, "mqttv31", [b"first"]),
        ):
            self.start(**options)
            client = self.reader("a")
            remote = self.up(("a", "in", 2), bridge_protocol_version=version)
            remote.send(publish("a", b"first", 2, 7))
            self.world.turn(2)
            remote = self.lose(remote, RESUMED)
            remote.send(publish("a", b"first", 2, 7, dup=True))
            self.world.turn(2)
            remote = self.lose(remote, ACCEPTED)
            remote.send(publish("a", b"second", 2, 7) + ack(PUBREL, 7))
            self.world.turn(3)
            self.assertEqual([payload for _, payload in payloads(client)], second, options)


class TestLimitsThere(MessageCase):
    """What CONNACK of 5.0 says of the other broker."""

    def test_receive_maximum(self):
        remote = self.up(("a", "out", 1), answer=accept(b"\x21\0\2"), **FIVE)
        for k in range(5):
            self.broker.publish("a", b"%d" % k, 1)
        self.world.turn(3)
        first = remote.packets()
        self.assertEqual(len(first), 2)
        remote.send(ack(PUBACK, packets5.read_publish(first[0])[2]))
        self.world.turn(2)
        second = remote.packets()
        self.assertEqual([bytes(packets5.read_publish(data)[4]) for data in second], [b"2"])
        for data in [first[1]] + second:  # noqa: RUF005 - MicroPython
            remote.send(ack(PUBACK, packets5.read_publish(data)[2]))
        self.world.turn(2)
        self.assertEqual([each[2] for each in self.sent(remote)], [b"3", b"4"])

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
        wanted = b"waited", b"kept", b"kept", b"new"  # kept: retained too
        self.assertEqual(self.sent(remote), [(2, "a", each) for each in wanted])
        self.broker.publish("a", b"two", 2)
        self.world.turn(2)
        remote.packets()  # it is on its way, at QoS 1
        remote = self.lose(remote, accept(b"\x24\0\x25\0"))
        self.assertEqual(self.sent(remote), [(0, "a", b"two"), (0, "a", b"kept")])
        self.assertEqual(self.broker.sessions.inflight[one.session], 0)
        self.broker.publish("a", b"", 0, True)

    def test_what_is_refused_there_is_counted(self):
        remote = self.up(("a", "out", 2), **FIVE)
        for qos in (1, 2, 1):
            self.broker.publish("a", b"x", qos)
        self.world.turn(2)
        for data in remote.packets():
            flags, _, packet_id, _, _ = packets5.read_publish(data)
            first = PUBACK if flags & 2 else PUBREC
            remote.send(packet(first, packet_id.to_bytes(2, "big") + b"\x87"))
        self.world.turn(2)
        self.assertEqual(self.one.refusals, {"out/refused": 3})
        line = "Bridge 'up': dropped: refused there (0x87, not authorized)."
        self.assertEqual(self.lines, [line])
        self.assertEqual((self.broker.deliveries.count[0], self.broker.stats[4]), (0, 3))

    def test_a_message_that_is_too_large_there_does_not_block_the_queue(self):
        for options, answer, most in self.each(
            (FIVE, accept(b"\x27\0\0\0\x50"), 80),
            (FIVE | {"bridge_max_packet_size": 128}, accept(), 128),
            ({"bridge_max_packet_size": 128}, ACCEPTED, 128),
        ):
            remote = self.up(("a", "out", 2), answer=answer, **options)
            for qos in (0, 1, 2):
                self.broker.publish("a", b"x" * 200, qos)
                self.broker.publish("a", b"small", qos)
            self.deliver(remote)
            found = [qos for _, payload, qos in remote.messages if payload[-5:] == b"small"]
            self.assertEqual((found, len(remote.messages)), ([0, 1, 2], 3))
            self.assertEqual(self.one.refusals, {"out/size": 3})
            self.assertEqual(len(self.lines), 1)
            self.assertIn(f" bytes, and there at most {most}.", self.lines[0])
            self.assertEqual(self.broker.sessions.head[self.one.session], 0xFFFF)

    def test_a_prefix_counts_for_the_size_of_a_packet(self):
        three = {"bridge_max_packet_size": 128}
        for options, answer, more in self.each(
            (FIVE, accept(b"\x27\0\0\0\x80"), 1), (three, ACCEPTED, 0)
        ):
            remote = self.up(("#", "out", 1, "a/", "far/away/"), answer=answer, **options)
            room = 128 - 2 - 2 - len("far/away/1") - 2 - more
            for size in (room, room + 1, 100, 1):
                self.broker.publish("a/1", b"x" * size, 1)
            sizes = []
            for _ in range(6):
                self.world.turn(2)
                for data in remote.packets():
                    sizes.append(len(data))
                    at = 4 + data[3]
                    remote.send(ack(PUBACK, data[at] << 8 | data[at + 1]))
            self.assertEqual(sizes, [128, 128 - room + 100, 128 - room + 1])
            self.assertEqual(self.one.refusals, {"out/size": 1})


class TestTooLargeHere(MessageCase):
    """What is larger than max_packet is skipped, however it comes: else it would come again."""

    def test_a_packet(self):
        for fast, pieces, prefix in self.each(
            *[(True, 3000, ""), (True, 7, ""), (True, 1, ""), (True, 50, "p/")],
            *[(False, 3000, ""), (False, 7, ""), (False, 1, ""), (False, 50, "p/")],
        ):
            if not fast:  # as with a hook whose answers are not kept
                self.broker.fast_path = None
            remote = self.up(("a/#", "in", 2, prefix))
            data = b"".join(publish("a/x", TOO_LARGE, qos, 5 + qos) for qos in (0, 1, 2))
            data += publish("a/x", b"small", 1, 9) + publish("a/" + "t" * 2500, b"", 1, 10)
            for at in range(0, len(data), pieces):
                remote.send(data[at : at + pieces])
                self.world.turn(1 if pieces < 100 else 30)
            self.world.turn(10)
            wanted = [ack(PUBACK, 6), ack(PUBREC, 7), ack(PUBACK, 9), ack(PUBACK, 10)]
            self.assertEqual(remote.packets(), wanted)
            self.assertEqual((sum(self.one.refusals.values()), self.broker.stats[4]), (4, 4))
            text = "Bridge 'up': dropped: a packet of %d bytes, limit max_packet."
            self.assertEqual(self.lines, [text % (3008 + len(prefix))])
            self.assertFalse(remote.stream.closed)

    def test_one_that_is_malformed_ends_the_connection(self):
        for data in self.each(b"\x36\xff\x7f\0\1a\0\1", b"\x32\xff\x7f\0\1a\0\0"):
            remote = self.up(("a", "in", 2))
            remote.send(data + bytes(16400))
            self.world.turn(60)
            self.assertTrue(remote.stream.closed)

    def test_half_of_one_and_a_lost_connection(self):
        remote = self.up(("a", "in", 2))
        remote.send(b"\x32\xff\x7f\0\1a\0\7xx")
        self.world.turn(3)
        self.assertEqual(len(self.broker.bridges.slow), 1)
        remote = self.lose(remote)
        self.assertEqual((self.broker.bridges.slow, remote.stream.closed), ({}, False))

    def test_a_topic(self):
        for prefix, size in self.each(("", 257), ("p/", 259)):
            remote = self.up(("#", "in", 2, prefix))
            for topic in ("t" * 257, "t" * 300):
                remote.send(publish(topic, b"0") + publish(topic, b"1", 1, 5))
                remote.send(publish(topic, b"2", 2, 6))
                self.world.turn(3)
                self.assertEqual(remote.packets(), [ack(PUBACK, 5), ack(PUBREC, 6)])
                remote.send(ack(PUBREL, 6))
                self.world.turn(2)
                self.assertEqual(remote.packets(), [ack(PUBCOMP, 6)])
            self.assertEqual((self.broker.stats[4], self.one.refusals), (6, {"in/topic": 6}))
            line = f"Bridge 'up': dropped: a topic of {size} bytes, limit topic_bytes."
            self.assertEqual(self.lines, [line])

    def test_a_client_is_still_ended(self):
        for data in self.each(b"\x32\xff\x7f\0\1a\0\7xx", publish("t" * 257, b"")):
            self.bridge(("a", "in"))
            client = self.world.client("c")
            client.send(data)
            self.world.turn(3)
            self.assertTrue(client.stream.closed)
