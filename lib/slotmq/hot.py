# hot.py - the inner loops over bytes on MicroPython, in viper: copying, scanning a
# packet, UTF-8, topic filters. The files hot*.py are the only ones with viper code;
# each has a twin *_cpython.py of the same contract made of slices and dicts, and
# property tests hold the two equal. Nothing here allocates. Callers check bounds.
#
# Offsets and lengths are bytes; slots are 16 bits wide and 0xFFFF means none.
# Words are copied unaligned where the machine can (WORDS); a Cortex-M0+ cannot.
import sys
from array import array

import micropython
from micropython import const

_TYPE = const(0)
_FLAGS = const(1)
_START = const(2)
_BODY = const(3)
_END = const(4)
_TOTAL = const(5)
_PACKET_ID = const(6)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_PACKET_MAX = const(10)

# 3 where a word may lie anywhere, 0 where only aligned words may be touched
WORDS = 3 if sys.platform == "linux" else 0


def new_packet(packet_max):
    pkt = array("i", bytes(44))
    pkt[_PACKET_MAX] = packet_max
    return pkt


@micropython.viper
def copy(to, to_off: int, src, off: int, n: int):
    # Forward, so it may also move bytes down within one buffer.
    d = int(ptr8(to)) + to_off
    s = int(ptr8(src)) + off
    end = s + n
    if ((d | s) & 3) & (3 - int(WORDS)) == 0:
        words = end - 3
        while s < words:
            ptr32(d)[0] = ptr32(s)[0]
            d += 4
            s += 4
    while s < end:
        ptr8(d)[0] = ptr8(s)[0]
        d += 1
        s += 1


@micropython.viper
def next_packet(buf, start: int, end: int, pkt) -> int:
    # Scans one packet of buf[start:end] into pkt [2.2]. -> its length in bytes,
    # 0: more bytes are needed, -1: malformed, -2: larger than pkt[_PACKET_MAX].
    b = ptr8(buf)
    p = ptr32(pkt)
    p[_TOTAL] = 0
    length = 0
    shift = 0
    at = start + 1
    while True:
        if at >= end:
            return 0
        byte = b[at]
        at += 1
        length |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 21:
            return -1
    kind = b[start] >> 4
    flags = b[start] & 15
    if kind != 3:
        # reserved flags [2.2.2-1]; DUP of MQTT 3.1 is left to the handlers
        if kind == 6 or kind == 8 or kind == 10:
            if flags & 7 != 2:
                return -1
        elif flags:
            return -1
    if byte == 0 and shift:
        return -1  # a length longer than it need be
    p[_TYPE] = kind
    p[_FLAGS] = flags
    p[_START] = start
    p[_BODY] = at
    total = at - start + length
    p[_TOTAL] = total
    if total > p[_PACKET_MAX]:
        return -2
    stop = start + total
    if stop > end:
        return 0
    p[_END] = stop
    if kind == 3:
        if length < 2:
            return -1
        size = (b[at] << 8) | b[at + 1]
        at += 2
        p[_TOPIC] = at
        p[_TOPIC_LEN] = size
        at += size
        if flags & 6:
            if at + 2 > stop:
                return -1
            p[_PACKET_ID] = (b[at] << 8) | b[at + 1]
            at += 2
        if at > stop:
            return -1
        p[_PAYLOAD] = at
    elif kind >= 4 and kind <= 7:
        if length < 2:
            return -1
        p[_PACKET_ID] = (b[at] << 8) | b[at + 1]
    return total


@micropython.viper
def utf8_ok(buf, off: int, n: int, name: int) -> int:
    # 1 where the bytes are UTF-8 without U+0000 and surrogates [1.5.3-1, -2];
    # with name also without wildcards and not empty [4.7.1-1, 4.7.3-1].
    b = ptr8(buf)
    i = off
    end = off + n
    if name and n == 0:
        return 0
    while i < end:
        c = b[i]
        i += 1
        if c < 128:
            if c == 0:
                return 0
            if name and (c == 35 or c == 43):
                return 0
            continue
        more = 1
        least = 0x80
        if c >= 0xF0:
            if c > 0xF4:
                return 0
            more = 3
            least = 0x10000
            c &= 7
        elif c >= 0xE0:
            more = 2
            least = 0x800
            c &= 15
        elif c >= 0xC2:
            c &= 31
        else:
            return 0
        if i + more > end:
            return 0
        while more:
            x = b[i]
            i += 1
            more -= 1
            if (x & 0xC0) != 0x80:
                return 0
            c = (c << 6) | (x & 63)
        if c < least or c > 0x10FFFF or (c >> 11) == 27:
            return 0
    return 1


@micropython.viper
def filter_ok(buf, off: int, n: int) -> int:
    # How many levels a topic filter has; 0 where a wildcard is not alone in its
    # level or a # is not last [4.7.1-2, 4.7.1-3], or it is empty [4.7.3-1].
    b = ptr8(buf)
    end = off + n
    i = off
    levels = 1
    if n == 0:
        return 0
    while i < end:
        c = b[i]
        if c == 47:
            levels += 1
        elif c == 35 or c == 43:
            if i > off and b[i - 1] != 47:
                return 0
            if i + 1 < end and (c == 35 or b[i + 1] != 47):
                return 0
        i += 1
    return levels


@micropython.viper
def topic_matches(fbuf, f: int, fn: int, tbuf, t: int, tn: int) -> int:
    # 1 where the (legal) filter matches the topic name [4.7].
    a = ptr8(fbuf)
    b = ptr8(tbuf)
    fe = f + fn
    te = t + tn
    if b[t] == 36 and (a[f] == 35 or a[f] == 43):
        return 0
    while f < fe:
        c = a[f]
        if c == 35:
            return 1
        if c == 43:
            while t < te and b[t] != 47:
                t += 1
            f += 1
            if f == fe:
                break
            # after + comes a slash; the topic may end here only before "/#"
            if t == te:
                return 1 if f + 2 == fe and a[f + 1] == 35 else 0
            f += 1
            t += 1
            continue
        if t == te:
            return 1 if f + 2 == fe and c == 47 and a[f + 1] == 35 else 0
        if c != b[t]:
            return 0
        f += 1
        t += 1
    return 1 if t == te else 0


@micropython.viper
def find_id(ids, start: int, n: int, packet_id: int) -> int:
    # Index of packet_id in ids[start:start + n], or -1.
    p = ptr16(ids)
    i = start
    end = start + n
    while i < end:
        if p[i] == packet_id:
            return i
        i += 1
    return -1
