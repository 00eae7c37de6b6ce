# record_file.py - the recorder's ring: segments in files of a folder, SSSSSSSS.seg.
#
# Owns the file of the segment that is written. append() and sync() do not allocate on
# MicroPython, as far as the block device does not; the rest is on the control plane.
import os
from binascii import crc32
from struct import pack, unpack

from slotmq.runtime import MICROPYTHON, const

HEAD = const(32)  # bytes before the first record
_MAGIC = b"SLMR\x01\0"
_NUMBERS = const(8)  # digits of a segment's name
_SUFFIX = ".seg"


class Files:
    def __init__(self, folder, size, budget):
        self.folder = folder  # ends with /, or is empty
        self.size = size
        self.most = max(2, budget // size)
        self.file = None
        self.segment = -1  # that is or was written
        self.written = 0  # bytes of it that were appended
        self.synced = 0
        self.first = self.newest = -1  # as of the last look

    def append(self, buf, off, n):
        if MICROPYTHON:
            done = self.file.write(buf, off, n)
        else:
            done = self.file.write(memoryview(buf)[off : off + n])
        if done != n:
            raise OSError(28, "write")
        self.written += n

    def sync(self):
        self.file.flush()
        if not MICROPYTHON:
            os.fsync(self.file.fileno())
        self.synced = self.written

    # The control plane

    def path(self, segment):
        return "%s%08x%s" % (self.folder, segment, _SUFFIX)

    def look(self):
        """The numbers of the segments that are there, in order."""
        found = []
        for name in os.listdir(self.folder or "."):
            if name.endswith(_SUFFIX) and len(name) == _NUMBERS + len(_SUFFIX):
                try:
                    found.append(int(name[:_NUMBERS], 16))
                except ValueError:
                    pass
        found.sort()
        if found:
            self.first, self.newest = found[0], found[-1]
        return found

    def begin(self, segment, board, boot, seq):
        """The file of a new segment, and its header."""
        self.close()
        head = _MAGIC + pack("<H8sIII", self.size >> 8, board, boot, segment, seq)
        self.file = open(self.path(segment), "wb")
        self.segment = segment
        self.written = self.synced = 0
        return head + pack("<I", crc32(head))

    def close(self):
        """What was not synced by now was never promised."""
        try:
            if self.file:
                self.file.close()
        except OSError:
            pass
        self.file = None

    def remove(self, segment):
        os.remove(self.path(segment))

    def header(self, segment):
        """(boot, seq of the first record) of a segment; None: it has no header."""
        try:
            with open(self.path(segment), "rb") as file:
                head = file.read(HEAD)
        except OSError:
            return None
        if len(head) < HEAD or head[:6] != _MAGIC or unpack("<I", head[28:])[0] != crc32(head[:28]):
            return None
        return unpack("<IxxxxI", head[16:28])

    def end(self, segment):
        """Behind the seq of its last whole record: walks over all of them."""
        seq = self.header(segment)[1]
        with open(self.path(segment), "rb") as file:
            file.seek(HEAD)
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

    def length(self, segment):
        """Bytes of a segment's file; -1: there is none."""
        try:
            return os.stat(self.path(segment))[6]
        except OSError:
            return -1

    def read(self, segment, at, n):
        """Bytes that are on flash."""
        with open(self.path(segment), "rb") as file:
            file.seek(at)
            return file.read(n)
