# routes_viper.py - the receivers of a topic name (Routes, a cache), and the list of dirty
# connections, on MicroPython. Fixed columns, allocated at construction and never again.
from array import array

import micropython

from slotmq.constants import C_COUNTS, C_DIRTY, C_OUT, DIRTY_CONNS, GENERATION, MISSED, NONE
from slotmq.fast.bytes_viper import copy, find_route, table
from slotmq.platform.arrays import u16


class Routes:
    # A cache: topic name -> its entries in the route pool. Direct-mapped by the
    # topic's hash; a new generation invalidates all of it.
    senders = None  # who may publish on these routes, if that is asked: senders_viper.py

    def __init__(self, slots, topic_bytes):
        n = 1
        while n * 2 <= slots:
            n *= 2
        self.topic_bytes = topic_bytes
        self.slots = n
        self.first = u16(n + 1)
        self.mid = u16(n + 1)
        self.end = u16(n + 1)
        self.gen = u16(n)
        self.len = u16(n)
        self.text = bytearray(n * topic_bytes)
        self.state = array("i", (1, 0))
        self.columns = table((n - 1, topic_bytes, self.gen, self.len, self.text, self.state))

    def forget(self):
        state = self.state
        state[GENERATION] += 1
        if state[GENERATION] > 0xFFFF:
            state[GENERATION] = 1
            for i in range(len(self.gen)):
                self.gen[i] = 0

    def find(self, buf, off, n):
        return find_route(self.columns, buf, off, n)

    def keep(self, buf, off, n, first, end):
        # Remembers the topic that find() has just looked up. One that is too long gets the slot
        # past the last, for once. -> its slot. The caller sets mid[slot].
        slot = self.state[MISSED] if n <= self.topic_bytes else self.slots
        self.first[slot] = first
        self.end[slot] = end
        if slot < self.slots:
            self.gen[slot] = self.state[GENERATION]
            self.len[slot] = n
            copy(self.text, slot * self.topic_bytes, buf, off, n)
        if self.senders:
            self.senders.clear(slot)
        return slot


@micropython.viper
def next_dirty(o: ptr32) -> int:
    # Takes a connection off the dirty list: its buffer is to be flushed now. 0xFFFF: it was
    # flushed, blocked or closed meanwhile.
    count = ptr32(int(o) - o[C_COUNTS])
    n = count[DIRTY_CONNS] - 1
    count[DIRTY_CONNS] = n
    n = ptr16(int(o) - o[C_DIRTY])[n]
    out = ptr8(int(o) - o[C_OUT])
    if out[n] ^ 1:
        return NONE
    out[n] = 0
    return n
