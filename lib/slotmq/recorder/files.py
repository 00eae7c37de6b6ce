# files.py - the files of a recorder's ring, SSSSSSSS.seg in its folder: what is seldom done
# with them. Owns nothing; `rec` is a Recorder, which writes the newest one itself. Loaded with
# recorder/segments.py; on the control plane: allocates.
import os
from binascii import crc32
from struct import pack, unpack

from slotmq.platform.runtime import const

SEGMENT_HEAD = const(32)  # bytes before the first record
IDENTITY = "ring"  # the file of who the board is
_MAGIC = b"SLMR\x01\0"
_SEQ = const(4)  # of the Recorder's state
_DIGITS = const(8)  # of a segment's name
_SUFFIX = ".seg"


def path(rec, segment):
    """Where a segment is."""
    return "%s%08x%s" % (rec.folder, segment, _SUFFIX)


def look(rec):
    """The numbers of the segments that are there, in order."""
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
    """Who the board is, and the number of this start."""
    name = folder + IDENTITY
    data = board + pack("<I", boot)
    with open(name + ".new", "wb") as file:
        file.write(data + pack("<I", crc32(data)))
        file.flush()
        if hasattr(os, "fsync"):
            os.fsync(file.fileno())
    os.rename(name + ".new", name)


def begin(rec, segment):
    """The file of a new segment; its header."""
    close(rec)
    board, size = rec.board, rec.size >> 8
    head = _MAGIC + pack("<H8sIII", size, board, rec.boot, segment, rec.o[_SEQ])
    rec.file = open(path(rec, segment), "wb")
    rec.segment = rec.newest = segment
    rec.written = rec.synced = 0
    return head + pack("<I", crc32(head))


def close(rec):
    """What was not synced by now was never promised."""
    try:
        if rec.file:
            rec.file.close()
    except OSError:
        pass
    rec.file = None


def remove(rec, segment):
    """It makes way."""
    os.remove(path(rec, segment))


def header(rec, segment):
    """(boot, seq of the first record) of a segment; None: it has no header."""
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
    """Behind the seq of its last whole record: walks over all of them."""
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
    """Bytes of a segment that are on flash; -1: there is no such segment."""
    if segment == rec.segment:
        return rec.synced
    if segment >= rec.__dict__.get("unsynced", rec.segment):
        rec.flush()
    return size(rec, segment)


def size(rec, segment):
    """Bytes of its file; -1: there is none."""
    try:
        return os.stat(path(rec, segment))[6]
    except OSError:
        return -1


def read(rec, segment, at, n):
    """Bytes of a segment."""
    with open(path(rec, segment), "rb") as file:
        file.seek(at)
        return file.read(n)
