"""A broker with TLS in a process of its own, and clients that send bytes over TLS."""

import socket
import ssl
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slotmq_tools.ports import free_port

from ...support.program import CONNACK, CONNECT, TIMEOUT_S, Run, conf

_PIECE = 65536


def lines_of(folder: Path) -> list[str]:
    return [f"certfile {folder}/server.crt", f"keyfile {folder}/server.key"]


def context(folder: Path, user: str = "") -> ssl.SSLContext:
    """Of a client that trusts the CA of this folder; user: whose certificate it has."""
    found = ssl.create_default_context(cafile=folder / "ca.crt")
    if user:
        found.load_cert_chain(folder / f"{user}.crt", folder / f"{user}.key")
    return found


class Served:
    """A running broker: its port, and its log."""

    def __init__(
        self,
        folder: Path,
        runtime: str,
        lines: list[str],
        more: Iterable[str],
        board: str = "HOST",
    ) -> None:
        folder.mkdir()
        self.runtime = runtime
        self.port = free_port()
        self.plain_port = free_port()
        before = [f"listener {self.plain_port} 127.0.0.1", f"listener {self.port} 127.0.0.1"]
        self.file = conf(folder, "allow_anonymous true", *before, *lines, *more)
        self.run = Run(folder, runtime, "-c", self.file, "--board", board)
        self.run.headline()

    def stop(self) -> None:
        if not self.run.ended():
            self.run.stop()

    def log(self, text: str, micropython: str = "") -> None:
        """Wait for a text in the log; mbedTLS may have another one for it."""
        if self.runtime == "micropython":
            text = micropython or text
        self.run.wait_for(lambda: text in self.run.everything(), text)

    def reloaded(self, times: int) -> None:
        """Wait until it has read its configuration again so often."""
        self.run.wait_for(
            lambda: self.run.everything().count("Reloaded") >= times, "that it is read"
        )

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S)

    def client(self, with_: ssl.SSLContext, packet: bytes = CONNECT) -> ssl.SSLSocket:
        """A client whose CONNECT was accepted."""
        sock = with_.wrap_socket(self.connect(), server_hostname="localhost")
        sock.sendall(packet)
        assert received(sock, 4) == CONNACK
        return sock

    def refuses(self, with_: ssl.SSLContext) -> bool:
        """Does the handshake fail, or whatever comes next?"""
        with with_.wrap_socket(self.connect(), server_hostname="localhost") as sock:
            return ends(sock)

    def plain(self, packet: bytes = CONNECT) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.plain_port), TIMEOUT_S)
        sock.sendall(packet)
        assert received(sock, 4) == CONNACK
        return sock


def received(sock: socket.socket, n: int) -> bytes:
    """The next n bytes, or fewer if the connection ends."""
    data = b""
    while len(data) < n and (piece := sock.recv(min(_PIECE, n - len(data)))):
        data += piece
    return data


def ends(sock: socket.socket) -> bool:
    """Does the peer close the connection, within a moment?"""
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            if not sock.recv(_PIECE):
                return True
    except (ConnectionError, ssl.SSLError):
        return True
    return False


class Peer:
    """A client whose records are bytes here: to be cut, kept back, and sent again."""

    def __init__(self, served: Any, with_: ssl.SSLContext) -> None:
        self.sock: socket.socket = served.connect()
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = with_.wrap_bio(self._in, self._out, server_hostname="localhost")

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def flight(self) -> bytes:
        """What the handshake sends next; b"": it is complete."""
        while True:
            try:
                self._ssl.do_handshake()
            except ssl.SSLWantReadError:
                pass
            else:
                return self._out.read()
            if self._out.pending:
                return self._out.read()
            self._in.write(self.sock.recv(_PIECE) or b"the end")

    def shake_hands(self) -> None:
        """As `flight()`, to its end."""
        self.sock.sendall(self.flight())
        self.sock.sendall(self.flight())

    def records(self, *pieces: bytes) -> bytes:
        """Each of these bytes as one record."""
        for piece in pieces:
            self._ssl.write(piece)
        return self._out.read()

    def received(self, n: int) -> bytes:
        data = b""
        while len(data) < n:
            try:
                data += self._ssl.read(n - len(data))
            except ssl.SSLWantReadError:
                self._in.write(self.sock.recv(_PIECE) or b"the end")
        return data
