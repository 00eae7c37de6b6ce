"""The broker on 32-bit MicroPython in a child process that prints how much heap it uses."""

import contextlib
import re
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from slotmq_tools import micropython
from slotmq_tools.errors import ToolError
from slotmq_tools.pack import mpy
from slotmq_tools.ports import LOOPBACK, free_port

MEASURE = Path(__file__).with_name("measure_micropython.py")
SERVE = Path(__file__).with_name("serve_micropython.py")
SERVE_FLASH = Path(__file__).with_name("serve_flash_micropython.py")
_LIB = Path("lib")
_TIMEOUT_S = 30.0
# CONNECT at level 4 without keep-alive, and the client id "heap" with two digits
_CONNECT = "1012 0004 4d515454 04 {flags:02x} 0000 0006 68656170 {number:04x}"
_CONNACK = bytes.fromhex("2002")
_DISCONNECT = bytes.fromhex("e000")
_CLEAN, _PERSISTENT = 2, 0
_NUMBERED = re.compile(r"^\w+ .* -?\d+$")


class Process:
    """A MicroPython process, and clients of the broker in it.

    The script gets board, host and port. When it listens, and for each order, it prints lines of
    kind, name and number, and "done" at the end. The code is in a folder with the same name as on
    a board, since the path of each module is in the heap. The process runs there, and `conf`, if
    given, is a file there."""

    def __init__(
        self,
        script: Path,
        board: str,
        heap: int,
        *imports: Path,
        packed: bool = True,
        conf: str = "",
    ) -> None:
        self.address = (LOOPBACK, free_port())
        target = micropython.find(32)
        options = ["-X", f"heapsize={heap}", str(script), board, *map(str, self.address)]
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)
        if conf:
            Path(self._folder.name, "conf").write_text(conf)
            options.append("conf")
        Path(self._folder.name, "lib").symlink_to(mpy.build_for(target, packed))
        self._process = subprocess.Popen(
            [*target.start, *options],
            cwd=self._folder.name,
            env=micropython.environment(_LIB, *imports),
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
        self._folder.cleanup()

    def rows(self) -> list[tuple[str, str, int]]:
        """The lines before "done": kind, name, number."""
        assert self._process.stdout
        lines = []
        for line in self._process.stdout:
            lines.append(line.decode().strip())
            if lines[-1] == "done":
                return [_row(text) for text in lines if _NUMBERED.search(text)]
        raise ToolError("MicroPython has ended: " + " / ".join(lines[-5:]))

    def ask(self, order: bytes = b"?") -> list[tuple[str, str, int]]:
        """The answer to an order of one byte."""
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # rows() raises with the reason
            self._process.stdin.write(order)
            self._process.stdin.flush()
        return self.rows()

    def connect(self, flags: int = _CLEAN) -> socket.socket:
        """Connect a client, which stays until the end."""
        client = socket.create_connection(self.address, _TIMEOUT_S)
        self._clients.append(client)
        number = 0x3030 + len(self._clients)
        client.sendall(bytes.fromhex(_CONNECT.format(flags=flags, number=number)))
        if not client.recv(4).startswith(_CONNACK):
            raise ToolError("the broker refused a client")
        return client

    def leave_session(self) -> None:
        """Connect and disconnect, so that a session without a connection stays."""
        client = self.connect(_PERSISTENT)
        client.sendall(_DISCONNECT)
        while client.recv(1):
            pass


def _row(text: str) -> tuple[str, str, int]:
    kind, *name, number = text.split()
    return kind, " ".join(name), int(number)
