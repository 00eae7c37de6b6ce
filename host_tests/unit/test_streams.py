"""The real loop on streams that fail: every short write, EAGAIN, ENOMEM, and errors."""

import unittest

from fakes import ERR, HUP, MOST, Client, Stream, World
from packets import DISCONNECT, PINGREQ, PINGRESP, PUBREL, ack, connect, publish, subscribe
from tables import counts

from slotmq import Broker, Limits, Settings

EAGAIN, ENOMEM, EBADF, EPIPE, ECONNRESET = 11, 12, 9, 32, 104
SIZES = (0, 1, 50, 126, 127, 300, 620, 640, 1200, 2000)  # tx_bytes is 640

PIECES = list(range(1, 18))
PIECES += (63, 64, 65, 127, 128, 319, 320, 639, 640, 641)


def at_most(size):
    """Every write takes so many bytes."""
    return lambda n: min(n, size)


def every(k, fault, size=MOST):
    """Each k-th write fails, and the others take so many bytes."""
    state = [0]

    def write(n):
        state[0] += 1
        if state[0] % k == 0:
            if fault is None:
                return None
            raise OSError(fault)
        return min(n, size)

    return write


def failing(errno):
    def call(n):
        raise OSError(errno)

    return call


def payload(size, number):
    return bytes([(number + i) & 255 for i in range(size)])


class StreamCase(unittest.TestCase):
    LIMITS = Limits(connections=6)

    def setUp(self):
        settings = Settings()
        settings.sys_interval = 0
        self.world = World(Broker(self.LIMITS, settings))
        self.empty = counts(self.world.broker)
        self.publisher = self.world.client("publisher")
        self.other = self.world.client("other")
        self.subscribe(self.other, 2)

    def subscribe(self, client, qos):
        client.send(subscribe(1, "t/#", qos))
        self.world.turn(2)
        self.assertEqual(client.packets(), [b"\x90\x03\0\1" + bytes((qos,))])

    def tearDown(self):
        for stream in list(self.world.loop.of_stream):
            if isinstance(stream, Stream):
                stream.ended = True
                stream.read = stream.write_some = lambda n: n
        self.world.turn(10)
        self.assertEqual(counts(self.world.broker), self.empty)

    def settle(self, *clients):
        """Turn until nobody has anything to say."""
        quiet = 0
        for _ in range(20000):
            before = [(len(c.stream.received), len(c.stream.sent)) for c in clients]
            self.world.turn()
            for client in clients:
                client.answer()
            after = [(len(c.stream.received), len(c.stream.sent)) for c in clients]
            quiet = quiet + 1 if before == after else 0
            if quiet > 5:
                return
        self.fail("it never ends")

    def publish_all(self, qos, *clients):
        """Messages of all sizes to t/a; -> what a subscriber of QoS 2 is to receive."""
        wanted = []
        for number, size in enumerate(SIZES):
            data = payload(size, number)
            self.publisher.send(publish("t/a", data, qos, number + 1))
            wanted.append((b"t/a", data, qos))
            self.settle(self.publisher, self.other, *clients)
        return wanted

    def check_other(self, wanted):
        self.assertEqual(self.other.messages, wanted)
        self.other.messages = []


