# stores_cpython.py - the contract of fast/stores_viper.py on CPython, with dicts of bytes.
#
# Space is counted in the same blocks, so that each store is full at the same moment.
from array import array

from slotmq.constants import NONE, TEXT_BLOCK


class Arena:
    """Byte strings counted in fixed blocks; each is one bytearray here."""

    def __init__(self, blocks, size):
        self.blocks = blocks
        self.size = size
        self._free = blocks
        self._next = 0  # the lowest block that was never used
        self._ids = []  # blocks that were used and are free, so these are first
        self._chains = {}

    def free_blocks(self):
        return self._free

    def _count(self, n):
        return (n + self.size - 1) // self.size or 1

    def take(self, n):
        k = (n + self.size - 1) // self.size or 1
        if k > self._free:
            return NONE
        self._free -= k
        if self._ids:
            first = self._ids.pop()
        else:
            first = self._next
            self._next = first + 1
        self._chains[first] = bytearray(n)
        return first

    def keep(self, buf, off, n, off2, n2):
        first = self.take(n + n2)
        if first != NONE:
            self._chains[first] = bytes(buf[off : off + n] + buf[off2 : off2 + n2])
        return first

    def drop(self, first):
        self._free += self._count(len(self._chains.pop(first)))
        self._ids.append(first)

    def text(self, first):
        """The whole byte string of a chain (CPython only)."""
        return self._chains[first]

    def move(self, first, at, buf, off, n, out):
        if out:
            buf[off : off + n] = self._chains[first][at : at + n]
        else:
            self._chains[first][at : at + n] = buf[off : off + n]


class Names:
    """A set of (scope, text) with the slots and the space of Names in stores_viper.py."""

    def __init__(self, slots, text_bytes):
        self.slots = slots
        self.length = array("H", bytes(2 * slots))
        self.scope = array("H", bytes(2 * slots))
        self._blocks = text_bytes // TEXT_BLOCK
        self._next = 0  # the lowest slot that was never used
        self._free = []  # slots that were used and are free, so these are first
        self._slot = {}
        self._text = [b""] * slots

    def count(self):
        return len(self._slot)

    def find(self, scope, buf, off, n):
        return self._slot.get((scope, bytes(buf[off : off + n])), NONE)

    def add(self, scope, buf, off, n):
        blocks = (n + TEXT_BLOCK - 1) // TEXT_BLOCK or 1
        if len(self._slot) == self.slots or blocks > self._blocks:
            return NONE
        self._blocks -= blocks
        slot = self._free.pop() if self._free else self._next
        self._next = max(self._next, slot + 1)
        self._text[slot] = text = bytes(buf[off : off + n])
        self._slot[scope, text] = slot
        self.length[slot] = n
        self.scope[slot] = scope
        return slot

    def remove(self, slot):
        n = self.length[slot]
        self._blocks += (n + TEXT_BLOCK - 1) // TEXT_BLOCK or 1
        del self._slot[self.scope[slot], self._text[slot]]
        self.length[slot] = 0
        self._free.append(slot)

    def read(self, slot, buf, off):
        n = self.length[slot]
        buf[off : off + n] = self._text[slot]
        return n
