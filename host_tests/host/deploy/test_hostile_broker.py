"""Whatever answers at an address: status, harvest, live and the test of a deploy end soon, with
printable lines and a status code."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_telemetry.harvest import network
from slotmq_tools.cli import main
from slotmq_tools.deploy import mqtt_client
from slotmq_tools.errors import ToolError

from .test_hostile_board import ended_well

CONNACK = b"\x20\x02\0\0"
Serve = Callable[[socket.socket], None]


def says(*pieces: bytes) -> Serve:
    """After each packet or so of the client one piece; then it listens."""

    def serve(line: socket.socket) -> None:
        for piece in pieces:
            if not line.recv(4096):
                return
            line.sendall(piece)
        while line.recv(4096):
            pass

    return serve


def drips(begin: bytes, step: bytes) -> Serve:
    """A byte now and then, for ever."""

    def serve(line: socket.socket) -> None:
        line.recv(4096)
        line.sendall(begin)
        while True:
            line.sendall(step)
            time.sleep(0.05)

    return serve


def floods(begin: bytes, packet: Callable[[int], bytes]) -> Serve:
    def serve(line: socket.socket) -> None:
        line.recv(4096)
        line.sendall(begin)
        line.recv(4096)
        for number in range(10**9):
            line.sendall(packet(number))

    return serve


def message(topic: bytes, payload: bytes) -> bytes:
    body = len(topic).to_bytes(2, "big") + topic + payload
    size = bytes([len(body) & 127 | 128, len(body) >> 7 & 127 | 128, len(body) >> 14])
    return b"\x30" + size + body


def suback(line: socket.socket, code: bytes = b"\0") -> None:
    received = line.recv(4096)
    while received[0] & 0xF0 != 0x80:
        received = line.recv(4096)
    line.sendall(b"\x90\x03" + received[2:4] + code)


def after_suback(*packets: bytes, code: bytes = b"\0") -> Serve:
    """Connects, subscribes, and says these."""

    def serve(line: socket.socket) -> None:
        line.recv(4096)
        line.sendall(CONNACK)
        suback(line, code)
        for packet in packets:
            line.sendall(packet)
        while line.recv(4096):
            pass

    return serve


def safe_mode_for_ever(line: socket.socket) -> None:
    """No MQTT, as a board in safe mode, whose text never ends."""
    if line.recv(4096)[:1] != b"\x10":
        while True:
            line.sendall(b"x")
            time.sleep(0.05)


SERVERS: dict[str, Serve] = {
    "silent": says(),
    "closes": lambda line: None,
    "drips": drips(b"", b"\x20"),
    "drips a CONNACK": drips(b"", b"\x20\xff"),
    "drips a web page": drips(b"HTTP/1.0 200 OK\r\n", b"x"),
    "drips after CONNACK": drips(CONNACK, b"\x30"),
    "drips a long message": drips(CONNACK + b"\x30\xff\xff\xff\x7f", b"x"),
    "drips safe mode": safe_mode_for_ever,
    "SSH": says(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "CONNACK of one byte": says(b"\x20\x01\0"),
    "CONNACK of none": says(b"\x20\0"),
    "CONNACK with an unknown code": says(b"\x20\x02\0\xff"),
    "CONNACK twice": says(CONNACK, CONNACK),
    "SUBACK of nothing": says(CONNACK, b"\x90\x02\0\1"),
    "SUBACK of none": says(CONNACK, b"\x90\0"),
    "unknown packet": says(CONNACK, b"\xf0\0"),
    "code": after_suback(code=b"\x7f"),
    "topic that is no text": after_suback(message(b"$SYS/\xff", b"1")),
    "topic beyond the packet": after_suback(b"\x30\x03\xff\xff\x01"),
    "escapes": after_suback(message(b"$SYS/\x1b[2J\n", b"\x1b]0;x\x07\xff\r\n")),
    "QoS 3": after_suback(message(b"$SYS/a", b"1").replace(b"\x30", b"\x36", 1)),
    "length of five": after_suback(b"\x30\xff\xff\xff\xff\xff\x01"),
    "same topic for ever": floods(CONNACK, lambda _: message(b"$SYS/a", b"x" * 9000)),
    "topics for ever": floods(
        CONNACK + b"\x90\x03\0\1\0", lambda n: message(b"$SYS/%d" % n, b"x" * 9000)
    ),
    "heads for ever": floods(
        CONNACK + b"\x90\x03\0\1\0\x90\x03\0\2\0",
        lambda n: message(b"$SLOTMQ/record/%016x/head" % n, b"[" * 9000),
    ),
}


@contextmanager
def serving(serve: Serve) -> Iterator[tuple[str, int]]:
    """The address of a server that treats each connection so."""

    def one(line: socket.socket) -> None:
        with line, contextlib.suppress(OSError, IndexError):
            serve(line)

    def accept(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=one, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fortieth of the time."""
    for module, name, seconds in (
        (mqtt_client, "_TIMEOUT_S", 0.4), (mqtt_client, "_SYS_MAX_S", 0.8),
        (mqtt_client, "_AFTER_ACK_S", 0.1), (network, "_TIMEOUT_S", 0.4),
        (network, "_FIRST_S", 0.1), (network, "_AGAIN_S", 0.05),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, seconds)
    monkeypatch.setattr(mqtt_client.Client.wait, "__defaults__", (0.4,))


def words(command: str, folder: Path, address: str) -> list[str]:
    return {
        "status": ["status", address],
        "harvest": ["harvest", str(folder / "h"), "--broker", address],
        "live": ["telemetry", "live", str(folder / "h"), str(folder / "t"), "--once",
                 "--broker", address],
    }[command]  # fmt: skip


@pytest.mark.parametrize("command", ["status", "harvest", "live"])
@pytest.mark.parametrize("server", SERVERS)
def test_each_command_ends_in_a_line(
    tmp_path: Path, hasty: None, capfd: pytest.CaptureFixture[str], server: str, command: str
) -> None:
    with serving(SERVERS[server]) as (host, port):
        begun = time.monotonic()
        ended_well(CliRunner().invoke(main, words(command, tmp_path, f"{host}:{port}")))
    assert time.monotonic() - begun < 40
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("server", SERVERS)
def test_the_test_of_a_deploy_ends(
    hasty: None, capfd: pytest.CaptureFixture[str], server: str
) -> None:
    with serving(SERVERS[server]) as address:
        begun = time.monotonic()
        with contextlib.suppress(ToolError):
            assert mqtt_client.try_out(address, mqtt_client.Login())
    assert time.monotonic() - begun < 40
    assert "Traceback" not in capfd.readouterr().err
