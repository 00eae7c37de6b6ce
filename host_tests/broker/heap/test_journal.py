"""Persistence takes no heap while messages of kept sessions pass, and a full journal starts."""

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
from .test_steady_state import HEAP, NOISE, Watched

UNPACKED = 40 * 1024  # heap for the journal as it was written, beside that of the board
BURST = 12
START_S = 5.0  # of an interpreter and a board's full journal; what reads it takes a tenth


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched(HEAP + UNPACKED, conf="journal") as process:
        yield process


class Kept:
    """A publisher and a reader whose sessions are kept."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._ids = itertools.cycle(range(1, 60000))
        self.publisher, self.reader = Client(address), Client(address)
        for client, name in ((self.publisher, "publisher"), (self.reader, "reader")):
            assert client.connect(codec.connect(name, clean=False)).code == 0
        self.reader.subscribe("t/#", qos=2)
        self.reader.receive_all()  # what was retained

    def burst(self, qos: int, retain: bool = False) -> None:
        """So many messages to their last acknowledgement, on both sides."""
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
def kept(watched: Watched) -> Iterator[Kept]:
    running = Kept(watched.address)
    yield running
    running.close()
    watched.alone()


def test_messages_of_kept_sessions_allocate_nothing(watched: Watched, kept: Kept) -> None:
    kept.burst(1, retain=True)
    before = watched.unloaded()
    with watched.locked() as seen:
        for _ in range(10):
            kept.burst(1)
            kept.burst(2)
            kept.burst(1, retain=True)
    after = watched.unloaded()
    assert seen["changed"] == 0
    assert after["commits"] - before["commits"] > 60
    assert after["generation"] == before["generation"]  # which would have allocated


def test_compactions_give_back_what_they_take(watched: Watched, kept: Kept) -> None:
    kept.burst(1, retain=True)
    before = watched.unloaded()
    for _ in range(60):
        for qos in (1, 2):
            kept.burst(qos)
    after = watched.unloaded()
    assert after.pop("generation") > before.pop("generation")
    assert after.pop("commits") > before.pop("commits")
    assert abs(after.pop("used") - before.pop("used")) <= NOISE
    assert after == before


def test_a_full_journal_starts_in_the_heap_of_a_pico_w(tmp_path: Path) -> None:
    """As full as its tables are: sessions, subscriptions, queues, retained messages, ids."""
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
    """The most that is there at once: kept clients of version 5 come in while $SYS is told, each
    with its commits, and compactions besides."""
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
    """Nearly so long that it would be rewritten: over 64 KB and four times what is there."""
    ends = Client(address)  # whose messages make room for those to come
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
