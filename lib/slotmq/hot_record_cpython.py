# hot_record_cpython.py - the contract of hot_record.py on CPython.
from struct import pack_into
from zlib import crc32

_NONE = 0xFFFF
_BEFORE = 20
_OF_MESSAGE = 2
_UNWANTED = 1
_FILL = 0
_BLOCK = 1
_ROOM = 2
_LENGTH = 3
_SEQ = 4
_TICKS = 5
_SPACE = 7
_CLIENT = 8
_TOPIC_ID = 9
_CRC = 10
_O_OUT = 11
_O_TOPICS = 13
_O_CLIENTS = 14
_NAMES = 15
_THIS = 17
_O_SESSIONS = 18
_BEGAN = 19


def make(out, block, topics, clients, names, sessions, _is_large):
    """The state, and what must be kept with it."""
    numbers = [0, block, len(out), 0, 0, 0, 0, 0, _NONE, _NONE, 0]
    return [*numbers, out, None, topics, clients, names, 0, _UNWANTED, sessions, 0], None


def find(ticks, conn, o, _b, _at, end):
    """What is of connection `conn` at tick `ticks`; tap() finds its topics itself."""
    o[_TICKS] = ticks - o[_BEGAN] & 0x3FFFFFFF
    o[_CLIENT] = o[_O_SESSIONS][conn]
    return end


def tap(_i, _crc, o, b, at, end):
    """Records of the PUBLISH packets of b[at:end]; -> the first that takes more, or end."""
    topics, clients, names = o[_O_TOPICS], o[_O_CLIENTS], o[_NAMES]
    while at < end:
        n = b[at + 1]
        s = at + 2
        if n >> 7:
            n = n & 127 | b[s] << 7
            s += 1
        stop = s + n
        first = b[at]
        if first >> 4 == 3:
            n = b[s] << 8 | b[s + 1]
            slot = names.find(0, b, s + 2, n)
            if slot == _NONE:
                return at
            if topics[slot] != _UNWANTED:
                s += 2 + n + (2 if first & 6 else 0)
                is_known = topics[slot] == clients[o[_CLIENT]] == o[_THIS]
                if not is_known or not _put(o, slot, first, b, s, stop):
                    return at
        at = stop
    return at


def _put(o, slot, first, b, at, end):
    # A message for which there is room, or False
    fill = o[_FILL]
    n = _BEFORE + end - at
    if fill >= o[_BLOCK] or n > o[_SPACE] or fill + n > o[_ROOM]:
        return False
    flags = first >> 1 & 3 | (first & 1) << 2 | first & 8
    out = o[_O_OUT]
    head = n, _OF_MESSAGE, flags, o[_SEQ], o[_TICKS], o[_CLIENT], slot
    pack_into("<HBBIIHH", out, fill + 4, *head)
    out[fill + _BEFORE : fill + n] = b[at:end]
    pack_into("<I", out, fill, crc32(out[fill + 4 : fill + n]))
    o[_SEQ] += 1
    o[_FILL] = fill + n
    o[_SPACE] -= n
    return True


def add(_s, _crc, o, b, at, n):
    """The next n bytes b[at:] of the record that begins in the buffer to its CRC; at < 0:
    first of all its header."""
    out = o[_O_OUT]
    fill = o[_FILL]
    crc = o[_CRC]
    if at < 0:
        pack_into(
            "<IIIHH", out, fill + 4, o[_LENGTH], o[_SEQ], o[_TICKS], o[_CLIENT], o[_TOPIC_ID]
        )
        b, at, n, crc = out, fill + 4, _BEFORE - 4, 0
    o[_CRC] = crc = crc32(memoryview(b)[at : at + n], crc)
    pack_into("<I", out, fill, crc)
