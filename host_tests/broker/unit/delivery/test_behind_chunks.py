"""QoS 0 behind a message that goes out in chunks is queued while there is plenty of memory, and
arrives whole and in order; otherwise it is dropped, counted, and the log says so."""

import unittest

import packets5
from fakes import Stream, World
from invariants import broken
from packets import connect, publish, read_publish, subscribe
from tables import counts

from slotmq import Broker, Limits, Settings

ROOM = {"messages": 100, "message_bytes": 400000, "deliveries": 200}
SIZES = (3000, 10, 2000, 900, 1, 5000, 700, 0, 90, 1500, 40)  # tx_bytes is 1024
PROPERTIES = b"\x26\0\1k\0\1v"


class Slow:
    """How much a stream takes: nothing, or so many bytes a turn."""

    def __init__(self):
        self.left = 0

    def __call__(self, n):
        n = min(n, self.left)
        self.left -= n
        return n or None


class BehindCase(unittest.TestCase):
    def start(self, reader, limits=ROOM, **settings):
        limits = Limits(connections=4, tx_bytes=1024, max_packet=8192, **limits)
        self.broker = Broker(limits, Settings(sys_interval=0, **settings))
        self.world = World(self.broker)
        self.lines = []
        self.broker.log = lambda bit, line: self.lines.append(line)
        self.broker.log_mask = 2
        self.slow = Slow()
        self.slow.left = 99
        self.reader = self.world.come(reader, 4, Stream(write=self.slow))
        self.empty = counts(self.broker)
        self.slow.left = 500
        self.reader.packets()
        self.is_5 = reader[8] == 5

    def read(self, most):
        """The payloads that come while the reader takes so many bytes in each turn."""
        size = -1
        while len(self.reader.stream.received) > size:
            size = len(self.reader.stream.received)
            self.slow.left = most
            self.world.turn(2)
        self.slow.left = 0
        found = [data for data in self.reader.packets() if data[0] >> 4 == 3]
        if self.is_5:
            return [packets5.read_publish(data)[4] for data in found]
        return [read_publish(data)[1] for data in found]

    def check_empty(self):
        self.world.turn(4)
        self.assertEqual(counts(self.broker), self.empty)
        self.assertEqual(broken(self.broker), [])


READERS = (
    connect("reader") + subscribe(1, "t", 0),
    packets5.connect("reader") + packets5.subscribe(1, "t", 0),
    packets5.connect("reader", b"\x22\0\x05") + packets5.subscribe(1, "t", 0, b"\x0b\x07"),
)
# How a message leaves: the CONNECT of its client and a function.
WAYS = (
    (connect("w"), lambda data, n: publish("t", data)),
    (connect("w"), lambda data, n: publish("t", data, 1, n + 1)),
    (packets5.connect("w"), lambda data, n: packets5.publish("t", data)),
    (packets5.connect("w"), lambda data, n: packets5.publish("t", data, 0, 0, PROPERTIES)),
)


class TestQueued(BehindCase):
    def test_all_arrive_in_order(self):
        for reader in READERS:
            for first, way in WAYS:
                for most in (7, 300, 4000):
                    with self.subTest(reader=reader, most=most):
                        self.start(reader)
                        writer = self.world.come(first)
                        sent = [bytes((65 + n,)) * size for n, size in enumerate(SIZES)]
                        for n, data in enumerate(sent):
                            writer.send(way(data, n))
                            self.world.turn(8)
                        self.slow.left = 1500
                        self.world.turn(2)  # the first has left, and of the next ones a part
                        for n, data in enumerate(sent):
                            writer.send(way(data, n))
                        self.world.turn(40)
                        self.assertEqual(self.read(most), sent + sent)
                        self.assertEqual((self.broker.stats[4], self.lines), (0, []))
                        writer.leave()
                        self.check_empty()


