# websocket.py - MQTT over WebSocket [RFC 6455]: what stands between the loop and the stream of a
# connection. Loaded for the first listener with `protocol websockets`.
#
#   stream ─readinto─> rx, frames ─unwrap, in place─> rx, MQTT         (fast/frames_*.py)
#   stream <─write─ [rest] header + tx <─flush─ tx, MQTT
#
# A connection begins as Request (net/upgrade.py), which reads HTTP and becomes a WebSocket or
# sends a file. Both are a Pipe, which Connections.attached has in place of the stream. The poller
# and lwIP's bounds go on with the stream.
#
# What flush() writes is one frame. Its header is put before it into the buffer, over bytes that
# are restored afterwards, so that one write has both. A frame that the stream took a part of goes
# on with what is written next: to MQTT frames are a stream of bytes. Whatever else leaves (answers
# to ping and close, the answer to a request, files) is in rest[at:end] and leaves first, between
# frames. If tx is empty meanwhile, hold() puts one byte into it, so that the loop polls for space
# and writes again; that byte never leaves.
#
# Owns the state of each such connection: 430 bytes of heap and its objects, allocated when it is
# accepted. Frames allocate nothing.
from slotmq.constants import (CODE_PROTOCOL, CODE_SIZE, EAGAIN, ENOBUFS, F_AT, F_CLOSE, F_CONTROL,
    F_DONE, F_SIZE, LEFT, LOST, MALFORMED, NEW, PROTOCOL, TOO_BIG)
from slotmq.fast import copy, utf8_ok
from slotmq.platform import ondemand
from slotmq.platform.arrays import i32
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.frames_viper import unwrap
else:
    from slotmq.fast.frames_cpython import unwrap

_MOST_IDLE = 32  # frames without MQTT: before CONNECT, later in one read
_SLOW_READ = 1024  # bytes
_STOPS = 10
_F_WORDS = 8
_F_MOST_CONTROL = 125
_F_PING = 9
# Close codes [RFC 6455, 7.4.1]
_CODE_NORMAL = 1000
_CODE_GOING = 1001
_CODE_TEXT = 1007
_CODE_POLICY = 1008


class Pipe:
    """Has the methods of a stream that the loop reads from and writes to."""

    why = None  # for the log

    def __init__(self, loop):
        self.loop = loop
        self.stream = None
        self.conn = 0
        self.rest = b""
        self.at = self.end = 0
        self.is_held = False  # is the first byte of tx that of hold()?
        self.result = 0  # the connection ends with it once the rest has left; 0: it goes on
        self.packets = None  # over TLS: where they end
        self.sock = self  # whose shutdown() half_close() calls

    def opened(self, conn):
        """The connection has a slot."""
        self.conn = conn
        self.loop.conns.attached[conn] = self

    def recv(self, n):
        """As readinto(); the loop calls it where an error may follow, see Loop._read."""
        buf = bytearray(n)
        stream = self.stream
        if hasattr(stream, "recv"):
            data = stream.recv(n)
            k = len(data)
            buf[:k] = data
        else:
            k = stream.readinto(buf, n)
        k = k and self.took(buf, 0, k)
        if k is None and not self.result:
            raise OSError(EAGAIN)
        return buf[: k or 0]

    def readinto(self, buf, n):
        n = self.stream.readinto(buf, n)
        return n and self.took(buf, 0, n)

    def put(self, buf, off, n):
        """Write to the stream; -> how many bytes it took."""
        lwip = self.loop.lwip
        try:
            if lwip:
                return lwip.write(self.stream, buf, off, n) or 0
            return self.stream.write(buf, off, n) or 0
        except OSError as error:
            if error.args[0] not in (EAGAIN, ENOBUFS):
                raise
            return 0

    def push(self):
        """Has the rest left?"""
        while self.at < self.end:
            done = self.put(self.rest, self.at, self.end - self.at)
            if not done:
                return False
            self.at += done
        return True

    def hold(self):
        """Have the loop write, even if there is no MQTT to be written."""
        conns = self.loop.conns
        if conns.is_empty(self.conn) and conns.reserve(self.conn, 1) >= 0:
            self.is_held = True

    def finish(self):
        """All has left: end the connection."""
        self.loop.broker.end(self.conn, self.result)

    def close(self):
        self.stream.close()


