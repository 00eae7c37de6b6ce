# record_viper.py - the inner loops of the recorder on MicroPython, in viper: they put records
# into its buffer, with CRC-32 as in zlib. Nothing here allocates after make(). FORMAT.md
# describes a record byte by byte.
import sys

import micropython

from slotmq.constants import (NONE, REC_BEFORE, REC_BEGAN, REC_BLOCK, REC_CLIENT, REC_CLIENTS,
    REC_CRC, REC_FILL, REC_LENGTH, REC_OUT, REC_SEQ, REC_SESSIONS, REC_SIZE, REC_SKIP, REC_SPACE,
    REC_THIS, REC_TICKS, REC_TOPICS, REC_TOPIC_ID, UNWANTED)
from slotmq.fast.bytes_viper import table
from slotmq.fast.journal_viper import crc_state

_IDS = 6  # client and topic
_CRCS = 12


def make(out, block, topics, clients, sessions):
    # -> the state, and the objects that the caller must keep alive with it; it also keeps
    # `sessions`, the column of connections.
    crcs = crc_state()
    parts = (0, block, len(out), 0, 0, 0, 0, 0, NONE, NONE, 0, out, crcs, topics, clients)
    parts += (UNWANTED, sessions, 0, 0)
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
    o[REC_TICKS] = (now - o[REC_BEGAN]) & (n + n - 1)
    o[REC_CLIENT] = ptr16(int(o) - o[REC_SESSIONS])[conn]
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
            if not slot ^ NONE:
                return at
            n += s + o[REC_SKIP]
            if first & 6:
                n += 2
            defined = ptr8(int(o) - o[REC_TOPICS])[slot]
            if defined ^ UNWANTED:
                s = stop - n + REC_BEFORE
                defined ^= o[REC_THIS]
                defined |= ptr8(int(o) - o[REC_CLIENTS])[o[REC_CLIENT]] ^ o[REC_THIS]
                fill = o[REC_FILL]
                if defined or fill >= o[REC_BLOCK] or s > o[REC_SPACE] or fill + s > o[REC_SIZE]:
                    return at
                o[REC_LENGTH] = (first >> 1 & 3 | (first & 1) << 2 | first & 8) << 24 | 0x20000 | s
                o[REC_TOPIC_ID] = slot
                add(0, 0, c, buf, n, stop - n, 2)
                o[REC_FILL] = fill + s
                o[REC_SPACE] = o[REC_SPACE] - s
        at = stop
    return at


@micropython.viper
def add(s: int, crc: int, o: ptr32, b: ptr8, at: int, n: int, how: int):
    # Adds b[at:at + n] to the CRC of the record whose header is in the buffer; the CRC is valid
    # after each call. how 1: these are its first bytes, and the header is put from the state
    # into the buffer before them; 2: the bytes too. The first two arguments are variables.
    crcs = ptr32(int(o) - o[_CRCS])
    p = ptr8(int(o) - o[REC_OUT] + o[REC_FILL])
    d = int(p) + 4
    crc = o[REC_CRC]
    s = int(b) + at
    end = s + n
    is_header = how
    low = 1
    low = (low << 28) - 1
    if how:
        o[_IDS] = o[REC_TOPIC_ID] << 16 | o[REC_CLIENT]
        crc = -1
        s = int(o) + 4 * REC_LENGTH
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
        o[REC_SEQ] = o[REC_SEQ] + 1
        s = int(b) + at
        end = s + n
    o[REC_CRC] = crc
    crc ^= -1
    p[0] = crc
    p[1] = crc >> 8
    p[2] = crc >> 16
    p[3] = crc >> 24
