"""What the recorder makes of a broker's messages: hooks, wills, origins; on both runtimes."""

import os
from binascii import hexlify
from struct import unpack

import packets
import packets5
import scratch
from recorder_case import ANCHOR, messages, records
from turns5_case import Turns5

from slotmq import Limits
from slotmq.recorder import files
from slotmq.recorder import start as record

RETAIN, ORIGIN = 4, 16
FROM = b"e6614104035f2d2b0000000c00012345"  # board, boot, seq
KEPT = b"\xe6\x61\x41\x04\x03\x5f\x2d\x2b\x0c\0\0\0\x45\x23\x01\0"
GOODBYE = packets.DISCONNECT


class Asked:
    """A hook, and what it was asked about."""

    def __init__(self):
        self.about = []

    def may_publish(self, client_id, topic):
        self.about.append(topic)
        return topic != b"closed"


def user(key, value):
    return b"\x26" + packets.text(key) + packets.text(value)


def binary(data):
    return b"\x09" + len(data).to_bytes(2, "big") + data


def retained(connect):
    """A CONNECT whose will is to be retained."""
    made = bytearray(connect)
    made[9] |= 0x20  # the flags; the packet is shorter than 128 bytes
    return bytes(made)


class TestTaps(Turns5):
    def start(self, limits=None, remote=False, interval=10, **settings):
        super().start(limits, **settings)
        self.broker.settings.record_flush_interval = interval
        self.broker.settings.remote_admin = remote
        self.broker.settings.record_segment_size = 4096
        self.broker.settings.record = (b"#",)
        self.broker.settings.record_events = False
        self.folder = scratch.path() + "/"
        os.mkdir(self.folder)  # noqa: PTH102
        self.rec = record.attach(self.broker, self.broker.settings, self.folder).rec

    def tearDown(self):
        files.close(self.rec)
        super().tearDown()

    def found(self):
        """(client id, topic, flags, payload) of what was recorded; each segment stands alone."""
        return [message for data in self.segments() for message in messages(data)]

    def segments(self):
        self.assertTrue(self.rec.flush())
        found = []
        for segment in files.look(self.rec):
            with open(files.path(self.rec, segment), "rb") as file:  # noqa: PTH123
                found.append(file.read())
        return found

    def say(self, client, data):
        client.send(data)
        self.world.turn(3)

    def test_every_message_is_there_once_and_in_order(self):
        client = self.come(packets.connect("c"))
        sent = []
        for n in range(60):
            burst = [(b"t/%d" % (n * k % 11), b"%d" % k + b"x" * (n * k % 70)) for k in range(20)]
            self.say(client, b"".join([packets.publish(*each) for each in burst]))
            sent += [(b"c", topic, 0, payload) for topic, payload in burst]
        self.assertTrue(len(self.segments()) > 3)
        self.assertEqual(self.found(), sent)
        every = [record[2] for data in self.segments() for record in records(data)]
        self.assertEqual(every, list(range(len(every))))

    # What is sent again

    def test_what_the_receive_list_suppresses_is_recorded_once(self):
        for kind, name in ((packets, b"old"), (packets5, b"new")):
            client = self.come(kind.connect(name.decode()))
            before = len(self.found())
            for n, topic in ((7, "t"), (9, "t"), (11, "u")):
                first = kind.publish(topic, b"%d" % n, 2, n)
                again = bytes((first[0] | 8,)) + first[1:]
                self.say(client, first + again + first)  # the last has no DUP, and ought to
                self.say(client, again)
                acks = client.packets()
                self.assertEqual([data[0] for data in acks[-4:]], [0x50] * 4)
                self.say(client, packets.ack(0x62, n) + first)  # the id is free again
                self.say(client, packets.ack(0x62, n))
            payloads = [each[3] for each in self.found()[before:]]
            self.assertEqual(payloads, [b"7", b"7", b"9", b"9", b"11", b"11"])

    def test_a_duplicate_of_qos_1_is_a_message_each_time_as_for_others(self):
        client = self.come(packets.connect("c"))
        said = packets.publish("t", b"x", 1, 7, dup=True)
        self.say(client, said + said)
        self.assertEqual(self.found(), [(b"c", b"t", 9, b"x")] * 2)

    # Waiting

    def test_nothing_waits_longer_than_the_flush_interval(self):
        for interval in (1, 2, 10):
            self.tearDown()
            self.start(interval=interval)
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

    def test_a_topic_longer_than_all_that_others_have_finds_room(self):
        self.tearDown()
        self.start(Limits(routes=1, topic_bytes=512))
        client = self.come(packets.connect("c"))
        sent = []
        for n in (1, 15, 16, 17, 500, 512, 1, 511):
            sent.append((b"c", b"t" * n, 0, b"%d" % n))
            self.say(client, packets.publish("t" * n, b"%d" % n))
        self.assertEqual(self.found(), sent)

    # Time

    def anchors(self):
        """(quality, seconds, milliseconds, error bound) of all anchors."""
        found = []
        for kind, quality, _, payload in [r for data in self.segments() for r in records(data)]:
            if kind == ANCHOR:
                seconds, ms, error = unpack("<IHI", payload)
                found.append((quality, seconds, ms, error))
        return found

    def test_who_tells_the_time_is_kept_and_told_in_each_segment(self):
        client = self.come(packets.connect("c"))
        self.say(client, packets.publish("$SLOTMQ/time", b"1795320988.250 40 harvester"))
        self.assertFalse(3 in [each[0] for each in self.anchors()])  # with remote_admin false
        self.tearDown()
        self.start(remote=True)
        client = self.come(packets.connect("c"))
        self.say(client, packets.publish("$SLOTMQ/time", b"1795320988.250 40 harvester"))
        self.assertEqual(self.anchors()[-1], (3, 1795320988, 250, 40))
        self.say(client, packets.publish("$SLOTMQ/time", b"1795320990"))
        self.assertEqual(self.anchors()[-1], (2, 1795320990, 0, 1000))
        self.say(client, packets.publish("$SLOTMQ/time", b"1795320999.5 7 ntp"))
        self.wait(100)
        while len(self.segments()) < 2:
            self.say(client, packets.publish("t", b"x" * 500))
        quality, seconds, _, error = self.anchors()[-1]
        self.assertEqual((quality, seconds - 1795320999 in (100, 101)), (4, True))
        self.assertEqual(error, 7 + 10)  # 100 ppm of 100 seconds
        head = b"$SLOTMQ/record/" + hexlify(self.rec.board) + b"/head"
        self.broker.publish(head, b"", retain=True)

    # Hooks

    def test_a_hook_is_asked_once_for_a_message_that_is_recorded(self):
        hooks = self.broker.hooks = Asked()
        old = self.come(packets.connect("old"))
        new = self.come(packets5.connect("new"))
        sent = []
        for qos in (0, 1, 2):
            for client, kind, name in ((old, packets, b"old"), (new, packets5, b"new")):
                for topic in ("t" + str(qos), "closed"):
                    hooks.about = []
                    packet_id = qos and 7 + len(sent)
                    self.say(client, kind.publish(topic, name, qos, packet_id))
                    self.assertEqual(hooks.about, [topic.encode()])
                    self.say(client, packets.ack(0x62, packet_id or 1))
                sent.append((name, b"t%d" % qos, qos, name))
        self.assertEqual(self.found(), sent)

    def test_a_hook_is_asked_for_the_next_message_anew(self):
        hooks = self.broker.hooks = Asked()
        client = self.come(packets.connect("c"))
        topics = ["a", "a", "closed", "a"]
        self.say(client, b"".join([packets.publish(topic, b"x") for topic in topics]))
        self.assertEqual(hooks.about, [topic.encode() for topic in topics])
        self.assertEqual(len(self.found()), 3)

    def test_a_hook_is_asked_for_a_will_too(self):
        hooks = self.broker.hooks = Asked()
        self.say(self.come(packets.connect("p")), packets.publish("closed", b"x"))
        client = self.come(packets.connect("c", will=("open", b"gone", 0)))
        client.leave()
        self.world.turn(3)
        self.assertEqual(hooks.about, [b"closed", b"open"])
        self.assertEqual(self.found(), [(b"c", b"open", 0, b"gone")])

    # Wills

    def test_a_will_is_a_message(self):
        for qos in (0, 1, 2):
            client = self.come(packets.connect("c" + str(qos), will=("w", b"gone%d" % qos, qos)))
            client.leave()
            self.world.turn(3)
        kept = self.come(retained(packets5.connect("k", will=("w/5", b"kept", 1, user("a", "b")))))
        self.say(kept, b"\xe0\x01\x04")  # DISCONNECT with its will
        found = [(b"c%d" % qos, b"w", qos, b"gone%d" % qos) for qos in (0, 1, 2)]
        found.append((b"k", b"w/5", 1 | RETAIN, b"kept"))
        self.assertEqual(self.found(), found)
        self.say(self.come(packets.connect("c")), packets.publish("w/5", b"", retain=True))

    def test_a_will_that_is_not_published_is_none(self):
        client = self.come(packets.connect("c", will=("w", b"gone", 0)))
        self.say(client, GOODBYE)
        self.assertEqual(self.found(), [])

    def test_a_will_that_waits_is_a_message_when_its_time_has_come(self):
        delay = b"\x18\0\0\0\x05"
        client = self.come(packets5.connect("c", will=("w", b"late", 1, delay), expiry=60))
        client.leave()
        self.wait(3)
        self.assertEqual(self.found(), [])
        self.wait(4)
        self.assertEqual(self.found(), [(b"c", b"w", 1, b"late")])

    def test_what_waits_for_pubrel_is_recorded_once(self):
        self.tearDown()
        self.start(qos2_delivery="release")
        client = self.come(packets.connect("c"))
        self.say(client, packets.publish("t", b"x", 2, 7))
        self.say(client, packets.ack(0x62, 7))
        self.assertEqual(self.found(), [(b"c", b"t", 2, b"x")])

    # Origins

    def origin(self, properties):
        """The flags and the payload of a message with these properties."""
        before = len(self.found())
        client = self.come(packets5.connect("bridge"))
        self.say(client, packets5.publish("t", b"x", 1, 7, properties))
        self.say(client, GOODBYE)
        (found,) = self.found()[before:]
        return found[2:]

    def test_an_origin_is_found_among_all_other_properties(self):
        mine = user("slotmq-origin", FROM)
        others = [
            b"\x01\x01",
            b"\x02\0\0\0\x3c",
            b"\x03\0\x01a",
            b"\x08\0\x01r",
            binary(b"\x26" * 9),
        ]
        others.append(user("\x26", "&&"))
        for properties in (mine, mine + b"".join(others), b"".join(others) + mine):
            self.assertEqual(self.origin(properties), (1 | ORIGIN, KEPT + b"x"))
        upper = user("slotmq-origin", FROM.decode().upper())
        self.assertEqual(self.origin(upper), (1 | ORIGIN, KEPT + b"x"))

    def test_what_looks_like_an_origin_within_another_property_is_none(self):
        false = user("slotmq-origin", b"f" * 32)
        said = "slotmq-origin" + FROM.decode()
        covers = [user("k", said), user(said, "v"), b"\x03" + packets.text(said)]
        covers += [binary(false), binary(b"x" + false + false)]
        for cover in covers:
            self.assertEqual(self.origin(cover), (1, b"x"))
            true = user("slotmq-origin", FROM)
            self.assertEqual(self.origin(cover + true), (1 | ORIGIN, KEPT + b"x"))

    def test_what_is_not_32_hexadecimal_digits_is_no_origin(self):
        for digit in "/:@G`g \x10\x19\u00e6":
            data = digit.encode()
            value = FROM[: 32 - len(data)] + data
            self.assertEqual(self.origin(user("slotmq-origin", value)), (1, b"x"), hexlify(data))
        for value in (FROM[:31], FROM + b"0", b""):
            self.assertEqual(self.origin(user("slotmq-origin", value)), (1, b"x"))
