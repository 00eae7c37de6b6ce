# mapping.py - the stream of a bridge whose topics have other names here than there: each PUBLISH
# gets another topic on its way, and nothing else is touched.
#
#   socket ── readinto ─> raw ─┐                                   ┌─> rx of the loop
#                              Mapper: head, the rest as it is ────┤
#   tx of a connection ────────┘                                   └─> out ─ write ─> socket
#
# The head of a PUBLISH, from its first byte to its topic, is gathered and written anew; the bytes
# behind it are copied. A write reports one byte less than it has taken while something of it waits
# in `out`, so that the loop waits for the socket; the next write skips that byte. Owns two Mappers
# and two buffers (config/budget.py). Does not allocate after construction.
from slotmq.constants import BLOCKED, DOLLAR, EAGAIN, IN, PUBLISH_TYPE
from slotmq.delivery.encode import put_length, put_u16
from slotmq.fast import copy, topic_matches
from slotmq.platform import poller
from slotmq.protocol.dispatch import readable

_FIXED = 7  # bytes of a head before its topic, at most
_LENGTH_BYTES = 4


class Mapper:
    """One direction; side: 0 from here, 1 from there, an index of a Topic's filters."""

    def __init__(self, topics, side, topic_bytes):
        self.topics = topics
        self.side = side
        longest = max([len(prefix) for each in topics for prefix in each.prefixes] + [0])
        self.mask = 255  # of the first byte of a PUBLISH
        self.head = bytearray(topic_bytes + _FIXED)
        self.made = bytearray(topic_bytes + longest + _FIXED)
        self.have = 0  # bytes of the head that have come
        self.at = self.end = 0  # what of `made` must still leave
        self.left = 0  # bytes of the packet behind its head
        self.new = b""  # see look()
        self.less = self.more = 0
        self.used = 0  # how many bytes of its source move() has taken

    def move(self, src, start, end, to, at, limit):
        """Move packets from src[start:end] to to[at:limit]; -> the end in `to`."""
        start_at = start
        while at < limit:
            if self.end:
                n = min(self.end - self.at, limit - at)
                copy(to, at, self.made, self.at, n)
                self.at += n
                at += n
                if self.at == self.end:
                    self.at = self.end = 0
            elif start == end:
                break
            elif self.left:
                n = min(self.left, end - start, limit - at)
                copy(to, at, src, start, n)
                self.left -= n
                start += n
                at += n
            else:
                start = self._gather(src, start, end)
        self.used = start - start_at
        return at

    def _gather(self, src, start, end):
        # Take bytes of a head; if it is whole, make the one that leaves.
        head = self.head
        while start < end:
            need = self._missing()
            if not need:
                break
            if self.have + need > len(head):  # Bridges.publish() will drop it
                self.make(True)
                return start
            n = min(need, end - start)
            copy(head, self.have, src, start, n)
            self.have += n
            start += n
        if not self._missing():
            self.make()
        return start

    def _missing(self):
        # How many bytes of the head are certainly missing; 0: it is whole.
        have = self.have
        head = self.head
        if have < 2:
            return 2 - have
        at = 1
        while head[at] & 128 and at < _LENGTH_BYTES:
            at += 1
            if at == have:
                return 1
        at += 1
        if head[0] >> 4 != PUBLISH_TYPE:
            return 0
        if have < at + 2:
            return at + 2 - have
        return at + 2 + (head[at] << 8 | head[at + 1]) - have

    def make(self, is_raw=False):
        """Make the head that leaves. is_raw, or malformed: it stays as it is."""
        head = self.head
        made = self.made
        length = shift = 0
        at = 1
        while True:
            length |= (head[at] & 127) << shift
            shift += 7
            at += 1
            if not head[at - 1] & 128 or at > _LENGTH_BYTES:
                break
        made[0] = head[0]
        size = head[at] << 8 | head[at + 1]
        is_raw = is_raw or head[0] >> 4 != PUBLISH_TYPE
        if is_raw or head[at - 1] & 128 or length < 2 + size:
            self.left = max(0, length + at - self.have)
            copy(made, 0, head, 0, self.have)
            self.end = self.have
        else:
            made[0] &= self.mask
            self.left = length - 2 - size
            at += 2
            self.look(head, at, size)
            less = self.less
            more = self.more
            size -= less
            end = put_u16(made, put_length(made, 1, length + more - less), size + more)
            copy(made, end, self.new, 0, more)
            copy(made, end + more, head, at + less, size)
            self.end = end + more + size
        self.have = self.at = 0

    def look(self, buf, at, size):
        """What changes in the topic in buf[at:]: it loses `less` bytes, and gets the first `more`
        bytes of `new` before the others. size 0: a topic alias says it."""
        less = more = 0
        for each in self.topics if size else ():
            name = each.filters[self.side]
            if topic_matches(name, 0, len(name), buf, at, size):
                self.new = each.prefixes[1 - self.side]
                less = len(each.prefixes[self.side])
                more = len(self.new)
                if size < less:  # `a/#` matches `a`: `b/` makes it `b`
                    less -= 1
                    more -= 1
                if more + size <= less:  # no topic would be left: it keeps its own
                    less = more = 0
                elif (self.new[0] if more else buf[at + less]) == DOLLAR:
                    if each.filters[1 - self.side][0] != DOLLAR:
                        # Only a topic that names them on the other side leads to $SYS, $SLOTMQ.
                        less = more = 0
                        continue
                break
        self.less = less
        self.more = more


