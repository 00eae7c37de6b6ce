# tls_micropython.py - the contract of platform/tls_cpython.py on MicroPython: TLS around a socket,
# in either direction. Its SSLContexts are made by net/tls_context.py.
#
# What mbedTLS and extmod/modtls_mbedtls.c ask for, and how it is met:
#
# - The unix port crashes if an SSLSocket is polled beside sockets (modselect.c moves a pointer
#   that such an object does not have). So the socket below it is polled (platform/poller.py).
# - mbedTLS allocates while it works (rp2: from the heap), and so does recv(). Only these calls
#   unlock the heap: with it unlocked each call of a function allocates its frame.
# - recv() and write() make the handshake; a write during it takes nothing.
# - readinto() reads until it has all, and loses what came before an error, such as the end of a
#   connection without close_notify. So recv() reads record by record.
# - In a large heap what recv() allocates does not fit into the gaps before the tables, and the
#   search for it would begin there each time. plug() fills them: it begins behind the tables then.
# - After "want write" write() must come again with the same length. The bytes are in mbedTLS's
#   record already. So they count as written, `waits` is their number, and write() takes nothing
#   more until they have left.
# - A write that is longer than a record may be cut behind any of several. So at most _CONTENT
#   bytes are written at once; on rp2, what lwIP's memory has space for (platform/lwip.py).
# - It reads on while it gets no plaintext: alerts and refused renegotiations would keep it busy as
#   long as they come. So it has the socket as a Wire, which bounds what a turn reads; and close()
#   closes the socket itself.
# - Errors are OSError or ValueError. All become OSError. Those of _NO_HEAP say that mbedTLS found
#   no heap.
#
# Only so many handshakes of clients are under way: in a small heap one, since each takes much of
# it. The listener stops meanwhile, and one that lasts longer than _QUICK ends if another client
# waits. On a board limit tls_connections bounds all connections. In a small heap a handshake
# begins only if there is heap for it and for plain clients beside it; else, or if it finds none
# later, the client is refused, and counted with those for whom there was no slot.
#
# Owns Loop.tls, and what mbedTLS has for each connection. Allocates.
import io
import sys
from errno import EAGAIN

from slotmq.constants import LOST, TIMED_OUT
from slotmq.fast import copy
from slotmq.platform import heap, ondemand

_WIRE_MOST = 4096  # bytes from the socket for one read()
_CONTENT = 4096  # bytes of a record's content on the smallest ports
_RECORD_HEAD = 96  # bytes of a record beside its content, at most
_GCM = 29  # the same with AES-GCM
_QUICK = 30  # tenths of a second
# Errors of mbedTLS's parts without heap: as module tls raises them, MPI, ASN1, X509, PK, ECP, MD
_NO_HEAP = (12, 16, 106, -10368, -16256, -19840, -20864)
_HALF = 1 << 30
# What a handshake takes of a small heap, in words: two large pieces, then those of 1 KB. Beside it
# there must be what loads the modules of plain clients, in pieces of 4 KB.
_PIECES = (4300, 1200) + (256,) * 8 + (1024,) * 3
_AT_ONCE = 1 if ondemand.IS_SMALL else 64  # handshakes
_READ = 512 if ondemand.IS_SMALL else _CONTENT  # bytes that recv() allocates
_IS_BOUNDED = ondemand.IS_SMALL or sys.platform != "linux"


class Wire(io.IOBase):
    """The socket below mbedTLS. Set `left` before that reads."""

    def __init__(self, sock):
        self.sock = sock
        self.left = 0

    def readinto(self, buf):
        if not self.left:
            return None
        try:
            n = self.sock.readinto(buf, min(len(buf), self.left))
        except OSError as error:  # it must not leave through mbedTLS
            return -error.args[0]
        self.left -= n or 0
        return n

    def write(self, buf):
        try:
            return self.sock.write(buf)
        except OSError as error:
            return -error.args[0]

    def ioctl(self, request, arg):
        return 0  # the socket is polled and closed by itself