class TestDropped(BehindCase):
    def arrived(self, reader, limits, size, bound):
        """Of ten messages sent before the reader reads; the others are in one log line, which
        names the bound."""
        self.start(reader, ROOM | limits)
        writer = self.world.come(connect("w"))
        for n in range(10):
            writer.send(publish("t", bytes((65 + n,)) * size))
            self.world.turn(20)
        self.world.turn(4, ms=100)
        found = b"".join([data[:1] for data in self.read(2000)])
        self.assertEqual(self.broker.stats[4], 10 - len(found))
        self.assertIn(" QoS 0 dropped, the first for 'reader': " + bound, self.lines[0])
        writer.leave()
        self.check_empty()
        return found

    def test_once_quotas_would_have_to_be_asked_later_ones_are_dropped(self):
        for limits, bound, wanted in (
            (
                {"message_bytes": 66000},
                "max_session_share 50 of limit message_bytes 65984, ",
                b"ABCDE",
            ),
            (
                {"messages": 8},
                "max_session_share 50 of limit messages 8, 4 in use, 1 needed",
                b"ABCD",
            ),
            (
                {"deliveries": 16},
                "max_session_share 50 of limit deliveries 16, 8 in use, 1 needed",
                b"ABCDEFGHI",
            ),
        ):
            for reader in READERS[:2]:
                self.assertEqual(self.arrived(reader, limits, 6000, bound), wanted)

    def test_a_buffer_that_is_full(self):
        bound = "limit tx_bytes 1024, 1015 in use, 505 needed."
        self.assertEqual(self.arrived(READERS[0], {}, 499, bound), b"ABC")

    def test_a_small_board_queues_none(self):
        """The space is for QoS 1 and 2 of clients that read."""
        bound = "limit message_bytes 65000, 65536 needed to queue QoS 0"
        for reader in READERS[:2]:
            self.assertEqual(self.arrived(reader, {"message_bytes": 65000}, 6000, bound), b"A")

    def test_behind_qos_1_nothing_is_queued(self):
        """It would wait for the window, and later ones would overtake it."""
        # The window is one message.
        reader = connect("reader") + subscribe(1, "t", 0) + subscribe(2, "q", 1)
        self.start(reader, max_inflight_messages=1)
        writer = self.world.come(connect("w"))
        writer.send(publish("q", b"1" * 3000, 1, 1))
        self.world.turn()
        for payload in (b"2", b"3"):
            writer.send(publish("q", payload * 3000, 1, 2))
            writer.send(publish("t", payload))
        self.world.turn(40)
        found = [data[:1] for data in self.read(2000)]
        self.assertEqual(found, [b"1"])  # which the reader has not acknowledged
        self.assertEqual(self.broker.stats[4], 2)

    def test_nothing_overtakes_what_waits_behind_the_readers_own_message(self):
        """The queue: QoS 1, for which the window has no space, and QoS 0 of the reader itself."""
        for reader, own in (
            (connect("reader") + subscribe(1, "t", 0) + subscribe(2, "q", 1), publish),
            (
                packets5.connect("reader")
                + packets5.subscribe(1, "t", 0)
                + packets5.subscribe(2, "q", 1),
                packets5.publish,
            ),
        ):
            for size in (10, 900):
                self.start(reader, max_inflight_messages=1)
                writer = self.world.come(connect("w"))
                writer.send(publish("q", b"1" * 9, 1, 1) + publish("q", b"2" * 9, 1, 2))
                self.world.turn(4)
                self.reader.send(own("t", b"own"))
                self.world.turn(4)
                self.slow.left = 0
                sent = [b"%c" % (65 + n) * size for n in range(4)]
                writer.send(publish("t", b"first" * 200) + publish("t", sent[0]))
                self.world.turn(4)
                writer.send(publish("q", b"3" * 9, 1, 3))
                self.world.turn(4)
                self.slow.left = 5000
                self.world.turn(4)
                for data in sent[1:]:
                    writer.send(publish("t", data))
                    self.world.turn(4)
                self.reader.send(b"\x40\x02\0\1")
                found = self.read(4000)
                found = [data for data in found if data in sent]
                self.assertEqual(found, [data for data in sent if data in found])
                self.assertIn(sent[3], found)
