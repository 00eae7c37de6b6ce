# medium_file_start.py - the rare tasks of a journal's file: finds, reads and sets aside a
# generation, begins a new one beside it, switches to that, reserves space, closes. Loaded on
# demand; owns nothing: `medium` is a FileMedium (journal/medium_file.py). Allocates.
import os
from binascii import crc32
from struct import pack, unpack

from slotmq.constants import BITS, ENOENT, HEAD_BYTES
from slotmq.fast import copy
from slotmq.platform.runtime import MICROPYTHON

_ROOM = 4096  # bytes of a buffer
_OF_A_BOARD = 200000  # the largest snapshot of a board without PSRAM
_MAGIC = b"slotmqJ\x01"  # the last byte is the version of the format
_EISDIR = 21
_CANNOT = (22, 38, 95)  # EINVAL, ENOSYS, EOPNOTSUPP

# The start


def generations(medium):
    medium.is_foreign = 0  # as in journal/medium_flash_start.py
    try:
        file = open(medium.path, "rb")
    except OSError as error:
        _must_be_missing(error)
        return []
    with file:
        head = _head(file)
    medium.is_foreign = 1
    if len(head) == HEAD_BYTES:
        magic, generation, crc = unpack("<8s2I", head)
        if magic[:7] == _MAGIC[:7] and crc == crc32(head[:-4]):
            medium.is_foreign = magic[7]
            if magic == _MAGIC and not generation >> BITS:
                return [generation]
        elif head[3:15] == b"mosquitto db":
            medium.is_foreign = 0
    return []


def _head(file):
    # A header that cannot be read counts as damaged, like a wrong one.
    try:
        return file.read(HEAD_BYTES)
    except OSError as error:
        if error.errno == _EISDIR:  # some ports can open a folder
            raise error
        return b""


def set_aside(medium, generation, is_needed):
    name, is_there = _free(medium.path, ".damaged-%d" % generation, is_needed)
    if is_needed:
        return name if _copy(medium.path, name, is_there) else None
    close(medium)
    try:
        os.rename(medium.path, name)
    except OSError as error:
        _must_be_missing(error)
        return None
    _sync_folder(name)
    return name


def reopen(medium):
    close(medium)
    medium.old = medium.new = _joined(medium, open(medium.path, "r+b"))
    medium.end = medium.old.seek(0, 2) - HEAD_BYTES


def readinto(medium, at, buf, n):
    medium.old.seek(HEAD_BYTES + at)
    n = medium.old.readinto(memoryview(buf)[:n])
    if medium.old is medium.new:
        medium.old.seek(HEAD_BYTES + medium.end)
    return n


# Generations


def begin(medium, generation):
    medium.space = -1
    if medium.new is medium.old:
        medium.size = medium.end
    else:
        _close(medium.new)
    medium.spared = 0
    head = pack("<8sI", _MAGIC, generation)
    head += pack("<I", crc32(head))
    medium.new = _joined(medium, _beside(medium.path))
    medium.new.write(head, 0, HEAD_BYTES) if MICROPYTHON else medium.new.write(head)
    medium.end = 0
    medium.written += HEAD_BYTES
    medium.space = medium.limit - medium.size


def switch(medium):
    if not MICROPYTHON:
        medium.new.truncate()  # before the rename: bytes after its end may look like records
    medium.sync()
    end = medium.end
    close(medium)
    if not MICROPYTHON:
        try:
            if _is_alone(medium.path, medium.path + ".reserve"):
                os.link(medium.path, medium.path + ".reserve")  # its bytes are the next reserve
        except (OSError, AttributeError):
            pass
    os.rename(medium.path + ".new", medium.path)
    _sync_folder(medium.path)
    resume(medium, end)


def _joined(medium, file):
    # On a computer a commit is one write(). CPython's files have a buffer, and so has the file
    # system of a board, where heap is scarce.
    if not MICROPYTHON or medium.most <= _OF_A_BOARD:
        return file
    return JoinedFile(file)


def _beside(path):
    # Open the new file. On a computer the reserve or an abandoned `.new` is written over, because
    # another program might take its bytes if they were free for a moment. Elsewhere it is removed:
    # littlefs never writes in place, and MicroPython cannot shorten a file.
    new = path + ".new"
    space = path + ".reserve"
    if not MICROPYTHON:
        _sync_folder(path)  # else after a power cut the reserve may have the journal's name again
        if _is_alone(space, path):
            os.rename(space, new)
        if _is_alone(new, path):
            _remove(space)
            return _open(new, "r+b")
    _remove(new)
    _remove(space)
    return _open(new, "wb")


