# record_cpython.py - the contract of fast/record_viper.py on CPython.
from struct import pack_into
from zlib import crc32

_NONE = 0xFFFF
_BEFORE = 20
_OF_MESSAGE = 2
_UNWANTED = 1
_FILL = 0
_BLOCK = 1
_SIZE = 2
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
_THIS = 15
_O_SESSIONS = 16
_BEGAN = 17
_SKIP = 18
_MOST_BYTES = 65534


def make(out, block, topics, clients, sessions):
    """-> the state, and the objects that the caller must keep alive with it."""
    numbers = [0, block, len(out), 0, 0, 0, 0, 0, _NONE, _NONE, 0]
    return [*numbers, out, None, topics, clients, _UNWANTED, sessions, 0, 0], None


def add_all(ticks, conn, o, names, b, at, end):
    """Record the PUBLISH packets of b[at:end]; -> the first that needs other code, or end."""
    o[_TICKS] = ticks - o[_BEGAN] & 0x3FFFFFFF
    o[_CLIENT] = o[_O_SESSIONS][conn]
    topics, clients = o[_O_TOPICS], o[_O_CLIENTS]
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
                s += 2 + n + (2 if first & 6 else 0) + o[_SKIP]
                is_known = topics[slot] == clients[o[_CLIENT]] == o[_THIS]
                if not is_known or not _put(o, slot, first, b, s, stop):
                    return at
        at = stop
    return at


def _put(o, slot, first, b, at, end):
    # Record a message; False: no space.
    fill = o[_FILL]
    n = _BEFORE + end - at
    if fill >= o[_BLOCK] or n > o[_SPACE] or fill + n > o[_SIZE] or n > _MOST_BYTES:
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


def add(_s, _crc, o, b, at, n, how):
    """Add b[at:at + n] to the CRC of the record whose header is in the buffer. how 1: these are
    its first bytes, the header comes before them; 2: both are also put into the buffer."""
    out = o[_O_OUT]
    fill = o[_FILL]
    crc = o[_CRC]
    if how:
        head = o[_LENGTH], o[_SEQ], o[_TICKS], o[_CLIENT], o[_TOPIC_ID]
        pack_into("<IIIHH", out, fill + 4, *head)
        crc = crc32(out[fill + 4 : fill + _BEFORE])
        o[_SEQ] += 1
    if how == 2:
        out[fill + _BEFORE : fill + _BEFORE + n] = b[at : at + n]
    o[_CRC] = crc = crc32(memoryview(b)[at : at + n], crc)
    pack_into("<I", out, fill, crc)