class Pipe:
    """TLS around a socket. name: of the server that a client expects; None: this is a server."""

    def __init__(self, loop, sock, context, name=None):
        self.loop = loop
        self.shared = shared_of(loop)
        self.sock = sock
        self.lwip = None if name else loop.lwip
        self.packets = None  # where packets end: each becomes a record
        self.error = None  # text for the log
        self.began = None  # when a client's handshake began
        self.shaking = True  # is the handshake under way?
        self.more = False  # may there be input that causes no event?
        self.is_mute = True  # had the last input no plaintext, or has none come yet?
        self.waits = 0  # bytes in a record that the socket has not taken
        self.received = 0  # bytes that the last read() took from the socket
        self._wire = Wire(sock)
        self._tls = context.wrap_socket(
            self._wire, server_side=name is None, server_hostname=name,
            do_handshake_on_connect=False,
        )  # fmt: skip

    def blocked(self):
        """Something began to wait, or has left."""

    def read(self, buf, n):
        """Up to n bytes of what has come; 0 at the end, None: nothing now."""
        got = 0
        data = None
        self.more = False
        self._wire.left = _WIRE_MOST
        heap.lift()
        try:
            while got < n:
                data = self._tls.recv(min(n - got, _READ))
                if not data:
                    break
                copy(buf, got, data, 0, len(data))
                got += len(data)
                self.shared.plug(data)
            self.more = data is not None and got > 0  # perhaps, or the end
        except (OSError, ValueError, MemoryError) as error:
            if not got:
                self.failed(error)
            self.more = True  # the error comes again
        finally:
            heap.drop()
        self.received = _WIRE_MOST - self._wire.left
        if got and self.shaking:
            self._shaken()
        return got or (None if data is None else 0)

    readinto = read

    def failed(self, error):
        """The connection ends by this error."""
        if isinstance(error, MemoryError) or self.shaking and error.args[0] in _NO_HEAP:
            self.loop.conns.refused += 1 if self.shaking else 0
            self.error = "too little heap"
        elif self.shaking:
            self.error = "TLS: " + reason(error)
        raise OSError(LOST)

    def write(self, buf, off, n):
        """-> how many bytes were taken, perhaps not all; None: none."""
        if self.waits and not self.flush():
            return None
        done = 0
        left = place = 0
        lwip = self.lwip
        packets = self.packets
        self._wire.left = _WIRE_MOST  # for the handshake
        while done < n and not self.waits:
            k = min(n - done, self.shared.most)
            if lwip:
                k = min(k, lwip.may_send(self) - _RECORD_HEAD)
                if k <= 0:
                    break
            if packets:
                left = packets.left
                place = packets.place
                k = packets.cut(buf, off + done, off + done + k) - off - done
            if lwip and lwip.tries and not lwip.at:
                taken = lwip.look(self.sock, self._tls, _GCM, buf, off + done, k)
            else:
                taken = self._write(buf, off + done, k)
            if taken == 0:
                if packets:
                    packets.left = left
                    packets.place = place
                break
            if taken is None:
                if self.shaking:
                    return None
                self.waits = k
                self.blocked()
            elif self.shaking:
                self._shaken()
            done += k
            if lwip:
                lwip.sent(self)
        return done

    def _write(self, buf, off, n):
        heap.lift()
        try:
            return self._tls.write(buf, off, n)
        except (OSError, ValueError, MemoryError) as error:
            self.failed(error)
        finally:
            heap.drop()

    def flush(self):
        """Has the record left? mbedTLS looks at the length only."""
        if self._write(self.shared.filler, 0, self.waits) is None:
            return False
        self.waits = 0
        self.blocked()
        return True

    def _shaken(self):
        self.shaking = False
        self.shared.shaken(self)

    def user(self, is_whole):
        """The client's certificate in DER."""
        return self._tls.getpeercert(True)

    def close(self):
        self.more = False
        self.shared.shaken(self)
        if self.began is not None:
            self.shared.count -= 1
        self._tls.close()
        self.sock.close()


def reason(error):
    """An error of TLS as text."""
    return str(error.args[-1] if error.args else error).strip().replace("\n", "; ")


class Shared:
    """What the connections of a loop share."""

    def __init__(self, loop):
        self.loop = loop
        self.shaking = []  # streams whose handshake is under way, the oldest first
        self.count = 0  # connections of clients
        self.filler = loop.conns.tx  # any bytes
        self.most = min(_CONTENT, len(self.filler))  # bytes that are written at once
        # An object that is too large for any gap before the tables lies behind them.
        size = 0 if ondemand.IS_SMALL else loop.broker.limits.hole_bytes()
        self.edge = _id_at(bytearray(size)) if size else -_HALF

    def plug(self, data):
        """Fill the gaps before the tables with small objects, which the next collection frees."""
        k = 0.0
        while id(data) < self.edge:
            k += 1
            data = k

    def shaken(self, stream):
        """The handshake of this stream is over, one way or the other."""
        if stream in self.shaking:
            heap.lift()  # a list that shrinks is allocated anew
            self.shaking.remove(stream)
            self.loop.listeners.start()
            heap.drop()


def shared_of(loop):
    """The Shared of a loop."""
    loop.tls = getattr(loop, "tls", None) or Shared(loop)
    return loop.tls


def admit(loop, accept_plain, stream_of):
    """-> accept() of a listener; stream_of(sock): the stream of an accepted connection."""
    shared = shared_of(loop)

    def accept_tls():
        if len(shared.shaking) >= _AT_ONCE:
            oldest = shared.shaking[0]
            if loop.broker.now - oldest.began >= _QUICK:
                loop.broker.end(loop.of_stream[oldest], TIMED_OUT)
            raise OSError(EAGAIN)  # the listener stops until the next tick
        found = accept_plain()
        if found:
            try:
                _make_space(loop, shared)
                stream = stream_of(found[0])
                stream.began = loop.broker.now
                shared.shaking.append(stream)
                shared.count += 1
                return stream, found[1]
            except (MemoryError, OSError, ValueError):
                loop.conns.refused += 1
                found[0].close()
        return None

    return accept_tls


def _make_space(loop, shared):
    # MemoryError: there are enough connections, or there is too little heap for one more.
    if _IS_BOUNDED and shared.count >= loop.broker.limits.tls_connections:
        raise MemoryError
    if ondemand.IS_SMALL:
        try:
            _try_space()
        except MemoryError:
            ondemand.forget_all()
            _try_space()


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
