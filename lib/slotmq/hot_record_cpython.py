# hot_record_cpython.py - the contract of hot_record.py on CPython.
from struct import pack_into
from zlib import crc32

_NONE = 0xFFFF
_FILL, _BLOCK, _ROOM, _LEFT, _SEQ, _TICKS, _CLIENT, _CRC, _OUT = range(9)


def make(out, block, topics, clients):
    """The state, and what must be kept with it."""
    return [0, block, len(out), 0, 0, 0, _NONE, 0, out, None, topics, clients], None


def names_table(_names):
    """What tap() walks to find a topic: nothing here."""


def tap(at, _s, _crc, o, names, b, end):
    """The first PUBLISH of b[at:end], or end: each goes the long way here."""
    while at < end and b[at] >> 4 != 3:
        length = b[at + 1]
        at += 2 + length  # no other packet of the lane has more than two bytes
    return at


def start(o, kind, total, topic):
    """The header of a record of so many bytes, but for its CRC, which begins with it."""
    words = total, kind & 255, kind >> 8, o[_SEQ], o[_TICKS], o[_CLIENT], topic
    pack_into("<HBBIIHH", o[_OUT], o[_FILL] + 4, *words)
    o[_SEQ] += 1
    o[_CRC] = crc32(memoryview(o[_OUT])[o[_FILL] + 4 : o[_FILL] + 20])


def add(o, at, b, n):
    """The payload's next n bytes b[at:] to the CRC."""
    o[_CRC] = crc32(memoryview(b)[at : at + n], o[_CRC])


def seal(o):
    """The CRC to the record that was started; its header is in the buffer."""
    pack_into("<I", o[_OUT], o[_FILL], o[_CRC])
    o[_FILL] += 20
    o[_LEFT] -= 20
