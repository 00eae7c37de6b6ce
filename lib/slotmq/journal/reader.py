# reader.py - reads a generation of the journal at a start: its records in order, and up to where
# it is whole. Owns a buffer and a window on the medium. Allocates.
from slotmq.fast import copy
from slotmq.fast.journal import crc_add, crc_put, crc_start, crc_state
from slotmq.journal import records

_BY_TABLE = 2  # in HEAD: two COMMITs end its first rows
_COMMIT_BEGINS = b"\x0d\x04"  # type and length
_CHUNK = 60
_WINDOW = 512
_PADDING = 64
_FILE_HEADER = 16  # bytes of a file before the journal's
_FS_BLOCK = 512  # the smallest of a file system
TORN = 1  # an incomplete batch follows the last COMMIT, as a power cut leaves it
DAMAGED = 2  # committed records follow that can no longer be reached


def u16(buf, at):
    return buf[at] << 8 | buf[at + 1]


class Reader:
    """The records of one generation."""

    def __init__(self, medium, generation, longest):
        self.medium = medium
        self.generation = generation
        medium.open(generation)
        self.buf = bytearray(max(longest, 64))
        # The window has `had` bytes of the medium, from `at` on
        self.window = bytearray(max(_WINDOW, len(self.buf)))
        self.at = self.had = 0
        self.seed = bytearray(4)
        for i in range(4):
            self.seed[i] = generation >> 8 * (3 - i) & 255
        self.crc = crc_state()
        self.padding = b"\xff" * _PADDING
        # The record that find() has found last: type, offset and length of its body, offset past
        # it
        self.kind = self.body = self.size = self.next = 0

    def find(self, at, is_known=False):
        """Look at the record that begins at `at`; False: there is no whole record.

        is_known: its CRC has been checked before."""
        buf = self.buf
        had = self.read(at, 5)
        self.kind = buf[0]
        size = shift = 0
        i = 1
        while True:
            if i >= had or shift > 21:
                return False
            size |= (buf[i] & 127) << shift
            i += 1
            if buf[i - 1] < 128:
                break
            shift += 7
        crc_start(self.crc)
        crc_add(self.crc, self.seed, 0, 4)
        crc_add(self.crc, buf, 0, i)
        self.body = at + i
        self.size = size
        self.next = self.body + size + 4
        return is_known or self._is_whole()

    def read(self, at, n):
        # Copies from the window, which is read anew if it does not contain all n bytes. If that
        # fails, n bytes alone may still be readable.
        off = at - self.at
        if off < 0 or off + n > self.had:
            self.at = at
            self.had = self._read(at, self.window, len(self.window))
            off = 0
            if not self.had:
                return self._read(at, self.buf, n)
        n = min(n, self.had - off)
        copy(self.buf, 0, self.window, off, n)
        return n

    def _read(self, at, buf, n):
        # Bytes that cannot be read count as missing.
        try:
            return self.medium.readinto(at, buf, n)
        except OSError:
            return 0

    def _is_whole(self):
        at = self.body
        end = at + self.size
        buf = self.buf
        while at < end:
            n = self.read(at, min(len(buf), end - at))
            if not n:
                return False
            crc_add(self.crc, buf, 0, n)
            at += n
        if self.read(end, 4) < 4:
            return False
        crc_put(self.crc, buf, 4)
        for i in range(4):  # slices would fragment the heap
            if buf[i] != buf[4 + i]:
                return False
        return True

    def read_body(self, off=0, most=None):
        """Read at most `most` bytes of the body, from `off`, into buf; -> how many."""
        n = min(len(self.buf), self.size - off)
        return self.read(self.body + off, n if most is None else min(n, most))

    def after(self, at):
        """Skip padding at `at`; -> where the next record may begin."""
        # Padding goes on to the end of its page; a type that has rotted to ff does not.
        page = self.medium.page
        end = (at + page - 1) // page * page
        off = at
        while off < end and self.read(off, 1) and self.buf[0] == 0xFF:
            n = self.read(off, min(_PADDING, end - off))
            if self.buf[:n] != self.padding[:n]:
                return at
            off += n
        return end if off >= end else at


def last_commit(reader):
    """-> where the last COMMIT ends, and what follows it: 0 (nothing), TORN or DAMAGED.

    (0, 0): there is no COMMIT. (0, version): the generation is of that newer version."""
    at = end = kind = 0
    has_rows = True  # are the rows of the compaction, which come first, all there?
    while True:
        at = reader.after(at)
        if not reader.find(at) or reader.kind > records.LAST_TYPE:
            break
        if at == 0:
            n = reader.read_body()
            if reader.kind != records.HEAD or n < 5:
                return 0, 0
            if reader.buf[0] > records.VERSION:
                return 0, reader.buf[0]
            has_rows = n < 8 or not reader.buf[7] & _BY_TABLE
        at = reader.next
        has_rows = has_rows or kind == reader.kind == records.COMMIT
        kind = reader.kind
        if kind == records.COMMIT:
            end = at
    if not end:
        return 0, 0
    if not has_rows:  # no power cut: they were synced before the generation became the current one
        return end, DAMAGED
    is_hole = reader.medium.page == 1 and _has_hole(reader, at, reader.next)
    again = _commits_again(reader, at)
    if again and not (is_hole and _ends(reader, again)):
        return end, DAMAGED
    return end, 0 if _ends(reader, at) else TORN


def _ends(reader, at):
    return not reader.read(at, 1) or reader.buf[0] == 0xFF


def _has_hole(reader, at, end):
    # Does a block of the file end with zeros? A power cut may leave these if a later block was
    # written before this one.
    while at < end:
        stop = at + _FS_BLOCK - (_FILE_HEADER + at) % _FS_BLOCK
        while at < stop:
            n = reader.read(at, min(_CHUNK, stop - at))
            if not n or any(reader.buf[:n]):
                break
            at += n
        if at == stop:
            return True
        at = stop
    return False


def _commits_again(reader, at):
    # Search for a COMMIT at every byte from `at` on; -> where the first whole one ends, or 0.
    while True:
        n = reader.read(at, _CHUNK)
        if n < len(_COMMIT_BEGINS):
            return 0
        found = bytes(reader.buf[:n]).find(_COMMIT_BEGINS)
        at += n - 1 if found < 0 else found
        if found >= 0:
            if reader.find(at):
                return reader.next
            at += 1
