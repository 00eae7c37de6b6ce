# stores_viper.py - the stores behind the tables on MicroPython: Arena (byte strings in
# chained blocks) and Names (a hashed set of texts). In viper only what messages need.
# Fixed columns, allocated at construction and never again. Offsets and lengths are
# bytes; slots and blocks are 16 bits wide and 0xFFFF means none.
import micropython

from slotmq.constants import FREE_BLOCK, FREE_BLOCKS, NONE, SIZE, TEXT_BLOCK
from slotmq.fast.bytes_viper import ALIGN, table
from slotmq.platform.arrays import chain, u16

# Arena.state
_ALIGN, _A_DATA, _A_NEXT = range(3, 6)
# Names.state
_FREE_SLOT = 0  # first free slot
_FREE_SLOTS = 1  # free slots
_MASK = 2
_HASH = 3  # of the text that was looked up last
_N_HEADS, _N_NEXT, _N_HASH, _N_SCOPE, _N_LENGTH, _N_FIRST, _N_DATA, _N_CHAIN = range(4, 12)


class Arena:
    # Byte strings in chains of fixed blocks: no fragmentation, no compaction.
    # data: blocks * size bytes; next: 2 bytes a block.

    def __init__(self, blocks, size):
        self.blocks = blocks
        self.size = size
        self.data = bytearray(blocks * size)
        self.next = chain(blocks)
        self.state = table((0, blocks, size, ALIGN, self.data, self.next))

    def free_blocks(self):
        return self.state[FREE_BLOCKS]

    def take(self, n):
        # -> the first block of a chain for n bytes; 0xFFFF: no space.
        state = self.state
        nexts = self.next
        k = (n + self.size - 1) // self.size or 1
        if k > state[FREE_BLOCKS]:
            return NONE
        state[FREE_BLOCKS] -= k
        block = first = state[FREE_BLOCK]
        while k > 1:
            block = nexts[block]
            k -= 1
        state[FREE_BLOCK] = nexts[block]
        nexts[block] = NONE
        return first

    def drop(self, first):
        state = self.state
        nexts = self.next
        block = first
        state[FREE_BLOCKS] += 1
        while nexts[block] != NONE:
            block = nexts[block]
            state[FREE_BLOCKS] += 1
        nexts[block] = state[FREE_BLOCK]
        state[FREE_BLOCK] = first

    @micropython.viper
    def move(self, block: int, at: int, buf: ptr8, off: int, n: int, out: int):
        # Copies n bytes between buf[off:] and the chain from its byte `at` on:
        # out of the chain if out is 1, else into it.
        state = ptr32(self.state)
        size = state[SIZE]
        off += int(buf)
        while n:
            if at < size:
                part = size - at
                if part > n:
                    part = n
                s = off
                d = int(state) - state[_A_DATA] + block * size + at
                if out:
                    s = d
                    d = off
                stop = s + part
                off += part
                n -= part
                at = size
                if not (d | s) & state[_ALIGN]:
                    words = stop - 3
                    while s < words:
                        ptr32(d)[0] = ptr32(s)[0]
                        d += 4
                        s += 4
                while s < stop:
                    ptr8(d)[0] = ptr8(s)[0]
                    d += 1
                    s += 1
            at -= size
            block = ptr16(int(state) - state[_A_NEXT])[block]


class Names:
    # A hashed set of (scope, text). The texts are in an Arena of 16-byte blocks; a slot takes
    # 10 bytes beside its text.

    def __init__(self, slots, text_bytes):
        buckets = 8
        while buckets < slots:
            buckets *= 2
        self.slots = slots
        self.text = text = Arena(text_bytes // TEXT_BLOCK, TEXT_BLOCK)
        self.length = u16(slots)
        self.scope = u16(slots)
        self.first = u16(slots)
        self.hash = u16(slots)
        self.next = chain(slots)
        self.heads = u16(buckets, NONE)
        parts = (0, slots, buckets - 1, 0, self.heads, self.next, self.hash, self.scope)
        self.state = table(parts + (self.length, self.first, text.data, text.next))

    def count(self):
        return self.slots - self.state[_FREE_SLOTS]

    @micropython.viper
    def find(self, scope: int, b: ptr8, off: int, n: int) -> int:
        state = ptr32(self.state)
        end = off + n
        h = scope + n
        i = off
        while i < end:
            h = h * 33 + b[i]
            i += 1
        h = (h ^ (h >> 8)) & 0xFFFF
        state[_HASH] = h
        slot = ptr16(int(state) - state[_N_HEADS])[h & state[_MASK]]
        while slot ^ NONE:
            if (
                not ptr16(int(state) - state[_N_HASH])[slot] ^ h
                and not ptr16(int(state) - state[_N_SCOPE])[slot] ^ scope
                and not ptr16(int(state) - state[_N_LENGTH])[slot] ^ n
            ):
                i = off
                block = ptr16(int(state) - state[_N_FIRST])[slot]
                t = 0
                while i < end:
                    if not t & (TEXT_BLOCK - 1):  # blocks begin at multiples of 16, as the heap's
                        t = int(state) - state[_N_DATA] + block * TEXT_BLOCK
                        block = ptr16(int(state) - state[_N_CHAIN])[block]
                    if ptr8(t)[0] ^ b[i]:
                        break
                    i += 1
                    t += 1
                if i == end:
                    return slot
            slot = ptr16(int(state) - state[_N_NEXT])[slot]
        return slot

    def add(self, scope, buf, off, n):
        # -> a new slot for a text that is not in the set; 0xFFFF: no slot or no text space.
        state = self.state
        if not state[_FREE_SLOTS]:
            return NONE
        first = self.text.take(n)
        if first == NONE:
            return NONE
        self.text.move(first, 0, buf, off, n, 0)
        self.find(scope, buf, off, n)  # sets the hash
        slot = state[_FREE_SLOT]
        state[_FREE_SLOT] = self.next[slot]
        state[_FREE_SLOTS] -= 1
        self.hash[slot] = state[_HASH]
        self.scope[slot] = scope
        self.length[slot] = n
        self.first[slot] = first
        bucket = state[_HASH] & state[_MASK]
        self.next[slot] = self.heads[bucket]
        self.heads[bucket] = slot
        return slot

    def remove(self, slot):
        state = self.state
        nexts = self.next
        cells = self.heads
        at = self.hash[slot] & state[_MASK]
        while cells[at] != slot:
            at = cells[at]
            cells = nexts
        cells[at] = nexts[slot]
        self.text.drop(self.first[slot])
        self.length[slot] = 0
        nexts[slot] = state[_FREE_SLOT]
        state[_FREE_SLOT] = slot
        state[_FREE_SLOTS] += 1

    def read(self, slot, buf, off):
        # Copies the slot's text to buf[off:]. -> its length in bytes.
        n = self.length[slot]
        self.text.move(self.first[slot], 0, buf, off, n, 1)
        return n
