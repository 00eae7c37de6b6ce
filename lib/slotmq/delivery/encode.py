# encode.py - the bytes of packets. Each put_*() writes to tx[at:], where space has been reserved,
# and returns the offset past what it wrote. Owns nothing. Does not allocate.


def length_bytes(remaining):
    """Bytes that the remaining length takes in the fixed header, 1 to 4 [2.2.3]."""
    if remaining < 128:
        return 1
    if remaining < 16384:
        return 2
    return 3 if remaining < 2097152 else 4


def put_header(tx, at, first, remaining):
    """Fixed header: first byte and remaining length."""
    tx[at] = first
    return put_length(tx, at + 1, remaining)


def put_length(tx, at, number):
    """A remaining length, or another variable byte integer of version 5."""
    while number > 127:
        tx[at] = number & 127 | 128
        at += 1
        number >>= 7
    tx[at] = number
    return at + 1


def put_u16(tx, at, value):
    tx[at] = value >> 8
    tx[at + 1] = value & 255
    return at + 2


def put_u32(buf, at, value):
    return put_u16(buf, put_u16(buf, at, value >> 16 & 0xFFFF), value & 0xFFFF)


def put_short(tx, at, first, value):
    """A packet of four bytes: CONNACK, UNSUBACK and the acknowledgements of PUBLISH."""
    tx[at] = first
    tx[at + 1] = 2
    tx[at + 2] = value >> 8
    tx[at + 3] = value & 255
    return at + 4


def put_message(tx, at, messages, msg, first, remaining, packet_id):
    """PUBLISH of a stored message; packet_id 0 for QoS 0 [3.3]."""
    at = put_header(tx, at, first, remaining)
    size = messages.topic_len[msg] + 2
    payload = messages.payload_len[msg]
    arena = messages.arena
    block = messages.first[msg]
    if not packet_id:
        arena.move(block, 0, tx, at, size + payload, 1)
        return at + size + payload
    arena.move(block, 0, tx, at, size, 1)
    at += size
    tx[at] = packet_id >> 8
    tx[at + 1] = packet_id & 255
    arena.move(block, size, tx, at + 2, payload, 1)
    return at + 2 + payload
