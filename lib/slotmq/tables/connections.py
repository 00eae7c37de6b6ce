# connections.py - one slot per network connection.
#
# Owns what belongs to a socket and ends with it: the outgoing buffer, the bytes of a cut packet,
# deadlines. Sessions outlive connections, so they are another table. Nothing here allocates after
# construction, or does I/O.
#
# Outgoing: tx is one bytearray, tx_bytes for each connection. The bytes from conn * tx_bytes to
# tx_end wait to leave; they must end at tx_limit. Code that adds bytes puts the connection on
# the dirty list, which the loop empties once a turn. A connection whose socket said "not now"
# is blocked instead, until the socket is writable. A message that is larger than the buffer
# leaves in chunks: chunked_msg holds it, and tx_limit is 0 meanwhile, so nothing gets in
# between. tx_limit is also 0 after a DISCONNECT to a client of version 5.
#
# State, and what changes it:
#   VACANT     take()                                         -> NEW
#   NEW        its password is being computed                 -> VERIFYING, then NEW again
#              CONNECT is accepted                            -> CONNECTED
#              the same, and the client may send AUTH         -> FIVE
#   any other  Broker.end()                                   -> ENDING
#   ENDING     its buffer is flushed once                     -> VACANT
#              the same; of version 5, until the client closes -> LINGERING (net/closing.py)
#
# Incoming: `buffered` bytes of a cut packet have come. They are in `partial`, from partial_off on:
# in the connection's tail if the packet is short, otherwise in a reassembly buffer
# (reassembly_owner), of which there are fewer than connections.
from slotmq.constants import DIRTY_CONNS, FAST_READ, IDLE, IN_USE, NEW, NONE, QUOTA_OPTIONS, SERVED
from slotmq.fast import copy
from slotmq.platform.arrays import chain, i32, u16
from slotmq.platform.runtime import MICROPYTHON

if not MICROPYTHON:
    from slotmq.fast.pages_cpython import pages as bytearray  # noqa: A004


_VACANT = 0  # a state
_DIRTY = 1  # of out: on the dirty list

_WAITED = 15  # the most tenths of a second that waiting for a buffer counts as packet time