class TestWrites(StreamCase):
    def deliver_by(self, write, sizes_lost=False):
        """A subscriber with such writes gets every message, as the other one does."""
        slow = self.world.client("slow")
        self.subscribe(slow, 2)
        slow.stream.write_some = write
        for qos in (1, 2):
            wanted = self.publish_all(qos, slow)
            self.assertEqual(slow.messages, wanted)
            slow.messages = []
            self.check_other(wanted)
        wanted = self.publish_all(0, slow)
        self.check_other(wanted)
        for message in slow.messages:  # QoS 0 may be lost, and never comes in part
            self.assertIn(message, wanted)
        slow.stream.write_some = lambda n: n
        slow.leave()
        self.world.turn(3)

    def test_short_writes_of_every_size(self):
        for size in PIECES:
            with self.subTest(size=size):
                self.deliver_by(at_most(size))

    def test_not_now_from_every_second_and_third_write(self):
        for fault in (None, EAGAIN, ENOMEM):
            for k in (2, 3):
                for size in (1, 7, 500, MOST):
                    with self.subTest(fault=fault, k=k, size=size):
                        self.deliver_by(every(k, fault, size))

    def test_never_now(self):
        """From every write, for as long as it lasts: then all that was queued comes."""
        for fault in (None, EAGAIN, ENOMEM):
            with self.subTest(fault=fault):
                slow = self.world.client("slow")
                self.subscribe(slow, 1)
                slow.stream.write_some = every(1, fault)
                wanted = self.publish_all(1)
                self.check_other(wanted)
                self.assertEqual(slow.messages, [])
                slow.stream.write_some = lambda n: n
                self.settle(slow)
                self.assertEqual(slow.messages, wanted)
                slow.leave()
                self.world.turn(3)

    def test_a_message_in_parts_ends_with_its_connection(self):
        for fault in (None, ENOMEM, ECONNRESET):
            with self.subTest(fault=fault):
                slow = self.world.client("slow")
                self.subscribe(slow, 1)
                slow.stream.write_some = every(3, fault, 10)
                self.publisher.send(publish("t/a", payload(2000, 1), 1, 7))
                self.world.turn(4)
                slow.stream.write_some = failing(EPIPE)
                self.settle(self.publisher, self.other)
                self.assertTrue(slow.stream.closed)
                self.other.messages = []

    def test_an_error_ends_only_its_connection(self):
        for errno in (EPIPE, ECONNRESET, EBADF):
            with self.subTest(errno=errno):
                bad = self.world.client("bad", will=("t/will", "gone", 1))
                self.subscribe(bad, 1)
                bad.stream.write_some = failing(errno)
                self.publisher.send(publish("t/a", b"x", 1, 9))
                self.settle(self.publisher, self.other)
                self.assertTrue(bad.stream.closed)
                self.check_other([(b"t/a", b"x", 1), (b"t/will", b"gone", 1)])

    def test_a_connect_that_cannot_be_answered(self):
        for write in (failing(ENOMEM), failing(EPIPE), lambda n: None, at_most(1)):
            stream = Stream(write=write)
            self.world.listener.waiting.append(stream)
            stream.sent += connect("mute") + subscribe(1, "t/#", 1) + PINGREQ
            self.world.turn(5)
            self.publisher.send(publish("t/a", b"x", 2, 11))
            self.settle(self.publisher, self.other)
            self.check_other([(b"t/a", b"x", 2)])
            stream.ended = True
            stream.write_some = lambda n: n
            self.world.turn(3)
            self.assertTrue(stream.closed)


class TestSmallBuffers(StreamCase):
    LIMITS = Limits(connections=6, tx_bytes=64)

    def test_the_packet_id_where_the_buffer_ends(self):
        """Of a message in parts: header, topic, packet id and payload, cut anywhere."""
        slow = self.world.client("slow")
        behind = self.world.client("behind")  # its buffer is the next one
        self.subscribe(slow, 2)
        self.subscribe(behind, 2)
        for piece in (1, 2, 3, MOST):
            slow.stream.write_some = at_most(piece)
            behind.stream.write_some = every(1, None)
            wanted = []
            for size in range(48, 72):
                topic = b"t/" + b"a" * size
                wanted.append((topic, b"payload", 2))
                self.publisher.send(publish(topic, b"payload", 2, size))
                self.settle(self.publisher, self.other, slow)
            behind.stream.write_some = lambda n: n
            self.settle(behind)
            for client in (slow, behind, self.other):
                self.assertEqual(client.messages, wanted)
                client.messages = []


