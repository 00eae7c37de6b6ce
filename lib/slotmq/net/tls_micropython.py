# tls_micropython.py - the contract of platform/tls_cpython.py on MicroPython: a listener's
# SSLContext, and connections over TLS as streams of the loop. Loaded for the first listener with a
# certificate.
#
# What mbedTLS and extmod/modtls_mbedtls.c ask for, and how it is met:
#
# - The unix port crashes if an SSLSocket is polled beside sockets (modselect.c moves a pointer
#   that such an object does not have). So the socket below it is polled. Input that mbedTLS has
#   read already causes no event: ipoll() serves the streams in `ready` first.
# - The loop has a TlsStream for it, and in of_stream the socket is a callback, handle(), which is
#   called with the heap unlocked, since mbedTLS allocates. So plain connections pay nothing, but
#   for a call in each turn of a broker that has such a listener.
# - readinto() reads until it has all, and loses what came before an error, such as the end of a
#   connection without close_notify. So recv() reads record by record.
# - After "want write" write() must come again with the same length. The bytes are in mbedTLS's
#   record already. So they count as written, `waits` is their number, and write() takes nothing
#   more until they have left.
# - A write that is longer than a record may be cut behind any of several. So at most _CONTENT
#   bytes are written at once.
# - A failed handshake detaches the socket: close() closes that one itself.
# - Errors are OSError or ValueError. All become OSError.
#
# In a turn one handshake goes on by one step. Only so many are under way: in a small heap one,
# since each takes much of it. The listener stops meanwhile, and one that lasts longer than _QUICK
# ends if another client waits. If there is no heap for one, the client is refused, and counted
# with those for whom there was no slot.
#
# Owns the streams by their sockets. Allocates.
from errno import EAGAIN

import tls

from slotmq.fast import may_read
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const
from slotmq.protocol.dispatch import receive

_IN = const(1)
_OUT = const(4)
_HUP = const(16)
_NONE = const(0xFFFF)
_LOST = const(9)
_TIMED_OUT = const(8)
_CONTENT = const(4096)  # bytes of a record's content on the smallest ports
_READ_AT_ONCE = const(512)  # bytes that recv() allocates
_QUICK = const(30)  # tenths of a second
_AT_ONCE = 1 if ondemand.IS_SMALL else 64  # handshakes


class TlsStream:
    """A connection over TLS, with the methods of a socket that the loop uses."""

    def __init__(self, owner, sock, context):
        self.owner = owner
        self.sock = sock
        self.why = "TLS handshake not complete"  # for the log; None: it is
        self.began = owner.loop.broker.now
        self.mask = 0  # the events that the loop waits for
        self.waits = 0  # bytes in a record that the socket has not taken
        self.tls = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def readinto(self, buf, n):
        ready = self.owner.ready
        ready.discard(self)
        got = 0
        try:
            while got < n:
                data = self.tls.recv(min(n - got, _READ_AT_ONCE))
                if not data:
                    if data is None and not got:
                        return None
                    break
                buf[got : got + len(data)] = data
                got += len(data)
        except (OSError, ValueError) as error:
            if not got:
                if self.why:
                    self.why = "TLS: %s" % str(error.args[-1]).strip().replace("\n", "; ")
                raise OSError(_LOST)
        if got:
            if data is not None:
                ready.add(self)  # there may be more, or the end, or an error
            if self.why:
                self.why = None
                self.owner.shaken(self)
        return got

    def write(self, buf, off, n):
        if self.waits and not self.flush():
            return None
        done = 0
        while done < n and not self.waits:
            k = min(n - done, self.owner.most)
            if self._write(buf, off + done, k) is None:
                self.waits = k
                self._poll()
            done += k
        return done

    def _write(self, buf, off, n):
        heap.lift()
        try:
            return self.tls.write(buf, off, n)
        except ValueError:
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

    def close(self):
        self.owner.shaken(self)
        self.tls.close()
        try:
            self.sock.setblocking(False)  # OSError: it was closed with that
        except OSError:
            return
        self.sock.close()


