"""MQTT in WebSocket frames [RFC 6455]: cut, fragmented, between others, wrong, and not taken."""

import unittest

from packets import DISCONNECT, PINGREQ, PINGRESP, ack, connect, publish, subscribe
from stream_case import PIECES, at_most, every, failing
from web_client import (
    ACCEPT,
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Web,
    fragments,
    frame,
    request,
)

from slotmq import Limits

CONNACK = b"\x20\x02\0\0"
SUBACK = b"\x90\x03\0\1\0"
PUBACK_7 = b"\x40\x02\0\7"


def close(code, reason=b""):
    return frame(code.to_bytes(2, "big") + reason, CLOSE)


SESSION = connect("web") + subscribe(1, "t/#", 0) + publish("t/a", bytes(range(200)), 1, 7)
ANSWERS = [CONNACK, SUBACK, publish("t/a", bytes(range(200))), PUBACK_7, PINGRESP]
SESSION += PINGREQ


class Case(unittest.TestCase):
    def setUp(self):
        self.web = Web()
        self.world = self.web.world

    def answered(self, data, **how):
        one = self.web.client(data, **how)
        self.assertEqual(sorted(one.mqtt()), sorted(ANSWERS))
        return one

    def ends(self, one, code):
        self.assertEqual(one.code(), code)
        self.assertTrue(one.stream.closed)


