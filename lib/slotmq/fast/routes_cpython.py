# routes_cpython.py - the contract of fast/routes_viper.py on CPython: a dict and slices.
from array import array

from slotmq.constants import DIRTY_CONNS, NONE, PUBLISHES


class Routes:
    """A cache: topic name -> its entries in the route pool."""

    senders = None  # who may publish on these routes, if that is asked: senders_cpython.py

    def __init__(self, slots, topic_bytes):
        self.slots = slots
        self.topic_bytes = topic_bytes
        self.first = array("i", bytes(4 * (slots + 1)))
        self.mid = array("i", bytes(4 * (slots + 1)))
        self.end = array("i", bytes(4 * (slots + 1)))
        self.slot_of = {}

    def forget(self):
        self.slot_of.clear()
        if self.senders:
            self.senders.clear()

    def find(self, buf, off, n):
        return self.slot_of.get(bytes(buf[off : off + n]), -1)

    def keep(self, buf, off, n, first, end):
        slot = self.slots
        if n <= self.topic_bytes:
            if len(self.slot_of) == self.slots:
                self.forget()
            name = bytes(buf[off : off + n])
            slot = self.slot_of.setdefault(name, len(self.slot_of))
        self.first[slot] = first
        self.end[slot] = end
        return slot


def place(columns, i, end, src, start, n):
    """Put a QoS 0 packet for route entries i..end; -> the first that it cannot serve, or end."""
    entries, conn_of, out, tx_end, tx_limit, tx, dirty, count = columns
    packet = src[start : start + n]
    if packet[0] != 0x30:
        packet = b"\x30" + packet[1:]
    first = i
    passed = 0
    while i < end:
        conn = conn_of[entries[i] >> 2]
        if conn == NONE:
            passed += 1
        else:
            at = tx_end[conn]
            stop = at + n
            if stop > tx_limit[conn]:
                break
            if out[conn] == 0:
                out[conn] = 1
                dirty[count[DIRTY_CONNS]] = conn
                count[DIRTY_CONNS] += 1
            tx[at:stop] = packet
            tx_end[conn] = stop
        i += 1
    count[PUBLISHES] += i - first - passed
    return i


def next_dirty(columns):
    """Take a connection off the dirty list, to be flushed now; NONE: no longer dirty."""
    _, _, out, _, _, _, dirty, count = columns
    count[DIRTY_CONNS] -= 1
    conn = dirty[count[DIRTY_CONNS]]
    if out[conn] != 1:
        return NONE
    out[conn] = 0
    return conn
