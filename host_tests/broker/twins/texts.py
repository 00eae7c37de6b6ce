# texts.py SEED COUNT - the functions on bytes without a state, with random input.
#
# Prints a line for each call. The buffers have random bytes before and after the input, so
# that a function that reads too far gives another result.
import sys

from seeded import Numbers, shown

from slotmq.fast import copy, filter_ok, find_id, new_packet, next_packet, topic_matches, utf8_ok

FIRSTS = (0x10, 0x30, 0x32, 0x34, 0x3B, 0x3D, 0x36, 0x40, 0x50, 0x62, 0x6A, 0x70, 0x82, 0x8A)
FIRSTS += (0xA2, 0xC0, 0xE0, 0x00, 0xF0, 0x60, 0x41, 0x80, 0xD0)
LENGTHS = ((0,), (1,), (2,), (127,), (0x80, 1), (0x80, 0), (0xFF, 0x7F), (0x80, 0x80, 1))
LENGTHS += ((0xFF, 0xFF, 0x7F), (0x80, 0x80, 0x80, 1), (0xFF,) * 4, (0xFF,) * 3 + (0x7F,))
# The ends of what UTF-8 can encode, and what it must not
EDGES = (0, 1, 0x23, 0x2B, 0x2F, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDFFF, 0xE000)
EDGES += (
    0x1F,
    0x20,
    0x9F,
    0xA0,
    0xFDCF,
    0xFDD0,
    0xFDEF,
    0xFDF0,
    0xFFFE,
    0xFFFF,
    0x1FFFE,
    0x10000,
    0x10FFFF,
    0x110000,
    0x1FFFFF,
)
ALPHABET = b"ab/+#$"


def packet(numbers):
    """A packet, nearly a packet, or random bytes."""
    first = numbers.choice(FIRSTS)
    if numbers.one_in(4):
        size = numbers.choice(LENGTHS)
        return bytes((first,)) + bytes(size) + numbers.bytes(numbers.below(300))
    size = numbers.choice((2, 2, 3, 4, 5, 10, 40, 126, 127, 128, 200, 400))
    topic = numbers.choice((0, 1, 3, size - 2, size - 4, size - 3, size - 1, 70000))
    body = bytes((topic >> 8 & 255, topic & 255)) + numbers.bytes(max(0, size - 2))
    head = bytes((first, size)) if size < 128 else bytes((first, size & 127 | 128, size >> 7))
    data = bytearray(head + body)
    while numbers.one_in(4):
        data[numbers.below(len(data))] = numbers.below(256)
    return bytes(data[: numbers.between(1, len(data))] if numbers.one_in(3) else data)


def packets(numbers):
    pkt = new_packet(300)
    data = packet(numbers)
    before = numbers.bytes(numbers.below(5))
    buf = bytearray(before + data + numbers.bytes(5))
    start = len(before)
    n = next_packet(buf, start, start + len(data), pkt)
    print("next_packet", shown(data), n, *fields(pkt, n, data[0]))


def fields(pkt, n, first):
    """The fields of the record that this kind of packet has, if it is complete."""
    if n < 0:
        return ()
    if n == 0:
        return (pkt[5],)
    found = list(pkt[:6])
    kind = first >> 4
    if kind == 3:
        found += pkt[7:10]
    if (kind == 3 and first & 6) or 4 <= kind <= 7:
        found.append(pkt[6])
    return found


def encoded(point):
    """A code point in UTF-8, valid or not."""
    if point < 0x80:
        return bytes((point,))
    if point < 0x800:
        return bytes((0xC0 | point >> 6, point & 63 | 128))
    if point < 0x10000:
        return bytes((0xE0 | point >> 12, point >> 6 & 63 | 128, point & 63 | 128))
    tail = bytes((point >> 12 & 63 | 128, point >> 6 & 63 | 128, point & 63 | 128))
    return bytes((0xF0 | point >> 18,)) + tail


def utf8(numbers):
    data = bytearray()
    for _ in range(numbers.below(5)):
        way = numbers.below(4)
        if way == 0:
            data += numbers.bytes(numbers.below(4))
        elif way == 1:
            data += encoded(numbers.below(0x800))
        else:
            data += encoded(numbers.choice(EDGES))
    if data and numbers.one_in(3):
        data = data[: numbers.below(len(data)) + 1]
    off = numbers.below(3)
    buf = numbers.bytes(off) + bytes(data) + b"\x80\x80\x80"
    for name in (0, 1, 2):
        print("utf8_ok", shown(data), name, utf8_ok(buf, off, len(data), name))


def filters(numbers):
    data = numbers.bytes(numbers.below(9), ALPHABET)
    off = numbers.below(3)
    buf = numbers.bytes(off, ALPHABET) + data + numbers.bytes(2, ALPHABET)
    levels = filter_ok(buf, off, len(data))
    print("filter_ok", shown(data), levels)
    if levels:
        topics(numbers, buf, off, len(data))


def topics(numbers, buf, off, n):
    """A valid filter against topics that resemble it."""
    for _ in range(8):
        topic = bytearray()
        for byte in buf[off : off + n]:
            if byte == 35 or byte == 43:
                topic += numbers.bytes(numbers.below(3), b"ab$/" if byte == 35 else b"ab$")
            else:
                topic.append(numbers.choice(b"ab/") if numbers.one_in(6) else byte)
        topic += numbers.bytes(numbers.below(3), b"/a") if numbers.one_in(3) else b""
        if topic:
            tbuf = b"/" + bytes(topic) + b"/a"
            found = topic_matches(buf, off, n, tbuf, 1, len(topic))
            print("topic_matches", shown(buf[off : off + n]), shown(topic), found)


def copies(numbers):
    n = numbers.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 60))
    source = bytearray(numbers.bytes(100))
    target = bytearray(100)
    to, off = numbers.below(40), numbers.below(40)
    copy(target, to, source, off, n)
    print("copy", n, to, off, shown(target))
    if to <= off:
        copy(source, to, source, off, n)  # down, within one buffer
        print("move", n, to, off, shown(source))


def ids(numbers):
    from array import array

    row = array("H", [numbers.choice((0, 1, 2, 255, 256, 65534, 65535)) for _ in range(12)])
    start = numbers.below(8)
    for packet_id in (0, 1, 255, 256, 65535, 7):
        print("find_id", packet_id, find_id(row, start, numbers.below(12 - start), packet_id))


def main(seed, count):
    numbers = Numbers(int(seed))
    for _ in range(int(count)):
        for part in (packets, utf8, filters, copies, ids):
            part(numbers)


main(*sys.argv[1:])