class WebSocket(Pipe):
    """Frames. Its first rest is the answer to the request."""

    def __init__(self, request, answer):
        super().__init__(request.loop)
        self.stream = request.stream
        self.state = i32(_F_WORDS)
        self.control = bytearray(F_CONTROL + _F_MOST_CONTROL)
        self.pong = bytearray(2 + _F_MOST_CONTROL)  # the answer to the last ping
        self.own = bytearray(2 + _F_MOST_CONTROL)  # control frames, headers that left in part
        self.left = 0  # bytes that the frame under way still needs
        self.is_pinged = False  # is there a ping to be answered?
        self.idle = 0  # frames without MQTT, up to _MOST_IDLE
        self.is_slow = True  # it has not said CONNECT, or sends many of those: reads are short
        self.code = 0  # of the close frame, where result says how the connection ends
        self.is_closed = False  # was the close frame sent?
        self.is_busy = True  # is there anything else than MQTT between frames?
        self.packets = request.packets
        self.rest = answer
        self.end = len(answer)
        self.opened(request.conn)
        self.hold()

    def readinto(self, buf, n):
        if self.is_slow:
            self.is_slow = self.idle > _MOST_IDLE or self._is_new()
            if self.is_slow:
                n = min(n, _SLOW_READ)
        n = self.stream.readinto(buf, n)
        return n and self.took(buf, 0, n)

    def _is_new(self):
        return self.loop.conns.state[self.conn] == NEW

    def took(self, buf, at, end):
        """Take the frames off buf[at:end]; -> how many bytes of MQTT are in buf now, or None."""
        if self.result:
            return None
        if not self.is_slow:
            self.idle = 0
        state = self.state
        state[F_DONE] = 0
        state[F_AT] = at
        while not self.result:
            event = unwrap(state, self.control, buf, end)
            if not event:
                break
            if event == F_CLOSE:
                self._closed()
            elif event >= _CODE_NORMAL:
                result = TOO_BIG if event == CODE_SIZE else PROTOCOL
                self.give_up(event, result)
            else:
                self._idle(event)
        if self.is_pinged:  # the last one only [5.5.3]
            self._between() or self.hold()
        return state[F_DONE] or None

    def _idle(self, event):
        # A frame without MQTT: a ping, a pong, or one without bytes.
        if self.idle <= _MOST_IDLE:
            self.idle += 1
        elif self._is_new():
            self.give_up(_CODE_POLICY, PROTOCOL)
            return
        else:
            self.is_slow = True
        if event == _F_PING:
            self.is_pinged = self.is_busy = True
            size = self.state[F_SIZE]
            self.pong[0] = 0x8A
            self.pong[1] = size
            copy(self.pong, 2, self.control, F_CONTROL, size)

    def _closed(self):
        # The client closes: answer with its code [5.5.1].
        size = self.state[F_SIZE]
        control = self.control
        code = control[F_CONTROL] << 8 | control[F_CONTROL + 1] if size > 1 else _CODE_NORMAL
        if size == 1 or not _may_be_sent(code):
            self.give_up(CODE_PROTOCOL, PROTOCOL)
        elif not utf8_ok(control, F_CONTROL + 2, size - 2, 2):
            self.give_up(_CODE_TEXT, PROTOCOL)
        else:
            self.give_up(code, LOST)

    def give_up(self, code, result):
        """End the connection with this code, once the packets before were handled and answered."""
        self.code = code
        self.result = result
        self.is_busy = True
        self.is_pinged = False
        self.hold()

    def _goodbye(self, code):
        # Send a close frame, once, and if that is possible: nothing waits for it.
        if self.is_closed:
            return
        self.is_closed = True
        try:
            if not self.left and self.push():
                own = self.own
                own[0] = 0x88
                own[1] = 2
                own[2] = code >> 8
                own[3] = code & 255
                self.put(own, 0, 4)
        except OSError:
            pass  # the client has gone

    def _between(self):
        # Send what is to leave between two frames; -> has all of it left?
        if not self.push():
            return False
        if self.is_pinged and not self.left:
            self.is_pinged = False
            self.end = 2 + self.pong[1]
            copy(self.own, 0, self.pong, 0, self.end)
            self.rest = self.own
            self.at = 0
            return self.push()
        return True

    def write(self, buf, off, n):
        """Write n bytes of MQTT as a frame; -> how many the stream took."""
        if self.is_busy:
            return self._write_busy(buf, off, n)
        if not n:
            return 0
        size = 2 if n < 126 else 4
        if off < size and not MICROPYTHON and n <= 0xFFFF:
            return self.send(memoryview(buf)[off : off + n])
        if off < size or n > 0xFFFF:
            return self._write_apart(buf, off, n)
        at = off - size
        first = buf[at]
        second = buf[at + 1]
        third = buf[off - 2]
        fourth = buf[off - 1]
        buf[at] = 0x82
        if size == 2:
            buf[at + 1] = n
        else:
            buf[at + 1] = 126
            buf[off - 2] = n >> 8
            buf[off - 1] = n & 255
        try:
            done = self.put(buf, at, n + size)
        finally:
            if size == 4:
                buf[off - 2] = third
                buf[off - 1] = fourth
            buf[at] = first
            buf[at + 1] = second
        return self._sent(done, n, size, buf[off]) if done < n + size else n

    def _sent(self, done, n, size, first):
        # So many bytes of a frame have left: of its header, and of its payload of n bytes, which
        # begins with `first`. -> how many of the payload count as sent. If any of the header has
        # left, the first byte counts, and waits: else these bytes may never be written again.
        if done > size:
            self.is_busy = True
            self.left = n + size - done
            return done - size
        if done:
            self.is_busy = True
            self.left = n - 1
            self._header(n)
            self.own[size] = first
            self.at = done
            self.end = size + 1
            return 1
        return 0

    def _header(self, n):
        # Make the header of a frame of n bytes the rest; -> its size.
        own = self.own
        own[0] = 0x82
        if n < 126:
            own[1] = n
            size = 2
        else:
            size = 4 if n < 65536 else 10
            own[1] = 126 if size == 4 else 127
            at = size
            while at > 2:
                at -= 1
                own[at] = n & 255
                n >>= 8
        self.rest = own
        self.at = 0
        self.end = size
        return size

    def _write_apart(self, buf, off, n):
        # There is no space for the header before these bytes.
        size = self._header(n)
        self.at = size
        done = self.put(self.own, 0, size)
        if done == size:
            done += self.put(buf, off, n)
        return self._sent(done, n, size, buf[off]) if done < n + size else n

    def _write_busy(self, buf, off, n):
        if not self._between():
            return 0
        taken = 0
        if self.is_held:  # its byte does not leave
            self.is_held = False
            taken = 1
        more = min(self.left, n - taken)
        if more > 0:
            done = self.put(buf, off + taken, more)
            self.left -= done
            if self.packets:
                self.packets.cut(buf, off + taken, off + taken + done)
            taken += done
            if done < more:
                return taken
        if self.left or not self._between():
            return taken
        if taken < n:
            self.is_busy = False
            taken += self.write(buf, off + taken, n - taken)
        if self.result:
            self.is_busy = True
            if taken == n:
                self._goodbye(self.code)
                self.finish()
        elif not self.left:
            self.is_busy = False
        return taken

    def send(self, data):
        """write() of bytes or a memoryview, for fast/turn_cpython.py."""
        n = len(data)
        if self.is_busy or n > 0xFFFF:
            return self.write(data, 0, n)
        head = bytes((0x82, n)) if n < 126 else bytes((0x82, 126, n >> 8, n & 255))
        size = len(head) + n
        done = self.put(head + data, 0, size)
        return self._sent(done, n, size - n, data[0]) if done < size else n

    def shutdown(self, how):
        """The last packet was written."""
        self._goodbye(self._code())
        self.stream.sock.shutdown(how)

    def close(self):
        self._goodbye(self._code())
        self.stream.close()

    def _code(self):
        # The close code for why the broker ends the connection.
        result = self.loop.conns.reason[self.conn]
        if self.loop.stopping or result == _STOPS:
            return _CODE_GOING
        if result == LEFT:
            return _CODE_NORMAL
        if result == TOO_BIG:
            return CODE_SIZE
        return CODE_PROTOCOL if result in (MALFORMED, PROTOCOL) else _CODE_POLICY


def _may_be_sent(code):
    # Is this one of the codes that a peer may send? [7.4]
    return 3000 <= code < 5000 or _CODE_NORMAL <= code <= 1014 and code not in (1004, 1005, 1006)


def acceptor(loop, accept, own):
    """accept() of a listener that speaks WebSocket, around the accept() of its streams. own: its
    settings by name."""
    conns = loop.conns
    if conns.attached is conns.stream:
        conns.attached = conns.stream[:]
        loop.outgoing = loop.outgoing[:4] + (conns.attached,) + loop.outgoing[5:]
        loop.incoming = loop.incoming[0], conns.attached, loop.incoming[2]

    def accept_web():
        # First its objects: without heap for them the client is not accepted.
        pipe = ondemand.take("net.upgrade", loop.broker.now).Request(loop, own)
        found = accept()
        if not found:
            return None
        stream = pipe.stream = found[0]
        if hasattr(stream, "is_plain"):
            stream.is_plain = False  # fast/turn_cpython.py must not read from it
        if hasattr(stream, "packets"):
            pipe.packets = stream.packets
            stream.packets = None
        return found[0], found[1], pipe

    return accept_web
