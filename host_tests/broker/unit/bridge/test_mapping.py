"""Topics get other prefixes on their way, however the bytes are cut."""

import unittest

from fakes import Stream
from packets import PUBREC, ack, packet, publish, read_publish, split

from slotmq import Broker, Limits, Settings
from slotmq.bridge.mapping import Mapped, Mapper
from slotmq.bridge.options import Options, topic
from slotmq.platform.runtime import MICROPYTHON

TOPICS = [
    topic("a/#", "both", 2, "here/", "there/long/"),
    topic("", "both", 1, "one", "another/name"),
    topic("plain/+", "both", 0),
]
PAIRS = {
    "here/a/x": "there/long/a/x",
    "here/a": "there/long/a",
    "one": "another/name",
    "plain/x": "plain/x",
    "here/b": "here/b",
}


def messages(names):
    found = [ack(PUBREC, 7), packet(0xD0)]
    for k, name in enumerate(sorted(names)):
        for size in (0, 5, 110, 126, 127, 300, 17000):
            found.append(publish(name, bytes((k + 65,)) * size, k % 3, 9, retain=True))
    return found


class TestMapper(unittest.TestCase):
    def moved(self, side, data, step, room):
        mapper = Mapper(TOPICS, side, 64)
        out = bytearray(room)
        found = bytearray()
        start = 0
        while start < len(data) or mapper.end:
            end = min(len(data), start + step)
            n = mapper.move(data, start, end, out, 0, room)
            found += out[:n]
            start += mapper.used
        return bytes(found)

    def test_each_topic_gets_its_name_on_the_other_side(self):
        pairs = dict(PAIRS)
        back = {there: here for here, there in pairs.items()}
        for side, names in ((0, pairs), (1, back)):
            sent = messages(names)
            wanted = []
            for data in sent:
                if data[0] >> 4 == 3:
                    name, payload, qos, packet_id = read_publish(data)
                    data = publish(names[name.decode()], payload, qos, packet_id, retain=True)
                wanted.append(data)
            for step, room in ((1 << 20, 1 << 20), (1 << 20, 3), (1, 64), (7, 11), (640, 640)):
                found = self.moved(side, b"".join(sent), step, room)
                self.assertEqual(split(found)[0], wanted, (side, step, room))

    def test_a_topic_that_is_too_long_stays_as_it_is(self):
        for size in (68, 72, 500):
            sent = publish("x" * size, b"payload", 1, 7) + ack(PUBREC, 7)
            for step, room in ((1, 640), (640, 640), (50, 7)):
                self.assertEqual(self.moved(1, sent, step, room), sent)

    def test_a_topic_that_is_shorter_than_the_prefix(self):
        """`here/#` matches `here`, too, and no packet may have an empty topic."""
        for there, names in (("far/", ("far", "far/", "far/x")), ("", ("here", "here/", "x"))):
            topics = [topic("#", "both", 1, "here/", there)]
            sent = [publish(name, b"x", 1, 7) for name in ("here", "here/", "here/x")]
            out = bytearray(200)
            n = Mapper(topics, 0, 64).move(b"".join(sent), 0, sum(map(len, sent)), out, 0, 200)
            found = [read_publish(data) for data in split(out[:n])[0]]
            self.assertEqual(found, [(name.encode(), b"x", 1, 7) for name in names])

    def test_no_prefix_makes_a_topic_of_the_broker_s_own(self):
        """Neither by going nor by coming, unless the filter on that side names it."""
        ordinary = topic("#", "both", 1, "", "r/"), topic("+/x", "both", 1, "$S/", "p/")
        named = topic("$SLOTMQ/time", "in", 1, "", "r/"), topic("get", "in", 1, "$SLOTMQ/", "g/")
        for topics, names in (
            (ordinary[:1], {"r/$SLOTMQ/time": "r/$SLOTMQ/time", "r/$": "r/$", "r/a/$": "a/$"}),
            (ordinary, {"r/$SYS/x": "r/$SYS/x", "p/a/x": "$S/a/x"}),
            (ordinary + named, {"r/$SLOTMQ/time": "$SLOTMQ/time", "g/get": "$SLOTMQ/get"}),
        ):
            for side, mine in ((1, topics), (0, [self.turned(each) for each in topics])):
                sent = b"".join([publish(name, b"x", 1, 7) for name in names])
                out = bytearray(300)
                n = Mapper(mine, side, 64).move(sent, 0, len(sent), out, 0, 300)
                found = [read_publish(data)[0].decode() for data in split(out[:n])[0]]
                self.assertEqual(found, list(names.values()))

    def turned(self, one):
        """The same from the other side."""
        found = topic("x")
        found.prefixes, found.filters = [(b, a) for a, b in (one.prefixes, one.filters)]
        return found

    def test_what_is_malformed_stays_as_it_is(self):
        topic = b"there/long/a/x"
        for sent in (
            b"\x30\x05\0\x0e" + topic,  # a topic that is longer than the packet
            b"\x30\x01\0\x0e" + topic,
            b"\x30\xff\xff\xff\xff\x01\0\x0e" + topic + b"x" * 80,  # five bytes of length
            b"\x40\xff\xff\xff\xff\xff\xff\x01" + topic,
        ):
            for step, room in ((1, 640), (640, 640), (50, 7)):
                self.assertEqual(self.moved(1, sent, step, room), sent)


