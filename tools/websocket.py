"""Frames of WebSocket (RFC 6455) for tools and tests: makes a client's, reads a server's. Written
from the standard; it shares no code with the broker, and runs on MicroPython too.
"""

from .codec import check

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MASK = b"\x37\xfa\x21\x3d"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # of the standard's example, 1.3
HEADERS = (
    "Host: broker",
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: " + KEY,
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Protocol: mqtt",
)


def request(*headers: str, first: str = "GET /mqtt HTTP/1.1", end: str = "\r\n") -> bytes:
    """The request to upgrade, with these headers or else the usual ones."""
    return (end.join((first,) + (headers or HEADERS)) + end + end).encode()


def frame(
    data: bytes = b"", kind: int = BINARY, fin: int = True, mask: bytes = MASK, form: int = 0
) -> bytes:
    """A client's frame. form: 0 the shortest length, else 126 or 127."""
    n = len(data)
    form = form or (n if n < 126 else 126 if n < 65536 else 127)
    more = b"" if form < 126 else n.to_bytes(2 if form == 126 else 8, "big")
    head = bytes((kind | fin << 7, form | 128)) + more + mask
    key = int.from_bytes((mask * (n // 4 + 1))[:n], "big")
    return head + (int.from_bytes(data, "big") ^ key).to_bytes(n, "big")


def frames_of(data: bytes) -> tuple[list[tuple[int, bytes]], bytes]:
    """A server's frames: [(kind, payload)], and what is left of one that was cut."""
    found = []
    while len(data) > 1:
        check(data[0] & 0xF0 == 128, "a reserved bit, or a fragment")
        check(data[1] < 128, "a server does not mask")
        n = data[1]
        at = 2
        if n > 125:
            at = 4 if n == 126 else 10
            n = int.from_bytes(data[2:at], "big")
        if len(data) < at + n:
            break
        found.append((data[0] & 15, bytes(data[at : at + n])))
        data = data[at + n :]
    return found, data
