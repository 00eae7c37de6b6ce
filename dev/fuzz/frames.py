"""Inputs in frames of WebSocket: right ones, damaged ones, and requests that are none.

Of MQTT they have what `Inputs` makes undamaged, so that only its client ids can have sessions.
"""

from collections.abc import Iterator

from .inputs import Inputs

_REQUEST = (
    b"GET /mqtt HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
)
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_LENGTHS = [0, 1, 125, 126, 127, 65535, 65536, 1 << 31, 1 << 62, (1 << 64) - 1]


def frame(
    data: bytes, kind: int = _BINARY, *, is_last: bool = True, mask: bytes = b"\0\1\2\3"
) -> bytes:
    """A frame of a client."""
    n = len(data)
    form = n if n < 126 else 126 if n < 65536 else 127
    size = n.to_bytes({126: 2, 127: 8}[form], "big") if form > 125 else b""
    masked = bytes(byte ^ mask[at & 3] for at, byte in enumerate(data))
    return bytes((kind | is_last << 7, 0x80 | form)) + size + mask + masked


class Frames(Inputs):
    """An infinite sequence of inputs for a listener with `protocol websockets`."""

    def __iter__(self) -> Iterator[bytes]:
        kinds = [self._whole, self._fragments, self._wrong, self._wrong, self._controls]
        while True:
            self._is_5 = not self._is_5
            if self._now_and_then():
                yield self._wrong_request()
            else:
                yield _REQUEST + self.random.choice(kinds)()

    def _whole(self) -> bytes:
        return frame(self._session())

    def _fragments(self) -> bytes:
        """Cut anywhere, with controls and empty frames between."""
        pieces = self.cut(self._session())
        found = b""
        for at, piece in enumerate(pieces):
            kind = _CONTINUATION if at else _BINARY
            found += frame(piece, kind, is_last=at == len(pieces) - 1)
            if self._now_and_then():
                found += frame(self.random.randbytes(self.random.randint(0, 125)), _PING)
            if self._now_and_then():
                found += frame(b"", _CONTINUATION, is_last=False)
        return found

    def _controls(self) -> bytes:
        """Hundreds of pings, pongs or empty frames, before CONNECT or after it."""
        first = self.random.choice([b"", frame(self._connect())])
        kind = self.random.choice([_PING, _PONG, _CONTINUATION, _BINARY])
        data = self.random.randbytes(self.random.choice([0, 4, 125])) if kind > 2 else b""
        one = frame(data, kind, is_last=kind != _CONTINUATION)
        return first + one * self.random.randint(50, 600) + frame(self._session())

    def _wrong(self) -> bytes:
        """One frame that no client may send, before or behind good ones."""
        data = self._bytes(60)
        good, size = frame(self._session()), self.random.choice(_LENGTHS).to_bytes(8, "big")
        wrong = self.random.choice(
            [
                frame(data, self.random.choice([3, 7, 11, 15])),
                frame(data, _TEXT),
                frame(data, _BINARY | self.random.choice([0x10, 0x20, 0x40])),
                frame(data, _CONTINUATION),
                frame(data, is_last=False) + frame(data),
                frame(data, _PING, is_last=False),
                frame(bytes(126), _PING),
                bytes((0x82, len(data))) + data,  # without a mask
                b"\x82\xff" + size + data,
                b"\x82\xfe" + size[-2:] + data,
                frame(b"\3", _CLOSE),
                frame(self.random.randbytes(2) + data, _CLOSE) * 2,
                self._bytes(20),
            ]
        )
        return self.random.choice([wrong + good, good + wrong, good + wrong + good])

    def _wrong_request(self) -> bytes:
        lines = _REQUEST.split(b"\r\n")[:-2]
        at = self.random.randrange(len(lines))
        change = self.random.randrange(5)
        if change == 0:
            del lines[at]
        elif change == 1:
            lines[at] += self._bytes(30)
        elif change == 2:
            lines.insert(at, b"X: " + b"x" * self.random.choice([10, 1000, 9000]))
        elif change == 3:
            lines[0] = self.random.choice([b"POST / HTTP/1.1", b"GET /../../x HTTP/1.1", b"GET"])
        else:
            lines[at] = self._bytes(80)
        return b"\r\n".join([*lines, b"", b""]) + frame(self._session())
