# files.py - rare operations on the files of a recorder's ring: SSSSSSSS.seg in its folder, and the
# file `ring`. Owns nothing; `rec` is a Recorder, which writes the newest segment itself. Loaded
# with recorder/segments.py; allocates.
import os
from binascii import crc32
from struct import pack, unpack

from slotmq.constants import REC_SEQ
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    private = open
else:
    from slotmq.platform.filesystem_cpython import private

SEGMENT_HEAD = 32  # bytes before the first record
IDENTITY = "ring"  # the file with the board's id and the number of its last start
_MAGIC = b"SLMR\x01\0"
_DIGITS = 8  # of a segment's name
_SUFFIX = ".seg"


def path(rec, segment):
    """The path of a segment's file."""
    return "%s%08x%s" % (rec.folder, segment, _SUFFIX)


def look(rec):
    """The numbers of the segments in the folder, in order."""
    found = []
    for name in os.listdir(rec.folder or "."):
        if name.endswith(_SUFFIX) and len(name) == _DIGITS + len(_SUFFIX):
            try:
                found.append(int(name[:_DIGITS], 16))
            except ValueError:
                pass
    found.sort()
    if found:
        rec.first, rec.newest = found[0], found[-1]
    return found


def keep(folder, board, boot):
    """Store the board's id and the number of this start."""
    name = folder + IDENTITY
    data = board + pack("<I", boot)
    with private(name + ".new", "wb") as file:
        file.write(data + pack("<I", crc32(data)))
        file.flush()
        if hasattr(os, "fsync"):
            os.fsync(file.fileno())
    os.rename(name + ".new", name)


def begin(rec, segment):
    """Open the file of a new segment; -> its header, which is not written yet."""
    close(rec)
    rec.written = rec.synced = 0
    board, size = rec.board, rec.size >> 8
    head = _MAGIC + pack("<H8sIII", size, board, rec.boot, segment, rec.o[REC_SEQ])
    rec.file = private(path(rec, segment), "wb")
    rec.segment = rec.newest = segment
    return head + pack("<I", crc32(head))


def close(rec):
    """Close the file. Errors do not matter: what was not synced was never promised."""
    try:
        if rec.file:
            rec.file.close()
    except OSError:
        pass
    rec.file = None


def remove(rec, segment):
    """Remove the file of a segment."""
    os.remove(path(rec, segment))


def header(rec, segment):
    """(boot, seq of the first record) of a segment; None: it has no valid header."""
    try:
        with open(path(rec, segment), "rb") as file:
            head = file.read(SEGMENT_HEAD)
    except OSError:
        return None
    if (
        len(head) < SEGMENT_HEAD
        or head[:6] != _MAGIC
        or unpack("<I", head[28:])[0] != crc32(head[:28])
    ):
        return None
    return unpack("<IxxxxI", head[16:28])


def end(rec, segment):
    """One more than the seq of its last whole record. Reads all records."""
    seq = header(rec, segment)[1]
    with open(path(rec, segment), "rb") as file:
        file.seek(SEGMENT_HEAD)
        while True:
            head = file.read(20)
            if len(head) < 20:
                return seq
            crc, total = unpack("<IH", head[:6])
            rest = total - 20
            if total == 0xFFFF or rest < 0:
                return seq
            body = file.read(rest)
            if len(body) < rest or crc32(body, crc32(head[4:])) != crc:
                return seq
            seq = unpack("<I", head[8:12])[0] + 1


def length(rec, segment):
    """Bytes of a segment that are synced; -1: there is no such segment."""
    if segment == rec.segment:
        return rec.synced
    if segment >= rec.__dict__.get("unsynced", rec.segment):
        rec.flush()
    return size(rec, segment)


def size(rec, segment):
    """Bytes of a segment's file; -1: there is none."""
    try:
        return os.stat(path(rec, segment))[6]
    except OSError:
        return -1


def read(rec, segment, at, n):
    """n bytes of a segment, from `at` on."""
    with open(path(rec, segment), "rb") as file:
        file.seek(at)
        return file.read(n)
