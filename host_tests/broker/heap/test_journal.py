"""Messages of persistent sessions allocate nothing, and a full journal is restored."""

import itertools
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.codec import Ack
from host_tests.broker.wire5 import client as client5
from host_tests.broker.wire5 import codec as codec5
from host_tests.support.program import Run, conf
from slotmq_tools.ports import free_port

from .test_boards import Board
from .watched import HEAP, Watched, assert_restored

UNPACKED = 56 * 1024  # heap for what is not packed here: modules of the journal, their numbers
BURST = 12
START_S = 5.0  # of an interpreter with a board's full journal; the restore takes a tenth


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched(HEAP + UNPACKED, conf="journal") as process:
        yield process


class Persistent:
    """A publisher and a reader with persistent sessions."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._ids = itertools.cycle(range(1, 60000))
        self.publisher, self.reader = Client(address), Client(address)
        for client, name in ((self.publisher, "publisher"), (self.reader, "reader")):
            assert client.connect(codec.connect(name, clean=False)).code == 0
        self.reader.subscribe("t/#", qos=2)
        self.reader.receive_all()  # retained messages

    def burst(self, qos: int, retain: bool = False) -> None:
        """BURST messages with all acknowledgements, on both sides."""
        ids = [next(self._ids) for _ in range(BURST)]
        self.publisher.send(
            b"".join(codec.publish(f"t/{n % 7}", b"x" * 64, qos, n, retain=retain) for n in ids)
        )
        if qos == 1:
            self._expect(codec.PUBACK, ids)
        else:
            self._expect(codec.PUBREC, ids)
            self.publisher.send(b"".join(codec.ack(codec.PUBREL, n) for n in ids))
            self._expect(codec.PUBCOMP, ids)
        for n in ids:
            self.reader.receive(f"t/{n % 7}", b"x" * 64, qos)

    def _expect(self, kind: int, ids: list[int]) -> None:
        for packet_id in ids:
            self.publisher.expect(Ack(kind, packet_id))

    def close(self) -> None:
        self.publisher.sock.close()
        self.reader.sock.close()


@pytest.fixture
def traffic(watched: Watched) -> Iterator[Persistent]:
    running = Persistent(watched.address)
    yield running
    running.close()
    watched.alone()


def test_messages_of_persistent_sessions_allocate_nothing(
    watched: Watched, traffic: Persistent
) -> None:
    traffic.burst(1, retain=True)
    before = watched.unloaded()
    with watched.locked() as seen:
        for _ in range(10):
            traffic.burst(1)
            traffic.burst(2)
            traffic.burst(1, retain=True)
    after = watched.unloaded()
    assert seen["changed"] == 0
    assert after["commits"] - before["commits"] > 60
    assert after["generation"] == before["generation"]  # a compaction allocates


def test_compactions_free_what_they_allocate(watched: Watched, traffic: Persistent) -> None:
    traffic.burst(1, retain=True)
    before = watched.unloaded()
    for _ in range(60):
        for qos in (1, 2):
            traffic.burst(qos)
    after = watched.unloaded()
    assert after.pop("generation") > before.pop("generation")
    assert after.pop("commits") > before.pop("commits")
    assert_restored(before, after)


def test_a_full_journal_starts_in_the_heap_of_a_pico_w(tmp_path: Path) -> None:
    """All tables are full: sessions, subscriptions, queues, retained messages, packet ids."""
    port = free_port()
    lines = (f"listener {port} 127.0.0.1", "persistence true", "allow_anonymous true")
    all_kept = "when_full sessions drop_oldest"  # as many sessions as there are slots
    path = conf(tmp_path, *lines, f"persistence_location {tmp_path}/", all_kept)

    def start() -> Run:
        run = Run(tmp_path, "micropython", "-c", path, "--board", "RPI_PICO_W")
        run.headline()
        return run

    run = start()
    address = ("127.0.0.1", port)
    fill(address)
    grow(run, address, tmp_path / "slotmq.db")
    run.kill()
    begun = time.monotonic()
    run = start()
    assert time.monotonic() - begun < START_S
    reader = Client(("127.0.0.1", port))
    assert reader.connect(codec.connect("0" * 60, clean=False)).session_present
    assert len(reader.receive_all()) >= 3
    reader.sock.close()
    run.stop()


def test_what_is_loaded_on_demand_fits_with_a_journal_too(tmp_path: Path) -> None:
    """The largest demand at once: clients of 5.0 with persistent sessions connect while $SYS is
    published, with the commits of each, and with compactions."""
    lines = ("persistence true", "allow_anonymous true", f"persistence_location {tmp_path}/")
    path = conf(tmp_path, *lines, "sys_interval 1")
    board = Board("RPI_PICO_W", tmp_path, "-c", str(path))
    clients = []
    try:
        for _ in range(3):
            for n in range(4):
                client = client5.Client(board.address)
                clients.append(client)
                packet = codec5.connect(f"five{n}", clean=False, session_expiry=600)
                assert client.connect(packet).code == 0
                client.subscribe("$SYS/#", f"own/{n}", qos=1)
                assert len(client.receive_all()) > 20
            for _ in range(150):
                clients[-1].publish("r", b"r" * 300, 1, retain=True)
            for client in clients[-4:]:
                client.drop()
        assert board.alive(), board.complaints()
        assert "Not done" not in board.complaints()
    finally:
        for client in clients:
            client.sock.close()
        board.close()


def grow(run: Run, address: tuple[str, int], file: Path) -> None:
    """Let the journal grow to nearly the length at which it is compacted: 64 KB and four times
    what it holds."""
    ends = Client(address)  # its messages make free space
    assert ends.connect(codec.connect("6" * 60)).code == 0
    ends.drop()
    run.process.send_signal(signal.SIGUSR1)
    run.wait_for(lambda: "The journal is rewritten" in run.everything(), "its line")
    long = 60_000 + 4 * file.stat().st_size
    assert long > 80_000
    publisher = Client(address)
    assert publisher.connect(codec.connect("publisher", clean=False)).session_present
    for n in itertools.count():
        publisher.publish(f"r/{n % 30}", b"R" * 60, 1, retain=True)
        if file.stat().st_size > long:
            break
        assert n < 2000
    assert n > 300
    publisher.sock.close()


def fill(address: tuple[str, int]) -> None:
    for n in range(7):
        client = Client(address)
        assert client.connect(codec.connect(f"{n}" * 60, clean=False)).code == 0
        for k in range(3):
            client.subscribe(f"t/{n}/{k}/" + "y" * 24, qos=2)
        client.drop()
    publisher = Client(address)
    assert publisher.connect(codec.connect("publisher", clean=False)).code == 0
    for n in range(30):
        publisher.publish(f"r/{n}", b"r" * 60, 1, retain=True)
        publisher.send(codec.publish(f"ids/{n}", b"", 2, 1000 + n))
        publisher.expect(Ack(codec.PUBREC, 1000 + n))
    for n in range(60):
        publisher.publish(f"t/{n % 7}/{n % 3}/" + "y" * 24, b"m" * 200, 1)
    publisher.sock.close()
