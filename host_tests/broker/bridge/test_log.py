"""What the log says of bridges whose other ends refuse, close, reset or say nothing."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from slotmq_tools.ports import free_port

from ..wire.process import BrokerProcess

ACCEPTED = b"\x20\x02\0\0"
# The name of each bridge: what its other end answers to CONNECT, how it closes then (None: not at
# all), and what the log says of it.
ENDS = {
    "closes": (b"", "close", "cannot connect to {} (closed there before CONNACK)."),
    "resets": (b"", "reset", "cannot connect to {} (reset there)."),
    "silent": (b"", None, "cannot connect to {} (no CONNACK in 1 s)."),
    "http": (b"HTTP/1.1 400 \r\n", None, "cannot connect to {} (its answer is no CONNACK)."),
    "login": (
        b"\x20\x02\0\4",
        "close",
        "refused by {} (return code 4, bad user name or password).",
    ),
    "rights": (b"\x20\x02\0\5", None, "refused by {} (return code 5, not authorized)."),
    "leaves": (ACCEPTED, "close", "lost {} (closed there)."),
    "breaks": (ACCEPTED, "reset", "lost {} (reset there)."),
    "wrong": (ACCEPTED + b"\x10\0", None, "lost {} (protocol error)."),
    "frozen": (ACCEPTED, None, "lost {} (nothing has come for 3 s: keepalive_interval)."),
}
NAMES = {  # where there is no name server, that is the reason
    "nobody": "cannot connect to {} (refused).",
    "unknown": "cannot connect to {} (no ",
}


class Server:
    """Accepts bridges, and answers as ENDS says."""

    def __init__(self, answer: bytes, close: str | None) -> None:
        self._answer, self._close = answer, close
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # it is closed at the end
            while True:
                sock, _ = self._listener.accept()
                self._open.append(sock)
                sock.recv(1000)
                sock.sendall(self._answer)
                if self._close == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if self._close:
                    sock.close()

    def close(self) -> None:
        for sock in (self._listener, *self._open):
            sock.close()


@pytest.fixture
def servers() -> Iterator[dict[str, Server]]:
    found = {name: Server(answer, close) for name, (answer, close, _) in ENDS.items()}
    yield found
    for server in found.values():
        server.close()


def has_said(broker: BrokerProcess, line: str) -> bool:
    return line in broker.complaints()


def test_it_names_the_bridge_the_address_and_the_reason(
    servers: dict[str, Server], tmp_path: Path, runtime: str
) -> None:
    where = {name: f"127.0.0.1:{server.port}" for name, server in servers.items()}
    where |= {"nobody": f"127.0.0.1:{free_port()}", "unknown": "no-such-host.invalid:1883"}
    text = "log_type all\nconnect_timeout 1\n"
    for name, address in where.items():
        text += f"connection {name}\naddress {address}\ntopic a\nremote_clientid {name}\n"
        text += "keepalive_interval 2\nrestart_timeout 60\n"
    here = BrokerProcess(runtime, text, tmp_path)
    texts = {name: text for name, (_, _, text) in ENDS.items()} | NAMES
    for name, text in texts.items():
        line = f"Bridge '{name}': {text.format(where[name])}"
        here.wait_for(partial(has_said, here, line), line)
    said = here.complaints()
    here.stop()
    # Each end is said once, and by no line about a client or a connection
    for name, address in where.items():
        about = [line for line in said.splitlines() if address in line]
        ended = [line for line in about if "closed:" in line or "disconnected:" in line]
        assert ended == [], name
        assert sum("the next attempt" not in line for line in about) <= 3, about