class Tls:
    """Stands before the loop's poller."""

    def __init__(self, loop):
        self.loop = loop
        self.inner = loop.poller
        loop.poller = self
        broker, of_stream, self.inner_ipoll, rx, ticks_ms = loop.at_hand
        loop.at_hand = broker, of_stream, self.ipoll, rx, ticks_ms
        self.ready = set()  # streams that may have input left
        self.shaking = []  # streams whose handshake is under way, the oldest first
        self.has_shaken = False  # has a handshake gone on in this turn? Only one does.
        self.filler = loop.conns.tx  # any bytes
        self.most = min(_CONTENT, len(self.filler))  # bytes that are written at once
        self.streams = {}  # socket: TlsStream
        loop.callbacks.insert(0, self.handle)
        self.index = -len(loop.callbacks)

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
            self.streams.pop(stream.sock, None)
            self.loop.of_stream.pop(stream.sock, None)
            stream = stream.sock
        self.inner.unregister(stream)

    def ipoll(self, timeout_ms):
        self.has_shaken = False
        if self.ready:
            heap.lift()
            for stream in list(self.ready):
                if stream.mask & _IN:
                    self.handle(stream.sock)
                    timeout_ms = 0
            heap.drop()
        return self.inner_ipoll(timeout_ms)

    def handle(self, sock):
        """An event of a connection: which one, the poller's callback does not say."""
        stream = self.streams[sock]
        if stream.why:
            if self.has_shaken:
                return  # in one of the next turns
            self.has_shaken = True
        broker = self.loop.broker
        conn = self.loop.of_stream[stream]
        try:
            if stream.waits:
                stream.flush()
            event = stream.mask & _IN
            if not stream.waits:
                event |= stream.mask & _OUT
            if event == _IN and broker.fast_path and conn >= 0:
                n = may_read(broker.fast_path, conn)
                if n:
                    self._read(stream, conn, n)
                    return
            if event or not stream.waits:
                self.loop._other_event(conn, stream, event or _HUP)
        except OSError:
            broker.end(conn, _LOST)
        except MemoryError:
            if broker.reading != _NONE:
                raise  # the loop ends the client whose packet it was
            stream.why = "too little heap"
            broker.conns.refused += 1
            broker.end(conn, _LOST)

    def _read(self, stream, conn, n):
        # As the loop's turn
        broker = self.loop.broker
        n = stream.readinto(broker.rx, n)
        if n:
            at = broker.handle_fast(broker.fast_path, conn, broker.rx, 0, n)
            if at < n:
                receive(broker, conn, broker.rx, at, n)
        elif n == 0:
            broker.end(conn, _LOST)

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
                    stream = TlsStream(self, found[0], own["tls"])
                    self.shaking.append(stream)
                    return stream, found[1]
                except (MemoryError, OSError, ValueError):
                    self.loop.conns.refused += 1
                    found[0].close()
            return None

        return accept_tls

    def shaken(self, stream):
        """The handshake of this stream is over, one way or the other."""
        if stream in self.shaking:
            self.shaking.remove(stream)
            self.loop.listeners.start()


def accept(loop, accept_plain, own):
    """-> accept() of a listener of TLS, which wraps what accept_plain() returns. own: that
    listener's settings, whose context a reload replaces."""
    loop.tls = getattr(loop, "tls", None) or Tls(loop)
    return loop.tls.accepts(accept_plain, own)  # of the first one: this module may be loaded again


def make_context(own):
    """-> the SSLContext of a listener with these settings, errors as (key, what was expected), and
    no warnings. None if there are errors."""
    context = tls.SSLContext(tls.PROTOCOL_TLS_SERVER)
    key = "keyfile"
    try:
        context.load_cert_chain(_read(own["certfile"]), _read(own[key]))
        key = "cafile"
        if own.get(key):
            context.load_verify_locations(_read(own[key]))
    except ValueError as error:
        what = "a private key" if "key" in str(error) else "a certificate"
        if key == "keyfile" and "key" not in str(error):
            key = "certfile"
        return None, [(key, "%s in PEM (%s)" % (what, error))], []
    if own.get("require_certificate"):
        context.verify_mode = tls.CERT_REQUIRED
    return context, [], []


def _read(path):
    with open(path, "rb") as file:
        return file.read()
