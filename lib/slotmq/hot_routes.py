# hot_routes.py - the way of a QoS 0 packet on MicroPython, in viper: which receivers a
# topic name has (Routes, a cache) and the packet into their buffers (place). Fixed
# columns, allocated at construction and never again.
from array import array

import micropython
from micropython import const

from slotmq.arrays import u16
from slotmq.hot import WORDS, copy

_NONE = const(0xFFFF)


class Routes:
    # A cache: topic name -> its entries in the route pool. Direct-mapped by the
    # topic's hash; forgotten as a whole by a new generation.

    def __init__(self, slots, topic_bytes):
        n = 1
        while n * 2 <= slots:
            n *= 2
        self.topic_bytes = topic_bytes
        self.first = u16(n)
        self.end = u16(n)
        self._gen = u16(n)
        self._len = u16(n)
        self._text = bytearray(n * topic_bytes)
        # [generation, slot of the last miss]
        self._state = array("i", (1, 0))
        self.columns = (self._gen, self._len, self._text, n - 1, topic_bytes, self._state)

    def forget(self):
        state = self._state
        state[0] += 1
        if state[0] > 0xFFFF:
            state[0] = 1
            for i in range(len(self._gen)):
                self._gen[i] = 0

    @micropython.viper
    def find(self, buf, off: int, n: int) -> int:
        c = self.columns
        b = ptr8(buf)
        state = ptr32(c[5])
        size = int(c[4])
        h = n
        i = off
        end = off + n
        while i < end:
            h = (h * 33 + b[i]) & 0xFFFFFF
            i += 1
        slot = (h ^ (h >> 8)) & int(c[3])
        state[1] = slot
        if ptr16(c[0])[slot] != state[0] or ptr16(c[1])[slot] != n:
            return -1
        t = ptr8(c[2])
        at = slot * size - off
        i = off
        while i < end:
            if t[at + i] != b[i]:
                return -1
            i += 1
        return slot

    def keep(self, buf, off, n, first, end):
        # Remembers the topic that find() has just missed. -> its slot, or -1.
        slot = self._state[1]
        self.first[slot] = first
        self.end[slot] = end
        if n > self.topic_bytes:
            self._gen[slot] = 0
        else:
            self._gen[slot] = self._state[0]
            self._len[slot] = n
            copy(self._text, slot * self.topic_bytes, buf, off, n)
        return slot


@micropython.viper
def place(columns, i: int, end: int, src, start: int, n: int) -> int:
    # Puts the QoS 0 packet src[start:start + n] into the outgoing buffer of every
    # session of the route entries i..end, with a clean first byte. Offline
    # sessions are passed over. -> the first entry that needs another way (no
    # room, or a message in parts under way), or end. columns: Connections.columns.
    entries = ptr16(columns[0])
    conn_of = ptr16(columns[1])
    out = ptr8(columns[2])
    tx_end = ptr32(columns[3])
    tx_limit = ptr32(columns[4])
    tx = int(ptr8(columns[5]))
    dirty = ptr16(columns[6])
    count = ptr32(columns[7])
    first = int(ptr8(src)) + start
    mask = 3 - int(WORDS)
    placed = 0
    while i < end:
        conn = conn_of[entries[i] >> 2]
        if conn != _NONE:
            at = tx_end[conn]
            if at + n > tx_limit[conn]:
                break
            if out[conn] == 0:
                out[conn] = 1
                dirty[count[0]] = conn
                count[0] += 1
            tx_end[conn] = at + n
            d = tx + at
            s = first
            stop = s + n
            if ((d | s) & mask) == 0:
                words = stop - 3
                while s < words:
                    ptr32(d)[0] = ptr32(s)[0]
                    d += 4
                    s += 4
            while s < stop:
                ptr8(d)[0] = ptr8(s)[0]
                d += 1
                s += 1
            ptr8(tx + at)[0] = 0x30
            placed += 1
        i += 1
    count[1] += placed
    return i


@micropython.viper
def next_dirty(columns) -> int:
    # Takes a connection off the dirty list: its buffer is to be written now. 0xFFFF:
    # it has been written, blocked or closed since.
    count = ptr32(columns[7])
    count[0] -= 1
    conn = ptr16(columns[6])[count[0]]
    out = ptr8(columns[2])
    if out[conn] != 1:
        return _NONE
    out[conn] = 0
    return conn
