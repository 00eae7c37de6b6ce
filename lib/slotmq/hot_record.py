# hot_record.py - what the recorder does to bytes, on MicroPython, in viper: records put
# together in its buffer, with CRC-32 as in zlib. Nothing here allocates after make().
# FORMAT.md has a record byte by byte.
import sys
from array import array

import micropython
from micropython import const

from slotmq.hot import ALIGN, table

_NONE = const(0xFFFF)
_BEFORE = const(20)  # bytes of a record before its payload
_UNWANTED = const(1)  # of a topic: no filter wants it
# Of the state. From _LENGTH on it has a record's header, as it stands behind the CRC.
_FILL = const(0)  # bytes in the buffer
_BLOCK = const(1)  # more than so many are to be written
_ROOM = const(2)  # bytes of the whole buffer
_LENGTH = const(3)  # length of the record, type, flags
_SEQ = const(4)  # of the next record
_TICKS = const(5)
_IDS = const(6)  # client and topic
_SPACE = const(7)  # that the segment still takes
_CLIENT = const(8)
_TOPIC_ID = const(9)
_CRC = const(10)
_O_OUT = const(11)
_CRCS = const(12)
_O_TOPICS = const(13)
_O_CLIENTS = const(14)
_NAMES = const(15)
_ALIGNED = const(16)
_THIS = const(17)  # the mark of ids that the segment has defined
_O_SESSIONS = const(18)  # of connections
_BEGAN = const(19)  # ticks of the start
_FOUND = const(20)  # slots of topics
_MOST = const(21)  # at a time
# Of Names' state
_MASK = const(2)
_N_HEADS = const(4)
_N_NEXT = const(5)
_N_HASH = const(6)
_N_LENGTH = const(8)
_N_FIRST = const(9)
_N_DATA = const(10)
_N_CHAIN = const(11)
_WORDS = const(16)  # what half bytes do to a CRC; behind it what each byte of a word does


def make(out, block, topics, clients, names, sessions, is_large):
    # The state: numbers, and the columns that somebody else keeps, but for the last part.
    # names: those of the topics; sessions: of connections. is_large: 4 KB of heap are little,
    # so that the CRC is made by words, where they can be read from anywhere.
    is_large = is_large and not ALIGN
    found = array("H", bytes(2048 if is_large else 64))
    crcs = array("I", bytes(4 * (_WORDS + 1024 if is_large else _WORDS)))
    for i in range(len(crcs)):
        crcs[i] = _crc(i, 4) if i < _WORDS else _crc(i - _WORDS & 255, (i - _WORDS >> 8) * 8 + 8)
    parts = (0, block, len(out), 0, 0, 0, 0, 0, _NONE, _NONE, 0, out, crcs, topics, clients)
    parts += names.state, 0 if is_large else -1, _UNWANTED, sessions, 0, found, len(found)
    if sys.maxsize >> 32:  # so large that it does not lie in a hole before them
        parts += (0,) * 1024
    return table(parts), (out, crcs, topics, clients, found)


def _crc(crc, bits):
    for _ in range(bits):
        crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc


# Finds the topics of the PUBLISH packets of b[at:end], each of which is whole, as Names.find
# does; -> the offset of the first one whose topic is not known, or end. They are from
# connection `h` at tick `i`: the first two arguments lie in registers, so later they are
# whatever is used most.
@micropython.viper
def find(i: int, h: int, o: ptr32, b: ptr8, at: int, end: int) -> int:
    names = ptr32(int(o) - o[_NAMES])
    found = int(o) - o[_FOUND]
    most = found + 2 * o[_MOST]
    o[_TICKS] = (i - o[_BEGAN]) & 0x3FFFFFFF
    o[_CLIENT] = ptr16(int(o) - o[_O_SESSIONS])[h]
    while at < end:
        n = b[at + 1]
        i = at + 2
        if n >> 7:
            n = (n & 127) | (b[i] << 7)
            i += 1
        n += i
        if not b[at] >> 4 ^ 3:
            size = (b[i] << 8) | b[i + 1]
            i += 2
            stop = i + size
            h = size
            while i < stop:
                h = h * 33 + b[i]
                i += 1
            h = (h ^ (h >> 8)) & 0xFFFF
            slot = ptr16(int(names) - names[_N_HEADS])[h & names[_MASK]]
            while slot ^ _NONE:
                i = ptr16(int(names) - names[_N_HASH])[slot] ^ h
                i |= ptr16(int(names) - names[_N_LENGTH])[slot] ^ size
                if not i:
                    i = stop - size
                    h = 0
                    block = ptr16(int(names) - names[_N_FIRST])[slot]
                    while i < stop:
                        if not h & 15:
                            h = int(names) - names[_N_DATA] + block * 16
                            block = ptr16(int(names) - names[_N_CHAIN])[block]
                        if ptr8(h)[0] ^ b[i]:
                            return at  # the long way finds it
                        h += 1
                        i += 1
                    break
                slot = ptr16(int(names) - names[_N_NEXT])[slot]
            if not slot ^ _NONE or found == most:
                return at
            ptr16(found)[0] = slot
            found += 2
        at = n
    return at


