# record_words_viper.py - make() and add_all() of record_viper.py for MicroPython on computers,
# in viper: 40 KB of heap are little there, and words can be read from any address. One call finds
# the topics of all packets, one makes the records, and one their CRCs, a word at a time by
# three tables. A 64-byte message takes 1,748 instructions instead of 2,736, and a broker that
# records 1.4 times the CPU of one that does not instead of 1.6 (docs/measurements.md).
# Nothing here allocates after make().
from array import array

import micropython
from micropython import const

from slotmq.fast import record_viper

_NONE = const(0xFFFF)
_BEFORE = const(20)  # bytes of a record before its payload
_UNWANTED = const(1)  # state of a topic: no filter matches it
# Indexes of the state, as in fast/record_viper.py
_FILL = const(0)
_BLOCK = const(1)
_SIZE = const(2)
_SEQ = const(4)
_TICKS = const(5)
_SPACE = const(7)
_CLIENT = const(8)
_O_OUT = const(11)
_O_TOPICS = const(13)
_O_CLIENTS = const(14)
_THIS = const(15)
_O_SESSIONS = const(16)
_BEGAN = const(17)
_SKIP = const(18)
# Further indexes
_NAMES = const(19)  # Names of the topics
_WORDS = const(20)  # CRC tables of 11, 11 and 10 bits of a word, and of a byte
_FOUND = const(21)  # of each PUBLISH: topic and first byte; offset; offset and size of payload
_COUNT = const(22)  # bytes used in _FOUND
_MOST = const(1024)
_BYTES = const(5120)
_STEPS = const(5376)  # after them: how a step of seq changes the CRC of a header
_MOST_BYTES = const(65534)  # of a record
# For each CRC table: its offset, its entries, the field's position in a word, bits to shift
_FIELDS = (0, 2048, 0, 32), (2048, 2048, 11, 32), (4096, 1024, 22, 32), (_BYTES, 256, 0, 8)
# Indexes of Names' state
_MASK = const(2)
_N_HEADS = const(4)
_N_NEXT = const(5)
_N_HASH = const(6)
_N_LENGTH = const(8)
_N_FIRST = const(9)
_N_DATA = const(10)
_N_CHAIN = const(11)


def make(out, block, topics, clients, sessions, names):
    # As record_viper.make(); names: Names of the topics
    words = array("I", bytes(4 * (_STEPS + 32)))
    for at, n, bits, steps in _FIELDS:
        for i in range(1, n):
            low = i & -i  # a CRC is linear: the entry of several bits is the XOR of theirs
            alone = _crc(i << bits, steps) if i == low else words[at + low]
            words[at + i] = words[at + i - low] ^ alone
    for i in range(32):  # the i + 1 low bits of seq change; two words follow it
        words[_STEPS + i] = _crc((2 << i) - 1, 96)
    found = array("I", bytes(16 * _MOST))
    more = names.state, words, found, 0
    made, kept = record_viper.make(out, block, topics, clients, sessions, None, more)
    return made, (kept, words, found)


def _crc(crc, bits):
    for _ in range(bits):
        crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc


# Finds the topics of the PUBLISH packets of b[at:end] as Names.find does; -> the offset of the
# first one whose topic is not known, or end. The first two arguments are variables, which are
# in registers.
@micropython.viper
def _find(i: int, h: int, o: ptr32, b: ptr8, at: int, end: int) -> int:
    names = ptr32(int(o) - o[_NAMES])
    found = int(o) - o[_FOUND]
    most = found + 16 * _MOST
    last = size = 0  # the topic of the previous packet, which is often the same
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
            h = -1  # the topic is the previous one
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
                            slot = _NONE  # another topic with this hash: other code finds it
                            break
                        h += 1
                        i += 1
                    break
                slot = ptr16(int(names) - names[_N_NEXT])[slot]
            if not slot ^ _NONE:
                break
            ptr32(found)[0] = slot << 8 | b[at]
            ptr32(found)[1] = at
            stop += o[_SKIP]
            ptr32(found)[2] = stop + 2 if b[at] & 6 else stop
            ptr32(found)[3] = n - ptr32(found)[2]
            found += 16
        at = n
    o[_COUNT] = found - (int(o) - o[_FOUND])
    return at


