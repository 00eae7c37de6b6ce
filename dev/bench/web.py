"""A client of the load generator that speaks MQTT over WebSocket, each packet in a frame.

It does not choose its masks at random, since it shall cost little.
"""

import struct

from slotmq_tools import codec

from .client import Address, Client, Unexpected

_REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)
_MASK = b"\x37\xfa\x21\x3d"


def frame(data: bytes) -> bytes:
    """These bytes in a frame of a client."""
    n = len(data)
    size = bytes([n | 128]) if n < 126 else b"\xfe" + struct.pack(">H", n)
    mask = (_MASK * (n // 4 + 1))[:n]
    masked = int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")
    return b"\x82" + size + _MASK + masked.to_bytes(n, "big")


class WebClient(Client):
    """As Client, over WebSocket."""

    def __init__(self, address: Address, client_id: str | None = None, *, level: int = 4) -> None:
        self._rest = b""
        super().__init__(address, None, level=level)
        super().send(_REQUEST)
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += super().receive()
        if not answer.startswith(b"HTTP/1.1 101 "):
            raise Unexpected(f"{answer[:40]!r} received instead of an upgrade")
        if client_id is not None:
            self.send(codec.connect(client_id, level=level))
            self._expect_connected()

    def send(self, data: bytes | bytearray) -> None:
        framed = b""
        at = 0
        while at < len(data):
            size = _size(data, at)
            framed += frame(bytes(data[at : at + size]))
            at += size
        super().send(framed)

    def receive(self) -> bytes:
        found = b""
        while not found:
            self._rest += super().receive()
            found, self._rest = _payloads(self._rest)
        return found


def _size(data: bytes | bytearray, at: int) -> int:
    """The length of the packet there, which is shorter than 16 KB."""
    first, second = data[at + 1], data[at + 2] if len(data) > at + 2 else 0
    return 2 + first if first < 128 else 3 + (first & 127 | second << 7)


def _payloads(data: bytes) -> tuple[bytes, bytes]:
    """The payloads of the whole frames, and what is left."""
    found = []
    at = 0
    while len(data) - at > 3:
        n = data[at + 1]
        head = 2
        if n == 126:
            n, head = data[at + 2] << 8 | data[at + 3], 4
        if data[at] != 0x82 or data[at + 1] > 126:
            raise Unexpected(f"{data[at:].hex()[:20]} received instead of a binary frame")
        if len(data) - at < head + n:
            break
        found.append(data[at + head : at + head + n])
        at += head + n
    return b"".join(found), data[at:]