class TestReads(StreamCase):
    def test_an_error_ends_only_its_connection(self):
        for errno in (ECONNRESET, EBADF, ENOMEM):
            with self.subTest(errno=errno):
                bad = self.world.client("bad", will=("t/will", "gone", 1))
                bad.send(PINGREQ)
                bad.stream.read = failing(errno)
                self.settle(self.other)
                self.assertTrue(bad.stream.closed)
                self.check_other([(b"t/will", b"gone", 1)])

    def test_bytes_in_pieces_of_every_size(self):
        session = publish("t/a", payload(300, 1), 0) + publish("t/b", payload(300, 2), 1, 5)
        session += publish("t/c", payload(1500, 3), 2, 6) + PINGREQ
        wanted = [(b"t/a", payload(300, 1), 0), (b"t/b", payload(300, 2), 1)]
        wanted.append((b"t/c", payload(1500, 3), 2))
        for size in PIECES:
            with self.subTest(size=size):
                self.publisher.stream.read = at_most(size)
                self.publisher.send(session)
                for _ in range(3000):
                    self.world.turn()
                    if PINGRESP in self.publisher.answer():
                        break
                self.settle(self.publisher, self.other)
                self.check_other(wanted)

    def test_answers_behind_a_cut_message_to_oneself(self):
        """The message comes back whole and is answered for, and so is all behind it."""
        sender = self.world.client("sender")
        self.subscribe(sender, 0)
        acks = b"".join([ack(PUBREL, n + 1) for n in range(150)])
        for size in (100, 300, 560, 625):
            data = publish("t/a", payload(size, 1))
            for cut in (1, 16, 63, 90, size // 2, size):
                found = self.in_two(sender, data, cut, acks)
                self.assertIn(data, found)
                self.assertEqual(len(found), 151)

    def test_answers_behind_a_cut_packet(self):
        """However few bytes were missing, its answer has room, and those of the others."""
        sender = self.world.client("sender")
        for data in (ack(PUBREL, 5), publish("t/a", b"x" * 50, 1, 5)):
            for cut in range(1, len(data) + 1):
                found = self.in_two(sender, data, cut, PINGREQ * 330)
                self.assertEqual(found[0][2:], b"\0\5")
                self.assertEqual(found[1:], [PINGRESP] * 330)

    def in_two(self, sender, data, cut, more):
        """What comes for data that was cut, with more behind it; nobody else notices."""
        behind = self.world.client("behind")  # its buffer is the next one
        self.subscribe(behind, 1)
        behind.stream.write_some = every(1, None)
        self.publisher.send(publish("t/first", b"x" * 40, 1, 9))
        self.settle(self.publisher, self.other)
        sender.packets()
        sender.send(data[:cut])
        self.world.turn(2)
        sender.send(data[cut:] + more)
        self.world.turn(6)
        behind.stream.write_some = lambda n: n
        self.settle(behind, self.other)
        self.assertEqual(behind.messages[0], (b"t/first", b"x" * 40, 1))
        self.other.messages = []
        behind.leave()
        self.world.turn(3)
        return sender.packets()

    def test_nothing_now_though_the_poller_said_so(self):
        self.publisher.stream.read = lambda n: None
        self.publisher.send(PINGREQ)
        self.world.turn(5)
        self.assertFalse(self.publisher.stream.closed)
        self.publisher.stream.read = lambda n: n
        self.world.turn(2)
        self.assertEqual(self.publisher.packets(), [PINGRESP])

    def test_what_the_poller_calls_gone_is_read_to_its_end(self):
        for event in (HUP, ERR, HUP | ERR):
            with self.subTest(event=event):
                bad = self.world.client("bad", will=("t/will", "gone", 0))
                bad.send(publish("t/last", b"x") + (DISCONNECT if event == HUP else b""))
                bad.stream.ended = True
                bad.stream.extra = event
                self.world.turn(3)
                self.assertTrue(bad.stream.closed)
                self.other.answer()
                wanted = [(b"t/last", b"x", 0)]
                if event != HUP:
                    wanted.append((b"t/will", b"gone", 0))
                self.check_other(wanted)


class TestMany(StreamCase):
    def test_takeovers_of_streams_that_fail(self):
        """The old stream takes nothing; the new one gets what was in flight, again."""
        first = self.world.client("same", clean=False)
        self.subscribe(first, 1)
        first.stream.write_some = failing(ENOMEM)
        self.publisher.send(publish("t/a", b"x", 1, 3))
        self.settle(self.publisher, self.other)
        second = Client(Stream())
        self.world.listener.waiting.append(second.stream)
        second.send(connect("same", clean=False))
        self.settle(second)
        self.assertTrue(first.stream.closed)
        self.assertEqual(second.messages, [(b"t/a", b"x", 1)])
        second.stream.write_some = failing(EPIPE)
        last = self.world.client("same")
        last.leave()
        self.world.turn(3)
        self.other.messages = []
