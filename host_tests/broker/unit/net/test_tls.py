"""Streams over TLS before the loop (net/tls.py, platform/poller.py), and what mbedTLS asks of its
users (net/tls_micropython.py), with one that insists on it."""

import sys
import unittest

from slotmq.net import tls_micropython
from slotmq.platform import heap, poller, runtime
from slotmq.platform.tls_packets import Packets


def of_micropython():
    """slotmq.net.tls as it is there."""
    before = runtime.MICROPYTHON
    kept = sys.modules.pop("slotmq.net.tls", None)
    runtime.MICROPYTHON = True
    __import__("slotmq.net.tls")
    made = sys.modules.pop("slotmq.net.tls")
    runtime.MICROPYTHON = before
    if kept:
        sys.modules["slotmq.net.tls"] = kept
    return made


tls = of_micropython()
IN, OUT, HUP = 1, 4, 16


class Socket:
    """A socket; `space`: how many bytes it takes until it is read."""

    space = 0
    is_open = True

    def setblocking(self, _):
        if not self.is_open:
            raise OSError(9)

    def close(self):
        if not self.is_open:
            raise OSError(9)
        self.is_open = False


class MbedTls:
    """SSLSocket, and the context that makes it: a record that the socket did not take is offered
    again with the same length, or its tail is lost."""

    def __init__(self):
        self.sent = b""
        self.records = []
        self.record = None
        self.received = []  # what recv() returns or raises

    def wrap_socket(self, sock, server_side, server_hostname, do_handshake_on_connect):
        self.sock = sock.sock
        return self

    def write(self, buf, off, n):
        if self.record is None:
            self.record = bytes(buf[off : off + n])
        assert n == len(self.record), "another length"
        if self.sock.space < n:
            return None
        self.sock.space -= n
        self.sent += self.record
        self.records.append(self.record)
        self.record = None
        return n

    def recv(self, n):
        found = self.received.pop(0) if self.received else None
        if isinstance(found, Exception):
            raise found
        assert found is None or len(found) <= n
        return found

    def close(self):
        pass


class Unpolled:
    """A stream that always has input."""

    polled = None
    in_line = False
    more = True

    def __init__(self):
        self.served = []

    def polled_for(self, mask):
        self.wanted = mask

    def event(self, conn):
        self.served.append(conn)


class Loop:
    """What a stream uses of the loop, its broker and its poller."""

    now = refused = reading = 0
    fast_path = lwip = None
    tls_connections = 1

    def __init__(self):
        self.poller = self.broker = self.conns = self.listeners = self.limits = self
        self.tx = bytearray(5000)
        self.counts = [0] * 4
        self.of_stream = {}
        self.at_hand = [self, self, self.of_stream, self.inner_ipoll]
        self.callbacks = []
        self.masks = {}
        self.last_activity = {7: 0, 8: 0}
        self.stream = {7: None, 8: None}
        self.events = []
        self.starts = 0

    def register(self, stream, mask):
        self.masks[stream] = mask

    modify = register

    def unregister(self, stream):
        del self.masks[stream]

    def inner_ipoll(self, timeout_ms):
        return timeout_ms

    def hole_bytes(self):
        return 0

    def start(self):
        self.starts += 1

    def end(self, conn, reason):
        self.events.append((conn, "ends"))

    def _other_event(self, conn, stream, event):
        self.events.append((conn, event))


