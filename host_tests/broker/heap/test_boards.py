"""The broker starts in a board's heap and serves as many clients as the preset allows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from host_tests.broker.wire.process import Program
from host_tests.broker.wire5 import client as client5
from host_tests.broker.wire5 import codec as codec5
from slotmq_dev.heap.measure import limits_of
from slotmq_tools import boards, micropython
from slotmq_tools.micropython import MicroPython
from slotmq_tools.pack import mpy, native
from slotmq_tools.ports import free_port
from slotmq_tools.run.launcher import BOOT

# ESP32: the heap of the stock firmware at its start.
HEAPS = {name: boards.load(name).heap_kb * 1024 for name in boards.names() if name != "HOST"}
HEAPS["ESP32_GENERIC"] = HEAPS["ESP32_GENERIC_C3"] = 112_000


def heap_of(name: str) -> int:
    """A Pico has native code in its heap, the unix port has not."""
    board = boards.load(name)
    if not board.mcu.startswith("rp2"):
        return HEAPS[name]
    return HEAPS[name] - native.on_a_board(mpy.build(board.mpy_arch))


def as_on_a_board(target: MicroPython, folder: Path) -> tuple[dict[str, str], Path]:
    """Environment and working folder; the modules are imported from a folder `lib`.

    The heap contains the path of each module, and the cache's path is longer than a board's."""
    (folder / "lib").symlink_to(mpy.build_for(target))
    return micropython.environment(Path("lib")), folder


class Board(Program):
    """The program on 32-bit MicroPython with a board's limits and heap."""

    def __init__(self, name: str, folder: Path, *more: str, heap: int = 0) -> None:
        self.limits = limits_of(name)
        self.clients: list[Client] = []
        self.address = ("127.0.0.1", free_port())
        target = micropython.find(32)
        start = [*target.start, "-X", f"heapsize={heap or heap_of(name)}"]
        environment, where = as_on_a_board(target, folder)
        super().__init__([*start, *self.program(name, folder, *more)], folder, environment, where)
        self.wait_for(lambda: self.lines, "the broker to listen")

    def program(self, name: str, folder: Path, *more: str) -> list[str]:
        """What it runs, and with which arguments."""
        host, port = self.address
        return [str(BOOT), "--board", name, "--host", host, "-p", str(port), *more]

    def connect(self, name: str) -> Client:
        client = Client(self.address)
        self.clients.append(client)
        assert client.connect(codec.connect(name)).code == 0
        return client

    def serves(self, count: int) -> None:
        """This many clients connect, and each gets messages of every QoS."""
        clients = [self.connect(f"client{n}") for n in range(count)]
        for qos in (0, 1, 2):
            for client in clients:
                client.subscribe("news", qos=qos)
            clients[0].publish("news", b"m%d" % qos, qos)
            for client in clients:
                client.receive("news", b"m%d" % qos, qos)
        assert self.alive(), self.complaints()

    def serves_sys(self, count: int) -> None:
        """The largest demand at once: a client of 5.0 connects while $SYS is published."""
        first = self.connect("first")
        first.subscribe("$SYS/#")
        assert len(first.publishes()) > 20
        for n in range(count - 1):
            client = client5.Client(self.address)
            self.clients.append(client)
            assert client.connect(codec5.connect(f"five{n}")).code == 0
            client.subscribe("$SYS/#", qos=1)
            assert len(client.receive_all()) > 20
        assert self.alive(), self.complaints()

    def close(self) -> None:
        for client in self.clients:
            client.sock.close()
        self.process.kill()
        self.process.wait()
        self._reader.join()


@pytest.fixture(params=HEAPS)
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Board]:
    running = Board(request.param, tmp_path)
    yield running
    running.close()


def test_it_serves_every_qos_to_every_client(board: Board) -> None:
    board.serves(board.limits.connections)


def test_what_is_loaded_on_demand_fits_too(board: Board) -> None:
    board.serves_sys(board.limits.connections)


def test_one_client_too_many_is_refused_with_code_3(board: Board) -> None:
    for n in range(board.limits.connections):
        board.connect(f"client{n}")
    one_more = Client(board.address)
    board.clients.append(one_more)
    assert one_more.connect(codec.connect("more")).code == 3


def test_the_largest_packet_reaches_every_client(board: Board) -> None:
    clients = [board.connect(f"client{n}") for n in range(board.limits.connections)]
    payload = bytes(range(256)) * 8
    payload = payload[: board.limits.max_packet - 16]
    for client in clients:
        client.subscribe("news", qos=1)
    for qos in (0, 1):
        clients[-1].publish("news", payload, qos)
        for client in clients:
            client.receive("news", payload, qos)


@pytest.mark.parametrize("heap", range(100_000, 130_000, 3000))
def test_a_start_that_is_refused_names_the_limit_to_lower(heap: int, tmp_path: Path) -> None:
    """From a heap with space for little more than the code to one for the tables, too."""
    target = micropython.find(32)
    port = str(free_port())
    start = [*target.start, "-X", f"heapsize={heap}", str(BOOT), "--board", "RPI_PICO_W"]
    program = Program([*start, "-p", port], tmp_path, *as_on_a_board(target, tmp_path))
    program.wait_for(lambda: program.lines or not program.alive(), "the start")
    if program.lines:
        program.process.kill()
    else:
        (line,) = program.complaints().splitlines()
        assert "message_bytes (messages" in line
        assert program.process.wait() == 1
    program.process.wait()
    program._reader.join()


def test_a_long_configuration_leaves_free_space_for_the_tables(tmp_path: Path) -> None:
    """What stays of it must not be scattered over the place of large tables."""
    conf = tmp_path / "slotmq.conf"
    lines = [f"listener {free_port()} 127.0.0.1" for _ in range(3)]
    lines += ["allow_anonymous true", "response_information answers/here", "max_keepalive 600"]
    lines += [f"log_dest file {tmp_path}/a.log", "log_type all", "max_qos 2", "sys_interval 30"]
    conf.write_text("\n".join(lines))
    target = micropython.find(32)
    heap = heap_of("RPI_PICO_W")
    start = [*target.start, "-X", f"heapsize={heap}", str(BOOT), "--board", "RPI_PICO_W"]
    environment = micropython.environment(mpy.build_for(target))
    program = Program([*start, "-c", str(conf)], tmp_path, environment)
    program.wait_for(lambda: program.lines or not program.alive(), "the start")
    assert program.lines, program.complaints()
    program.process.kill()
    program.process.wait()
    program._reader.join()
