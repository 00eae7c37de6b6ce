# record_viper.py - the inner loops of the recorder on MicroPython, in viper: they put records
# into its buffer, with CRC-32 as in zlib. Nothing here allocates after make(). FORMAT.md
# describes a record byte by byte.
import sys

import micropython
from micropython import const

from slotmq.fast.bytes_viper import table
from slotmq.fast.journal_viper import crc_state

_NONE = const(0xFFFF)
_BEFORE = const(20)  # bytes of a record before its payload
_UNWANTED = const(1)  # state of a topic: no filter matches it
# Indexes of the state. From _LENGTH on it has a record's header, in the order after the CRC.
_FILL = const(0)  # bytes in the buffer
_BLOCK = const(1)  # more than so many are to be written
_SIZE = const(2)  # bytes of the whole buffer
_LENGTH = const(3)  # of the record, its type and its flags
_SEQ = const(4)  # of the next record
_TICKS = const(5)
_IDS = const(6)  # client and topic
_SPACE = const(7)  # bytes left in the segment
_CLIENT = const(8)
_TOPIC_ID = const(9)
_CRC = const(10)
_O_OUT = const(11)
_CRCS = const(12)
_O_TOPICS = const(13)
_O_CLIENTS = const(14)
_THIS = const(15)  # state of ids that the segment has defined
_O_SESSIONS = const(16)  # of connections
_BEGAN = const(17)  # ticks at the start
_SKIP = const(18)  # bytes before a payload: 1, the length of no properties, for version 5


def make(out, block, topics, clients, sessions):
    # -> the state, and the objects that the caller must keep alive with it; it also keeps
    # `sessions`, the column of connections.
    crcs = crc_state()
    parts = (0, block, len(out), 0, 0, 0, 0, 0, _NONE, _NONE, 0, out, crcs, topics, clients)
    parts += (_UNWANTED, sessions, 0, 0)
    if sys.maxsize >> 32:  # large enough not to be placed in a hole before the columns
        parts += (0,) * 1024
    return table(parts), (out, crcs, topics, clients)


# Records the PUBLISH packets of buf[at:end], each of which is complete, from connection `conn`
# at tick `now`; -> the offset of the first one that needs other code, or end. names: Names of
# the topics.
@micropython.viper
def add_all(now: int, conn: int, c, names, buf, at: int, end: int) -> int:
    o = ptr32(c)
    b = ptr8(buf)
    n = 1 << 29
    o[_TICKS] = (now - o[_BEGAN]) & (n + n - 1)
    o[_CLIENT] = ptr16(int(o) - o[_O_SESSIONS])[conn]
    while at < end:
        first = b[at]
        n = b[at + 1]
        s = at + 2
        if n >> 7:
            n = (n & 127) | (b[s] << 7)
            s += 1
        stop = s + n
        if not first >> 4 ^ 3:
            n = (b[s] << 8) | b[s + 1]
            s += 2
            slot = int(names.find(0, buf, s, n))
            if not slot ^ _NONE:
                return at
            n += s + o[_SKIP]
            if first & 6:
                n += 2
            defined = ptr8(int(o) - o[_O_TOPICS])[slot]
            if defined ^ _UNWANTED:
                s = stop - n + _BEFORE
                defined ^= o[_THIS]
                defined |= ptr8(int(o) - o[_O_CLIENTS])[o[_CLIENT]] ^ o[_THIS]
                fill = o[_FILL]
                if defined or fill >= o[_BLOCK] or s > o[_SPACE] or fill + s > o[_SIZE]:
                    return at
                o[_LENGTH] = (first >> 1 & 3 | (first & 1) << 2 | first & 8) << 24 | 0x20000 | s
                o[_TOPIC_ID] = slot
                add(0, 0, c, buf, n, stop - n, 2)
                o[_FILL] = fill + s
                o[_SPACE] = o[_SPACE] - s
        at = stop
    return at


@micropython.viper
def add(s: int, crc: int, o: ptr32, b: ptr8, at: int, n: int, how: int):
    # Adds b[at:at + n] to the CRC of the record whose header is in the buffer; the CRC is valid
    # after each call. how 1: these are its first bytes, and the header is put from the state
    # into the buffer before them; 2: the bytes too. The first two arguments are variables.
    crcs = ptr32(int(o) - o[_CRCS])
    p = ptr8(int(o) - o[_O_OUT] + o[_FILL])
    d = int(p) + 4
    crc = o[_CRC]
    s = int(b) + at
    end = s + n
    is_header = how
    low = 1
    low = (low << 28) - 1
    if how:
        o[_IDS] = o[_TOPIC_ID] << 16 | o[_CLIENT]
        crc = -1
        s = int(o) + 4 * _LENGTH
        end = s + 16
    while True:
        while s < end:
            crc ^= ptr8(s)[0]
            if how:
                ptr8(d)[0] = ptr8(s)[0]
                d += 1
            crc = (crc >> 4) & low ^ crcs[(crc & 15) + 1]
            crc = (crc >> 4) & low ^ crcs[(crc & 15) + 1]
            s += 1
        if not is_header:
            break
        is_header = 0
        how -= 1
        o[_SEQ] = o[_SEQ] + 1
        s = int(b) + at
        end = s + n
    o[_CRC] = crc
    crc ^= -1
    p[0] = crc
    p[1] = crc >> 8
    p[2] = crc >> 16
    p[3] = crc >> 24
