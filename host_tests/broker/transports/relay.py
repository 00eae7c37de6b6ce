"""A relay: what its clients send by TCP reaches the broker over TLS, in frames of WebSocket, or
both, in pieces of one byte; it knows of MQTT only where a packet may not be cut, which is
nowhere."""

import base64
import contextlib
import os
import select
import socket
import ssl
import struct
import threading

from slotmq_tools.websocket import BINARY, CLOSE, HEADERS, frame, frames_of, request

_TIMEOUT_S = 20
_FRAGMENTS = 1024  # bytes that leave in fragments of one; the rest is one more
_RECORDS = 32  # bytes that leave in records of one


class Relay:
    """Stands for the broker in a `Scene`; `port`: where the broker listens. trusted: the context
    of TLS, if it speaks that; is_web: does it speak WebSocket?"""

    def __init__(self, port: int, trusted: ssl.SSLContext | None, *, is_web: bool) -> None:
        self._port = port
        self._trusted = trusted
        self._is_web = is_web
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
        with client, contextlib.suppress(OSError):
            with self._connect() as broker:
                for sock in (client, broker):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._pass_on(client, broker, _upgraded(broker) if self._is_web else b"")
            # What the client still sends may not destroy what it has not read
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass

    def _connect(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_S)
        if self._trusted is None:
            return plain
        return self._trusted.wrap_socket(plain, server_hostname="localhost")

    def _pass_on(self, client: socket.socket, broker: socket.socket, came: bytes) -> None:
        # Until the broker ends; the client's end reaches it as the client made it
        heard = select.poll()
        for sock in (client, broker):
            heard.register(sock, select.POLLIN)
        is_first, ends = True, False
        while not ends:
            ready = [fd for fd, _ in heard.poll(0 if is_first else None)]
            if is_first or broker.fileno() in ready:
                is_first = False
                data = _received(broker)
                payload, came, ends = came + (data or b""), b"", data == b""
                if self._is_web:
                    frames, came = frames_of(payload)
                    assert {kind for kind, _ in frames} <= {BINARY, CLOSE}, frames
                    payload = b"".join(data for kind, data in frames if kind == BINARY)
                    ends = ends or CLOSE in [kind for kind, _ in frames]
                client.sendall(payload)
            if client.fileno() in ready and not self._hear(client, broker):
                heard.unregister(client)

    def _hear(self, client: socket.socket, broker: socket.socket) -> bool:
        # -> whether more may come; False too when the broker reads no more
        try:
            data = _received(client)
        except ConnectionResetError:
            broker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise
        try:
            if data:
                self._send(broker, data)
            elif data == b"":
                socket.socket.shutdown(broker, socket.SHUT_WR)  # an SSLSocket's ends TLS as well
        except OSError:
            return False
        return data != b""

    def _send(self, broker: socket.socket, data: bytes) -> None:
        most = _RECORDS if self._trusted else _FRAGMENTS
        pieces = [data[at : at + 1] for at in range(min(len(data), most))]
        pieces += [data[most:]] if len(data) > most else []
        if self._is_web:
            last = len(pieces) - 1
            pieces = [
                frame(piece, 0 if at else BINARY, at == last, os.urandom(4))
                for at, piece in enumerate(pieces)
            ]
        for piece in pieces if self._trusted else [b"".join(pieces)]:
            broker.sendall(piece)


def _upgraded(broker: socket.socket) -> bytes:
    # What has come behind the answer to the request
    key = base64.b64encode(os.urandom(16)).decode()
    broker.sendall(
        request(*(line for line in HEADERS if "Key" not in line), f"Sec-WebSocket-Key: {key}")
    )
    came = b""
    while b"\r\n\r\n" not in came:
        data = broker.recv(4096)
        if not data:
            raise ConnectionError
        came += data
    assert came.startswith(b"HTTP/1.1 101 "), came
    return came.partition(b"\r\n\r\n")[2]


def _received(sock: socket.socket) -> bytes | None:
    # All that is there; b"": the end; None: a record without anything in it
    found = None
    sock.setblocking(False)
    try:
        while data := sock.recv(65536):
            found = (found or b"") + data
            if not isinstance(sock, ssl.SSLSocket) or not sock.pending():
                return found
        return found or b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return found
    finally:
        sock.settimeout(_TIMEOUT_S)
