# hot_record.py - what the recorder does to bytes, on MicroPython, in viper: records put
# together in its buffer, with CRC-32 as in zlib. Nothing here allocates after make().
# FORMAT.md has a record byte by byte.
import sys

import micropython
from micropython import const

from slotmq.hot import table
from slotmq.hot_journal import crc_state

_NONE = const(0xFFFF)
_BEFORE = const(20)  # bytes of a record before its payload
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
_O_OUT = const(8)
_CRCS = const(9)
_O_TOPICS = const(10)
_O_CLIENTS = const(11)


def make(out, block, topics, clients):
    # The state: numbers, and the columns that somebody else keeps, but for the last part.
    crcs = crc_state()
    crcs[0] = 0xFFFFFFFF  # what each begins with
    parts = (0, block, len(out), 0, 0, 0, _NONE, 0, out, crcs, topics, clients)
    if sys.maxsize >> 32:  # so large that it does not lie in a hole before them
        parts += (0,) * 1024
    return table(parts), (out, crcs, topics, clients)


# The PUBLISH packets of b[at:end], all of which the lane has taken; -> the offset of the first
# one that takes more than this, or end. names: those of the topics.
@micropython.viper
def tap(c, names, buf, at: int, end: int) -> int:
    o = ptr32(c)
    b = ptr8(buf)
    topics = ptr8(int(o) - o[_O_TOPICS])
    while at < end:
        first = b[at]
        i = b[at + 1]
        s = at + 2
        if i >> 7:
            i = (i & 127) | (b[s] << 7)
            s += 1
        stop = s + i
        if not first >> 4 ^ 3:
            n = (b[s] << 8) | b[s + 1]
            s += 2
            slot = int(names.find(0, buf, s, n))
            if not slot ^ _NONE:
                return at
            i = topics[slot]
            if i ^ _UNWANTED:
                if not i or not ptr8(int(o) - o[_O_CLIENTS])[o[_CLIENT]]:
                    return at
                s += n
                if first & 6:
                    s += 2
                n = o[_FILL] + _BEFORE + stop - s
                if o[_FILL] >= o[_BLOCK] or n - o[_FILL] > o[_SPACE] or n > o[_ROOM]:
                    return at
                put(c, (slot << 8) | (first >> 1) & 3, buf, s, stop - s)
        at = stop
    return at


# A message for which there is room; what: its topic's id and its QoS.
@micropython.viper
def put(o: ptr32, what: int, b: ptr8, at: int, n: int):
    crcs = ptr32(int(o) - o[_CRCS])
    s = int(o) - o[_O_OUT] + o[_FILL]
    p = ptr8(s)
    k = _BEFORE + n
    o[_FILL] = o[_FILL] + k
    o[_SPACE] = o[_SPACE] - k
    p[4] = k
    p[5] = k >> 8
    p[6] = 2
    p[7] = what & 255
    k = o[_CLIENT]
    p[16] = k
    p[17] = k >> 8
    p[18] = what >> 8
    p[19] = what >> 16
    what = o[_SEQ]
    o[_SEQ] = what + 1
    k = 8
    while k < 16:
        p[k] = what
        what >>= 8
        k += 1
        if not k ^ 12:
            what = o[_TICKS]
    what = crcs[0]
    k = s + _BEFORE
    s += 4
    while s < k:
        what ^= ptr8(s)[0]
        what = (what >> 4) & 0xFFFFFFF ^ crcs[(what & 15) + 1]
        what = (what >> 4) & 0xFFFFFFF ^ crcs[(what & 15) + 1]
        s += 1
    at += int(b)
    n += at
    while at < n:
        k = ptr8(at)[0]
        ptr8(s)[0] = k
        what ^= k
        what = (what >> 4) & 0xFFFFFFF ^ crcs[(what & 15) + 1]
        what = (what >> 4) & 0xFFFFFFF ^ crcs[(what & 15) + 1]
        s += 1
        at += 1
    k = 0
    what ^= -1
    while k < 4:
        p[k] = what
        what >>= 8
        k += 1


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
    p = ptr8(int(o) - o[_O_OUT] + o[_FILL])
    crc = o[_CRC] ^ -1
    i = 0
    while i < 4:
        p[i] = crc
        crc >>= 8
        i += 1