class TestTlsStream(unittest.TestCase):
    def setUp(self):
        self.loop = Loop()
        self.poller = poller.of(self.loop)
        self.sock = Socket()
        self.mbedtls = MbedTls()
        self.stream = self.connect(7, self.sock, self.mbedtls)

    def connect(self, conn, sock, context, name=None):
        stream = tls.TlsStream(self.loop, sock, context, name)
        stream.packets = None  # no test but that of packets sends any
        self.loop.of_stream[stream] = conn
        self.poller.register(stream, IN)
        return stream

    def ipoll(self):
        """The beginning of a turn; -> how long the system's poller may wait."""
        return self.loop.at_hand[3](250)

    def handle(self, sock):
        self.poller.turn += 1
        self.poller.chosen = None
        self.event(sock)

    def event(self, sock):
        heap.lift()  # as the loop does
        self.loop.callbacks[0](sock)
        heap.drop()

    def test_what_the_socket_does_not_take_is_offered_again_with_its_length(self):
        data = bytearray(bytes(range(200)) * 50)
        self.sock.space = 5000
        self.assertEqual(self.stream.write(data, 0, 10000), 8192)  # the second record waits
        self.assertEqual(self.loop.masks[self.sock], IN | OUT)
        self.assertEqual(self.stream.write(data, 8192, 1808), None)
        self.sock.space = 5000
        self.assertEqual(self.stream.write(data, 8192, 1808), 1808)
        self.assertEqual(self.mbedtls.sent, bytes(data[:8192]))
        self.sock.space = 5000
        self.handle(self.sock)
        self.assertEqual(self.mbedtls.sent, bytes(data))
        self.assertEqual(self.loop.masks[self.sock], IN)
        self.assertEqual(self.loop.events, [(7, IN)])

    def test_while_a_record_waits_the_loop_writes_nothing(self):
        self.stream.shaking = False
        self.stream.write(b"abc", 0, 3)
        self.poller.modify(self.stream, IN | OUT)
        self.handle(self.sock)
        self.assertEqual(self.loop.events, [(7, IN)])
        self.sock.space = 3
        self.handle(self.sock)
        self.assertEqual(self.loop.events[1:], [(7, IN | OUT)])

    def test_a_client_writes_when_its_handshake_is_complete(self):
        """As a bridge does: the socket is writable, and it has nothing to say yet."""
        sock, context = Socket(), MbedTls()
        stream = self.connect(8, sock, context, "a.b")
        self.poller.modify(stream, IN | OUT)
        self.assertEqual(self.loop.masks[sock], IN | OUT)  # it is not connected
        self.assertEqual(stream.write(b"CONNECT", 0, 7), None)
        self.handle(sock)
        self.assertEqual(self.loop.masks[sock], IN)
        sock.space = 7
        self.assertEqual(stream.write(b"CONNECT", 0, 7), 7)
        self.handle(sock)
        self.poller.modify(stream, IN | OUT)
        self.assertEqual((self.loop.masks[sock], context.sent), (IN | OUT, b"CONNECT"))

    def test_what_came_before_an_error_is_read_first(self):
        self.mbedtls.received = [b"ab", b"c", OSError(-29312)]
        buf = bytearray(8)
        self.assertEqual(self.stream.readinto(buf, 8), 3)
        self.assertEqual(bytes(buf[:3]), b"abc")
        # There is no event for the error: the next turn looks, and does not wait.
        self.assertEqual(self.ipoll(), 0)
        self.assertEqual(self.loop.events, [(7, IN)])
        self.mbedtls.received = [OSError(-29312)]
        with self.assertRaises(OSError):
            self.stream.readinto(buf, 8)
        self.assertEqual(self.ipoll(), 250)

    def test_input_that_is_not_wanted_now_does_not_keep_the_loop_busy(self):
        self.mbedtls.received = [b"abcd"]
        self.assertEqual(self.stream.readinto(bytearray(4), 4), 4)
        self.poller.modify(self.stream, 0)
        self.assertEqual(self.ipoll(), 250)
        self.poller.modify(self.stream, IN)
        self.assertEqual(self.ipoll(), 0)

    def test_one_that_ends_in_the_event_of_its_handshake_is_not_polled_again(self):
        def ends(*_):
            self.poller.unregister(self.stream)
            self.stream.close()

        self.loop._other_event = ends
        self.handle(self.sock)
        self.assertEqual(self.loop.masks, {})

    def test_a_handshake_below_another_stream(self):
        """As a bridge's with prefixes: what it has to say waits for the socket at once."""
        inner = self.connect(8, Socket(), MbedTls(), "a.b")
        outer = Unpolled()
        outer.polled, outer.polled_for, outer.event = inner.polled, inner.polled_for, inner.event
        self.loop.of_stream[outer] = 8
        self.poller.unregister(inner)
        del self.loop.of_stream[inner]
        self.poller.register(outer, IN | OUT)

        def shakes(*_):
            inner.shaking = False

        self.loop._other_event = shakes
        self.handle(inner.polled)
        self.assertEqual(self.loop.masks[inner.polled], IN | OUT)
        inner.shaking = True
        self.loop._other_event = lambda *_: None
        self.handle(inner.polled)
        self.assertEqual(self.loop.masks[inner.polled], IN)

    def test_an_error_of_what_waits_ends_the_connection(self):
        def lost(*_):
            raise OSError(104)

        self.stream.shaking = False
        self.stream.write(b"abc", 0, 3)
        self.mbedtls.write = lost
        self.handle(self.sock)
        self.assertEqual(self.loop.events, [(7, "ends")])

    def test_plaintext_does_not_count_as_idle(self):
        def come(n):
            self.stream._wire.left -= 100
            self.mbedtls.recv = lambda n: None
            return b"abcd"

        self.mbedtls.recv = come
        self.assertEqual(self.stream.readinto(bytearray(8), 8), 4)
        self.assertEqual(self.poller.idle, 96)

    def test_a_stream_that_nothing_polls(self):
        """Its input is served as what others have kept."""
        stream = Unpolled()
        self.loop.of_stream[stream] = 8
        self.poller.register(stream, IN)
        self.poller.keep(stream)
        self.assertEqual((self.ipoll(), stream.served), (0, [8]))
        self.poller.modify(stream, 0)
        self.assertEqual((self.ipoll(), stream.served), (250, [8]))
        self.poller.modify(stream, IN)
        self.poller.unregister(stream)
        self.assertEqual((self.ipoll(), stream.served), (250, [8]))
        self.assertEqual(list(self.loop.masks), [self.sock])

    def test_a_failed_handshake_closes_its_socket(self):
        self.mbedtls.received = [ValueError("\nbad certificate\n")]
        with self.assertRaises(OSError):
            self.stream.readinto(bytearray(4), 4)
        self.assertEqual(self.stream.why, "TLS: bad certificate")
        self.poller.unregister(self.stream)
        self.stream.close()
        self.assertFalse(self.sock.is_open)
        self.assertEqual(list(self.loop.of_stream), [self.stream])
        self.assertEqual((self.loop.masks, self.poller.streams), ({}, {}))

    def test_a_turn_reads_so_much(self):
        """mbedTLS reads on while nothing is plaintext; an error of the socket does not leave
        through it."""
        wire = self.stream._wire
        self.sock.readinto = lambda buf, n: n
        for _ in range(2):
            self.stream.readinto(bytearray(100), 100)
            count = 0
            while wire.readinto(bytearray(1000)):
                count += 1000
            self.assertEqual((count, wire.readinto(bytearray(1))), (5000, None))

        def lost(_buf, _n):
            raise OSError(104)

        self.stream.readinto(bytearray(100), 100)
        self.sock.readinto = lost
        self.assertEqual(wire.readinto(bytearray(1)), -104)

    def test_what_is_no_plaintext_is_no_activity(self):
        def read(conn, stream, event):
            self.loop.last_activity[conn] = 9
            self.stream.readinto(bytearray(4), 4)

        self.loop._other_event = read
        for received, wanted in (([], 5), ([b"a"], 9)):
            self.mbedtls.received = received
            self.loop.last_activity[7] = 5
            self.handle(self.sock)
            self.assertEqual(self.loop.last_activity[7], wanted)

    def test_the_next_handshake_begins_when_one_is_complete(self):
        accepted = []
        own = {"tls": self.mbedtls}
        accept = tls.accept(self.loop, lambda: accepted.pop(0) if accepted else None, own)
        streams = []
        for _ in range(64):
            accepted.append((Socket(), "address"))
            streams.append(accept()[0])
            self.loop.of_stream[streams[-1]] = len(streams)
        accepted.append((Socket(), "address"))
        with self.assertRaises(OSError):
            accept()
        self.assertEqual(self.loop.events, [])
        self.loop.now = 30
        with self.assertRaises(OSError):
            accept()
        self.assertEqual(self.loop.events, [(1, "ends")])
        self.mbedtls.received = [b"a"]
        streams[1].readinto(bytearray(4), 4)
        self.assertEqual(self.loop.starts, 1)
        self.assertEqual(accept()[1], "address")

    def test_one_handshake_goes_on_in_a_turn(self):
        """The others have theirs in the next turns, without an event of the system."""
        other = self.connect(8, Socket(), MbedTls())
        self.ipoll()
        self.event(self.sock)
        self.event(other.polled)
        self.event(other.polled)
        self.assertEqual(self.loop.events, [(7, IN)])
        self.assertEqual(self.ipoll(), 0)
        self.event(other.polled)  # it was served
        self.event(self.sock)
        self.assertEqual(self.loop.events, [(7, IN), (8, IN)])
        self.poller.unregister(self.stream)
        self.assertEqual(self.ipoll(), 250)
        for stream in (other, self.connect(7, Socket(), MbedTls())):
            stream.is_mute = stream.shaking = False
            self.event(stream.polled)
        self.assertEqual(self.loop.events[2:], [(8, IN), (7, IN)])

    def test_a_turn_reads_so_much_that_is_no_plaintext(self):
        """Those that are not read wait in a line."""
        streams = [self.connect(8, Socket(), MbedTls()) for _ in range(3)]
        self.ipoll()
        self.poller.idle = 1 << 16
        self.stream._wire.left = 0
        self.sock.readinto = lambda buf, n: n
        self.mbedtls.recv = lambda n: self.stream._wire.readinto(bytearray(100)) and None
        self.assertEqual(self.stream.readinto(bytearray(4), 4), None)
        self.assertTrue(self.poller.idle > 1 << 16)
        served = []
        for stream in streams:
            stream.shaking = stream.is_mute = False
            stream._tls.received = [b"a"]
            self.assertEqual(stream.readinto(bytearray(4), 4), None)
            stream.event = lambda _, stream=stream: served.append(stream)
        streams[1].wanted = 0
        self.assertEqual(self.ipoll(), 0)
        self.assertEqual(served, [streams[0], streams[2]])

    def test_no_heap_for_a_handshake(self):
        """mbedTLS has many errors for that."""
        for error in (MemoryError(), OSError(12), OSError(16), OSError(-19840)):
            self.setUp()
            self.mbedtls.received = [error]
            with self.assertRaises(OSError):
                self.stream.readinto(bytearray(4), 4)
            self.assertEqual((self.stream.why, self.loop.refused), ("too little heap", 1))
        self.mbedtls.wrap_socket = no_heap
        other = Socket()
        self.assertEqual(tls.accept(self.loop, lambda: (other, 1), {"tls": self.mbedtls})(), None)
        self.assertEqual((self.loop.refused, other.is_open), (2, False))

    def test_a_client_that_is_there_finds_no_heap(self):
        self.stream.shaking = False
        self.mbedtls.received = [MemoryError()]
        with self.assertRaises(OSError):
            self.stream.readinto(bytearray(4), 4)
        self.assertEqual((self.stream.why, self.loop.refused), ("too little heap", 0))

    def test_a_board_bears_so_many(self):
        own = {"tls": self.mbedtls}
        before = tls_micropython._IS_BOUNDED
        tls_micropython._IS_BOUNDED = True
        try:
            self.assertEqual(tls.accept(self.loop, lambda: (Socket(), 2), own)()[1], 2)
            other = Socket()
            self.assertEqual(tls.accept(self.loop, lambda: (other, 1), own)(), None)
            self.assertEqual((self.loop.refused, other.is_open), (1, False))
            self.loop.tls.shaking[0].close()
            self.assertEqual(tls.accept(self.loop, lambda: (Socket(), 3), own)()[1], 3)
        finally:
            tls_micropython._IS_BOUNDED = before

    def test_each_packet_is_a_record(self):
        """Also where they are cut, by the end of what is written or of lwIP's memory."""
        packets = b"\xd0\0", b"0\xc8\1" + bytes(200), b"\x40\2\0\1", b"0\2\0\0"
        data = bytearray(b"".join(packets))
        wanted = [data[:2], data[2:102], data[102:205], data[205:209], data[209:210], data[210:]]
        self.stream.packets = Packets()
        self.sock.space = 10000
        self.stream.lwip = lwip = Lwip()
        at = 0
        for space, taken in ((500, 2), (196, 100), (0, 0), (500, 103), (101, 4), (97, 1)):
            lwip.space = space
            self.assertEqual(self.stream.write(data, at, len(data) - at), taken)
            at += taken
        self.stream.lwip = None
        self.assertEqual(self.stream.write(data, at, len(data) - at), 3)
        self.assertEqual(self.mbedtls.records, [bytes(each) for each in wanted])

    def test_a_record_that_found_no_heap_is_cut_again(self):
        self.stream.packets = Packets()
        self.sock.space = 10000
        self.stream.lwip = lwip = Lwip()
        lwip.at = 0
        lwip.tries = lwip.space = 1000
        data = bytearray(b"\xd0\0\xd0\0")
        self.assertEqual(self.stream.write(data, 0, 4), 0)
        self.stream.lwip = None
        self.assertEqual(self.stream.write(data, 0, 4), 4)
        self.assertEqual(self.mbedtls.records, [b"\xd0\0"] * 2)

    def test_what_lwip_has_space_for(self):
        """Records are longer than what is in them."""
        self.stream.lwip = lwip = Lwip()
        data = bytearray(range(200))
        self.sock.space = 10000
        for space, taken in ((296, 200), (196, 100), (96, 0), (0, 0)):
            lwip.space = space
            self.assertEqual(self.stream.write(data, 0, 200), taken)
        self.assertEqual(self.mbedtls.sent, bytes(data + data[:100]))
        self.assertEqual(lwip.progress, 2)


def no_heap(*_, **__):
    raise MemoryError


class Lwip:
    """Its memory for one connection: `space` bytes, until more are written."""

    at = 1
    progress = tries = 0

    def may_send(self, stream):
        return self.space

    def look(self, *_):
        return 0  # no heap

    def sent(self, stream):
        self.progress += 1
        self.space = 0


if __name__ == "__main__":
    unittest.main()
