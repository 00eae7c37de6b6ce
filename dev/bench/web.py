"""A client of the load generator that speaks MQTT over WebSocket, each packet in a frame.

It does not choose its masks at random, since it shall cost little.
"""

from slotmq_tools import codec
from slotmq_tools.websocket import BINARY, frame, frames_of, request

from .client import Address, Client, Unexpected


class WebClient(Client):
    """As Client, over WebSocket."""

    def __init__(self, address: Address, client_id: str | None = None, *, level: int = 4) -> None:
        self._rest = b""
        super().__init__(address, None, level=level)
        super().send(request())
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
            frames, self._rest = frames_of(self._rest)
            if any(kind != BINARY for kind, _ in frames):
                raise Unexpected(f"{frames} received instead of binary frames")
            found = b"".join([payload for _, payload in frames])
        return found


def _size(data: bytes | bytearray, at: int) -> int:
    """The length of the packet there, which is shorter than 16 KB."""
    first, second = data[at + 1], data[at + 2] if len(data) > at + 2 else 0
    return 2 + first if first < 128 else 3 + (first & 127 | second << 7)
