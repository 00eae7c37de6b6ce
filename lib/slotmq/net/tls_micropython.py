# tls_micropython.py - the contract of platform/tls_cpython.py on MicroPython: connections over TLS
# as streams of the loop. Loaded for the first listener with a certificate; its SSLContext is made
# by net/tls_context.py.
#
# What mbedTLS and extmod/modtls_mbedtls.c ask for, and how it is met:
#
# - The unix port crashes if an SSLSocket is polled beside sockets (modselect.c moves a pointer
#   that such an object does not have). So the socket below it is polled. Input that mbedTLS has
#   read already causes no event: ipoll() serves the streams in `ready` first.
# - The loop has a TlsStream for it, and in of_stream the socket is a callback, handle(). So plain
#   connections pay nothing, but for a call in each turn of a broker that has such a listener.
# - mbedTLS allocates while it works (rp2: from the heap), and so does recv(). Only these calls
#   unlock the heap: with it unlocked each call of a function allocates its frame.
# - readinto() reads until it has all, and loses what came before an error, such as the end of a
#   connection without close_notify. So recv() reads record by record.
# - In a large heap what recv() allocates does not fit into the gaps before the tables, and the
#   search for it would begin there each time. plug() fills them: it begins behind the tables then.
# - After "want write" write() must come again with the same length. The bytes are in mbedTLS's
#   record already. So they count as written, `waits` is their number, and write() takes nothing
#   more until they have left.
# - A write that is longer than a record may be cut behind any of several. So at most _CONTENT
#   bytes are written at once; on rp2, what lwIP's memory has space for (platform/lwip.py).
# - mbedTLS has the socket as a Wire (platform/tls_wire_micropython.py), which bounds what a turn
#   reads. So close() closes the socket itself.
# - Errors are OSError or ValueError. All become OSError. Those of _NO_HEAP say that mbedTLS found
#   no heap.
#
# In a turn one handshake goes on by one step. Only so many are under way: in a small heap one,
# since each takes much of it. The listener stops meanwhile, and one that lasts longer than _QUICK
# ends if another client waits. On a board limit tls_connections bounds all connections. In a small
# heap a handshake begins only if there is heap for it and for plain clients beside it; else, or
# if it finds none later, the client is refused, and counted with those for whom there was no slot.
#
# Owns the streams by their sockets. Allocates.
import sys
from errno import EAGAIN

from slotmq.fast import copy, may_read
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const
from slotmq.platform.tls_packets import Packets
from slotmq.platform.tls_wire_micropython import WIRE_MOST, Wire

_IN = const(1)
_IPOLL = const(3)  # of Loop.at_hand
_SERVE = const(4)
_OUT = const(4)
_HUP = const(16)
_SERVED = const(3)  # of Connections.counts
_LOST = const(9)
_TIMED_OUT = const(8)
_CONTENT = const(4096)  # bytes of a record's content on the smallest ports
_RECORD_HEAD = const(96)  # bytes of a record beside its content, at most
_GCM = const(29)  # the same with AES-GCM
_QUICK = const(30)  # tenths of a second
# Errors of mbedTLS's parts without heap: as module tls raises them, MPI, ASN1, X509, PK, ECP, MD
_NO_HEAP = (12, 16, 106, -10368, -16256, -19840, -20864)
_HALF = 1 << 30
# What a handshake takes of a small heap, in words: two large pieces, then those of 1 KB. Beside it
# there must be what loads the modules of plain clients, in pieces of 4 KB.
_PIECES = (4300, 1200) + (256,) * 8 + (1024,) * 3
_AT_ONCE = 1 if ondemand.IS_SMALL else 64  # handshakes
_READ = 512 if ondemand.IS_SMALL else _CONTENT  # bytes that recv() allocates
_IS_BOUNDED = ondemand.IS_SMALL or sys.platform != "linux"


