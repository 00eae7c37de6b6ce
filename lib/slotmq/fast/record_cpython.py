# record_cpython.py - the contract of fast/record_viper.py on CPython.
from struct import pack_into
from zlib import crc32

from slotmq.constants import (MOST_BYTES, NONE, OF_MESSAGE, REC_BEFORE, REC_BEGAN, REC_BLOCK,
    REC_CLIENT, REC_CLIENTS, REC_CRC, REC_FILL, REC_LENGTH, REC_OUT, REC_SEQ, REC_SESSIONS,
    REC_SIZE, REC_SKIP, REC_SPACE, REC_THIS, REC_TICKS, REC_TOPICS, REC_TOPIC_ID, UNWANTED)


def make(out, block, topics, clients, sessions):
    """-> the state, and the objects that the caller must keep alive with it."""
    numbers = [0, block, len(out), 0, 0, 0, 0, 0, NONE, NONE, 0]
    return [*numbers, out, None, topics, clients, UNWANTED, sessions, 0, 0], None


def add_all(ticks, conn, o, names, b, at, end):
    """Record the PUBLISH packets of b[at:end]; -> the first that needs other code, or end."""
    o[REC_TICKS] = ticks - o[REC_BEGAN] & 0x3FFFFFFF
    o[REC_CLIENT] = o[REC_SESSIONS][conn]
    topics, clients = o[REC_TOPICS], o[REC_CLIENTS]
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
            if slot == NONE:
                return at
            if topics[slot] != UNWANTED:
                s += 2 + n + (2 if first & 6 else 0) + o[REC_SKIP]
                is_known = topics[slot] == clients[o[REC_CLIENT]] == o[REC_THIS]
                if not is_known or not _put(o, slot, first, b, s, stop):
                    return at
        at = stop
    return at


def _put(o, slot, first, b, at, end):
    # Record a message; False: no space.
    fill = o[REC_FILL]
    n = REC_BEFORE + end - at
    if fill >= o[REC_BLOCK] or n > o[REC_SPACE] or fill + n > o[REC_SIZE] or n > MOST_BYTES:
        return False
    flags = first >> 1 & 3 | (first & 1) << 2 | first & 8
    out = o[REC_OUT]
    head = n, OF_MESSAGE, flags, o[REC_SEQ], o[REC_TICKS], o[REC_CLIENT], slot
    pack_into("<HBBIIHH", out, fill + 4, *head)
    out[fill + REC_BEFORE : fill + n] = b[at:end]
    pack_into("<I", out, fill, crc32(out[fill + 4 : fill + n]))
    o[REC_SEQ] += 1
    o[REC_FILL] = fill + n
    o[REC_SPACE] -= n
    return True


def add(_s, _crc, o, b, at, n, how):
    """Add b[at:at + n] to the CRC of the record whose header is in the buffer. how 1: these are
    its first bytes, the header comes before them; 2: both are also put into the buffer."""
    out = o[REC_OUT]
    fill = o[REC_FILL]
    crc = o[REC_CRC]
    if how:
        head = o[REC_LENGTH], o[REC_SEQ], o[REC_TICKS], o[REC_CLIENT], o[REC_TOPIC_ID]
        pack_into("<IIIHH", out, fill + 4, *head)
        crc = crc32(out[fill + 4 : fill + REC_BEFORE])
        o[REC_SEQ] += 1
    if how == 2:
        out[fill + REC_BEFORE : fill + REC_BEFORE + n] = b[at : at + n]
    o[REC_CRC] = crc = crc32(memoryview(b)[at : at + n], crc)
    pack_into("<I", out, fill, crc)