# Records of the PUBLISH packets of b[at:end], whose topics were found; -> the offset of the
# first one that takes more than this, or end. The first two arguments are variables.
@micropython.viper
def tap(i: int, crc: int, o: ptr32, b: ptr8, at: int, end: int) -> int:
    crcs = ptr32(int(o) - o[_CRCS])
    found = int(o) - o[_FOUND] - 2
    while at < end:
        n = b[at + 1]
        s = at + 2
        if n >> 7:
            n = (n & 127) | (b[s] << 7)
            s += 1
        stop = int(b) + s + n
        i = b[at]
        crc = 0
        if not i >> 4 ^ 3:
            found += 2
            crc = ptr8(int(o) - o[_O_TOPICS])[ptr16(found)[0]] ^ _UNWANTED
        if crc:
            to = int(b) + s + (b[s] << 8 | b[s + 1]) + (4 if i & 6 else 2)  # its payload
            n = _BEFORE + stop - to
            d = o[_FILL]
            crc ^= _UNWANTED ^ o[_THIS]
            crc |= ptr8(int(o) - o[_O_CLIENTS])[o[_CLIENT]] ^ o[_THIS]
            if crc or d >= o[_BLOCK] or n > o[_SPACE] or d + n > o[_ROOM]:
                break
            o[_FILL] = d + n
            o[_SPACE] = o[_SPACE] - n
            o[_LENGTH] = (i >> 1 & 3 | (i & 1) << 2 | i & 8) << 24 | 0x20000 | n
            o[_IDS] = ptr16(found)[0] << 16 | o[_CLIENT]
            p = ptr8(int(o) - o[_O_OUT] + d)
            s = int(o) + 4 * _LENGTH
            n = s + 16
            d = int(p) + 4 - s
            crc = -1
            while s < n:  # the header, and then the payload: from s to s + d
                if not (s | d) & o[_ALIGNED]:
                    while s + 3 < n:
                        crc ^= ptr32(s)[0]
                        ptr32(s + d)[0] = ptr32(s)[0]
                        i = ptr32((crc << 2 & 0x3FC) + int(crcs))[768 + _WORDS]
                        i ^= ptr32((crc >> 6 & 0x3FC) + int(crcs))[512 + _WORDS]
                        i ^= ptr32((crc >> 14 & 0x3FC) + int(crcs))[256 + _WORDS]
                        crc = ptr32((crc >> 22 & 0x3FC) + int(crcs))[_WORDS] ^ i
                        s += 4
                if s < n:
                    ptr8(s + d)[0] = ptr8(s)[0]
                    crc ^= ptr8(s)[0]
                    crc = (crc >> 4) & 0xFFFFFFF ^ crcs[crc & 15]
                    crc = (crc >> 4) & 0xFFFFFFF ^ crcs[crc & 15]
                    s += 1
                if s == n and n ^ stop:
                    d += s - to
                    s = to
                    n = stop
            o[_SEQ] = o[_SEQ] + 1
            crc ^= -1
            p[0] = crc
            p[1] = crc >> 8
            p[2] = crc >> 16
            p[3] = crc >> 24
        at = stop - int(b)
    return at


@micropython.viper
def add(s: int, crc: int, o: ptr32, b: ptr8, at: int, n: int):
    # The next n bytes b[at:] of the record that begins in the buffer to its CRC, which is good
    # behind each; at < 0: first of all its header, from the state into the buffer.
    crcs = ptr32(int(o) - o[_CRCS])
    d = int(o) - o[_O_OUT] + o[_FILL]
    p = ptr8(d)
    s = int(b) + at
    crc = o[_CRC]
    if at < 0:
        o[_IDS] = o[_TOPIC_ID] << 16 | o[_CLIENT]
        s = int(o) + 4 * _LENGTH
        n = 16
        crc = -1
    n += s
    while s < n:
        crc ^= ptr8(s)[0]
        if at < 0:
            ptr8(d)[4] = ptr8(s)[0]
            d += 1
        crc = (crc >> 4) & 0xFFFFFFF ^ crcs[crc & 15]
        crc = (crc >> 4) & 0xFFFFFFF ^ crcs[crc & 15]
        s += 1
    o[_CRC] = crc
    crc ^= -1
    p[0] = crc
    p[1] = crc >> 8
    p[2] = crc >> 16
    p[3] = crc >> 24