class TestFrames(Case):
    def test_the_answer_of_the_standards_example(self):
        one = self.web.client()
        self.assertEqual(one.lines[0], b"HTTP/1.1 101 Switching Protocols")
        self.assertTrue(b"Sec-WebSocket-Accept: " + ACCEPT in one.lines)
        self.assertTrue(b"Sec-WebSocket-Protocol: mqtt" in one.lines)

    def test_packets_in_one_frame_and_a_packet_in_many(self):
        self.answered(frame(SESSION))
        for size in (1, 2, 3, 5, 7, 125, 126, 127):
            with self.subTest(size=size):
                cuts = range(0, len(SESSION), size)
                frames = [
                    frame(SESSION[at : at + size], mask=bytes((at & 255,) * 4)) for at in cuts
                ]
                self.answered(b"".join(frames), turns=40)

    def test_each_fragmentation_into_two_and_three(self):
        one = self.web.client(frame(connect("web") + subscribe(1, "t", 0)))
        packet = publish("t", b"0123456789")
        wanted = [CONNACK, SUBACK]
        for first in range(len(packet) + 1):
            self.web.send(one, fragments(packet, first))
            wanted.append(packet)
            for second in range(first, len(packet) + 1):
                self.web.send(one, fragments(packet, first, second), 1)
                wanted.append(packet)
        self.world.turn(2)
        self.assertEqual(one.mqtt(), wanted)

    def test_a_frame_of_100_000_bytes(self):
        one = self.web.client(frame(connect("web")))
        packet = publish("nobody", bytes(1000), 1, 7)
        data = packet * 99
        self.web.send(one, frame(data), 400)
        self.assertEqual(one.mqtt(), [CONNACK] + [PUBACK_7] * 99)

    def test_bytes_in_pieces_of_every_size(self):
        parts = frame(SESSION[:50]) + frame(b"", PING) + fragments(SESSION[50:], 20, 90)
        for size in PIECES:
            with self.subTest(size=size):
                stream = self.web.stream(read=at_most(size))
                one = self.web.come(request() + parts, stream, 800 // size + 20)
                self.assertEqual(sorted(one.mqtt()), sorted(ANSWERS))
                self.assertEqual(one.control(), [(PONG, b"")])

    def test_a_mask_of_zeros_and_of_ones(self):
        for mask in (bytes(4), b"\xff" * 4, b"\0\0\0\1"):
            self.answered(frame(SESSION, mask=mask))

    def test_long_packets_both_ways(self):
        self.web = Web(limits=Limits(connections=6, max_packet=20000, message_bytes=60000))
        self.world = self.web.world
        one = self.web.client(frame(connect("web") + subscribe(1, "t", 0)))
        other = self.world.client("other")
        other.send(subscribe(1, "t", 0))
        self.world.turn(3)
        packet = publish("t", bytes(range(250)) * 70)
        self.web.send(one, frame(packet), 200)
        self.assertEqual(one.mqtt(), [CONNACK, SUBACK, packet])
        self.assertEqual(other.packets(), [SUBACK, packet])


class TestControl(Case):
    def test_a_ping_has_its_payload_in_the_answer(self):
        for payload in (b"", b"a", bytes(range(125))):
            one = self.web.client(frame(payload, PING))
            self.assertEqual(one.frames(), [(PONG, payload)])

    def test_control_frames_between_fragments(self):
        packet = connect("web")
        data = frame(packet[:3], fin=False) + frame(b"1", PING) + frame(b"", PONG)
        data += frame(packet[3:5], CONTINUATION, False) + frame(b"2", PING)
        one = self.web.client(data + frame(packet[5:], CONTINUATION))
        self.assertEqual(sorted(one.frames()), [(BINARY, CONNACK), (PONG, b"2")])

    def test_a_pong_that_nobody_asked_for(self):
        one = self.web.client(frame(b"x", PONG) + frame(connect("web")))
        self.assertEqual(one.frames(), [(BINARY, CONNACK)])

    def test_a_ping_that_the_socket_does_not_take(self):
        """The last of them is answered once there is space, though there is no MQTT to send."""
        one = self.web.client(frame(connect("web")))
        one.stream.write_some = at_most(0)
        self.web.send(one, frame(b"first", PING))
        self.web.send(one, frame(b"last", PING))
        one.stream.write_some = at_most(2)
        self.world.turn(20)
        self.assertEqual(one.control()[-1], (PONG, b"last"))
        self.web.send(one, frame(PINGREQ), 10)
        self.assertEqual(one.mqtt(), [CONNACK, PINGRESP])

    def test_one_pong_for_the_pings_of_a_turn(self):
        """It is the last one's [5.5.3], whatever control frame comes behind it, whole or cut."""
        cut = frame(b"cut", PING)[:-1]
        for more in (b"", frame(b"unasked", PONG), cut[:3], cut, frame(b"") + cut):
            one = self.web.client(frame(connect("web")))
            self.web.send(one, frame(b"first", PING) * 9 + frame(b"last", PING) + more)
            self.assertEqual(one.control(), [(PONG, b"last")])

    IDLE = (frame(b"", PING), frame(b"x", PING), frame(b"", PONG), frame(b""))

    def test_strangers_send_a_bounded_number_of_frames_without_mqtt(self):
        for data in self.IDLE:
            for at_once in (1, 5, 500):
                one = self.web.client(b"")
                for _ in range(500 // at_once):
                    if not one.stream.closed:
                        self.web.send(one, data * at_once, 2)
                self.assertEqual(one.code(), 1008)
                self.assertTrue(len(one.control()) < 35, one.control())
        for data in self.IDLE:
            one = self.web.client(data * 20 + frame(connect("web")) + data * 20, turns=20)
            self.assertEqual(one.mqtt(), [CONNACK])

    def test_a_turn_reads_little_of_strangers_and_of_who_sends_many_of_them(self):
        self.web = Web(limits=Limits(connections=6, rx_bytes=8192, tx_bytes=8192))
        self.world = self.web.world
        one = self.web.client(b"", self.web.stream(read=at_most(5000)))
        self.assertTrue(self.most(one, frame(b"\x10\xff\x7f") + frame(b"1") * 700) <= 1024)
        one = self.web.client(frame(connect("web")), self.web.stream(read=at_most(5000)))
        self.most(one, self.IDLE[1] * 700)
        self.assertTrue(self.most(one, self.IDLE[1] * 700) <= 1024)
        self.web.send(one, frame(PINGREQ), 9)
        self.assertEqual(one.mqtt(), [CONNACK, PINGRESP])

    def most(self, one, data):
        """How many bytes are read in a turn, at most."""
        one.stream.sent += data
        found = 0
        left = len(one.stream.sent)
        while left and not one.stream.closed:
            self.world.turn(1)
            found = max(found, left - len(one.stream.sent))
            left = len(one.stream.sent)
        return found

    def test_a_close_frame_is_answered_with_its_code(self):
        for data, code in (
            (close(1000), 1000),
            (close(3999, b"bye"), 3999),
            (frame(b"", CLOSE), 1000),
        ):
            self.ends(self.web.client(data), code)

    def test_disconnect_before_a_close_frame_counts(self):
        witness = self.world.client("witness")
        witness.send(subscribe(1, "will", 0))
        for data, wanted in ((b"", [publish("will", b"gone")]), (frame(DISCONNECT), [])):
            self.world.turn(3)
            witness.packets()
            one = self.web.client(frame(connect("web", will=("will", b"gone", 0))))
            self.web.send(one, data + close(1001))
            self.ends(one, 1001)
            self.assertEqual(witness.packets(), wanted)

    def test_the_brokers_end_has_a_code(self):
        bad = frame(connect("web") + b"\x00\x00")
        self.ends(self.web.client(bad), 1002)
        self.ends(self.web.client(frame(connect("web") + DISCONNECT)), 1000)
        self.ends(self.web.client(frame(connect("web") + b"\x30\xff\xff\x7f")), 1009)
        one = self.web.client(frame(connect("web")))
        self.web.broker.stop()
        self.world.loop.close()
        self.ends(one, 1001)


class TestWrongFrames(Case):
    CASES = (
        (1002, bytes((0x82, 0x00))),  # not masked
        (1002, bytes((0x82, 0x02)) + b"\xc0\0"),
        (1003, frame(b"text", TEXT)),
        (1002, frame(b"", 3)),
        (1002, frame(b"", 7)),
        (1002, frame(b"", 11)),
        (1002, frame(b"", 15)),
        (1002, bytes((0xC2, 0x80)) + bytes(4)),  # reserved bits
        (1002, bytes((0xA2, 0x80)) + bytes(4)),
        (1002, bytes((0x92, 0x80)) + bytes(4)),
        (1002, frame(b"", CONTINUATION)),  # of no message
        (1002, frame(b"", fin=False) + frame(b"")),  # a message in another
        (1002, frame(b"", PING, False)),  # a control frame in fragments
        (1002, frame(bytes(126), PING)),
        (1002, frame(b"1", CLOSE)),
        (1002, close(999)),
        (1002, close(1005)),
        (1002, close(1006)),
        (1002, close(1015)),
        (1002, close(2000)),
        (1002, close(5000)),
        (1007, close(1000, b"\xc3\x28")),
        (1002, frame(b"", form=126)),  # a length in a longer form than needed
        (1002, frame(bytes(125), form=126)),
        (1002, frame(bytes(126), form=127)),
        (1002, bytes((0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF)) + bytes(4)),
        (1002, bytes((0x82, 0xFF, 0x80)) + bytes(11)),  # a length of 64 bits
        (1009, bytes((0x82, 0xFF, 0, 0, 0, 1)) + bytes(8)),
        (1009, bytes((0x82, 0xFF, 0, 0, 0, 0, 0x40)) + bytes(7)),
    )

    def test_each_has_its_close_code(self):
        for code, data in self.CASES:
            with self.subTest(data=data):
                one = self.web.client(frame(connect("web")) + data)
                self.ends(one, code)
                self.assertEqual(one.mqtt(), [CONNACK])
                one = self.web.client(b"", self.web.stream(read=at_most(1)), 250)
                self.web.send(one, data, 150)
                self.ends(one, code)

    def test_packets_before_it_are_handled(self):
        witness = self.world.client("witness")
        witness.send(subscribe(1, "t", 0))
        self.world.turn(3)
        one = self.web.client(
            frame(connect("web")) + frame(publish("t", b"last")) + frame(b"", TEXT)
        )
        self.ends(one, 1003)
        self.assertEqual(witness.packets(), [SUBACK, publish("t", b"last")])


class TestOutput(Case):
    """Sockets that take little, or nothing for now: frames go on where they stopped."""

    def check(self, write, longest=1200):
        one = self.web.client(frame(connect("web") + subscribe(1, "t/#", 0)))
        other = self.world.client("other")
        one.stream.write_some = write
        wanted = [CONNACK, SUBACK]
        sizes = (0, 1, 50, 117, 118, 119, 121, 126, 300, 600, longest)
        for number, size in enumerate(sizes):
            packet = publish("t/a", bytes((number,)) * size)
            other.send(packet)
            wanted.append(packet)
            if number % 3 == 0:
                self.web.send(one, frame(bytes((number,)), PING), 1)
            size = 0
            while size < len(one.stream.received):
                size = len(one.stream.received)
                self.world.turn(9)
        self.assertEqual(one.mqtt(), wanted)
        self.assertTrue(all(kind == PONG for kind, _ in one.control()))
        other.leave()
        one.stream.write_some = at_most(2000)
        self.web.send(one, close(1000))
        self.ends(one, 1000)

    def test_in_pieces_of_every_size(self):
        for size in (1, 2, 3, 4, 5, 6, 63, 125, 126, 127, 128, 129, 130, 319, 640, 641, 644):
            with self.subTest(size=size):
                self.setUp()
                self.check(at_most(size))

    def test_with_nothing_now_and_then(self):
        for k, fault in ((2, None), (3, None), (2, 11), (3, 11)):
            for size in (3, 100, 2000):
                with self.subTest(k=k, fault=fault, size=size):
                    self.setUp()
                    self.check(every(k, fault, size), 620)  # longer ones are dropped

    def test_an_error_ends_the_connection(self):
        one = self.web.client(frame(connect("web")))
        one.stream.write_some = failing(104)
        self.web.send(one, frame(PINGREQ))
        self.assertTrue(one.stream.closed)

    def test_an_end_while_a_frame_is_cut(self):
        one = self.web.client(frame(connect("web") + subscribe(1, "t", 0)))
        other = self.world.client("other")
        left = [10]

        def write(n):
            n = min(n, left[0])
            left[0] -= n
            return n or None

        one.stream.write_some = write
        other.send(publish("t", bytes(100)))
        self.world.turn(3)
        self.web.send(one, close(1000))
        left[0] = 1000
        self.world.turn(5)
        self.assertTrue(one.stream.closed)


class Lwip:
    """As platform/lwip.py: it takes little at once, and only of streams that the loop knows."""

    def __init__(self, loop):
        self.loop = loop

    def write(self, stream, buf, off, n):
        if hasattr(stream, "took"):  # a Pipe, which calls this for its stream
            return stream.write(buf, off, n)
        assert stream in self.loop.of_stream
        return stream.write(buf, off, min(n, 90))

    def may_send(self, stream):
        return 90

    def leaves(self, conn, n):
        return False

    def closing(self, stream):
        assert stream in self.loop.of_stream

    def tick(self):
        pass


class TestLwip(Case):
    def test_its_bounds_are_those_of_the_stream(self):
        self.world.loop.lwip = Lwip(self.world.loop)
        one = self.answered(frame(SESSION) + frame(b"ping", PING), turns=20)
        self.assertEqual(one.control(), [(PONG, b"ping")])
        self.web.send(one, frame(DISCONNECT), 10)
        self.ends(one, 1000)


class TestEveryByte(Case):
    def test_an_end_behind_each_byte(self):
        data = request() + frame(SESSION[:40]) + frame(b"x", PING) + frame(SESSION[40:])
        data += frame(ack(0x40, 1)) + close(1000)
        for cut in range(0, len(data) + 1, 3):
            stream = self.web.stream()
            stream.ended = True
            one = self.web.come(data[:cut], stream, 6)
            self.assertTrue(one.stream.closed)
        self.assertEqual(self.web.broker.conns.count, 0)
        self.answered(frame(SESSION))
