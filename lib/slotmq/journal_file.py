# journal_file.py - a medium for the journal: a file of a file system that does not lose
# what was synced and renames in one step (promises() tells where that is known).
#
# Owns the file `path`, which is the current generation, and `path.new` while another one
# is written beside it. Both begin with a header, and what follows is the journal's;
# FORMAT.md has every byte. The rename in switch() is what makes the new one current.
#
# append() and sync() do not allocate on MicroPython, as far as the block device does not;
# who calls the others lifts. An error in the midst of one leaves a piece of what was to be
# written: the medium takes no more then, until begin() or resume().
import os
from binascii import crc32
from struct import pack, unpack

from slotmq import heap
from slotmq.runtime import MICROPYTHON, const

_HEAD_BYTES = const(16)
_MAGIC = b"slotmqJ\x01"  # the last byte is the version of the format
_ENOENT = const(2)
_EIO = const(5)
_ENOSPC = const(28)


class FileMedium:
    page = 1
    erased = 0  # nobody knows

    def __init__(self, path, snapshot, limit):
        self._path = path
        self._limit = limit - 2 * _HEAD_BYTES  # for both generations
        self.capacity = self._limit - snapshot
        self._old = self._new = None  # open files: the opened generation, the written one
        self.end = self.held = 0  # bytes of that which is written, of the opened one
        self._room = -1  # that much may be appended
        self.written = 0

    def generations(self):
        try:
            with open(self._path, "rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError as error:
            _must_be_missing(error)
            return []
        if len(head) == _HEAD_BYTES:
            magic, generation, crc = unpack("<8s2I", head)
            if magic == _MAGIC and crc == crc32(head[:-4]):
                return [generation]
        return []

    def set_aside(self, generation):
        self.close()
        self.end = 0
        name = "%s.damaged-%d" % (self._path, generation)
        try:
            os.rename(self._path, name)
        except OSError as error:
            _must_be_missing(error)
            return None
        _sync_folder(name)
        return name

    def open(self, generation):
        self.close()
        self._old = self._new = open(self._path, "r+b")
        self.end = self._old.seek(0, 2) - _HEAD_BYTES

    def readinto(self, at, buf, n):
        self._old.seek(_HEAD_BYTES + at)
        n = self._old.readinto(memoryview(buf)[:n])
        if self._old is self._new:
            self._old.seek(_HEAD_BYTES + self.end)
        return n

    def resume(self, end):
        self.open(0)
        _remove(self._path + ".new")
        self._old.seek(_HEAD_BYTES + end)
        if not MICROPYTHON:
            self._old.truncate()
        self.end = end
        self._room = self.capacity

    def begin(self, generation):
        self._room = -1
        if self._new is self._old:
            self.held = self.end
        else:
            _close(self._new)
        _remove(self._path + ".new")
        head = pack("<8sI", _MAGIC, generation)
        self._new = open(self._path + ".new", "wb")
        self._new.write(head + pack("<I", crc32(head)))
        self.end = 0
        self._wrote(_HEAD_BYTES)
        self._room = self._limit - self.held

    def append(self, buf, off, n):
        room = self._room
        if self.end + n > room:
            raise OSError(_ENOSPC, "write")
        self._room = -1  # until all of it is there
        if MICROPYTHON:
            self._new.write(buf, off, n)
        else:
            self._new.write(memoryview(buf)[off : off + n])
        self.end += n
        self._wrote(n)
        self._room = room

    def sync(self):
        room = self._room
        if room < 0:
            raise OSError(_EIO, "write")
        self._room = -1
        self._new.flush()
        if not MICROPYTHON:
            os.fsync(self._new.fileno())
        self._room = room

    def switch(self):
        self.sync()
        end = self.end
        self.close()
        os.rename(self._path + ".new", self._path)
        _sync_folder(self._path)
        self.resume(end)

    def close(self):
        self._room = -1
        _close(self._old)
        _close(self._new)
        self._old = self._new = None

    def _wrote(self, n):
        heap.lift()  # from 1 GB on the sum is no small integer
        self.written += n
        heap.drop()


def promises(path):
    """(the kind of file system, is what was synced safe there and a rename one step)

    None: that cannot be known."""
    if not MICROPYTHON:
        return "host", True
    import vfs

    if path[0] != "/":
        path = os.getcwd().rstrip("/") + "/" + path
    kind, longest = "", 0
    for system, place in vfs.mount():
        place = place.rstrip("/") + "/"
        if path.startswith(place) and len(place) > longest:
            kind, longest = type(system).__name__, len(place)
    return kind, {"VfsLfs2": True, "VfsFat": False}.get(kind)


def forget():
    """Give back what only a start needs: nobody makes a medium or looks for one any more."""
    global promises
    FileMedium.__init__ = FileMedium.generations = FileMedium.set_aside = promises = None


def _must_be_missing(error):
    if error.errno != _ENOENT:
        raise error


def _remove(path):
    try:
        os.remove(path)
    except OSError as error:
        _must_be_missing(error)


def _close(file):
    # What it did not write by then was never promised.
    try:
        if file:
            file.close()
    except OSError:
        pass


def _sync_folder(path):
    if not MICROPYTHON:
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
