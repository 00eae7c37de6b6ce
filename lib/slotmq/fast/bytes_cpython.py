# bytes_cpython.py - the contract of fast/bytes_viper.py on CPython, with dicts, slices and find.
#
# Same names, same results; property tests compare the two. These functions may allocate:
# "does not allocate" is a promise for MicroPython only.
from slotmq.constants import (BODY, END, FLAGS, PACKET_ID, PACKET_MAX, PAYLOAD, START, TOPIC,
    TOPIC_LEN, TOTAL, TYPE)


# By first byte: -1 if its flags are not legal [2.2.2-1]
_RESERVED = [0 if b & 15 == 0 else -1 for b in range(256)]
_RESERVED[0x10:0x20] = [0] * 16  # MQTT 3.1 leaves them undefined in CONNECT
for _b in (0x60, 0x80, 0xA0):
    _RESERVED[_b] = -1
    _RESERVED[_b | 2] = _RESERVED[_b | 10] = 0

# Control characters and noncharacters of Unicode; odd_text as in fast/bytes_viper.py
_ODD = [*range(32), *range(0x7F, 0xA0), *range(0xFDD0, 0xFDF0)]
_ODD += [plane << 16 | last for plane in range(17) for last in (0xFFFE, 0xFFFF)]
_ODD = frozenset(map(chr, _ODD))
odd_text = bytearray(1)


def new_packet(packet_max):
    return [0] * 10 + [packet_max, packet_max]


def copy(to, to_off, src, off, n):
    to[to_off : to_off + n] = src[off : off + n]


def next_packet(buf, start, end, pkt):
    """Scan one packet into pkt: its length, 0 need more, -1 malformed, -2 too large [2.2]."""
    pkt[TOTAL] = 0
    if end - start < 2:
        return 0
    first = buf[start]
    length = buf[start + 1]
    at = start + 2
    if length > 127:
        length &= 127
        shift = 7
        while True:
            if at >= end:
                return 0
            byte = buf[at]
            at += 1
            length |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 21:
                return -1
        if not byte:
            return -1  # not the shortest encoding of the length
    stop = at + length
    total = stop - start
    kind = first >> 4
    if kind != 3 and _RESERVED[first] < 0:
        return -1
    pkt[TYPE] = kind
    pkt[FLAGS] = first & 15
    pkt[START] = start
    pkt[BODY] = at
    pkt[TOTAL] = total
    if total > pkt[PACKET_MAX]:
        return -2
    if stop > end:
        return 0
    pkt[END] = stop
    if kind == 3:
        if length < 2:
            return -1
        size = (buf[at] << 8) | buf[at + 1]
        at += 2
        pkt[TOPIC] = at
        pkt[TOPIC_LEN] = size
        at += size
        if first & 6:
            if at + 2 > stop:
                return -1
            pkt[PACKET_ID] = (buf[at] << 8) | buf[at + 1]
            at += 2
        if at > stop:
            return -1
        pkt[PAYLOAD] = at
    elif 4 <= kind <= 7:
        if length < 2:
            return -1
        pkt[PACKET_ID] = (buf[at] << 8) | buf[at + 1]
    return total


def utf8_ok(buf, off, n, name):
    """1 where the bytes are UTF-8 without U+0000, control characters and noncharacters; with
    name & 1 also a topic name [1.5.3]."""
    data = bytes(buf[off : off + n])
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return 0
    if not text.isprintable():
        if b"\0" in data or not (name & 2 or odd_text[0] or _ODD.isdisjoint(text)):
            return 0
    return 0 if name & 1 and (not data or b"+" in data or b"#" in data) else 1


def filter_ok(buf, off, n):
    """Number of levels of a topic filter; 0: empty, or a wildcard is misplaced [4.7.1]."""
    data = bytes(buf[off : off + n])
    if not data:
        return 0
    if b"+" not in data and b"#" not in data:
        return data.count(b"/") + 1
    levels = data.split(b"/")
    for i, level in enumerate(levels):
        if len(level) > 1 and (b"+" in level or b"#" in level):
            return 0
        if level == b"#" and i + 1 < len(levels):
            return 0
    return len(levels)


def level_end(buf, off, end):
    """Where the level of a topic that begins at off ends: a slash, or end."""
    at = buf.find(b"/", off, end)
    return at if at >= 0 else end


def topic_matches(fbuf, f, fn, tbuf, t, tn):
    """1 where the (legal) filter matches the topic name [4.7]."""
    want = bytes(fbuf[f : f + fn]).split(b"/")
    have = bytes(tbuf[t : t + tn]).split(b"/")
    if have[0][:1] == b"$" and want[0] in (b"+", b"#"):
        return 0
    for i, level in enumerate(want):
        if level == b"#":
            return 1
        if i == len(have) or level not in (b"+", have[i]):
            return 0
    return 1 if len(want) == len(have) else 0


def find_id(ids, start, n, packet_id):
    """Index of packet_id in ids[start:start + n], or -1."""
    try:
        return ids.index(packet_id, start, start + n)
    except ValueError:
        return -1
