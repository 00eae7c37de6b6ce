# bytes_viper.py - the inner loops over bytes on MicroPython, in viper: copying, scanning a
# packet, UTF-8, topic filters. Only the files *_viper.py have viper code;
# each has a twin *_cpython.py of the same contract with slices and dicts, and
# property tests compare the two. Nothing here allocates. Callers check bounds.
#
# Offsets and lengths are bytes; slots are 16 bits wide and 0xFFFF means none.
# Words are copied unaligned where the processor can (ALIGN); a Cortex-M0+ cannot.
#
# How the native code stays small, which a board keeps in its heap: columns are accessed by
# table(), always as int(o) - o[k], of which tools/pack makes o[k] for 32 bits; the first two
# arguments are in registers; `if x:` takes 12 bytes, `x == 0` 26; p[i] = p[i] + 1 takes 22 bytes,
# p[i] += 1 48; a call of one viper function by another takes 50, 50 more in the callee, and
# hundreds of instructions.
#
# A constant of more than 16 bits, but for zeros at its end, is forbidden, in calls from 0x8000 on:
# on a Cortex-M0+ it is read from within the code, and wrongly where the code is frozen to an odd
# multiple of 2, as MicroPython's build allows (test_frozen_firmware.py looks for such reads).
import sys
from array import array

import micropython

from slotmq.constants import (BODY, END, FAST_MAX, FLAGS, GENERATION, MISSED, PACKET_ID,
    PACKET_MAX, PAYLOAD, R_GEN, R_LEN, R_MASK, R_STATE, R_TEXT, R_TOPIC_BYTES, START, TOPIC,
    TOPIC_LEN, TOTAL, TYPE, WITH_2)


# 1: text may have control characters and noncharacters (allow_control_characters; one for the
# process, since it is asked in the inner loops)
odd_text = bytearray(1)
# The bits of two addresses that must be 0 to copy words between them
ALIGN = 0 if sys.platform == "linux" else 3


def table(parts):
    # The table for viper code: an array that has each number as it is, and for each column how
    # many bytes before the array it begins: ptr16(int(o) - o[k])[i] needs no run-time call. (For
    # 32 bits tools/pack/mpy.py puts the columns' addresses into it.) The caller keeps the columns
    # alive. Viper reads 32 bits without a sign, which matters where addresses are wider: there the
    # array must be placed after all columns, so the holes before them are filled until it is.
    kept = []
    while True:
        made = array("i", bytes(4 * len(parts)))
        for i in range(len(parts)):
            part = parts[i]
            made[i] = part if isinstance(part, int) else _distance(made, part)
        if sys.maxsize >> 32 == 0 or min(made) >= 0:
            return made
        kept += [made, bytearray(4096)]


@micropython.viper
def _distance(made: ptr8, column: ptr8) -> int:
    return int(made) - int(column)


def new_packet(packet_max):
    pkt = array("i", bytes(48))
    pkt[PACKET_MAX] = pkt[FAST_MAX] = packet_max
    return pkt


@micropython.viper
def copy(to: ptr8, d: int, src: ptr8, off: int, n: int):
    # Copies to to[d:]. Forward, so that it may also move bytes down within one buffer.
    d += int(to)
    s = int(src) + off
    end = s + n
    if not (d | s) & int(ALIGN):
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
def next_packet(b: ptr8, at: int, end: int, pkt: ptr32) -> int:
    # Scans one packet of b[at:end] into pkt [2.2]. -> its length in bytes,
    # 0: more bytes are needed, -1: malformed, -2: larger than pkt[PACKET_MAX].
    pkt[START] = at
    pkt[TOTAL] = 0
    kind = b[at] >> 4
    flags = b[at] & 15
    length = 0
    shift = 0
    while True:
        at += 1
        if at >= end:
            return 0
        byte = b[at]
        length |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 21:
            return -1
    if kind != 3:
        # reserved flags [2.2.2-1]; the handlers check DUP and CONNECT's, undefined in MQTT 3.1
        odd = (flags & 7) ^ 2 if WITH_2 >> kind & 1 else flags
        if odd and kind ^ 1:
            return -1
    if shift and not byte:
        return -1  # not the shortest encoding of the length
    at += 1
    pkt[TYPE] = kind
    pkt[FLAGS] = flags
    pkt[BODY] = at
    stop = at + length
    total = stop - pkt[START]
    pkt[TOTAL] = total
    if total > pkt[PACKET_MAX]:
        return -2
    if stop > end:
        return 0
    pkt[END] = stop
    if kind == 3:
        if length < 2:
            return -1
        size = (b[at] << 8) | b[at + 1]
        pkt[TOPIC] = at + 2
        pkt[TOPIC_LEN] = size
        at += 2 + size
        if flags & 6:
            at += 2
        if at > stop:
            return -1
        pkt[PAYLOAD] = at
        at -= 2
        if not flags & 6:
            return total
    elif kind >> 2 != 1:
        return total
    elif length < 2:
        return -1
    pkt[PACKET_ID] = (b[at] << 8) | b[at + 1]
    return total