def _is_alone(name, other):
    # Is it the broker's own file, with mode 600, no other name, and not the file `other`? (After a
    # power cut within switch() a file may have two names.)
    if not MICROPYTHON:
        try:
            found = os.lstat(name)
            is_ours = found.st_uid == os.geteuid() and found.st_mode & 0o777 == 0o600
            if not is_ours or found.st_nlink > 1 or os.path.islink(name):
                return False
            return not os.path.samefile(name, other)
        except OSError as error:
            _must_be_missing(error)
            return os.path.lexists(name)


def resume(medium, end):
    reopen(medium)
    _remove(medium.path + ".new")
    medium.old.seek(HEAD_BYTES + end)
    if not MICROPYTHON:
        medium.old.truncate()
    medium.end = end
    medium.space = medium.capacity


def close(medium):
    medium.space = -1
    _close(medium.old)
    _close(medium.new)
    medium.old = medium.new = None
    medium.end = 0


def spare(medium, n):
    n = min(n, medium.most)
    end = n + HEAD_BYTES
    name = medium.path + ".reserve"
    try:
        if n > medium.spared:
            with _open(name, "ab") as file:
                at = file.seek(0, 2)
                if at > medium.most + HEAD_BYTES and not MICROPYTHON:
                    at = file.truncate(medium.most + HEAD_BYTES)
                left = os.statvfs(name)
                if left[1] * left[4] >= end - at:  # else writing would fail
                    _reserve(file, at, end)
                    medium.spared = n
    except OSError:
        pass
    return n <= medium.spared


# Files


def _reserve(file, at, end):
    # Allocates blocks; a sparse file would reserve nothing.
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, end)
            return
        except OSError as error:  # not every file system and C library supports it
            if error.errno not in _CANNOT:
                raise
    zeros = bytes(256)
    while at < end:
        file.write(zeros)
        at += 256
    file.flush()


def _copy(path, name, is_there):
    # Is the copy complete? The original stays in use.
    try:
        with open(path, "rb") as file, _open(name, "rb" if is_there else "wb") as copy:
            if not is_there:
                piece = file.read(512)
                while piece:
                    copy.write(piece)
                    piece = file.read(512)
                copy.flush()
            if not MICROPYTHON:
                os.fsync(copy.fileno())
        _sync_folder(name)
        return True
    except OSError:
        pass
    try:
        if not is_there:
            os.remove(name)  # an incomplete copy
    except OSError:
        pass
    return is_there


def _open(path, mode):
    # Only the broker's user may read a new file, as mosquitto's, from its creation on: a process
    # that had opened it earlier could read all that is written later.
    if not MICROPYTHON:
        return open(path, mode, opener=lambda path, flags: os.open(path, flags, 0o600))
    return open(path, mode)


def _free(path, end, may_be_there):
    # (a name, is there a copy already): a free name, or that of an earlier start's copy
    found = path + end
    n = 1
    while True:
        try:
            open(found, "rb").close()
        except OSError:
            return found, False
        if may_be_there and _is_copy(path, found):
            return found, True
        n += 1
        found = "%s%s-%d" % (path, end, n)


def _is_copy(path, name):
    try:
        with open(path, "rb") as file, open(name, "rb") as copy:
            piece = file.read(512)
            while piece and piece == copy.read(512):
                piece = file.read(512)
            return not piece and not copy.read(1)
    except OSError:
        return False


def _must_be_missing(error):
    if error.errno != ENOENT:
        raise error


def _remove(path):
    try:
        os.remove(path)
    except OSError as error:
        _must_be_missing(error)


def _close(file):
    # What was not synced was never promised, so errors do not matter.
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


class JoinedFile:
    """A file of MicroPython with a buffer, which its own have not: what is written between two
    flushes is one write(), as long as it fits. Closing it drops what was not flushed. Does not
    allocate after construction."""

    def __init__(self, file):
        self.file = file
        self.buf = bytearray(_ROOM)
        self.waiting = 0  # bytes in buf

    def write(self, buf, off, n):
        if self.waiting + n > _ROOM:
            self._write()
        if n > _ROOM:
            self.file.write(buf, off, n)
        else:
            copy(self.buf, self.waiting, buf, off, n)
            self.waiting += n

    def _write(self):
        n = self.waiting
        self.waiting = 0
        if n:
            self.file.write(self.buf, 0, n)

    def flush(self):
        self._write()
        self.file.flush()

    def seek(self, *where):
        self._write()
        return self.file.seek(*where)

    def readinto(self, buf):
        return self.file.readinto(buf)

    def close(self):
        self.waiting = 0
        self.file.close()
