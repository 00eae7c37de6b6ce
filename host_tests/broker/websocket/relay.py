"""A relay: what its clients send by TCP reaches the broker as frames of WebSocket, in fragments of
one byte; it knows of MQTT only where a packet may not be cut, which is nowhere."""

import base64
import contextlib
import os
import select
import socket
import threading

_TIMEOUT_S = 20
_FRAGMENTS = 1024  # bytes that leave in fragments of one; the rest is one more
_BINARY, _CLOSE = 2, 8
_REQUEST = (
    "GET / HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: {}\r\n\r\n"
)


class Relay:
    """Stands for the broker in a `Scene`; `port`: where the broker speaks WebSocket."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def alive(self) -> bool:
        with socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_S):
            return True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_S) as broker:
            for sock in (client, broker):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            broker.sendall(_REQUEST.format(base64.b64encode(os.urandom(16)).decode()).encode())
            came = b""
            while b"\r\n\r\n" not in came:
                came += broker.recv(4096)
            assert came.startswith(b"HTTP/1.1 101 "), came
            came = came.partition(b"\r\n\r\n")[2]
            with contextlib.suppress(OSError):
                _pass_on(client, broker, came)


def _pass_on(client: socket.socket, broker: socket.socket, came: bytes) -> None:
    # Until one of them ends
    while True:
        came, payload, ends = _unframed(came)
        client.sendall(payload)
        if ends:
            return
        for sock in select.select([client, broker], [], [])[0]:
            data = sock.recv(65536)
            if not data:
                return
            if sock is broker:
                came += data
            else:
                broker.sendall(_fragments(data))


def _fragments(data: bytes) -> bytes:
    pieces = [data[at : at + 1] for at in range(min(len(data), _FRAGMENTS))]
    pieces += [data[_FRAGMENTS:]] if len(data) > _FRAGMENTS else []
    last = len(pieces) - 1
    return b"".join(
        _frame(piece, 0 if at else _BINARY, at == last) for at, piece in enumerate(pieces)
    )


def _frame(data: bytes, kind: int, is_last: bool) -> bytes:
    n = len(data)
    form = n if n < 126 else 126 if n < 65536 else 127
    size = n.to_bytes({126: 2, 127: 8}[form], "big") if form > 125 else b""
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[at & 3] for at, byte in enumerate(data))
    return bytes((kind | is_last << 7, 0x80 | form)) + size + mask + masked


def _unframed(data: bytes) -> tuple[bytes, bytes, bool]:
    # -> what is left of the last frame, the payloads of MQTT, and whether a close frame came
    payloads = b""
    while len(data) > 1:
        kind, n, at = data[0] & 15, data[1], 2
        assert data[0] & 0xF0 == 0x80, "a fragment"
        assert n < 128, "a server does not mask"
        if n > 125:
            at = 4 if n == 126 else 10
            n = int.from_bytes(data[2:at], "big")
        if len(data) < at + n:
            break
        if kind == _CLOSE:
            return b"", payloads, True
        assert kind == _BINARY, kind
        payloads += data[at : at + n]
        data = data[at + n :]
    return data, payloads, False
