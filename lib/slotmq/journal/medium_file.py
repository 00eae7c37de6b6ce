# medium_file.py - a medium for the journal: a file of a file system that does not lose
# what was synced and renames in one step (places.promises() tells where that is known).
#
# Owns the file `path`, which is the current generation, and `path.new` while another one
# is written beside it. Both begin with a header, and what follows is the journal's;
# FORMAT.md has every byte. `path.space` is as long as the next one may be: it becomes that
# or gives way to it, so that a file system that others have filled has space. All but append()
# and sync() is in journal/medium_file_start.py, which is loaded on demand.
#
# append() and sync() do not allocate on MicroPython, as far as the block device does not;
# who calls the others lifts. An error in the midst of one leaves a piece of what was to be
# written: the medium takes no more then, until begin() or resume().
import os

from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON, const

_HEAD_BYTES = const(16)
_EIO = const(5)
_ENOSPC = const(28)


class FileMedium:
    page = 1
    erased = 0  # nobody knows

    def __init__(self, path, snapshot, limit):
        self.path = path
        self.most = snapshot
        self.spared = 0  # bytes of `path.space`, as far as is known
        self.limit = limit - 2 * _HEAD_BYTES  # for both generations
        self.capacity = self.limit - snapshot
        self.old = self.new = None  # open files: the opened generation, the written one
        self.end = self.size = 0  # bytes of that which is written, of the opened one
        self.space = -1  # that much may be appended
        self.written = 0

    def append(self, buf, off, n):
        space = self.space
        if self.end + n > space:
            raise OSError(_ENOSPC, "write")
        self.space = -1  # until all of it is there
        if MICROPYTHON:
            self.new.write(buf, off, n)
        else:
            self.new.write(memoryview(buf)[off : off + n])
        self.end += n
        heap.lift()  # from 1 GB on the sum is no small integer
        self.written += n
        heap.drop()
        self.space = space

    def sync(self):
        space = self.space
        if space < 0:
            raise OSError(_EIO, "write")
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

    # At start only: forget() lets go of these

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
    """Give back what only a start needs: nobody makes a medium or reads it any more."""
    FileMedium.__init__ = FileMedium.generations = FileMedium.set_aside = None
    FileMedium.open = FileMedium.readinto = FileMedium.resume = None
