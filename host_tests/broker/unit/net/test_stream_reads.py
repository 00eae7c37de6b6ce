"""The loop on streams that give few bytes, nothing for now, or an error when read."""

from fakes import ERR, HUP
from packets import DISCONNECT, PINGREQ, PINGRESP, PUBREL, ack, publish
from stream_case import (
    EBADF,
    ECONNRESET,
    ENOMEM,
    PIECES,
    StreamCase,
    at_most,
    every,
    failing,
    payload,
)


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

    def test_answers_behind_a_cut_message_to_its_publisher(self):
        """The publisher gets its message whole, and the answer to each packet behind it."""
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
        """There is space for its answer and the others, however few bytes were missing."""
        sender = self.world.client("sender")
        for data in (ack(PUBREL, 5), publish("t/a", b"x" * 50, 1, 5)):
            n = len(data)
            for cut in (1, 2, 3, n - 33, n - 3, n - 2, n - 1):
                found = self.in_two(sender, data, cut, PINGREQ * 330)
                self.assertEqual(found[0][2:], b"\0\5")
                self.assertEqual(found[1:], [PINGRESP] * 330)

    def in_two(self, sender, data, cut, more):
        """The answers to data that is cut, and to more behind it; no other client is affected."""
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

    def test_a_read_that_would_block_after_all(self):
        self.publisher.stream.read = lambda n: None
        self.publisher.send(PINGREQ)
        self.world.turn(5)
        self.assertFalse(self.publisher.stream.closed)
        self.publisher.stream.read = lambda n: n
        self.world.turn(2)
        self.assertEqual(self.publisher.packets(), [PINGRESP])

    def test_after_hup_and_err_the_stream_is_read_to_its_end(self):
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
