# lwip.py - bounds how much of lwIP's memory each connection takes, where MicroPython's sockets
# are those of extmod/modlwip.c: on rp2.
#
# Data that is sent and not acknowledged is kept in one heap for all connections (MEM_SIZE: 8,000
# bytes in stock firmware), in segments (MEMP_NUM_TCP_SEG: 32 for all). When either is used up,
# modlwip's write() waits for up to 10 s, also on a non-blocking socket, and no client is served.
# Then it is unknown what was sent: 1.25 to 1.28 return a length though nothing was queued, or
# raise ENOMEM though something was. So all connections together get at most limit tcp_bytes: each
# has an equal quota of four fifths of it, and one that needs more gets half of what is left. The
# rest of its output waits in the outgoing buffer. A client that takes nothing for 2.5 s while
# output waits for it does not read, and is disconnected.
#
# No call returns how much a connection uses. Its control block (struct tcp_pcb) does: snd_buf is
# how many bytes it may still take, and snd_queuelen after it how many pbufs it has. Their
# offset is found by the first writes (platform/lwip_layout.py).
#
# Sockets always have TCP_NODELAY here: without it a pbuf of few bytes takes a whole segment of
# memory.
#
# Owns two columns of the connections. Does not allocate after construction.
from slotmq.constants import BLOCKED, ENDING, ENOMEM, LINGERING, PCB, STALLED
from slotmq.platform import heap, ondemand
from slotmq.platform.arrays import i32, u16

_HEADERS = 104  # bytes of a pbuf beside its data: its header, and TCP's to Ethernet's
_SEGMENT = 800  # bytes: TCP_MSS of the port; a longer write takes several pbufs
_PBUFS = 5  # of one connection at most: five times 5, SYNs and FINs are below 32
_QUOTA_LEAST = 400  # bytes of the smallest quota
_WORTH = 128  # bytes of the shortest write that is worth a segment
_RESERVED = 300  # bytes for each free slot: a CONNACK, also one that refuses
_IN_DOUBT_MS = 9500  # modlwip gives up after 10 s
_TRIES = 30
_TIMEOUT = 25  # tenths of a second without progress
_CLOSING = 110  # tenths of a second: a closed connection keeps its memory for 10 s at most

# A global name of the module is found faster than a built-in function.
_id = id
_is_a = isinstance


def make(loop, kind):
    """Bound what the loop's connections take of lwIP's memory."""
    total = loop.broker.limits.tcp_bytes
    if total and not loop.lwip:
        from machine import mem16, mem32

        loop.lwip = Lwip(loop, total, kind, mem16, mem32)


class Lwip:
    def __init__(self, loop, total, kind, mem16, mem32):
        self.loop = loop
        self.total = total
        self.kind = kind  # the type of a socket: streams of another type are not lwIP's
        self.mem16 = mem16
        self.mem32 = mem32
        self.at = 0  # offset in bytes of snd_buf in a control block; 0: not known yet
        self.tries = _TRIES  # writes left to find it
        self.most = 0  # snd_buf of a connection that has sent nothing
        n = loop.conns.slots
        self.quota = max(_QUOTA_LEAST, total * 4 // (5 * n))
        self.left = u16(n)  # snd_buf at the last tick
        self.since = i32(n)  # tenths of a second: when it last made progress, or nothing waited
        self.gone = 0  # bytes of lwIP's memory that closed connections may still have
        self.gone_until = 0  # tenths of a second: from then on they have none

    def find(self, stream):
        """The address of a connection's snd_buf; 0: it has no control block, or the offset is
        not known."""
        if not self.at:
            return 0
        if not _is_a(stream, self.kind):
            stream = getattr(stream, "sock", None)  # that below TLS
            if not _is_a(stream, self.kind):
                return 0
        pcb = self.mem32[_id(stream) + PCB]
        return pcb and pcb + self.at

    def used(self, stream):
        """How many bytes of lwIP's memory the connection has."""
        at = self.find(stream)
        return at and self.most - self.mem16[at] + _HEADERS * self.mem16[at + 2]

    def may_send(self, stream):
        """How many bytes may be written to the connection now."""
        at = self.find(stream)
        if not at:
            return self.quota  # if it was reset, write() raises
        if self.mem16[at + 2] >= _PBUFS:
            return 0
        n = self.quota - _HEADERS - self.used(stream)
        if n < _WORTH:
            # Half of what is neither used nor in a quota; the next one gets half of the rest.
            conns = self.loop.conns
            left = self.total - self.quota * conns.count - _RESERVED * (conns.slots - conns.count)
            if self.loop.broker.now < self.gone_until:
                left -= self.gone
            for conn in range(conns.top):
                other = conns.stream[conn]
                if other is not None and other is not stream:
                    left -= max(0, self.used(other) - self.quota)
            n += max(0, left) // 2
        return n if n >= _WORTH else 0

    def leaves(self, conn, n):
        """Would the rest of a packet of n bytes be larger than the outgoing buffer after a write?
        (Sockets of other ports mostly take all of it.)"""
        conns = self.loop.conns
        k = conns.tx_bytes
        return n > k + min(k + _SEGMENT, self.may_send(conns.stream[conn]) - _HEADERS)

    def write(self, stream, buf, off, n):
        """stream.write() of as many bytes as may be sent. OSError: also if it is unknown how many
        were sent."""
        if not _is_a(stream, self.kind):
            return stream.write(buf, off, n)
        space = self.may_send(stream)
        if n > space:
            n = space
        if n > _SEGMENT:
            n = _SEGMENT
        if not n:
            return 0
        ticks_ms = self.loop.ticks_ms
        began = ticks_ms()
        if self.at or not self.tries:
            done = stream.write(buf, off, n)
        else:
            done = self.look(stream, stream, 0, buf, off, n)
        if self.loop.ticks_diff(ticks_ms(), began) >= _IN_DOUBT_MS:
            raise OSError(ENOMEM)
        if done:
            self.sent(stream)
        return done

    def sent(self, stream):
        """A write counts as progress: writes go on only while the client acknowledges."""
        self.left[self.loop.of_stream[stream]] = 0

    def look(self, stream, writer, more, buf, off, n):
        """writer.write() to the stream, of n bytes and so many more, that may show the offset of
        snd_buf."""
        heap.lift()
        try:
            layout = ondemand.take("platform.lwip_layout", 0)
            return layout.write(self, stream, writer, more, buf, off, n)
        except ValueError:  # of TLS
            raise OSError(ENOMEM)
        except MemoryError:
            return 0  # nothing was sent: the next turn tries again
        finally:
            heap.drop()

    def closing(self, stream):
        """The connection is about to be closed; lwIP keeps its memory for a while."""
        used = self.used(stream)
        now = self.loop.broker.now
        if used:
            self.gone = used + (self.gone if now < self.gone_until else 0)
            self.gone_until = now + _CLOSING

    def tick(self):
        """Called several times a second: end connections without progress."""
        conns = self.loop.conns
        now = self.loop.broker.now
        journal = self.loop.broker.journal
        waits = journal and journal.always and not journal.whole  # all wait for the journal
        for conn in range(conns.top):
            at = self.find(conns.stream[conn])
            left = at and self.mem16[at]
            is_stuck = at and conns.out[conn] == BLOCKED and left == self.left[conn]
            if not is_stuck or waits or conns.state[conn] in (ENDING, LINGERING):
                self.left[conn] = left
                self.since[conn] = now
            elif now - self.since[conn] >= _TIMEOUT:
                conns.stalled += 1
                self.loop.broker.end(conn, STALLED)
