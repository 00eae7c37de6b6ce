# medium_flash.py - a medium for the journal: a raw region of flash, as rp2.Flash(start,
# len) or esp32.Partition provide it (block protocol with offsets; ioctl 6 erases).
#
# Owns the region. Its blocks are a ring: a generation uses consecutive blocks, and a new one
# begins after the last block of the current one, so all blocks wear alike. The first page of
# each block is its header, the others are bytes of the journal; see FORMAT.md. switch()
# programs the header of a generation's first block last: until then the generation does not
# exist, afterwards it is the newest. A page is programmed once between two erases; a block is
# erased just before it is used.
#
# append() and sync() do not allocate, except for a block's header under heap.lift(); callers
# of the others lift the heap lock. An error in append() or sync() may leave part of the bytes:
# then the medium takes no more until begin() or resume(). Methods that messages do not need are in
# journal/medium_flash_start.py, which is loaded on demand.
from binascii import crc32
from struct import pack_into

from slotmq.constants import EIO, ENOSPC, HEADER, PAGE, SECOND
from slotmq.fast import copy
from slotmq.platform import heap, ondemand

_MAGIC = b"slotmqJ\x01"  # the last byte is the version of the format
_BLOCKS = 4  # ioctl
_BLOCK_SIZE = 5
_ERASE = 6


class FlashMedium:
    page = PAGE

    def __init__(self, device, snapshot):
        self.device = device
        self.blocks = device.ioctl(_BLOCKS, 0)
        self.data = device.ioctl(_BLOCK_SIZE, 0) - PAGE  # bytes of the journal in a block
        self.buf = bytearray(PAGE)  # the last page, as long as it is not programmed
        self.most = snapshot
        beside = min(max(1, -(-snapshot // self.data)), self.blocks // 2)
        self.capacity = (self.blocks - beside) * self.data
        self.written = self.erased = 0
        self.births = 0  # generations begun, including those that were given up
        self.first, self.length = -1, 1  # blocks of the opened generation
        self.end = 0
        self.space = -1  # what `end` may become; -1: nothing may be appended

    def append(self, buf, off, n):
        space = self.space
        if self.end + n > space:
            raise OSError(ENOSPC, "write")
        self.space = -1  # until all bytes are written
        while n:
            if self.end and not self.end % self.data:
                self._take(self.end // self.data)
            at = self.end % PAGE
            part = min(n, PAGE - at)
            copy(self.buf, at, buf, off, part)
            self.end += part
            off += part
            n -= part
            if at + part == PAGE:
                self._program()
        self.space = space

    def sync(self):
        space = self.space
        if space < 0:
            raise OSError(EIO, "write")
        self.space = -1
        if self.end % PAGE:
            self._blank(self.end % PAGE)
            self.end += -self.end % PAGE
            self._program()
        self.space = space

    def begin(self, generation):
        _ring().begin(self, generation)

    def spare(self, n):
        return _ring().spare(self, n)

    def switch(self):
        _ring().switch(self)

    def close(self):
        self.space = -1

    # Only a start needs these; forget() drops them

    def generations(self):
        return _ring().generations(self)

    def set_aside(self, generation, is_needed=False):
        return _ring().set_aside(self, generation, is_needed)

    def open(self, generation):
        _ring().reopen(self, generation)

    def readinto(self, at, buf, n):
        return _ring().readinto(self, at, buf, n)

    def resume(self, end):
        _ring().resume(self, end)

    # Blocks and pages

    def _take(self, number):
        # Begin the next block; now the buffer is empty, so the header can be made in it.
        with heap.lifted:
            self.erase((self.base + number) % self.blocks)
            self.put_header(number)
        if self.base == self.first:
            self.length = number + 1

    def put_header(self, number):
        buf = self.buf
        self._blank(0)
        pack_into("<8s3I", buf, 0, _MAGIC, self.ident[0], self.ident[1], number)
        pack_into("<I", buf, HEADER - 4, crc32(buf[: HEADER - 4]))
        copy(buf, SECOND, buf, 0, HEADER)
        self.put(number, 0)

    def _blank(self, at):
        for i in range(at, PAGE):
            self.buf[i] = 0xFF

    def _program(self):
        at = self.end - PAGE
        self.put(at // self.data, at % self.data + PAGE)

    def put(self, number, at):
        heap.lift()
        self.written += PAGE
        heap.drop()
        if self.device.writeblocks((self.base + number) % self.blocks, self.buf, at):
            raise OSError(EIO, "write")

    def erase(self, block):
        self.erased += self.data + PAGE
        if self.device.ioctl(_ERASE, block):
            raise OSError(EIO, "write")


def _ring():
    return ondemand.take("journal.medium_flash_start", 0)


def forget():
    """Drop what only a start needs: no medium is made or read any more."""
    FlashMedium.__init__ = FlashMedium.generations = FlashMedium.set_aside = None
    FlashMedium.open = FlashMedium.readinto = FlashMedium.resume = None
