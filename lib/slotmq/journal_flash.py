# journal_flash.py - a medium for the journal: a raw region of flash, as rp2.Flash(start,
# len) or esp32.Partition give it (block protocol with offsets; an erase by ioctl 6).
#
# Owns the region. Its blocks are a ring: a generation lies in blocks one behind the other,
# a new one begins behind the last block of the one that is current, and so all are worn
# alike. The first page of each block is its header, the others are bytes of the journal;
# FORMAT.md has every byte. The first block of a generation gets its header last, by
# switch(): before, the generation is not there, and from then on it is the newest. A page
# is programmed once; a block is erased when it is taken for use, and never before.
#
# append() and sync() do not allocate, but for a block's header under heap.lift(); who
# calls the others lifts. An error in the midst of one leaves a piece of what was to be
# written: the medium takes no more then, until begin() or resume().
from binascii import crc32
from struct import pack_into, unpack_from

from slotmq import heap
from slotmq.runtime import const, copy

_PAGE = const(256)
_HEADER = const(24)  # bytes of one, of which there are two in the first page
_SECOND = const(128)
_MAGIC = b"slotmqJ\x01"  # the last byte is the version of the format
_BLOCKS = const(4)  # ioctl
_BLOCK_SIZE = const(5)
_ERASE = const(6)
_EIO = const(5)
_ENOSPC = const(28)


class FlashMedium:
    page = _PAGE

    def __init__(self, device, snapshot):
        self._device = device
        self.blocks = device.ioctl(_BLOCKS, 0)
        self.data = device.ioctl(_BLOCK_SIZE, 0) - _PAGE  # bytes of the journal in a block
        self.buf = bytearray(_PAGE)  # what is appended and not programmed
        self.capacity = (self.blocks - max(1, -(-snapshot // self.data))) * self.data
        self.written = self.erased = 0
        self._births = 0  # of generations, of those too that were given up
        self._first, self.length = -1, 1  # blocks of the opened generation
        self.end = 0
        self._room = -1  # that much may be appended to the one that is written

    # At start only: forget() lets go of these

    def generations(self):
        numbers = {}  # one bit for each block that is there
        for block in range(self.blocks):
            generation, birth, number = self.head(block)
            if number >= 0:
                key = generation, birth, (block - number) % self.blocks
                numbers[key] = numbers.get(key, 0) | 1 << number
                self._births = max(self._births, birth)
        self.found = {
            key[0]: key + (bits,)
            for key, bits in sorted(numbers.items())
            if not bits & (bits + 1)  # none is missing, from the first one on
        }
        return sorted(self.found, reverse=True)

    def head(self, block):
        # (generation, birth, number) from whichever of the two is right; number -1: none.
        buf = self.buf
        self._device.readblocks(block, buf, 0)
        for at in (0, _SECOND):
            magic, generation, birth, number, crc = unpack_from("<8s4I", buf, at)
            if magic == _MAGIC and crc == crc32(buf[at : at + _HEADER - 4]):
                return generation, birth, number
        return 0, 0, -1

    def open(self, generation):
        _, birth, self._first, bits = self.found[generation]
        self._opened = generation, birth
        self._base = self._first
        self.length = len(bin(bits)) - 2
        self.end = self.length * self.data

    def set_aside(self, generation):
        if generation in self.found:
            self._erase(self.found[generation][2])

    def readinto(self, at, buf, n):
        n = max(0, min(n, self.length * self.data - at))
        view = memoryview(buf)
        done = 0
        while done < n:
            rest = (at + done) % self.data
            part = min(n - done, self.data - rest)
            block = (self._first + (at + done) // self.data) % self.blocks
            self._device.readblocks(block, view[done : done + part], _PAGE + rest)
            done += part
        return n

    # A generation's life

    def resume(self, end):
        self._base = self._first
        self.ident = self._opened
        self.end = end
        self._room = self.capacity

    def begin(self, generation):
        self._room = -1
        self._births += 1
        self.ident = generation, self._births
        self._base = (self._first + self.length) % self.blocks
        self.end = 0
        self._erase(self._base)
        self._room = (self.blocks - self.length) * self.data

    def append(self, buf, off, n):
        room = self._room
        if self.end + n > room:
            raise OSError(_ENOSPC, "write")
        self._room = -1  # until all of it is there
        while n:
            if self.end and not self.end % self.data:
                self._take(self.end // self.data)
            at = self.end % _PAGE
            part = min(n, _PAGE - at)
            copy(self.buf, at, buf, off, part)
            self.end += part
            off += part
            n -= part
            if at + part == _PAGE:
                self._program()
        self._room = room

    def sync(self):
        room = self._room
        if room < 0:
            raise OSError(_EIO, "write")
        self._room = -1
        if self.end % _PAGE:
            self._blank(self.end % _PAGE)
            self.end += -self.end % _PAGE
            self._program()
        self._room = room

    def switch(self):
        self.sync()
        self._room = -1
        self.mark(0)
        self._opened = self.ident
        self._first = self._base
        self.length = max(1, -(-self.end // self.data))
        self._room = self.capacity

    def close(self):
        self._room = -1

    # Blocks and pages

    def _take(self, number):
        # The next block; only here the buffer is free for its header.
        heap.lift()
        try:
            self._erase((self._base + number) % self.blocks)
            self.mark(number)
        finally:
            heap.drop()
        if self._base == self._first:
            self.length = number + 1

    def mark(self, number):
        buf = self.buf
        self._blank(0)
        pack_into("<8s3I", buf, 0, _MAGIC, self.ident[0], self.ident[1], number)
        pack_into("<I", buf, _HEADER - 4, crc32(buf[: _HEADER - 4]))
        copy(buf, _SECOND, buf, 0, _HEADER)
        self.put(number, 0)

    def _blank(self, at):
        for i in range(at, _PAGE):
            self.buf[i] = 0xFF

    def _program(self):
        at = self.end - _PAGE
        self.put(at // self.data, at % self.data + _PAGE)

    def put(self, number, at):
        heap.lift()
        self.written += _PAGE
        heap.drop()
        if self._device.writeblocks((self._base + number) % self.blocks, self.buf, at):
            raise OSError(_EIO, "write")

    def _erase(self, block):
        self.erased += self.data + _PAGE
        if self._device.ioctl(_ERASE, block):
            raise OSError(_EIO, "write")


def forget():
    """Give back what only a start needs: nobody makes a medium or reads it any more."""
    FlashMedium.__init__ = FlashMedium.generations = FlashMedium.head = None
    FlashMedium.open = FlashMedium.readinto = FlashMedium.set_aside = None