class TlsStream:
    """A connection over TLS, with the methods of a socket that the loop uses."""

    def __init__(self, owner, sock, context):
        self.owner = owner
        self.sock = sock
        self.why = "TLS handshake not complete"  # for the log; None: it is
        self.began = owner.loop.broker.now
        self.mask = 0  # the events that the loop waits for
        self.waits = 0  # bytes in a record that the socket has not taken
        self.packets = Packets()  # None: net/websocket.py makes a frame of each
        self.is_idle = False  # has the last readinto() found no plaintext?
        self.wire = wire = Wire(sock)
        self.tls = context.wrap_socket(wire, server_side=True, do_handshake_on_connect=False)

    def readinto(self, buf, n):
        ready = self.owner.ready
        ready.discard(self)
        self.owner.reading.discard(self)
        got = 0
        data = None
        self.wire.left = WIRE_MOST
        heap.lift()
        try:
            while got < n:
                data = self.tls.recv(min(n - got, _READ))
                if not data:
                    break
                copy(buf, got, data, 0, len(data))
                got += len(data)
                self.owner.plug(data)
            if data is not None and got:
                ready.add(self)  # there may be more, or the end
        except (OSError, ValueError, MemoryError) as error:
            if not got:
                self._failed(error)
            ready.add(self)  # the error comes again
        finally:
            heap.drop()
        if got and self.why:
            self.why = None
            self.owner.shaken(self)
        self.is_idle = data is None and not got
        return None if self.is_idle else got

    def _failed(self, error):
        if isinstance(error, MemoryError) or self.why and error.args[0] in _NO_HEAP:
            self.owner.loop.conns.refused += 1 if self.why else 0
            self.why = "too little heap"
        elif self.why:
            self.why = "TLS: %s" % str(error.args[-1]).strip().replace("\n", "; ")
        raise OSError(_LOST)

    def write(self, buf, off, n):
        if self.waits and not self.flush():
            return None
        done = 0
        left = place = 0
        lwip = self.owner.loop.lwip
        packets = self.packets
        while done < n and not self.waits:
            k = min(n - done, self.owner.most)
            if lwip:
                k = min(k, lwip.may_send(self) - _RECORD_HEAD)
                if k <= 0:
                    break
            if packets:
                left = packets.left
                place = packets.place
                k = packets.cut(buf, off + done, off + done + k) - off - done
            if lwip and lwip.tries and not lwip.at:
                taken = lwip.look(self.sock, self.tls, _GCM, buf, off + done, k)
            else:
                taken = self._write(buf, off + done, k)
            if taken == 0:
                if packets:
                    packets.left = left
                    packets.place = place
                break
            if taken is None:
                self.waits = k
                self._poll()
            done += k
            if lwip:
                lwip.sent(self)
        return done

    def _write(self, buf, off, n):
        heap.lift()
        try:
            return self.tls.write(buf, off, n)
        except (ValueError, MemoryError):
            raise OSError(_LOST)
        finally:
            heap.drop()

    def _poll(self):
        heap.lift()
        self.owner.modify(self, self.mask)
        heap.drop()

    def flush(self):
        """Has the record left? mbedTLS looks at the length only."""
        if self._write(self.owner.filler, 0, self.waits) is None:
            return False
        self.waits = 0
        self._poll()
        return True

    def user(self, is_whole):
        """The client's certificate in DER."""
        return self.tls.getpeercert(True)

    def close(self):
        self.owner.shaken(self)
        self.tls.close()
        self.sock.close()


