# flash.py - a raw block device in RAM with MicroPython's extended block protocol. It behaves like
# flash at its worst: it refuses to program a page twice between two erasures, loses its power
# during an operation, and flips bits. It counts all operations.
#
#   readblocks(block, buf, offset)   reads from a block, and from those after it
#   writeblocks(block, buf, offset)  programs pages, which must have been erased
#   ioctl(op, arg)                   3 sync, 4 block count, 5 block size, 6 erase a block
#
# An operation is a program or an erasure. An interrupted one has finished any number of its bytes;
# the others have their old value, garbage, or, after an erasure, a value in between. After it
# every call raises PowerCut until power_on().
from .numbers import Numbers

_SYNC, _COUNT, _SIZE, _ERASE = 3, 4, 5, 6
_ERASED = 0xFF


class PowerCut(Exception):
    """The power failed."""


class Misused(Exception):
    """An operation that flash does not support: a fault of the caller."""


class Flash:
    def __init__(self, blocks, block_bytes=4096, page_bytes=256, seed=0):
        assert block_bytes % page_bytes == 0
        self.blocks = blocks
        self.block_bytes = block_bytes
        self.page_bytes = page_bytes
        self.data = bytearray(bytes((_ERASED,)) * (blocks * block_bytes))
        self.used = bytearray(blocks * block_bytes // page_bytes)  # pages that are programmed
        self.erased = [0] * blocks  # erasures of each block
        self.reads = self.programs = self.erasures = 0
        self.read_bytes = self.programmed_bytes = 0
        self.is_on = True
        self._left = 0  # operations until the power fails; 0: never
        self._numbers = Numbers(seed, 7)

    # The protocol

    def readblocks(self, block, buf, offset=0):
        at = self._place(block, offset, len(buf))
        self.reads += 1
        self.read_bytes += len(buf)
        buf[:] = self.data[at : at + len(buf)]

    def writeblocks(self, block, buf, offset=None):
        n = len(buf)
        if offset is None:  # the simple protocol: whole blocks, erased first
            if n % self.block_bytes:
                raise Misused(f"{n} bytes are no whole blocks")
            for k in range(n // self.block_bytes):
                self.ioctl(_ERASE, block + k)
        at = self._place(block, offset or 0, n)
        first = at // self.page_bytes
        last = (at + n - 1) // self.page_bytes
        for page in range(first, last + 1):
            if self.used[page]:
                raise Misused(f"page {page} was programmed since it was erased")
        self.programs += 1
        if self._is_cut():
            self._cut_program(at, bytes(buf))
        self.programmed_bytes += n
        self.data[at : at + n] = buf
        self._use(at, n)

    def ioctl(self, op, arg=0):
        if op == _COUNT:
            return self.blocks
        if op == _SIZE:
            return self.block_bytes
        if op == _ERASE:
            self._erase(arg)
        elif op == _SYNC:
            self._place(0, 0, 0)
        return 0

    def _erase(self, block):
        at = self._place(block, 0, self.block_bytes)
        self.erasures += 1
        self.erased[block] += 1
        if self._is_cut():
            self._cut_erasure(at)
        self.data[at : at + self.block_bytes] = bytes((_ERASED,)) * self.block_bytes
        self._use(at, self.block_bytes, 0)

    def _use(self, at, n, used=1):
        for page in range(
            at // self.page_bytes, (at + n + self.page_bytes - 1) // self.page_bytes
        ):
            self.used[page] = used

    def _place(self, block, offset, n):
        if not self.is_on:
            raise PowerCut("there is no power")
        at = block * self.block_bytes + offset
        if block < 0 or offset < 0 or at + n > len(self.data):
            raise Misused(f"block {block}, offset {offset}, {n} bytes")
        return at

    # Faults

    def cut_at(self, operation):
        """The power fails during the n-th operation from now on, counted from 1."""
        self._left = operation

    def power_on(self):
        """The power returns, and stays until cut_at()."""
        self.is_on = True
        self._left = 0

    def rot(self, bits=1):
        """Flip so many bits anywhere; -> their places: (block, offset, bit)."""
        found = []
        for _ in range(bits):
            at = self._anywhere(len(self.data))
            bit = self._numbers.below(8)
            self.data[at] ^= 1 << bit
            found.append((at // self.block_bytes, at % self.block_bytes, bit))
        return found

    def operations(self):
        """Programs and erasures so far."""
        return self.programs + self.erasures

    def _anywhere(self, n):
        # Numbers are random only up to a few thousand.
        return (self._numbers.below(4096) * 4096 + self._numbers.below(4096)) % n

    def _is_cut(self):
        if not self._left:
            return False
        self._left -= 1
        return not self._left

    def _cut_program(self, at, wanted):
        done = self._anywhere(len(wanted) + 1)
        self.data[at : at + done] = wanted[:done]
        if done:
            self._use(at, done)
        if done < len(wanted) and self._numbers.one_in(2):
            # The next bytes are partly programmed.
            n = min(len(wanted) - done, self._numbers.between(1, self.page_bytes))
            for k in range(at + done, at + done + n):
                self.data[k] &= wanted[k - at] | self._numbers.below(256)
            self._use(at + done, n)
        self._die()

    def _cut_erasure(self, at):
        n = self.block_bytes
        done = self._anywhere(n + 1)
        self.data[at : at + done] = bytes((_ERASED,)) * done
        if self._numbers.one_in(2):
            for k in range(at + done, at + n):
                self.data[k] |= self._numbers.below(256)
        # It counts as programmed: bits that look erased may be unstable.
        self._use(at, n)
        self._die()

    def _die(self):
        self.is_on = False
        self._left = 0
        raise PowerCut("during an operation")
