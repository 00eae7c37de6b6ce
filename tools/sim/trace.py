# trace.py - the hash of a run: of every byte that was read or written, with link and time.
import binascii


class Trace:
    def __init__(self):
        self.hash = 0
        self.reads = self.writes = 0

    def note(self, what, link, ms, data):
        """what: one byte, r w or another event; link: its number."""
        head = bytes((what, link >> 8 & 255, link & 255, ms >> 16 & 255, ms >> 8 & 255, ms & 255))
        self.hash = binascii.crc32(head + data, self.hash)

    def shown(self):
        return f"{self.hash:08x}"
