# packets.py - makes a packet of its first byte and its body: for clients of the program, and for
# bridges, which need nothing else of them. Owns nothing. Allocates.


def packet_of(first, body):
    """A packet with this first byte and body."""
    n = len(body)
    length = b""
    while n > 127:
        length += bytes((n & 127 | 128,))
        n >>= 7
    return bytes((first,)) + length + bytes((n,)) + body


def field(value):
    return len(value).to_bytes(2, "big") + value
