# properties.py - the property section of an MQTT 5.0 packet [5.0, 2.2.2]: one pass checks every
# property, and stores the number or the offset of each that may occur only once. User properties
# are checked and skipped, so they take no memory. Owns nothing. Does not allocate.
#
# Each property has a column in the array `values` (Version5.values). INDEX maps its identifier to
# the column; 0: no client may send it. values[0] has a bit for each property that was found.
from slotmq.constants import MALFORMED_PACKET, MORE, PROTOCOL_ERROR
from slotmq.delivery.encode import length_bytes
from slotmq.fast import utf8_ok
from slotmq.platform.arrays import i32

# By identifier: the column, the kind, and the packets that may have it (bits: CONNECT 1,
# will 2, PUBLISH 4, acknowledgements of PUBLISH 8, SUBSCRIBE 16, UNSUBSCRIBE 32,
# DISCONNECT 64, AUTH 128).
INDEX = (
    b"\0\x01\x02\x03\0\0\0\0\x04\x05\0\x06\0\0\0\0\0\x07\0\0\0\x08\x09\x0a\x0b\x0c\0\0\0\0\0\x0d"
    b"\0\x0f\x10\x0e\0\0\x11\x12"
)
# 1, 2, 4: bytes of a number; 5: variable byte integer; 6: text; 7: binary data; 8: a pair
KINDS = b"\0\x01\x04\x06\x06\x07\x05\x04\x06\x07\x01\x04\x01\x06\x02\x02\x02\x08\x04"
WHERE = b"\0\x06\x06\x06\x06\x06\x14\x41\x81\x81\x01\x02\x01\xc8\x04\x01\x01\xff\x01"
_USER = 17
_NUMBER_MAX = 0x3FFFFFFF  # larger numbers become this: a small integer on every port


def make():
    """The array for scan(): [bits, number or offset of each ..., length or offset of each ...]."""
    return i32(2 * MORE)


def scan(buf, at, end, packet, values):
    """Check the section at buf[at] of a packet (its bit of WHERE) that ends at `end`.

    -> the offset past it, or -reason code."""
    values[0] = 0
    size = read_length(buf, at, end)
    if size < 0:
        return -MALFORMED_PACKET
    at += length_bytes(size)
    stop = at + size
    if stop > end:
        return -MALFORMED_PACKET
    while at < stop:
        name = buf[at]
        index = INDEX[name] if name < len(INDEX) else 0
        if index == 0 or not WHERE[index] & packet:
            return -MALFORMED_PACKET  # [2.2.2.2]
        if index != _USER:
            if values[0] >> index & 1:
                return -PROTOCOL_ERROR
            values[0] |= 1 << index
        at = _take(buf, at + 1, stop, index, KINDS[index], values)
        if at < 0:
            return at
    return at


def _take(buf, at, stop, index, kind, values):
    # Check one value, which begins at buf[at]; -> the offset past it, or -reason code.
    if kind > 5:
        return _take_text(buf, at, stop, index, kind, values)
    values[index + MORE] = at - 1
    if kind == 5:
        values[index] = number = read_length(buf, at, stop)
        at += length_bytes(number)
        return at if number > 0 else -(MALFORMED_PACKET if number else PROTOCOL_ERROR)
    if at + kind > stop:
        return -MALFORMED_PACKET
    number = buf[at]
    if kind == 4 and number > 0x3F:
        values[index] = _NUMBER_MAX
        return at + 4
    for i in range(at + 1, at + kind):
        number = number << 8 | buf[i]
    values[index] = number
    return at + kind if number < 2 or kind != 1 else -PROTOCOL_ERROR


def _take_text(buf, at, stop, index, kind, values):
    for _ in range(2 if kind == 8 else 1):
        n = buf[at] << 8 | buf[at + 1] if at + 2 <= stop else 0
        at += 2
        if at + n > stop or kind != 7 and not utf8_ok(buf, at, n, 0):
            return -MALFORMED_PACKET
        if kind != 8:
            values[index] = at
            values[index + MORE] = n
        at += n
    return at


def read_length(buf, at, end):
    """A variable byte integer in its shortest form, or -1 [1.5.5]."""
    number = 0
    shift = 0
    while at < end and shift < 28:
        byte = buf[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number if byte or not shift else -1
        shift += 7
    return -1
