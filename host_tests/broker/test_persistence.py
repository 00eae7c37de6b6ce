"""`persistence true`: what was acknowledged survives a kill of the process."""

import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_tools import cli
from slotmq_tools.ports import free_port

from ..support.program import Run, Start, conf
from .wire import codec
from .wire.client import Client

Keep = Callable[..., tuple[Run, tuple[str, int]]]
Come = Callable[..., Client]
PAYLOAD = b"x" * 1200  # more than an outgoing buffer of a small board


@pytest.fixture
def keep(tmp_path: Path, start: Start, board: str) -> Keep:
    """Starts the broker, each time with the same journal. -> its address"""
    port = free_port()

    def start_again(*lines: str) -> tuple[Run, tuple[str, int]]:
        always = [f"listener {port} 127.0.0.1", "persistence true", "allow_anonymous true"]
        path = conf(tmp_path, *always, f"persistence_location {tmp_path}/", *lines)
        run = start("-c", path, "--board", board)
        run.headline()
        return run, ("127.0.0.1", port)

    return start_again


@pytest.fixture
def come() -> Iterator[Come]:
    """Connects clients with persistent sessions."""
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


def test_a_board_with_a_bridge_starts_again(keep: Keep, come: Come, board: str) -> None:
    """What reads the journal leaves the heap before what begins the next one."""
    bridge = ("connection up", "address 127.0.0.1:9", "topic s/# out 1", "limit queued 40")
    lines = (
        ("limit message_bytes 4096", "max_session_share 75", *bridge)
        if board != "HOST"
        else bridge
    )
    run, address = keep(*lines)
    come(address, "reader").subscribe("t/#", qos=1)
    for _ in range(2):
        run.stop()
        run, address = keep(*lines)
        come(address, "reader", present=True)


def test_sessions_and_messages_survive_a_kill(keep: Keep, come: Come) -> None:
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
    run.kill()
    run, address = keep()
    publisher = come(address, "publisher", present=True)
    publisher.send(codec.publish("t/3", b"half", 2, 77, dup=True))
    publisher.expect(codec.Ack(codec.PUBREC, 77))
    publisher.release(77)
    reader = come(address, "reader", present=True)
    reader.receive("t/1", PAYLOAD, 1)
    reader.receive("t/2", b"two", 2)
    reader.receive("t/3", b"half", 2)
    reader.subscribe("r/+", qos=1)
    reader.receive("r/x", b"retained", 1, retain=True)
    run.stop()
    run, address = keep()
    assert come(address, "reader", present=True).receive_all() == []
    run.stop()


@pytest.mark.parametrize("is_same", [True, False], ids=["same port", "another port"])
def test_a_second_broker_leaves_the_journal_alone(
    keep: Keep, come: Come, start: Start, tmp_path: Path, board: str, *, is_same: bool
) -> None:
    run, address = keep()
    publisher = come(address, "publisher")
    publisher.publish("r/1", b"early", 1, retain=True)
    path = tmp_path / "slotmq.conf"
    if not is_same:
        text = path.read_text().replace(str(address[1]), str(free_port()))
        path = tmp_path / "other.conf"
        path.write_text(text)
    second = start("-c", path, "--board", board)
    assert second.process.wait(30) == 1
    key = "listener" if is_same else "persistence_location"
    assert key in second.everything().splitlines()[-1]
    publisher.publish("r/2", b"late", 1, retain=True)
    run.kill()
    run, address = keep()
    reader = come(address, "reader")
    reader.subscribe("r/2", qos=1)
    reader.receive("r/2", b"late", 1, retain=True)
    run.stop()


@pytest.mark.parametrize(
    ("name", "error"),
    [("none/such/", "/none/such/"), ("file", "/file/slotmq.db ([Errno 20]")],
    ids=["missing", "no folder"],
)
def test_a_location_that_is_no_folder_is_refused(
    name: str, error: str, start: Start, tmp_path: Path, board: str
) -> None:
    (tmp_path / "file").touch()
    where = f"persistence_location {tmp_path / name}"
    path = conf(tmp_path, f"listener {free_port()} 127.0.0.1", "persistence true", where)
    run = start("-c", path, "--board", board)
    assert run.process.wait(30) == 3
    line = run.everything().splitlines()[-1]
    assert line.startswith(f"slotmq: {path}:3: persistence_location: ")
    assert f"{tmp_path}{error}" in line
    assert ".lock" not in line