@micropython.viper
def utf8_ok(b: ptr8, i: int, n: int, name: int) -> int:
    # 1 where b[i:i + n] is UTF-8 without U+0000 and surrogates [1.5.3-1, -2], and without control
    # characters and noncharacters [1.5.3.1], unless odd_text[0] or name & 2; with name & 1
    # also without wildcards and not empty [4.7.1-1, 4.7.3-1].
    if name & 1 and not n:
        return 0
    n += i
    more = 0  # bytes that are missing in a character, and the least value that it may have
    least = 0
    char = 0
    odd = 0
    while i < n:
        c = b[i]
        i += 1
        if more:
            if c >> 6 != 2:
                return 0
            char = char << 6 | c & 63
            more -= 1
            if not more:
                if char < least or char >= 0x110000 or char >> 11 == 27:
                    return 0
                if char < 0xA0 or not char - 0xFDD0 >> 5 or not char + 2 & 0xFFFE:
                    odd = 1
        elif c >> 7:
            if c < 0xC0:
                return 0
            more = 1
            least = 0x80
            char = c & 31
            if c >= 0xE0:
                more = 2
                least = 0x800
                char = c & 15
            if c >= 0xF0:
                more = 3
                least = 0x10000
        elif c < 32 or c > 126:
            if not c:
                return 0
            odd = 1
        elif name & 1 and (c == 35 or c == 43):
            return 0
    if odd and not name & 2 and not ptr8(odd_text)[0]:
        return 0
    return 0 if more else 1


def filter_ok(buf, off, n):
    # Number of levels of a topic filter; 0: a wildcard is not alone in its level, a # is
    # not last [4.7.1-2, 4.7.1-3], or it is empty [4.7.3-1].
    levels = 1 if n else 0
    last = 47
    for i in range(off, off + n):
        c = buf[i]
        if last == 35 or last == 43 and c != 47:
            return 0
        if c == 47:
            levels += 1
        elif (c == 35 or c == 43) and last != 47:
            return 0
        last = c
    return levels


def level_end(b, i, end):
    # Where the level of a topic that begins at i ends: a slash, or end.
    while i < end and b[i] != 47:
        i += 1
    return i


@micropython.viper
def topic_matches(a: ptr8, f: int, fe: int, b: ptr8, t: int, te: int) -> int:
    # 1 where the (legal) filter a[f:f + fe] matches the topic name b[t:t + te] [4.7].
    fe += f
    te += t
    if b[t] == 36 and (a[f] == 35 or a[f] == 43):
        return 0
    while f < fe:
        c = a[f]
        f += 1
        if c == 35:
            return 1
        if c == 43:
            while t < te and b[t] != 47:
                t += 1
        elif t == te:
            # the topic may end here only before "/#"
            return 1 if c == 47 and f < fe and a[f] == 35 else 0
        elif c == b[t]:
            t += 1
        else:
            return 0
    return 1 if t == te else 0


def find_id(ids, start, n, packet_id):
    # Index of packet_id in ids[start:start + n], or -1.
    for i in range(start, start + n):
        if ids[i] == packet_id:
            return i
    return -1


@micropython.viper
def find_route(o: ptr32, b: ptr8, off: int, n: int) -> int:
    # The slot of the topic name b[off:off + n] in Routes, or -1.
    end = off + n
    h = n
    i = off
    while i < end:
        h = h * 33 + b[i]
        i += 1
    slot = (h ^ (h >> 8)) & o[R_MASK]
    state = ptr32(int(o) - o[R_STATE])
    state[MISSED] = slot
    if ptr16(int(o) - o[R_GEN])[slot] ^ state[GENERATION]:
        return -1
    if ptr16(int(o) - o[R_LEN])[slot] ^ n:
        return -1
    t = int(o) - o[R_TEXT] + slot * o[R_TOPIC_BYTES]
    while off < end:
        if ptr8(t)[0] ^ b[off]:
            return -1
        t += 1
        off += 1
    return slot
