"""What the recorder writes of a broker's messages: duplicates, hooks, wills, origins, time."""

from binascii import hexlify
from struct import unpack

import packets
import packets5
from recorder_case import ANCHOR, BrokerRecorderCase, messages

from slotmq import Limits

RETAIN, ORIGIN = 4, 16
FROM = b"e6614104035f2d2b0000000c00012345"  # board, boot, seq
RECORDED = b"\xe6\x61\x41\x04\x03\x5f\x2d\x2b\x0c\0\0\0\x45\x23\x01\0"


class Hooks:
    """Refuses the topic `closed`; notes each topic that it is asked about."""

    def __init__(self):
        self.topics = []

    def may_publish(self, client_id, topic):
        self.topics.append(topic)
        return topic != b"closed"


def user(key, value):
    return b"\x26" + packets.text(key) + packets.text(value)


def binary(data):
    return b"\x09" + len(data).to_bytes(2, "big") + data


def retained(connect):
    """The same CONNECT, with Will Retain."""
    made = bytearray(connect)
    made[9] |= 0x20  # the flags; the packet is shorter than 128 bytes
    return bytes(made)


class TestInterceptor(BrokerRecorderCase):
    def messages(self):
        """(client id, topic, flags, payload) of what was recorded."""
        return [message for data in self.segments() for message in messages(data)]

    def test_every_message_is_recorded_once_and_in_order(self):
        client = self.come(packets.connect("c"))
        sent = []
        for n in range(60):
            burst = [(b"t/%d" % (n * k % 11), b"%d" % k + b"x" * (n * k % 70)) for k in range(20)]
            self.send(client, b"".join([packets.publish(*each) for each in burst]))
            sent += [(b"c", topic, 0, payload) for topic, payload in burst]
        self.assertTrue(len(self.segments()) > 3)
        self.assertEqual(self.messages(), sent)
        seqs = [record[2] for record in self.records()]
        self.assertEqual(seqs, list(range(len(seqs))))

    def test_messages_of_both_versions_take_the_fast_path(self):
        old = self.come(packets.connect("old"))
        new = self.come(packets5.connect("new"))
        for client, kind in ((old, packets), (new, packets5)):
            self.send(client, kind.publish("t", b"first"))
        calls = []

        def handle(broker, conn, pkt, buf):
            calls.append(conn)
            return 0

        for each in (self.broker, self.broker.five):
            handlers = list(each.handlers)
            handlers[3] = handle  # of PUBLISH
            each.handlers = tuple(handlers)
        sent = []
        for n in range(3):
            for client, kind, name in ((old, packets, b"old"), (new, packets5, b"new")):
                self.send(client, kind.publish("t", b"%d" % n) * 2)
                sent += [(name, b"t", 0, b"%d" % n)] * 2
        self.assertEqual((self.messages()[2:], calls), (sent, []))

    # Duplicates

    def test_a_qos_2_duplicate_is_not_recorded(self):
        for kind, name in ((packets, b"old"), (packets5, b"new")):
            client = self.come(kind.connect(name.decode()))
            before = len(self.messages())
            for n, topic in ((7, "t"), (9, "t"), (11, "u")):
                first = kind.publish(topic, b"%d" % n, 2, n)
                again = bytes((first[0] | 8,)) + first[1:]
                self.send(client, first + again + first)  # the last lacks the DUP flag
                self.send(client, again)
                acks = client.packets()
                self.assertEqual([data[0] for data in acks[-4:]], [0x50] * 4)
                self.send(client, packets.ack(0x62, n) + first)  # the id is free again
                self.send(client, packets.ack(0x62, n))
            payloads = [each[3] for each in self.messages()[before:]]
            self.assertEqual(payloads, [b"7", b"7", b"9", b"9", b"11", b"11"])

    def test_a_qos_1_duplicate_is_recorded_again_as_it_is_delivered_again(self):
        client = self.come(packets.connect("c"))
        sent = packets.publish("t", b"x", 1, 7, dup=True)
        self.send(client, sent + sent)
        self.assertEqual(self.messages(), [(b"c", b"t", 9, b"x")] * 2)

    # Flushes

    def test_no_message_waits_longer_than_the_flush_interval(self):
        for interval in (1, 2, 10):
            self.restart(interval=interval)
            client = self.come(packets.connect("c"))
            waits = []
            waiting = []
            for n in range(120 * interval):
                if n % 3 == 0:
                    client.send(packets.publish("t", b"%d" % n))
                    waiting.append(self.world.clock.ms)
                self.world.turn(1, ms=230)  # the loop waits for 250 at most
                if self.rec.synced == self.rec.written and self.rec.done == self.rec.o[0]:
                    waits += [self.world.clock.ms - ms for ms in waiting]
                    waiting = []
            self.assertTrue(max(waits) <= 1000 * interval, (interval, max(waits)))
            self.assertTrue(max(waits) >= 500 * interval, (interval, max(waits)))

    def test_topics_of_any_length_are_recorded(self):
        self.restart(Limits(routes=1, topic_bytes=512))
        client = self.come(packets.connect("c"))
        sent = []
        for n in (1, 15, 16, 17, 500, 512, 1, 511):
            sent.append((b"c", b"t" * n, 0, b"%d" % n))
            self.send(client, packets.publish("t" * n, b"%d" % n))
        self.assertEqual(self.messages(), sent)

    # Time

    def anchors(self):
        """(quality, seconds, milliseconds, error bound) of all anchors."""
        found = []
        for kind, quality, _, payload in self.records():
            if kind == ANCHOR:
                seconds, ms, error = unpack("<IHI", payload)
                found.append((quality, seconds, ms, error))
        return found

    def test_the_time_that_a_client_publishes_is_an_anchor_in_each_segment(self):
        client = self.come(packets.connect("c"))
        self.send(client, packets.publish("$SLOTMQ/time", b"1795320988.250 40 harvester"))
        self.assertFalse(3 in [each[0] for each in self.anchors()])  # with remote_admin false
        self.restart(remote=True)
        client = self.come(packets.connect("c"))
        self.send(client, packets.publish("$SLOTMQ/time", b"1795320988.250 40 harvester"))
        self.assertEqual(self.anchors()[-1], (3, 1795320988, 250, 40))
        self.send(client, packets.publish("$SLOTMQ/time", b"1795320990"))
        self.assertEqual(self.anchors()[-1], (2, 1795320990, 0, 1000))
        self.send(client, packets.publish("$SLOTMQ/time", b"1795320999.5 7 ntp"))
        self.wait(100)
        while len(self.segments()) < 2:
            self.send(client, packets.publish("t", b"x" * 500))
        quality, seconds, _, error = self.anchors()[-1]
        self.assertEqual((quality, seconds - 1795320999 in (100, 101)), (4, True))
        self.assertEqual(error, 7 + 10)  # 100 ppm of 100 seconds

    # Hooks

    def test_a_hook_is_asked_once_for_each_message(self):
        hooks = self.broker.hooks = Hooks()
        old = self.come(packets.connect("old"))
        new = self.come(packets5.connect("new"))
        sent = []
        for qos in (0, 1, 2):
            for client, kind, name in ((old, packets, b"old"), (new, packets5, b"new")):
                for topic in ("t" + str(qos), "closed"):
                    hooks.topics = []
                    packet_id = qos and 7 + len(sent)
                    self.send(client, kind.publish(topic, name, qos, packet_id))
                    self.assertEqual(hooks.topics, [topic.encode()])
                    self.send(client, packets.ack(0x62, packet_id or 1))
                sent.append((name, b"t%d" % qos, qos, name))
        self.assertEqual(self.messages(), sent)

    def test_a_hook_is_asked_for_each_message_of_a_run_and_for_a_will(self):
        hooks = self.broker.hooks = Hooks()
        client = self.come(packets.connect("c", will=("open", b"gone", 0)))
        topics = ["a", "a", "closed", "a"]
        self.send(client, b"".join([packets.publish(topic, b"x") for topic in topics]))
        client.leave()
        self.world.turn(3)
        self.assertEqual(hooks.topics, [b"open"] + [topic.encode() for topic in topics])
        self.assertEqual([each[1] for each in self.messages()], [b"a", b"a", b"a", b"open"])

    # Wills

    def test_a_will_is_recorded(self):
        for qos in (0, 1, 2):
            client = self.come(packets.connect("c" + str(qos), will=("w", b"gone%d" % qos, qos)))
            client.leave()
            self.world.turn(3)
        kept = self.come(retained(packets5.connect("k", will=("w/5", b"kept", 1, user("a", "b")))))
        self.send(kept, b"\xe0\x01\x04")  # DISCONNECT with its will
        found = [(b"c%d" % qos, b"w", qos, b"gone%d" % qos) for qos in (0, 1, 2)]
        found.append((b"k", b"w/5", 1 | RETAIN, b"kept"))
        self.assertEqual(self.messages(), found)
        self.send(self.come(packets.connect("c")), packets.publish("w/5", b"", retain=True))

    def test_a_will_is_recorded_when_it_is_published(self):
        """After its delay; never if its client sent DISCONNECT."""
        self.send(self.come(packets.connect("p", will=("w", b"gone", 0))), packets.DISCONNECT)
        delay = b"\x18\0\0\0\x05"
        self.come(packets5.connect("c", will=("w", b"late", 1, delay), expiry=60)).leave()
        self.wait(3)
        self.assertEqual(self.messages(), [])
        self.wait(4)
        self.assertEqual(self.messages(), [(b"c", b"w", 1, b"late")])

    def test_a_message_that_waits_for_pubrel_is_recorded_once(self):
        self.restart(qos2_delivery="release")
        client = self.come(packets.connect("c"))
        self.send(client, packets.publish("t", b"x", 2, 7))
        self.send(client, packets.ack(0x62, 7))
        self.assertEqual(self.messages(), [(b"c", b"t", 2, b"x")])

    # Origins

    def origin(self, properties):
        """The flags and the payload of a message with these properties."""
        before = len(self.messages())
        client = self.come(packets5.connect("bridge"))
        self.send(client, packets5.publish("t", b"x", 1, 7, properties))
        self.send(client, packets.DISCONNECT)
        (found,) = self.messages()[before:]
        return found[2:]

    def test_an_origin_is_found_among_all_other_properties(self):
        origin = user("slotmq-origin", FROM)
        others = b"\x01\x01\x02\0\0\0\x3c\x03\0\x01a\x08\0\x01r"
        others += binary(b"\x26" * 9) + user("\x26", "&&")
        for properties in (origin, origin + others, others + origin):
            self.assertEqual(self.origin(properties), (1 | ORIGIN, RECORDED + b"x"))
        upper = user("slotmq-origin", FROM.decode().upper())
        self.assertEqual(self.origin(upper), (1 | ORIGIN, RECORDED + b"x"))

    def test_the_bytes_of_an_origin_within_another_property_are_ignored(self):
        false = user("slotmq-origin", b"f" * 32)
        text = "slotmq-origin" + FROM.decode()
        covers = [user("k", text), user(text, "v"), b"\x03" + packets.text(text)]
        covers += [binary(false), binary(b"x" + false + false)]
        for cover in covers:
            self.assertEqual(self.origin(cover), (1, b"x"))
            true = user("slotmq-origin", FROM)
            self.assertEqual(self.origin(cover + true), (1 | ORIGIN, RECORDED + b"x"))

    def test_an_origin_that_is_not_32_hexadecimal_digits_is_ignored(self):
        for digit in "/:@G`g \u00e6":
            data = digit.encode()
            value = FROM[: 32 - len(data)] + data
            self.assertEqual(self.origin(user("slotmq-origin", value)), (1, b"x"), hexlify(data))
        for value in (FROM[:31], FROM + b"0", b""):
            self.assertEqual(self.origin(user("slotmq-origin", value)), (1, b"x"))