def test_inspect_shows_the_journal(keep: Keep, come: Come, tmp_path: Path) -> None:
    run, address = keep()
    reader = come(address, "reader")
    reader.subscribe("t/[x]/+", qos=1)
    reader.drop()
    come(address, "publisher").publish("t/[x]/x", b"waits", 1, retain=True)
    run.kill()
    file = tmp_path / "slotmq.db"
    shown = CliRunner().invoke(cli.main, ["inspect", str(file)])
    assert shown.exit_code == 0, shown.output
    for text in ("reader", "publisher", "t/[x]/+", "t/[x]/x", "waits", "generation"):
        assert text in shown.output
    out = tmp_path / "out.sqlite"
    assert (
        CliRunner().invoke(cli.main, ["inspect", str(file), "--sqlite", str(out)]).exit_code == 0
    )
    with closing(sqlite3.connect(out)) as database:
        assert database.execute("SELECT client_id, filter, qos FROM subs").fetchall() == [
            ("reader", "t/[x]/+", 1)
        ]
        found = database.execute("SELECT client_id, direction, qos, payload FROM messages")
        assert found.fetchall() == [("reader", "out", 1, b"waits")]
        assert database.execute("SELECT topic FROM retain").fetchall() == [("t/[x]/x",)]


@pytest.mark.parametrize("at", [2, 20], ids=["header", "first record"])
def test_a_damaged_file_is_renamed_and_logged(
    keep: Keep, come: Come, tmp_path: Path, at: int
) -> None:
    run, address = keep()
    come(address, "kept").subscribe("t", qos=1)
    run.kill()
    file = tmp_path / "slotmq.db"
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    run, address = keep()
    come(address, "kept", present=False)
    (damaged,) = tmp_path.glob("slotmq.db.damaged-*")
    assert damaged.read_bytes() == data
    assert damaged.name in run.everything()
    run.stop()


def test_sigusr1_compacts_the_journal(keep: Keep, come: Come, tmp_path: Path) -> None:
    run, address = keep()
    publisher = come(address, "publisher")
    for n in range(100):
        publisher.publish("r", b"%d" % n, 1, retain=True)
    file = tmp_path / "slotmq.db"
    before = file.stat().st_size
    run.process.send_signal(signal.SIGUSR1)
    run.wait_for(lambda: file.stat().st_size < before / 5, "a shorter file")
    run.wait_for(lambda: f"{file.stat().st_size - 16} bytes" in run.everything(), "its line")
    run.kill()
    run, address = keep()
    again = come(address, "publisher", present=True)
    again.subscribe("r", qos=1)
    again.receive("r", b"99", 1, retain=True)
    run.stop()


def test_the_wills_of_a_killed_and_of_a_stopped_broker(keep: Keep, come: Come) -> None:
    run, address = keep()
    watcher = come(address, "watcher")
    watcher.subscribe("will", qos=1)
    watcher.drop()
    ends: list[Callable[[Run], None]] = [Run.kill, lambda run: run.stop()]
    for n, end in enumerate(ends):
        client = Client(address)
        will = codec.Will("will", b"%d" % n, 1)
        assert client.connect(codec.connect("leaver", will=will)).code == 0
        end(run)
        client.sock.close()
        run, address = keep()
    watcher = come(address, "watcher", present=True)
    for n in range(2):
        watcher.receive("will", b"%d" % n, 1)
    run.stop()


def test_with_sync_interval_a_kill_may_lose_the_last_messages(keep: Keep, come: Come) -> None:
    run, address = keep("persistence_sync interval", "autosave_interval 1")
    publisher = come(address, "publisher")
    publisher.publish("early", b"x", 1, retain=True)
    time.sleep(2)
    publisher.publish("late", b"x", 1, retain=True)
    run.kill()
    run, address = keep()
    reader = come(address, "reader")
    reader.subscribe("#", qos=1)
    reader.receive("early", b"x", 1, retain=True)
    run.stop()


def test_sys_counts_what_was_written(keep: Keep, come: Come) -> None:
    run, address = keep()
    client = come(address, "client")
    client.subscribe("$SYS/broker/journal/#")
    before = counters(client)
    assert before["full"] == before["bytes/erased"] == 0
    for n in range(20):
        client.publish("r", b"%d" % n, 1, retain=True)
    client.subscribe("$SYS/broker/journal/#")  # all of them again
    after = counters(client)
    assert after["commits"] - before["commits"] >= 20
    assert after["bytes/written"] - before["bytes/written"] > 20 * 40
    run.stop()


def counters(client: Client) -> dict[str, int]:
    found = {message.topic: int(message.payload) for message in client.publishes()}
    return {topic.removeprefix("$SYS/broker/journal/"): value for topic, value in found.items()}
