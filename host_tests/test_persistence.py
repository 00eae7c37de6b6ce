"""`persistence true`: what was acknowledged is there after the process was killed."""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from slotmq_tools import cli

from .program import Run, Start, conf
from .wire import codec
from .wire.client import Client
from .wire.process import free_port

Keep = Callable[..., tuple[Run, tuple[str, int]]]
Come = Callable[..., Client]
PAYLOAD = b"x" * 1200  # more than an outgoing buffer of a small board


@pytest.fixture
def keep(tmp_path: Path, start: Start, board: str) -> Keep:
    """Starts the broker, each time with the same journal; its address."""
    port = free_port()

    def start_again(*lines: str) -> tuple[Run, tuple[str, int]]:
        where = f"persistence_location {tmp_path}/"
        path = conf(
            tmp_path,
            f"listener {port} 127.0.0.1",
            "persistence true",
            "allow_anonymous true",
            where,
            *lines,
        )
        run = start("-c", path, "--board", board)
        run.headline()
        return run, ("127.0.0.1", port)

    return start_again


@pytest.fixture
def come() -> Iterator[Come]:
    """Connects clients with kept sessions."""
    clients: list[Client] = []

    def connect(address: tuple[str, int], client_id: str, *, present: bool = False) -> Client:
        client = Client(address)
        clients.append(client)
        answer = client.connect(codec.connect(client_id, clean=False))
        assert answer == codec.Connack(present, 0)
        return client

    yield connect
    for client in clients:
        client.sock.close()


@pytest.fixture(params=["HOST", "RPI_PICO_W"])
def board(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def kill(run: Run) -> None:
    """As a power cut: nobody is told, the broker's own process least of all."""
    family = [psutil.Process(run.process.pid)]
    family += family[0].children(recursive=True)
    for process in reversed(family):
        os.kill(process.pid, signal.SIGKILL)
    run.process.wait()


def test_sessions_messages_and_retained_ones(keep: Keep, come: Come) -> None:
    run, address = keep()
    reader = come(address, "reader")
    reader.subscribe("t/#", qos=2)
    reader.drop()
    publisher = come(address, "publisher")
    publisher.publish("t/1", PAYLOAD, 1)
    publisher.publish("t/2", b"two", 2)
    publisher.publish("r/x", b"retained", 1, retain=True)
    publisher.send(codec.publish("t/3", b"half", 2, 77))
    publisher.expect(codec.Ack(codec.PUBREC, 77))
    kill(run)
    run, address = keep()
    publisher = come(address, "publisher", present=True)
    publisher.send(codec.publish("t/3", b"half", 2, 77, dup=True))
    publisher.expect(codec.Ack(codec.PUBREC, 77))
    publisher.release(77)
    reader = come(address, "reader", present=True)
    reader.receive("t/1", PAYLOAD, 1, dup=True)
    reader.receive("t/2", b"two", 2, dup=True)
    reader.receive("t/3", b"half", 2, dup=True)
    reader.subscribe("r/+", qos=1)
    reader.receive("r/x", b"retained", 1, retain=True)
    run.stop()
    run, address = keep()
    assert come(address, "reader", present=True).receive_all() == []
    run.stop()


def test_inspect_shows_it(keep: Keep, come: Come, tmp_path: Path) -> None:
    run, address = keep()
    reader = come(address, "reader")
    reader.subscribe("t/[x]/+", qos=1)
    reader.drop()
    come(address, "publisher").publish("t/[x]/x", b"waits", 1, retain=True)
    kill(run)
    file = tmp_path / "slotmq.db"
    shown = CliRunner().invoke(cli.main, ["inspect", str(file)])
    assert shown.exit_code == 0, shown.output
    for text in ("reader", "publisher", "t/[x]/+", "t/[x]/x", "waits", "generation"):
        assert text in shown.output
    out = tmp_path / "out.sqlite"
    assert (
        CliRunner().invoke(cli.main, ["inspect", str(file), "--sqlite", str(out)]).exit_code == 0
    )
    with sqlite3.connect(out) as database:
        assert database.execute("SELECT client_id, filter, qos FROM subs").fetchall() == [
            ("reader", "t/[x]/+", 1)
        ]
        found = database.execute("SELECT client_id, direction, qos, payload FROM messages")
        assert found.fetchall() == [("reader", "out", 1, b"waits")]
        assert database.execute("SELECT topic FROM retain").fetchall() == [("t/[x]/x",)]
    database.close()


def test_a_damaged_file_is_set_aside_and_said_aloud(
    keep: Keep, come: Come, tmp_path: Path
) -> None:
    run, address = keep()
    come(address, "kept").subscribe("t", qos=1)
    kill(run)
    file = tmp_path / "slotmq.db"
    data = bytearray(file.read_bytes())
    data[20] ^= 1  # in HEAD, the first record
    file.write_bytes(data)
    run, address = keep()
    come(address, "kept", present=False)
    assert "damaged" in run.everything()
    (damaged,) = tmp_path.glob("slotmq.db.damaged-*")
    assert damaged.read_bytes() == data
    run.stop()
