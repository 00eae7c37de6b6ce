"""Inputs in frames of WebSocket: right ones, damaged ones, and requests that are none.

Of MQTT they have what `Inputs` makes undamaged, so that only its client ids can have sessions.
"""

from collections.abc import Iterator

from slotmq_tools.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    frame,
    request,
)

from .inputs import Inputs

_REQUEST = request()
_LENGTHS = [0, 1, 125, 126, 127, 65535, 65536, 1 << 31, 1 << 62, (1 << 64) - 1]


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
            kind = CONTINUATION if at else BINARY
            found += frame(piece, kind, fin=at == len(pieces) - 1)
            if self._now_and_then():
                found += frame(self.random.randbytes(self.random.randint(0, 125)), PING)
            if self._now_and_then():
                found += frame(b"", CONTINUATION, fin=False)
        return found

    def _controls(self) -> bytes:
        """Hundreds of pings, pongs or empty frames, before CONNECT or after it."""
        first = self.random.choice([b"", frame(self._connect())])
        kind = self.random.choice([PING, PONG, CONTINUATION, BINARY])
        data = self.random.randbytes(self.random.choice([0, 4, 125])) if kind > 2 else b""
        one = frame(data, kind, fin=kind != CONTINUATION)
        return first + one * self.random.randint(50, 600) + frame(self._session())

    def _wrong(self) -> bytes:
        """One frame that no client may send, before or behind good ones."""
        data = self._bytes(60)
        good, size = frame(self._session()), self.random.choice(_LENGTHS).to_bytes(8, "big")
        wrong = self.random.choice(
            [
                frame(data, self.random.choice([3, 7, 11, 15])),
                frame(data, TEXT),
                frame(data, BINARY | self.random.choice([0x10, 0x20, 0x40])),
                frame(data, CONTINUATION),
                frame(data, fin=False) + frame(data),
                frame(data, PING, fin=False),
                frame(bytes(126), PING),
                bytes((0x82, len(data))) + data,  # without a mask
                b"\x82\xff" + size + data,
                b"\x82\xfe" + size[-2:] + data,
                frame(b"\3", CLOSE),
                frame(self.random.randbytes(2) + data, CLOSE) * 2,
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