class Connections:
    def __init__(self, limits, entries, conn_of):
        n = limits.connections + 1
        self.slots = n
        self.tx_bytes = limits.tx_bytes
        self.count = 0
        self.top = 0  # past the last slot that was ever used
        self.high = 0
        self.refused = 0
        # While the log may show the packet of broker.pkt, with which one may end: its buffer
        self.shown = None
        self.stalled = 0  # ended because they did not read
        self._next = chain(n)
        self._free = 0
        self.stream = [None] * n
        # What is read from and written to: the stream, or what net/websocket.py has around it. The
        # same list, until a listener speaks WebSocket.
        self.attached = self.stream
        self.source = [None] * n  # the client's address from accept(), or [address, user name]
        # The quota of the listener, see net/listeners.py; this one has no bound
        self.quota = [[NONE, 0, 0, None]] * n
        self.state = bytearray(n)
        self.session = u16(n, NONE)
        # Protocol level: 3 is MQTT 3.1, 4 is 3.1.1; 6 and 7 are of bridges, see
        # bridge/link.py and protocol/open_session.py
        self.level = bytearray(n)
        self.reason = bytearray(n)  # why it is ending
        self.opened = i32(n)  # tenths of a second
        self.last_activity = i32(n)  # tenths of a second: when the client last sent something
        self.keep_alive_timeout = i32(n)  # how long the client may be silent; 0: for ever
        _make_buffers(self, n, limits)
        self.columns = (
            entries,
            conn_of,
            self.out,
            self.tx_end,
            self.tx_limit,
            self.tx,
            self.dirty,
            self.counts,
        )

    def take(self, stream, now):
        """A slot for a new network connection, or NONE."""
        conn = self._free
        if conn == self.slots:
            return NONE
        self._free = self._next[conn]
        self.stream[conn] = self.attached[conn] = stream
        self.state[conn] = NEW
        self.level[conn] = 4
        self.keep_alive_timeout[conn] = 0
        self.opened[conn] = self.last_activity[conn] = now
        self.partial_off[conn] = conn * self.tail_bytes
        base = conn * self.tx_bytes
        self.tx_end[conn] = base
        self.tx_limit[conn] = base + self.tx_bytes
        self.count += 1
        self.high = max(self.high, self.count)
        self.top = max(self.top, conn + 1)
        return conn

    def free(self, conn):
        """Free the slot. Its connection must have been detached from its session before."""
        assert self.state[conn] != _VACANT and self.session[conn] == NONE
        assert self.chunked_msg[conn] == NONE and self.buffered[conn] == 0
        assert self.count > 0
        self.stream[conn] = self.attached[conn] = self.source[conn] = None
        self.state[conn] = _VACANT
        self.out[conn] = IDLE
        self._next[conn] = self._free
        self._free = conn
        self.count -= 1

    def reserve(self, conn, n):
        """Reserve space for n outgoing bytes: their offset in tx, or -1 if there is none."""
        at = self.tx_end[conn]
        assert conn * self.tx_bytes <= at <= (conn + 1) * self.tx_bytes
        if at + n > self.tx_limit[conn]:
            return -1
        if self.out[conn] == IDLE:
            self.mark_dirty(conn)
        self.tx_end[conn] = at + n
        return at

    def option(self, conn, name, default):
        """A setting of the connection's listener, if it has one of its own."""
        own = self.quota[conn][QUOTA_OPTIONS]
        return own.get(name, default) if own else default

    def is_empty(self, conn):
        """Is nothing waiting to leave?"""
        return self.tx_end[conn] == conn * self.tx_bytes

    def mark_dirty(self, conn):
        counts = self.counts
        self.out[conn] = _DIRTY
        self.dirty[counts[DIRTY_CONNS]] = conn
        counts[DIRTY_CONNS] += 1

    def has_reassembly(self, conn):
        return self.partial_off[conn] >= self.slots * self.tail_bytes

    def waits_for_reassembly(self, conn):
        """Is its tail full, so that it must wait for a reassembly buffer?"""
        return self.buffered[conn] == self.tail_bytes and not self.has_reassembly(conn)

    def take_reassembly(self, conn):
        """Move the buffered bytes into a free reassembly buffer; False if all are in use."""
        owners = self.reassembly_owner
        held = self.reassembly
        for k in range(len(owners)):
            if owners[k] == NONE:
                owners[k] = conn
                off = self.slots * self.tail_bytes + k * self.reassembly_bytes
                copy(self.partial, off, self.partial, self.partial_off[conn], self.buffered[conn])
                self.partial_off[conn] = off
                self.buffered_since[conn] = max(
                    self.buffered_since[conn], self.last_activity[conn] - _WAITED
                )
                held[0] += 1
                held[1] = max(held[1], held[0])
                if held[0] == len(owners):
                    held[3] = 0
                return True
        held[2] += 1
        return False

    def drop_buffered(self, conn):
        """Forget the buffered bytes and give a reassembly buffer back."""
        if self.has_reassembly(conn):
            k = (self.partial_off[conn] - self.slots * self.tail_bytes) // self.reassembly_bytes
            assert self.reassembly_owner[k] == conn and self.reassembly[IN_USE] > 0
            self.reassembly_owner[k] = NONE
            self.reassembly[IN_USE] -= 1
            self.reassembly[FAST_READ] = self.rx_bytes
        self.partial_off[conn] = conn * self.tail_bytes
        self.buffered[conn] = 0


def _make_buffers(conns, n, limits):
    conns.tx = bytearray(n * conns.tx_bytes)
    conns.tx_end = i32(n)
    conns.tx_limit = i32(n)
    conns.out = bytearray(n)
    conns.dirty = u16(2 * n)  # twice as many: one may be flushed and filled again in a turn
    # [dirty connections, QoS 0 messages placed, and the loop's: when broker.now was right (30
    # bits of ms), the connection that is served or -1, reasons why it must finish each turn:
    # connections that are paused, bridges; must it finish each in which something happened?]
    conns.counts = i32(6)
    conns.counts[SERVED] = -1
    conns.chunked_msg = u16(n, NONE)
    conns.chunked_off = i32(n)  # bytes of it already in tx
    conns.chunked_id = u16(n)  # packet id that must still be placed, or 0
    # Incoming
    conns.partial = bytearray(n * limits.tail_bytes + limits.reassembly * limits.max_packet)
    conns.partial_off = i32(n)
    # Reassembly buffers: [in use, most in use so far, refused, bytes that the fast path may
    # read at once: 0 while all buffers are in use]
    conns.reassembly = i32(4)
    conns.reassembly[FAST_READ] = conns.rx_bytes = limits.rx_bytes
    conns.reassembly_owner = u16(limits.reassembly, NONE)
    conns.tail_bytes = limits.tail_bytes
    conns.reassembly_bytes = limits.max_packet
    conns.buffered = i32(n)
    conns.buffered_since = i32(n)
