# joined_file.py - a file of MicroPython with a buffer, which MicroPython's own have not: what is
# written between two flushes is one write(), as long as it fits. For the journal of a computer
# (journal/medium_file_start.py); on a board the file system has a buffer, and heap is scarce.
# Owns the buffer. Does not allocate after construction.
from slotmq.fast import copy
from slotmq.platform.runtime import const

_ROOM = const(4096)


class JoinedFile:
    """The methods of a file that the medium calls. Closing it drops what was not flushed."""

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
