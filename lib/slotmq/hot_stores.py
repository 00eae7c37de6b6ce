# hot_stores.py - the stores behind the tables on MicroPython, in viper: Arena (byte
# strings in chained blocks) and Names (a hashed set of texts).
# Fixed columns, allocated at construction and never again. Offsets and lengths are
# bytes; slots and blocks are 16 bits wide and 0xFFFF means none.
from array import array

import micropython
from micropython import const

from slotmq.arrays import chain, u16
from slotmq.hot import WORDS

_NONE = const(0xFFFF)
_TEXT_BLOCK = const(16)  # block of Names' text


class Arena:
    # Byte strings in chains of fixed blocks: no fragments, no moving.
    # data: blocks * size bytes; next: 2 bytes a block; state: [first free, free].

    def __init__(self, blocks, size):
        self.blocks = blocks
        self.size = size
        self.data = bytearray(blocks * size)
        self.next = chain(blocks)
        self.state = array("i", (0, blocks))
        self._c = (self.data, self.next, self.state, size)

    def free_blocks(self):
        return self.state[1]

    @micropython.viper
    def take(self, n: int) -> int:
        # First block of a chain for n bytes, or 0xFFFF where there is no room.
        c = self._c
        nexts = ptr16(c[1])
        state = ptr32(c[2])
        size = int(c[3])
        k = (n + size - 1) // size
        if k == 0:
            k = 1
        if k > state[1]:
            return _NONE
        state[1] -= k
        first = state[0]
        block = first
        while k > 1:
            block = nexts[block]
            k -= 1
        state[0] = nexts[block]
        nexts[block] = _NONE
        return first

    @micropython.viper
    def keep(self, buf, off: int, n: int, off2: int, n2: int) -> int:
        # A chain of buf[off:off + n] and buf[off2:off2 + n2]; its first block or 0xFFFF.
        first = int(self.take(n + n2))
        if first == _NONE:
            return _NONE
        c = self._c
        data = int(ptr8(c[0]))
        nexts = ptr16(c[1])
        size = int(c[3])
        mask = 3 - int(WORDS)
        b = int(ptr8(buf))
        s = b + off
        block = first
        d = data + block * size
        room = size
        while True:
            while n > 0:
                part = room if room < n else n
                stop = s + part
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
                n -= part
                room -= part
                if room == 0:
                    block = nexts[block]
                    d = data + block * size
                    room = size
            if n2 == 0:
                return first
            s = b + off2
            n = n2
            n2 = 0

    @micropython.viper
    def drop(self, first: int):
        c = self._c
        nexts = ptr16(c[1])
        state = ptr32(c[2])
        block = first
        k = 1
        while nexts[block] != _NONE:
            block = nexts[block]
            k += 1
        nexts[block] = state[0]
        state[0] = first
        state[1] += k

    @micropython.viper
    def move(self, first: int, at: int, buf, off: int, n: int, out: int):
        # Copies n bytes between buf[off:] and the chain from its byte `at` on:
        # out of the chain where out is 1, else into it.
        c = self._c
        data = int(ptr8(c[0]))
        nexts = ptr16(c[1])
        size = int(c[3])
        mask = 3 - int(WORDS)
        b = int(ptr8(buf)) + off
        while at >= size:
            first = nexts[first]
            at -= size
        while n > 0:
            part = size - at
            if part > n:
                part = n
            a = data + first * size + at
            if out:
                s = a
                d = b
            else:
                s = b
                d = a
            stop = s + part
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
            b += part
            n -= part
            at = 0
            first = nexts[first]


class Names:
    # A hashed set of (scope, text): the slot of a text is found without walking.
    # Text lies in an Arena of 16-byte blocks. 10 bytes a slot beside its text.

    def __init__(self, slots, text_bytes):
        buckets = 8
        while buckets < slots:
            buckets *= 2
        self.slots = slots
        self.text = Arena(text_bytes // _TEXT_BLOCK, _TEXT_BLOCK)
        self.length = u16(slots)
        self.scope = u16(slots)
        self.first = u16(slots)
        self._hash = u16(slots)
        self._next = chain(slots)
        self._heads = u16(buckets, _NONE)
        self._free = array("i", (0, slots))
        self._c = (
            self._heads,
            self._next,
            self._hash,
            self.scope,
            self.length,
            self.first,
            self.text.data,
            self.text.next,
            buckets - 1,
            self._free,
        )

    def count(self):
        return self.slots - self._free[1]

    @micropython.viper
    def find(self, scope: int, buf, off: int, n: int) -> int:
        c = self._c
        b = ptr8(buf)
        nexts = ptr16(c[1])
        hashes = ptr16(c[2])
        scopes = ptr16(c[3])
        lengths = ptr16(c[4])
        firsts = ptr16(c[5])
        chain = ptr16(c[7])
        end = off + n
        h = scope + n
        i = off
        while i < end:
            h = (h * 33 + b[i]) & 0xFFFFFF
            i += 1
        h = (h ^ (h >> 8)) & 0xFFFF
        slot = ptr16(c[0])[h & int(c[8])]
        while slot != _NONE:
            if hashes[slot] == h and scopes[slot] == scope and lengths[slot] == n:
                i = off
                block = firsts[slot]
                while True:
                    t = int(ptr8(c[6])) + block * _TEXT_BLOCK
                    stop = i + _TEXT_BLOCK
                    if stop > end:
                        stop = end
                    while i < stop and ptr8(t)[0] == b[i]:
                        i += 1
                        t += 1
                    if i < stop or i == end:
                        break
                    block = chain[block]
                if i == end:
                    return slot
            slot = nexts[slot]
        return _NONE

    @micropython.viper
    def add(self, scope: int, buf, off: int, n: int) -> int:
        # A new slot for a text that is not there yet; 0xFFFF: no slot, no text room.
        c = self._c
        b = ptr8(buf)
        nexts = ptr16(c[1])
        free = ptr32(c[9])
        if free[1] == 0:
            return _NONE
        first = int(self.text.take(n))
        if first == _NONE:
            return _NONE
        self.text.move(first, 0, buf, off, n, 0)
        end = off + n
        h = scope + n
        i = off
        while i < end:
            h = (h * 33 + b[i]) & 0xFFFFFF
            i += 1
        h = (h ^ (h >> 8)) & 0xFFFF
        slot = free[0]
        free[0] = nexts[slot]
        free[1] -= 1
        ptr16(c[2])[slot] = h
        ptr16(c[3])[slot] = scope
        ptr16(c[4])[slot] = n
        ptr16(c[5])[slot] = first
        heads = ptr16(c[0])
        h = h & int(c[8])
        nexts[slot] = heads[h]
        heads[h] = slot
        return slot

    @micropython.viper
    def remove(self, slot: int):
        c = self._c
        heads = ptr16(c[0])
        nexts = ptr16(c[1])
        free = ptr32(c[9])
        bucket = ptr16(c[2])[slot] & int(c[8])
        at = heads[bucket]
        if at == slot:
            heads[bucket] = nexts[slot]
        else:
            while nexts[at] != slot:
                at = nexts[at]
            nexts[at] = nexts[slot]
        self.text.drop(ptr16(c[5])[slot])
        ptr16(c[4])[slot] = 0
        nexts[slot] = free[0]
        free[0] = slot
        free[1] += 1

    def read(self, slot, buf, off):
        # Copies the slot's text to buf[off:]. -> its length in bytes.
        n = self.length[slot]
        self.text.move(self.first[slot], 0, buf, off, n, 1)
        return n