class Mapped:
    def __init__(self, broker, bridge, socket):
        self.broker = broker
        self.pipe = socket  # with TLS a Secure
        self.sock = getattr(socket, "sock", None)  # for half_close() of CPython
        self.polled = getattr(socket, "polled", socket)
        if socket is not self.polled:
            self.polled_for = socket.polled_for
            self.event = socket.event
        poller.of(broker.loop)
        limits = broker.limits
        self.inwards = Mapper(bridge.ins, 1, limits.topic_bytes)
        self.outwards = Mapper(bridge.outs, 0, limits.topic_bytes)
        if not bridge.options.bridge_outgoing_retain:
            self.outwards.mask = 254
        self.raw = bytearray(limits.rx_bytes)
        self.raw_at = self.raw_end = 0
        self.is_ended = False
        self.out = bytearray(limits.tx_bytes)
        self.out_at = self.out_end = 0
        self.skip = 0  # 1: the first byte of the next write has been taken before
        self.conn = bridge.conn

    def send(self, data):
        return 0  # for fast/turn_cpython.py: the loop must write

    def close(self):
        self.pipe.close()

    def polled_for(self, mask):
        """For platform/poller.py."""
        return mask

    def event(self, _conn):
        """The socket is readable, or writable."""
        loop = self.broker.loop
        if loop.conns.out[self.conn] == BLOCKED:
            loop.writable(self.conn)
        loop._other_event(self.conn, self, IN)

    def go_on(self):
        """After a turn: is something read that the broker has not got, and may it get that now?"""
        broker = self.broker
        if self.raw_at < self.raw_end or self.inwards.end:
            if broker.conns.stream[self.conn] is self and readable(broker, self.conn):
                broker.loop._other_event(self.conn, self, IN)
                broker.turn_soon = 1

    def readinto(self, buf, n):
        at = 0
        while at < n:
            if self.raw_at == self.raw_end and not self.inwards.end and not self._fill():
                break
            at = self.inwards.move(self.raw, self.raw_at, self.raw_end, buf, at, n)
            self.raw_at += self.inwards.used
        if at:
            return at
        return 0 if self.is_ended else None

    def _fill(self):
        self.raw_at = self.raw_end = 0
        try:
            n = self.pipe.readinto(self.raw, len(self.raw))
        except OSError as error:
            if error.args[0] != EAGAIN:
                raise
            n = None
        if n == 0:
            self.is_ended = True
        self.raw_end = n or 0
        return n

    def write(self, buf, off, n):
        if not self._flush():
            return None
        done = self.skip
        self.skip = 0
        while done < n or self.outwards.end:
            self.out_end = self.outwards.move(buf, off + done, off + n, self.out, 0, len(self.out))
            done += self.outwards.used
            if not self._flush():
                self.skip = 1
                return done - 1
        return done

    def _flush(self):
        # Write what waits in `out`; False: the socket does not take all of it.
        if self.out_at < self.out_end:
            n = self.out_end - self.out_at
            lwip = self.broker.loop.lwip
            if lwip:
                n = lwip.write(self.pipe, self.out, self.out_at, n)
            else:
                n = self.pipe.write(self.out, self.out_at, n)
            self.out_at += n or 0
            if self.out_at < self.out_end:
                return False
        self.out_at = self.out_end = 0
        return True