@micropython.viper
def add_all(now: int, conn: int, c, _names, buf, at: int, end: int) -> int:
    # As record_viper.add_all().
    o = ptr32(c)
    fill = 1 << 29
    o[_TICKS] = (now - o[_BEGAN]) & (fill + fill - 1)
    o[_CLIENT] = ptr16(int(o) - o[_O_SESSIONS])[conn]
    fill = o[_FILL]
    end = int(_lay(0, 0, 0, c, buf, int(_find(0, 0, c, buf, at, end))))
    _seal(0, 0, 0, c, fill)
    return end


# Makes the records of what was found, except for their CRCs; -> the offset of the first packet
# that needs other code, or end. The first three arguments are variables, here and in _seal: what
# the innermost loop uses most is in registers.
@micropython.viper
def _lay(i: int, d: int, s: int, o: ptr32, buf: ptr8, end: int) -> int:
    topics = ptr8(int(o) - o[_O_TOPICS])
    this = o[_THIS]
    client = o[_CLIENT]
    is_new = ptr8(int(o) - o[_O_CLIENTS])[client] ^ this
    found = ptr32(int(o) - o[_FOUND])
    last = int(found) + o[_COUNT]
    out = int(o) - o[_O_OUT]
    d = out + o[_FILL]
    most = out + o[_SIZE]
    if most - d > o[_SPACE]:
        most = d + o[_SPACE]
    seq = o[_SEQ]
    while int(found) < last:
        slot = found[0] >> 8
        i = topics[slot]
        if i ^ _UNWANTED:
            n = _BEFORE + found[3]
            i = i ^ this | is_new
            if i or d + n > most or n > _MOST_BYTES:
                end = found[1]
                break
            i = found[0] & 15
            if i:
                i = (i >> 1 & 3 | (i & 1) << 2 | i & 8) << 24
            ptr32(d)[1] = i | 0x20000 | n
            ptr32(d)[2] = seq
            ptr32(d)[3] = o[_TICKS]
            ptr32(d)[4] = slot << 16 | client
            seq += 1
            s = int(buf) + found[2]
            n += d
            d += _BEFORE
            while d < n - 15:
                ptr32(d)[0] = ptr32(s)[0]
                ptr32(d)[1] = ptr32(s)[1]
                ptr32(d)[2] = ptr32(s)[2]
                ptr32(d)[3] = ptr32(s)[3]
                s += 16
                d += 16
            while d < n - 3:
                ptr32(d)[0] = ptr32(s)[0]
                s += 4
                d += 4
            while d < n:
                ptr8(d)[0] = ptr8(s)[0]
                s += 1
                d += 1
        found = ptr32(int(found) + 16)
    d -= out
    o[_SPACE] = o[_SPACE] + o[_FILL] - d
    o[_FILL] = d
    o[_SEQ] = seq
    return end


# Puts the CRCs into the records of the buffer from `fill` on. If a header differs from the
# previous one only in seq, its CRC is the previous one XOR an entry of _STEPS.
@micropython.viper
def _seal(i: int, crc: int, s: int, o: ptr32, fill: int):
    words = ptr32(int(o) - o[_WORDS])
    high = int(words) + 4 * 2048
    top = int(words) + 4 * 4096
    end = int(o) - o[_O_OUT] + o[_FILL]
    p = int(o) - o[_O_OUT] + fill
    head = length = ids = -1
    low = 1
    low = (low << 24) - 1
    while p < end:
        stop = p + ptr16(p)[2]
        last = stop - 15
        if ptr32(p)[1] ^ length | ptr32(p)[4] ^ ids:
            length = ptr32(p)[1]
            ids = ptr32(p)[4]
            crc = -1 ^ length
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i ^ ptr32(p)[2]
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i ^ ptr32(p)[3]
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i ^ ids
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i
        else:
            i = ptr32(p)[2]
            s = int(words) + 4 * _STEPS
            while not i & 1:
                i >>= 1
                s += 4
            crc = head ^ ptr32(s)[0]
        head = crc
        s = p + _BEFORE
        while s < last:
            crc ^= ptr32(s)[0]
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i ^ ptr32(s)[1]
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i ^ ptr32(s)[2]
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i ^ ptr32(s)[3]
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i
            s += 16
        while s < stop - 3:
            crc ^= ptr32(s)[0]
            i = words[crc & 0x7FF] ^ ptr32((crc >> 9 & 0x1FFC) + high)[0]
            crc = ptr32((crc >> 20 & 0xFFC) + top)[0] ^ i
            s += 4
        while s < stop:
            i = words[((crc ^ ptr8(s)[0]) & 255) + _BYTES]
            crc = (crc >> 8) & low ^ i
            s += 1
        ptr32(p)[0] = crc ^ -1
        p = stop
