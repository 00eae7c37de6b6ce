# trace.py - the hash of a run: of every byte that was read and written, who it was, and when.
import binascii


class Trace:
    def __init__(self, keep=False):
        self.hash = 0
        self.reads = self.writes = 0
        self.lines = [] if keep else None

    def note(self, what, link, ms, data):
        """what: one byte, r w or another event; link: its number."""
        head = bytes((what, link >> 8 & 255, link & 255, ms >> 16 & 255, ms >> 8 & 255, ms & 255))
        self.hash = binascii.crc32(head + data, self.hash)
        if self.lines is not None:
            self.lines.append((ms, chr(what), link, bytes(data)))

    def shown(self):
        return f"{self.hash:08x}"