class Bridge:
    options = Options
    ins = outs = TOPICS
    conn = 0


class TestMapped(unittest.TestCase):
    def setUp(self):
        broker = Broker(Limits(), Settings(sys_interval=0))
        broker._loop()
        self.socket = Stream()
        self.socket.fileno = lambda: 7
        self.mapped = self.make(broker)

    def make(self, broker):
        return Mapped(broker, Bridge, self.socket)

    def test_a_write_is_never_reported_whole_while_something_waits(self):
        """Otherwise the loop would not wait until the socket is writable."""
        sent = messages(PAIRS)
        data = b"".join(sent)
        taken = [0, None, 1, 5, 200, None, 1 << 20]
        self.socket.write_some = lambda n: (
            min(n, taken[len(self.socket.received) % 7] or 1) or None
        )
        at = idle = 0
        while at < len(data):
            n = min(640, len(data) - at)
            done = self.mapped.write(data, at, n) or 0
            self.assertLessEqual(done, n)
            if done == n:
                self.assertEqual(self.mapped.out_at, self.mapped.out_end)
            idle = 0 if done else idle + 1
            self.assertLess(idle, 2000)
            at += done
        found = split(self.socket.received)[0]
        self.assertEqual(len(found), len(sent))
        names = [read_publish(data)[0].decode() for data in found if data[0] >> 4 == 3]
        self.assertEqual(set(names), set(PAIRS.values()))

    def test_a_read_gives_no_more_than_there_is_space_for(self):
        sent = messages(PAIRS.values())
        self.socket.sent += b"".join(sent)
        found = bytearray()
        buf = bytearray(50)
        while True:
            n = self.mapped.readinto(buf, 1 + len(found) % 50)
            if n is None:
                if not self.socket.sent:
                    break
                continue
            self.assertLessEqual(n, 1 + len(found) % 50)
            found += buf[:n]
        names = [read_publish(data)[0].decode() for data in split(found)[0][2:]]
        self.assertEqual(set(names), set(PAIRS))
        self.socket.ended = True
        self.assertEqual(self.mapped.readinto(buf, 50), 0)

    def test_malformed_packets_and_cut_ones(self):
        self.socket.sent += b"\x40\xff\xff\xff\xff\x01" + b"x" * 20
        buf = bytearray(640)
        self.assertEqual(self.mapped.readinto(buf, 640), 26)
        for cut in (1, 2, 3, 20):
            self.setUp()
            sent = publish("another/name", b"x" * 30, 1, 7)
            self.socket.sent += sent[:cut]
            n = self.mapped.readinto(buf, 640) or 0
            self.socket.sent += sent[cut:] + ack(PUBREC, 7)
            found = bytes(buf[:n])
            for _ in range(3):
                n = self.mapped.readinto(buf, 640) or 0
                found += buf[:n]
            self.assertEqual(found, publish("one", b"x" * 30, 1, 7) + ack(PUBREC, 7))


if not MICROPYTHON:
    from slotmq.bridge.mapping_cpython import Changer, Polled

    class TestPolled(TestMapped):
        """The same, where the poller polls it."""

        def make(self, broker):
            return Polled(broker, Bridge, self.socket)

    class TestChanger(TestMapper):
        """The same, for as many whole packets as there are."""

        def moved(self, side, data, step, room):
            mapper = Mapper(TOPICS, side, 64)
            made, used = Changer(mapper).change(data)
            out = bytearray(len(data) + 1000)
            n = mapper.move(data, used, len(data), out, 0, len(out))
            return made + bytes(out[:n])

        def test_what_is_known_does_not_grow_for_ever(self):
            changer = Changer(Mapper(TOPICS, 0, 64))
            for k in range(2500):
                made, _ = changer.change(publish(f"here/a/{k}", b"x", 1, 7))
                self.assertEqual(made, publish(f"there/long/a/{k}", b"x", 1, 7))
            self.assertLess(len(changer.known), 1001)
