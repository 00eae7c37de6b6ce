# lwip.py - who may have how much of lwIP's memory, where MicroPython's sockets are those of
# extmod/modlwip.c: on rp2.
#
# What was sent and is not acknowledged lies in one heap for all connections (MEM_SIZE: 8,000
# bytes in stock firmware), in segments (MEMP_NUM_TCP_SEG: 32 for all). Where either is used up,
# modlwip's write() waits for up to 10 s, also for a socket that does not block, and nobody is
# served. After that nobody knows what was sent: 1.25 to 1.28 return a length though nothing was
# queued, or raise ENOMEM though something was. So connections are given no more than limit
# tcp_bytes bears: four fifths of it in equal shares, and half of what is left to each that needs
# more. What one is not given waits in its outgoing buffer. One that takes nothing for 2.5 s while
# something waits for it does not read, and is ended.
#
# No call tells what a connection holds. Its control block does (struct tcp_pcb): snd_buf is how
# many bytes it may still take, and snd_queuelen behind it how many pbufs it holds. Where they
# stand in it is found out by the first write (platform/lwip_layout.py).
#
# Sockets have TCP_NODELAY here whatever is configured: without it a pbuf of few bytes takes a
# whole segment of memory.
#
# Owns two columns of the connections. Does not allocate once they are made.
from slotmq.platform import heap, ondemand
from slotmq.platform.arrays import i32, u16
from slotmq.platform.runtime import const

_ENDING = const(3)
_LINGERING = const(5)
_BLOCKED = const(2)
_STALLED = const(12)
_ENOMEM = const(12)
_PCB = const(4)  # bytes: where a socket object has the address of its control block
_HEADERS = const(104)  # bytes of a pbuf beside its data: its own, and from TCP's to Ethernet's
_SEGMENT = const(800)  # bytes: TCP_MSS of the port; a longer write takes several pbufs
_PBUFS = const(5)  # that one connection may hold: five times 5, SYNs and FINs are below 32
_SHARE_LEAST = const(400)  # bytes of a share
_WORTH = const(128)  # bytes that are worth a segment
_RESERVED = const(300)  # bytes for one who comes: a CONNACK, and to be told why not
_IN_DOUBT_MS = const(9500)  # modlwip gives up after 10 s
_TRIES = const(30)
_TIMEOUT = const(25)  # tenths of a second without progress
_CLOSING = const(110)  # the same: a closed connection keeps its memory for 10 s at the most

# MicroPython looks for its own functions in each module first, then one after the other.
_id = id
_is_a = isinstance


def make(loop, kind):
    """From now on no connection of the loop takes the memory of others."""
    total = loop.broker.limits.tcp_bytes
    if total and not loop.lwip:
        from machine import mem16, mem32

        loop.lwip = Lwip(loop, total, kind, mem16, mem32)


class Lwip:
    def __init__(self, loop, total, kind, mem16, mem32):
        self.loop = loop
        self.total = total
        self.kind = kind  # the type of a socket: other streams are the program's own
        self.mem16 = mem16
        self.mem32 = mem32
        self.at = 0  # bytes: where a control block has snd_buf, once that is known
        self.tries = _TRIES  # that are left to find it
        self.most = 0  # snd_buf of a connection that holds nothing
        n = loop.conns.slots
        self.share = max(_SHARE_LEAST, total * 4 // (5 * n))
        self.left = u16(n)  # snd_buf when it was last looked at
        self.since = i32(n)  # tenths of a second: when it had taken something, or nothing waited
        self.gone = 0  # bytes that closed connections may still hold
        self.gone_until = 0  # tenths of a second

    def find(self, stream):
        """Where the control block of a connection has snd_buf; 0: it has none, or that is not
        known."""
        if self.at and _is_a(stream, self.kind):
            pcb = self.mem32[_id(stream) + _PCB]
            return pcb and pcb + self.at
        return 0

    def used(self, stream):
        """How many bytes of lwIP's memory it holds."""
        if not self.at or not _is_a(stream, self.kind):
            return 0
        pcb = self.mem32[_id(stream) + _PCB]
        at = pcb + self.at
        return pcb and self.most - self.mem16[at] + _HEADERS * self.mem16[at + 2]

    def may_send(self, stream):
        """How many bytes it may be given now."""
        at = self.find(stream)
        if not at:
            return self.share  # of one that was reset write() will tell
        if self.mem16[at + 2] >= _PBUFS:
            return 0
        n = self.share - _HEADERS - self.used(stream)
        if n < _WORTH:
            # half of what is neither held nor somebody's share: the next one has half of the rest
            conns = self.loop.conns
            left = self.total - self.share * conns.count - _RESERVED * (conns.slots - conns.count)
            if self.loop.broker.now < self.gone_until:
                left -= self.gone
            for conn in range(conns.top):
                other = conns.stream[conn]
                if other is not None and other is not stream:
                    left -= max(0, self.used(other) - self.share)
            n += max(0, left) // 2
        return n if n >= _WORTH else 0

    def leaves(self, conn, n):
        """Of a packet of n bytes, does this leave more behind than the outgoing buffer has space
        for? (Other sockets mostly take all of it.)"""
        conns = self.loop.conns
        k = conns.tx_bytes
        return n > k + min(k + _SEGMENT, self.may_send(conns.stream[conn]) - _HEADERS)

    def write(self, stream, buf, off, n):
        """stream.write() of as much as it has space for. OSError: also if nobody knows how much
        was sent."""
        if not _is_a(stream, self.kind):
            return stream.write(buf, off, n)
        space = self.may_send(stream)
        if n > space:
            n = space
        if n > _SEGMENT:
            n = _SEGMENT
        if not n:
            return 0
        ticks_ms = self.loop.at_hand[4]
        began = ticks_ms()
        if self.at or not self.tries:
            done = stream.write(buf, off, n)
        else:
            done = self._look(stream, buf, off, n)
        if self.loop.ticks_diff(ticks_ms(), began) >= _IN_DOUBT_MS:
            raise OSError(_ENOMEM)
        if done:  # only who takes something can be given something again and again
            self.left[self.loop.of_stream[stream]] = 0
        return done

    def _look(self, stream, buf, off, n):
        # A write that may show where a control block has snd_buf.
        heap.lift()
        try:
            return ondemand.take("platform.lwip_layout", 0).write(self, stream, buf, off, n)
        except MemoryError:
            return 0  # nothing was sent: the next turn tries again
        finally:
            heap.drop()

    def closing(self, stream):
        """It is about to be closed: lwIP goes on with what it holds."""
        used = self.used(stream)
        now = self.loop.broker.now
        if used:
            self.gone = used + (self.gone if now < self.gone_until else 0)
            self.gone_until = now + _CLOSING

    def tick(self):
        """Several times a second: who has made no progress for too long?"""
        conns = self.loop.conns
        now = self.loop.broker.now
        journal = self.loop.broker.journal
        waits = journal and journal.always and not journal.whole  # for the journal, all of them
        for conn in range(conns.top):
            at = self.find(conns.stream[conn])
            left = at and self.mem16[at]
            is_stuck = at and conns.out[conn] == _BLOCKED and left == self.left[conn]
            if not is_stuck or waits or conns.state[conn] in (_ENDING, _LINGERING):
                self.left[conn] = left
                self.since[conn] = now
            elif now - self.since[conn] >= _TIMEOUT:
                conns.stalled += 1
                self.loop.broker.end(conn, _STALLED)
