# hot_record.py - what the recorder does to bytes, on MicroPython, in viper: records put
# together in its buffer, with CRC-32 as in zlib. Nothing here allocates after make().
# FORMAT.md has a record byte by byte.
import sys
from array import array

import micropython
from micropython import const

from slotmq.hot import table
from slotmq.hot_journal import crc_state

_NONE = const(0xFFFF)
_HEAD = const(20)  # bytes of a record before its payload
_MESSAGE = const(2)
_DEFINED = const(1)  # marks of a topic or a client: the segment has its text
_UNWANTED = const(2)  # of a topic: no filter wants it
# Of the state
_FILL = const(0)  # bytes in the buffer
_BLOCK = const(1)  # more than so many are to be written
_ROOM = const(2)  # bytes of the whole buffer
_SPACE = const(3)  # that the segment still takes
_SEQ = const(4)  # of the next record
_TICKS = const(5)
_CLIENT = const(6)
_CRC = const(7)
_OUT = const(8)
_CRCS = const(9)
_TOPICS = const(10)
_CLIENTS = const(11)
# Of Names' table, see hot_stores.py
_MASK = const(2)
_N_HEADS = const(4)
_N_NEXT = const(5)
_N_HASH = const(6)
_N_LENGTH = const(8)
_N_FIRST = const(9)
_N_DATA = const(10)
_N_CHAIN = const(11)


def make(out, block, topics, clients):
    # The state: numbers, and the columns that somebody else keeps, but for the last part.
    crcs = crc_state()
    crcs[0] = 0xFFFFFFFF  # what each begins with
    parts = (0, block, len(out), 0, 0, 0, _NONE, 0, out, crcs, topics, clients)
    if sys.maxsize >> 32:  # so large that it does not lie in a hole before them
        parts += (0,) * 1024
    return table(parts), (out, crcs, topics, clients)


def names_table(names):
    return names.state


# The PUBLISH packets of b[at:end], all of which the lane has taken; -> the offset of the first
# one that takes more than this, or end. names: the table of the topics' Names.
@micropython.viper
def tap(at: int, s: int, crc: int, o: ptr32, names: ptr32, b: ptr8, end: int) -> int:
    crcs = ptr32(int(o) - o[_CRCS])
    while at < end:
        first = b[at]
        i = b[at + 1]
        s = at + 2
        if i >> 7:
            i = (i & 127) | (b[s] << 7)
            s += 1
        stop = s + i
        if first >> 4 ^ 3:
            at = stop
            continue
        n = (b[s] << 8) | b[s + 1]
        s += 2
        i = s + n
        h = n
        k = s
        while k < i:
            h = h * 33 + b[k]
            k += 1
        h = (h ^ (h >> 8)) & 0xFFFF
        slot = ptr16(int(names) - names[_N_HEADS])[h & names[_MASK]]
        while slot ^ _NONE:
            if (
                not ptr16(int(names) - names[_N_HASH])[slot] ^ h
                and not ptr16(int(names) - names[_N_LENGTH])[slot] ^ n
            ):
                k = s
                block = ptr16(int(names) - names[_N_FIRST])[slot]
                h2 = 0
                while k < i:
                    if not h2 & 15:
                        h2 = int(names) - names[_N_DATA] + block * 16
                        block = ptr16(int(names) - names[_N_CHAIN])[block]
                    if ptr8(h2)[0] ^ b[k]:
                        break
                    k += 1
                    h2 += 1
                if k == i:
                    break
            slot = ptr16(int(names) - names[_N_NEXT])[slot]
        if not slot ^ _NONE:
            return at
        k = ptr8(int(o) - o[_TOPICS])[slot]
        if not k ^ _UNWANTED:
            at = stop
            continue
        if not k or not ptr8(int(o) - o[_CLIENTS])[o[_CLIENT]]:
            return at
        if first & 6:
            i += 2
        n = _HEAD + stop - i
        k = o[_FILL]
        if k >= o[_BLOCK] or n > o[_SPACE] or k + n > o[_ROOM]:
            return at
        o[_FILL] = k + n
        o[_SPACE] = o[_SPACE] - n
        s = int(o) - o[_OUT] + k
        p = ptr8(s)
        p[4] = n
        p[5] = n >> 8
        p[6] = _MESSAGE
        p[7] = (first >> 1) & 3
        n = o[_CLIENT]
        p[16] = n
        p[17] = n >> 8
        p[18] = slot
        p[19] = slot >> 8
        n = o[_SEQ]
        o[_SEQ] = n + 1
        k = 8
        while k < 16:
            p[k] = n
            n >>= 8
            k += 1
            if not k ^ 12:
                n = o[_TICKS]
        crc = crcs[0]
        n = s + _HEAD
        s += 4
        while s < n:
            crc ^= ptr8(s)[0]
            crc = (crc >> 4) & 0xFFFFFFF ^ crcs[(crc & 15) + 1]
            crc = (crc >> 4) & 0xFFFFFFF ^ crcs[(crc & 15) + 1]
            s += 1
        at = int(b) + i
        n = int(b) + stop
        while at < n:
            k = ptr8(at)[0]
            ptr8(s)[0] = k
            crc ^= k
            crc = (crc >> 4) & 0xFFFFFFF ^ crcs[(crc & 15) + 1]
            crc = (crc >> 4) & 0xFFFFFFF ^ crcs[(crc & 15) + 1]
            s += 1
            at += 1
        crc ^= -1
        p[0] = crc
        p[1] = crc >> 8
        p[2] = crc >> 16
        p[3] = crc >> 24
        at = stop
    return at


@micropython.viper
def add(o: ptr32, at: int, b: ptr8, n: int, is_first: int):
    # The next n bytes b[at:] to the CRC.
    crcs = ptr32(int(o) - o[_CRCS])
    crc = crcs[0] if is_first else o[_CRC]
    at += int(b)
    n += at
    while at < n:
        crc ^= ptr8(at)[0]
        crc = (crc >> 4) & 0xFFFFFFF ^ crcs[(crc & 15) + 1]
        crc = (crc >> 4) & 0xFFFFFFF ^ crcs[(crc & 15) + 1]
        at += 1
    o[_CRC] = crc


@micropython.viper
def seal(o: ptr32):
    # The CRC to the record whose header is in the buffer.
    p = ptr8(int(o) - o[_OUT] + o[_FILL])
    crc = o[_CRC] ^ -1
    i = 0
    while i < 4:
        p[i] = crc
        crc >>= 8
        i += 1
