# medium_file.py - a medium for the journal: a file. The file system must keep what was synced,
# and rename atomically (promises() of journal/location.py).
#
# Owns the file `path`, which is the current generation, and `path.new` while another one is
# written beside it. Both begin with a header; the other bytes are the journal's, see FORMAT.md.
# `path.reserve` reserves space for the next generation, even if other programs fill the file
# system: it becomes that generation, or is removed before it. All methods but append() and sync()
# are in journal/medium_file_start.py, which is loaded on demand.
#
# append() and sync() do not allocate on MicroPython, unless the block device does; callers of
# the others lift the heap lock. An error in append() or sync() may leave part of the bytes:
# then the medium takes no more until begin() or resume().
import os

from slotmq.constants import EIO, ENOSPC, HEAD_BYTES
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON


class FileMedium:
    page = 1
    erased = 0  # unknown

    def __init__(self, path, snapshot, limit):
        self.path = path
        self.most = snapshot
        self.spared = 0  # bytes that `path.reserve` is known to have
        self.limit = limit - 2 * HEAD_BYTES  # for both generations
        self.capacity = self.limit - snapshot
        self.old = self.new = None  # open files: the opened generation, the written one
        self.end = self.size = 0  # bytes of the written generation, of the opened one
        self.space = -1  # what `end` may become; -1: nothing may be appended
        self.written = 0

    def append(self, buf, off, n):
        space = self.space
        if self.end + n > space:
            raise OSError(ENOSPC, "write")
        self.space = -1  # until all bytes are written
        if MICROPYTHON:
            self.new.write(buf, off, n)
        else:
            self.new.write(memoryview(buf)[off : off + n])
        self.end += n
        heap.lift()  # from 1 GB on, the sum is not a small integer
        self.written += n
        heap.drop()
        self.space = space

    def sync(self):
        space = self.space
        if space < 0:
            raise OSError(EIO, "write")
        self.space = -1
        self.new.flush()
        if not MICROPYTHON:
            os.fsync(self.new.fileno())
        self.space = space

    def begin(self, generation):
        _disk().begin(self, generation)

    def spare(self, n):
        return _disk().spare(self, n)

    def switch(self):
        _disk().switch(self)

    def close(self):
        _disk().close(self)

    # Only a start needs these; forget() drops them

    def generations(self):
        return _disk().generations(self)

    def set_aside(self, generation, is_needed=False):
        return _disk().set_aside(self, generation, is_needed)

    def open(self, generation):
        _disk().reopen(self)

    def readinto(self, at, buf, n):
        return _disk().readinto(self, at, buf, n)

    def resume(self, end):
        _disk().resume(self, end)


def _disk():
    return ondemand.take("journal.medium_file_start", 0)


def forget():
    """Drop what only a start needs: no medium is made or read any more."""
    FileMedium.__init__ = FileMedium.generations = FileMedium.set_aside = None
    FileMedium.open = FileMedium.readinto = FileMedium.resume = None
