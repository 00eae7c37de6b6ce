# hot_record_cpython.py - the contract of hot_record.py on CPython.
from struct import pack_into
from zlib import crc32

_NONE = 0xFFFF
_FILL = 0
_CRC = 7
_O_OUT = 8


def make(out, block, topics, clients):
    """The state, and what must be kept with it."""
    return [0, block, len(out), 0, 0, 0, _NONE, 0, out, None, topics, clients], None


def tap(o, names, b, at, end):
    """The first PUBLISH of b[at:end], or end: each goes the long way here."""
    while at < end and b[at] >> 4 != 3:
        length = b[at + 1]
        at += 2 + length  # no other packet of the lane has more than two bytes
    return at


def add(o, at, b, n, is_first):
    """The next n bytes b[at:] to the CRC."""
    o[_CRC] = crc32(memoryview(b)[at : at + n], 0 if is_first else o[_CRC])


def seal(o):
    """The CRC to the record whose header is in the buffer."""
    pack_into("<I", o[_O_OUT], o[_FILL], o[_CRC])
