"""The loop on streams that take few bytes, nothing for now, or fail when written to."""

from fakes import MOST, Stream
from packets import PINGREQ, connect, publish, subscribe
from stream_case import (
    EAGAIN,
    EBADF,
    ECONNRESET,
    ENOBUFS,
    ENOMEM,
    EPIPE,
    PIECES,
    StreamCase,
    at_most,
    every,
    failing,
    payload,
)


class TestWrites(StreamCase):
    def deliver_by(self, write):
        """A subscriber with this write function gets every message, as the other one does."""
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

    def test_every_second_or_third_write_would_block(self):
        for fault in (None, EAGAIN, ENOBUFS):
            for k in (2, 3):
                for size in (1, 7, 500, MOST):
                    with self.subTest(fault=fault, k=k, size=size):
                        self.deliver_by(every(k, fault, size))

    def test_no_write_succeeds_for_a_while(self):
        """Once its socket takes bytes again, the subscriber gets all that was queued."""
        for fault in (None, EAGAIN, ENOBUFS):
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

    def test_a_chunked_message_ends_with_its_connection(self):
        for fault in (None, ENOBUFS, ECONNRESET):
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
        """Also ENOMEM, after which it is unknown how much was sent."""
        for errno in (EPIPE, ECONNRESET, EBADF, ENOMEM):
            with self.subTest(errno=errno):
                bad = self.world.client("bad", will=("t/will", "gone", 1))
                self.subscribe(bad, 1)
                bad.stream.write_some = failing(errno)
                self.publisher.send(publish("t/a", b"x", 1, 9))
                self.settle(self.publisher, self.other)
                self.assertTrue(bad.stream.closed)
                self.check_other([(b"t/a", b"x", 1), (b"t/will", b"gone", 1)])

    def test_a_connack_that_cannot_be_written_affects_no_other(self):
        for write in (failing(ENOBUFS), failing(EPIPE), lambda n: None, at_most(1)):
            first = connect("mute") + subscribe(1, "t/#", 1) + PINGREQ
            stream = self.world.come(first, 5, Stream(write=write)).stream
            self.publisher.send(publish("t/a", b"x", 2, 11))
            self.settle(self.publisher, self.other)
            self.check_other([(b"t/a", b"x", 2)])
            stream.ended = True
            stream.write_some = lambda n: n
            self.world.turn(3)
            self.assertTrue(stream.closed)


class TestSmallBuffers(StreamCase):
    LIMITS = {"connections": 6, "tx_bytes": 64, "message_bytes": 12544}  # noqa: RUF012

    def test_a_chunked_message_at_every_position_of_the_buffers_end(self):
        """Header, topic, packet id and payload of a chunked message, cut anywhere."""
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


class TestTakeover(StreamCase):
    def test_from_a_stream_that_fails_redelivers_what_was_in_flight(self):
        """The old stream takes nothing; the new one gets what was in flight, again."""
        first = self.world.client("same", clean=False)
        self.subscribe(first, 1)
        first.stream.write_some = failing(ENOBUFS)
        self.publisher.send(publish("t/a", b"x", 1, 3))
        self.settle(self.publisher, self.other)
        second = self.world.come(connect("same", clean=False), 0)
        self.settle(second)
        self.assertTrue(first.stream.closed)
        self.assertEqual(second.messages, [(b"t/a", b"x", 1)])
        second.stream.write_some = failing(EPIPE)
        last = self.world.client("same")
        last.leave()
        self.world.turn(3)
        self.other.messages = []
