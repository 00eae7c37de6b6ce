# hot_record_words.py - hot_record.py's make() and tap() for where 25 KB of heap are little and
# words can be read from anywhere, in viper: two calls find the topics and make the records of
# all that was read, and the CRC is made by words. Nothing here allocates after make().
from array import array

import micropython
from micropython import const

from slotmq import hot_record

_NONE = const(0xFFFF)
_BEFORE = const(20)  # bytes of a record before its payload
_UNWANTED = const(1)  # of a topic: no filter wants it
# Of the state, as in hot_record.py
_FILL = const(0)
_BLOCK = const(1)
_ROOM = const(2)
_LENGTH = const(3)
_SEQ = const(4)
_TICKS = const(5)
_IDS = const(6)
_SPACE = const(7)
_CLIENT = const(8)
_O_OUT = const(11)
_O_TOPICS = const(13)
_O_CLIENTS = const(14)
_THIS = const(15)
_O_SESSIONS = const(16)
_BEGAN = const(17)
# More of it
_NAMES = const(18)  # of the topics
_WORDS = const(19)  # what each byte of a word does to the CRC
_FOUND = const(20)  # of each PUBLISH: topic and first byte; where it, its payload and it end
_COUNT = const(21)  # bytes of those
_MOST = const(1024)
# Of Names' state
_MASK = const(2)
_N_HEADS = const(4)
_N_NEXT = const(5)
_N_HASH = const(6)
_N_LENGTH = const(8)
_N_FIRST = const(9)
_N_DATA = const(10)
_N_CHAIN = const(11)


def make(out, block, topics, clients, sessions, names):
    # As hot_record.make(); names: those of the topics
    words = array("I", [_crc(i & 255, (i >> 8) * 8 + 8) for i in range(1024)])
    found = array("I", bytes(16 * _MOST))
    more = names.state, words, found, 0
    made, kept = hot_record.make(out, block, topics, clients, sessions, None, more)
    return made, (kept, words, found)


def _crc(crc, bits):
    for _ in range(bits):
        crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc


# Finds the topics of the PUBLISH packets of b[at:end] as Names.find does; -> the offset of the
# first one whose topic is not known, or end. The first two arguments are variables that lie in
# registers.
@micropython.viper
def _find(i: int, h: int, o: ptr32, b: ptr8, at: int, end: int) -> int:
    names = ptr32(int(o) - o[_NAMES])
    found = int(o) - o[_FOUND]
    most = found + 16 * _MOST
    last = size = 0  # the topic of the packet before, which is often the same
    while at < end and found < most:
        n = b[at + 1]
        i = at + 2
        if n >> 7:
            n = (n & 127) | (b[i] << 7)
            i += 1
        n += i
        if not b[at] >> 4 ^ 3:
            h = size
            size = (b[i] << 8) | b[i + 1]
            i += 2
            stop = i + size
            last += int(b) - i
            if not h ^ size:
                while i + 3 < stop and not ptr32(last + i)[0] ^ ptr32(int(b) + i)[0]:
                    i += 4
                while i < stop and not ptr8(last + i)[0] ^ b[i]:
                    i += 1
            last = stop - size
            h = -1  # it is the one before
            if i < stop:
                i = last
                h = size
                while i < stop:
                    h = h * 33 + b[i]
                    i += 1
                h = (h ^ (h >> 8)) & 0xFFFF
                slot = ptr16(int(names) - names[_N_HEADS])[h & names[_MASK]]
            while slot ^ _NONE and h >= 0:
                i = ptr16(int(names) - names[_N_HASH])[slot] ^ h
                if not i | ptr16(int(names) - names[_N_LENGTH])[slot] ^ size:
                    i = stop - size
                    h = 0
                    block = ptr16(int(names) - names[_N_FIRST])[slot]
                    while i < stop:
                        if not h & 15:
                            h = int(names) - names[_N_DATA] + block * 16
                            block = ptr16(int(names) - names[_N_CHAIN])[block]
                        if ptr8(h)[0] ^ b[i]:
                            slot = _NONE  # two of one hash: the long way finds it
                            break
                        h += 1
                        i += 1
                    break
                slot = ptr16(int(names) - names[_N_NEXT])[slot]
            if not slot ^ _NONE:
                break
            ptr32(found)[0] = slot << 8 | b[at]
            ptr32(found)[1] = at
            ptr32(found)[2] = stop + 2 if b[at] & 6 else stop
            ptr32(found)[3] = n
            found += 16
        at = n
    o[_COUNT] = found - (int(o) - o[_FOUND])
    return at


@micropython.viper
def tap(i: int, crc: int, c, _names, buf, at: int, end: int) -> int:
    # As hot_record.tap().
    o = ptr32(c)
    b = int(ptr8(buf))
    words = int(o) - o[_WORDS]
    o[_TICKS] = (i - o[_BEGAN]) & 0x3FFFFFFF
    o[_CLIENT] = ptr16(int(o) - o[_O_SESSIONS])[crc]
    end = int(_find(0, 0, c, buf, at, end))
    found = ptr32(int(o) - o[_FOUND])
    last = int(found) + o[_COUNT]
    while int(found) < last:
        slot = found[0] >> 8
        i = ptr8(int(o) - o[_O_TOPICS])[slot]
        if i ^ _UNWANTED:
            n = _BEFORE + found[3] - found[2]
            d = o[_FILL]
            i ^= o[_THIS]
            i |= ptr8(int(o) - o[_O_CLIENTS])[o[_CLIENT]] ^ o[_THIS]
            if i or d >= o[_BLOCK] or n > o[_SPACE] or d + n > o[_ROOM]:
                return found[1]
            o[_FILL] = d + n
            o[_SPACE] = o[_SPACE] - n
            i = found[0]
            o[_LENGTH] = (i >> 1 & 3 | (i & 1) << 2 | i & 8) << 24 | 0x20000 | n
            o[_IDS] = slot << 16 | o[_CLIENT]
            p = ptr8(int(o) - o[_O_OUT] + d)
            s = int(o) + 4 * _LENGTH
            n = s + 16
            d = int(p) + 4 - s
            crc = -1
            while s < n:  # the header, and then the payload: from s to s + d
                while s + 3 < n:
                    i = ptr32(s)[0]
                    ptr32(s + d)[0] = i
                    crc ^= i
                    i = ptr32((crc << 2 & 0x3FC) + words)[768]
                    i ^= ptr32((crc >> 6 & 0x3FC) + words)[512]
                    i ^= ptr32((crc >> 14 & 0x3FC) + words)[256]
                    crc = ptr32((crc >> 22 & 0x3FC) + words)[0] ^ i
                    s += 4
                if s < n:
                    ptr8(s + d)[0] = ptr8(s)[0]
                    i = ptr32(words + ((crc ^ ptr8(s)[0]) << 2 & 0x3FC))[0]
                    crc = (crc >> 8) & 0xFFFFFF ^ i
                    s += 1
                if s == n and n ^ b + found[3]:
                    n = b + found[3]
                    d += s
                    s = b + found[2]
                    d -= s
            o[_SEQ] = o[_SEQ] + 1
            crc ^= -1
            p[0] = crc
            p[1] = crc >> 8
            p[2] = crc >> 16
            p[3] = crc >> 24
        found = ptr32(int(found) + 16)
    return end
