"""A board that anybody may have programmed: it speaks the raw REPL at a TCP port, and answers to
each code with what it likes."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Answer = Callable[[str], tuple[bytes, bytes]]  # of code: what it prints, and its error
ENTERED = b"raw REPL; CTRL-B to exit\r\n>"
FOREVER = b"forever"  # instead of an output: it never ends


@contextmanager
def hostile(answer: Answer) -> Iterator[str]:
    """The device of such a board."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answer), daemon=True)
        thread.start()
        try:
            yield f"socket://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def _serve(server: socket.socket, answer: Answer) -> None:
    while True:
        with suppress(ConnectionError):
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line:
                _talk(line, answer)


def _talk(line: socket.socket, answer: Answer) -> None:
    code, is_entered = b"", False
    while received := line.recv(1):
        if received == b"\x01":
            line.sendall(ENTERED)
            code, is_entered = b"", True
        elif received == b"\x04":
            if code.strip():
                _answer(line, *answer(code.decode()))
            elif is_entered:
                line.sendall(b"OK\r\nMPY: soft reboot\r\n" + ENTERED)
            code = b""
        elif received == b"\x05":  # raw paste: no
            line.recv(2)
            line.sendall(b"R\x00")
        elif received not in b"\r\x02\x03":
            code += received


def _answer(line: socket.socket, out: bytes, error: bytes) -> None:
    line.sendall(b"OK")
    while out == FOREVER:
        line.sendall(b"x" * 999)
    line.sendall(out + b"\x04" + error + b"\x04>")
