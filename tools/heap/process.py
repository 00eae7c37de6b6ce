"""The broker on 32-bit MicroPython as a child that says how much heap it uses."""

import socket
import subprocess
from pathlib import Path
from typing import Self

from .. import micropython, mpy
from ..errors import ToolError

_SCRIPT = Path(__file__).with_name("measure_micropython.py")
_PATIENCE_S = 30.0
_HOST = "127.0.0.1"
# CONNECT at level 4 without keep-alive, and the client id "heap" with two digits
_CONNECT = "1012 0004 4d515454 04 {flags:02x} 0000 0006 68656170 {number:04x}"
_CONNACK = bytes.fromhex("2002")
_DISCONNECT = bytes.fromhex("e000")
_CLEAN, _KEPT = 2, 0


class Process:
    """MicroPython from its start to its end, and the clients of the broker in it."""

    def __init__(self, board: str, heap: int) -> None:
        self._address = (_HOST, _free_port())
        target = micropython.find(32)
        options = ["-X", f"heapsize={heap}", str(_SCRIPT), board, *map(str, self._address)]
        self._process = subprocess.Popen(
            [*target.start, *options],
            env=micropython.environment(mpy.build_for(target)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._clients: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self._process.kill()
        self._process.communicate()

    def rows(self) -> list[tuple[str, str, int]]:
        """What it says before it says "done": kind, name, bytes."""
        assert self._process.stdout
        said = []
        for line in self._process.stdout:
            said.append(line.decode().strip())
            if said[-1] == "done":
                words = [text.split() for text in said]
                return [(w[0], w[1], int(w[2])) for w in words if len(w) == 3]
        raise ToolError("MicroPython has ended: " + " / ".join(said[-3:]))

    def ask(self) -> list[tuple[str, str, int]]:
        """What it has to say while it serves."""
        assert self._process.stdin
        self._process.stdin.write(b"?")
        self._process.stdin.flush()
        return self.rows()

    def connect(self, flags: int = _CLEAN) -> socket.socket:
        """A client that stays until the end."""
        client = socket.create_connection(self._address, _PATIENCE_S)
        self._clients.append(client)
        number = 0x3030 + len(self._clients)
        client.sendall(bytes.fromhex(_CONNECT.format(flags=flags, number=number)))
        if not client.recv(4).startswith(_CONNACK):
            raise ToolError("the broker takes no client")
        return client

    def leave_session(self) -> None:
        """Connect and disconnect: a session stays, and it has no connection."""
        client = self.connect(_KEPT)
        client.sendall(_DISCONNECT)
        while client.recv(1):
            pass


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as server:
        return int(server.getsockname()[1])