class Tls:
    """Stands before the loop's poller."""

    def __init__(self, loop):
        self.loop = loop
        self.inner = loop.poller
        loop.poller = self
        self.inner_ipoll = loop.at_hand[_IPOLL]
        loop.at_hand[_IPOLL] = self.ipoll
        self.ready = set()  # streams that may have input left
        self.reading = set()  # those of them that this turn still has to serve
        self.shaking = []  # streams whose handshake is under way, the oldest first
        self.has_shaken = False  # has a handshake gone on in this turn? Only one does.
        self.filler = loop.conns.tx  # any bytes
        self.most = min(_CONTENT, len(self.filler))  # bytes that are written at once
        self.streams = {}  # socket: TlsStream
        # An object that is too large for any gap before the tables lies behind them.
        size = 0 if ondemand.IS_SMALL else loop.broker.limits.hole_bytes()
        self.edge = _id_at(bytearray(size)) if size else -_HALF
        loop.callbacks.insert(0, self.handle)
        self.index = -len(loop.callbacks)

    def plug(self, data):
        """Fill the gaps before the tables with small objects, which the next collection frees."""
        k = 0.0
        while id(data) < self.edge:
            k += 1
            data = k

    def register(self, stream, mask):
        if type(stream) is TlsStream:
            stream.mask = mask
            self.streams[stream.sock] = stream
            stream = stream.sock
            self.loop.of_stream[stream] = self.index
        self.inner.register(stream, mask)

    def modify(self, stream, mask):
        if type(stream) is TlsStream:
            stream.mask = mask
            if stream.waits:
                mask |= _OUT
            stream = stream.sock
        self.inner.modify(stream, mask)

    def unregister(self, stream):
        if type(stream) is TlsStream:
            self.ready.discard(stream)
            self.reading.discard(stream)
            self.streams.pop(stream.sock, None)
            self.loop.of_stream.pop(stream.sock, None)
            stream = stream.sock
        self.inner.unregister(stream)

    def ipoll(self, timeout_ms):
        self.has_shaken = False
        if self.ready:
            heap.lift()
            self.ready, self.reading = self.reading, self.ready
            while self.reading:
                stream = self.reading.pop()
                self.ready.add(stream)  # until it is read
                if stream.mask & _IN:
                    self.handle(stream.sock)
                    timeout_ms = 0
            heap.drop()
        return self.inner_ipoll(timeout_ms)

    def handle(self, sock):
        """An event of a connection: which one, the poller's callback does not say."""
        # The heap is lifted. This frame is small enough for the C stack; a larger one would leave
        # a gap in the heap, behind which each search would walk over all later garbage.
        heap.drop()
        self._serve(sock)
        heap.lift()  # (not after a MemoryError, which is a defect)

    def _serve(self, sock):
        stream = self.streams[sock]
        if stream.why:
            if self.has_shaken:
                return  # in one of the next turns
            self.has_shaken = True
        broker = self.loop.broker
        conn = broker.conns.counts[_SERVED] = self.loop.of_stream[stream]
        stream.is_idle = False
        active = broker.conns.last_activity[conn]
        try:
            if stream.waits:
                stream.flush()
            event = stream.mask & _IN
            if not stream.waits:
                event |= stream.mask & _OUT
            if event == _IN and broker.fast_path and conn >= 0:
                n = may_read(broker.fast_path, conn)
                if n:
                    self.loop.at_hand[_SERVE](conn, n, broker.fast_path)
                    event = -1
            if event >= 0 and (event or not stream.waits):
                self.loop._other_event(conn, stream, event or _HUP)
        except OSError:
            broker.end(conn, _LOST)
        if stream.is_idle:  # alerts keep nobody connected
            broker.conns.last_activity[conn] = active

    def accepts(self, accept, own):
        """As accept()'s."""

        def accept_tls():
            if len(self.shaking) >= _AT_ONCE:
                oldest = self.shaking[0]
                if self.loop.broker.now - oldest.began >= _QUICK:
                    self.loop.broker.end(self.loop.of_stream[oldest], _TIMED_OUT)
                raise OSError(EAGAIN)  # the listener stops until the next tick
            found = accept()
            if found:
                try:
                    self._make_space()
                    stream = TlsStream(self, found[0], own["tls"])
                    self.shaking.append(stream)
                    return stream, found[1]
                except (MemoryError, OSError, ValueError):
                    self.loop.conns.refused += 1
                    found[0].close()
            return None

        return accept_tls

    def _make_space(self):
        # MemoryError: there are enough connections, or there is too little heap for one more.
        if _IS_BOUNDED and len(self.streams) >= self.loop.broker.limits.tls_connections:
            raise MemoryError
        if ondemand.IS_SMALL:
            try:
                _try_space()
            except MemoryError:
                ondemand.forget_all()
                _try_space()

    def shaken(self, stream):
        """The handshake of this stream is over, one way or the other."""
        if stream in self.shaking:
            heap.lift()  # a list that shrinks is allocated anew
            self.shaking.remove(stream)
            self.loop.listeners.start()
            heap.drop()


def _try_space():
    # A list gives its heap back at once.
    held = []
    try:
        for words in _PIECES:
            held.append([None] * words)
    finally:
        for piece in held:
            piece.clear()


def _id_at(data):
    # The id() of an object at the address of these bytes. (On 32 bits it has 31, with a sign.)
    import uctypes

    at = uctypes.addressof(data)
    return at - 2 * _HALF if _HALF <= at < 2 * _HALF and sys.maxsize < 2 * _HALF else at


def accept(loop, accept_plain, own):
    """-> accept() of a listener of TLS, which wraps what accept_plain() returns. own: that
    listener's settings, whose context a reload replaces."""
    loop.tls = getattr(loop, "tls", None) or Tls(loop)
    return loop.tls.accepts(accept_plain, own)  # of the first one: this module may be loaded again
