"""The command `slotmq run`: a process that starts, listens, obeys signals and ends."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from .wire.process import free_port

TIMEOUT_S = 30
CONNECT = bytes.fromhex("100c 0004 4d515454 04 02 003c 0000")  # no client id, clean
CONNACK = bytes.fromhex("2002 0000")
SUBSCRIBE = bytes.fromhex("8208 0001 0003 612f62 00")  # to a/b
SUBACK = bytes.fromhex("9003 0001 00")

IMPLEMENTATION = {
    "cpython": r"CPython \d+\.\d+\.\d+ \(64-bit\), board {board}, heap without a limit",
    "micropython": r"MicroPython \d+\.\d+\.\d+ \(32-bit\), board {board}, heap {heap} KB",
}


class Run:
    """The command, running; its output goes to files."""

    def __init__(self, folder: Path, runtime: str, *options: object) -> None:
        self.output = folder / "stdout"
        self.errors = folder / "stderr"
        command = [sys.executable, "-m", "slotmq_tools.cli", "run", "--runtime", runtime]
        with self.output.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [*command, *map(str, options)], stdout=output, stderr=errors
            )

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what}: {self.everything()}"
            time.sleep(0.01)

    def headline(self) -> str:
        """The line that says where it listens, once it is there."""
        self.wait_for(lambda: "\n" in self.output.read_text() or self.ended(), "its first line")
        lines = self.output.read_text().splitlines()
        assert lines, self.everything()
        return lines[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it in order, and without a complaint."""
        self.process.send_signal(number)
        assert self.process.wait(TIMEOUT_S) == 0, self.everything()
        assert "Traceback" not in self.everything()

    def refusal(self) -> tuple[int, str]:
        """The status of a start that is refused, and the one line about it."""
        status = self.process.wait(TIMEOUT_S)
        assert self.output.read_text() == ""
        (line,) = self.errors.read_text().splitlines()
        return status, line

    def ended(self) -> bool:
        return self.process.poll() is not None

    def everything(self) -> str:
        return self.output.read_text() + self.errors.read_text()


Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path, runtime: str) -> Iterator[Start]:
    runs: list[Run] = []

    def start_one(*options: object) -> Run:
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(Run(folder, runtime, *options))
        return runs[-1]

    yield start_one
    for run in runs:
        run.process.kill()
        run.process.wait()


def conf(folder: Path, *lines: str) -> Path:
    path = folder / "slotmq.conf"
    path.write_text("\n".join(lines) + "\n")
    return path


def exchange(address: tuple[str, int], *pairs: tuple[bytes, bytes]) -> socket.socket:
    """Connect, send the first of each pair and receive the second."""
    sock = socket.create_connection(address, timeout=TIMEOUT_S)
    for sent, wanted in pairs:
        sock.sendall(sent)
        received = b""
        while len(received) < len(wanted):
            received += sock.recv(100) or b"the end"
        assert received == wanted
    return sock


def serves(host: str, port: int) -> bool:
    """Does a client get in there? False where nobody listens."""
    try:
        exchange((host, port), (CONNECT, CONNACK)).close()
    except ConnectionRefusedError:
        return False
    return True


# The start


@pytest.mark.parametrize(
    ("board", "options", "heap"),
    [
        ("HOST", (), 65536),
        ("RPI_PICO_W", (), 160),
        ("RPI_PICO_W", ("--heap", 200), 200),
    ],
)
def test_it_says_in_one_line_what_runs_and_where(
    board: str, options: Sequence[object], heap: int, runtime: str, start: Start
) -> None:
    if runtime == "cpython":  # which has no --heap
        options = ()
    port = free_port()
    run = start("-p", port, "--board", board, *options)
    what = IMPLEMENTATION[runtime].format(board=board, heap=heap)
    where = rf"127\.0\.0\.1:{port}, \[::1\]:{port}"
    line = rf"slotmq \d+\.\d+\.\d+ on {what}, listening on {where}"
    assert re.fullmatch(line, run.headline())
    run.stop()
    assert len(run.output.read_text().splitlines()) == 1


def test_without_a_configuration_it_serves_loopback_only(start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    assert serves("127.0.0.1", port)
    assert serves("::1", port)
    assert not serves(other_address(), port)


def other_address() -> str:
    """An address of this machine that is not 127.0.0.1."""
    return "127.0.0.2"  # all of 127/8 is, on Linux


def test_an_address(start: Start) -> None:
    port = free_port()
    assert start("-p", port, "--host", "127.0.0.2").headline().endswith(f" 127.0.0.2:{port}")
    assert serves("127.0.0.2", port)
    assert not serves("127.0.0.1", port)


def test_a_listener_without_an_address_serves_all(start: Start, tmp_path: Path) -> None:
    port = free_port()
    run = start("-c", conf(tmp_path, f"listener {port}", "allow_anonymous true"))
    assert run.headline().endswith(f" listening on 0.0.0.0:{port}, [::]:{port}")
    for host in ("127.0.0.1", "127.0.0.2", "::1"):
        assert serves(host, port)
    run.stop()


def test_several_listeners(start: Start, tmp_path: Path) -> None:
    first, second, third = free_port(), free_port(), free_port()
    lines = f"listener {first} 127.0.0.1", f"listener {second} ::1", "allow_anonymous true"
    run = start("-c", conf(tmp_path, *lines), "-p", third)
    where = f"127.0.0.1:{first}, [::1]:{second}, 127.0.0.1:{third}, [::1]:{third}"
    assert run.headline().endswith(f" listening on {where}")
    for address in (("127.0.0.1", first), ("::1", second), ("127.0.0.1", third)):
        assert serves(*address)
    assert not serves("::1", first)


def test_a_port_that_the_configuration_has_adds_nothing(start: Start, tmp_path: Path) -> None:
    port = free_port()
    run = start("-c", conf(tmp_path, f"listener {port} 127.0.0.1"), "-p", port)
    assert run.headline().endswith(f" listening on 127.0.0.1:{port}")


def test_a_listener_lets_nobody_in_that_has_no_name(start: Start, tmp_path: Path) -> None:
    port = free_port()
    start("-c", conf(tmp_path, f"listener {port}")).headline()
    not_authorized = bytes.fromhex("2002 0005")
    exchange(("127.0.0.1", port), (CONNECT, not_authorized)).close()


# A start that is refused


def test_a_bad_configuration(start: Start, tmp_path: Path) -> None:
    path = conf(tmp_path, "# mine", "max_qos 3")
    line = f"slotmq: {path}:2: max_qos: expected a number from 0 to 2"
    assert start("-c", path).refusal() == (3, line)


def test_a_missing_configuration(start: Start, tmp_path: Path) -> None:
    status, line = start("-c", tmp_path / "none").refusal()
    assert status == 3
    assert str(tmp_path / "none") in line


def test_more_than_the_table_holds(start: Start, tmp_path: Path) -> None:
    path = conf(tmp_path, "limit inflight 10", "max_inflight_messages 11")
    status, line = start("-c", path).refusal()
    assert (status, line.partition(": expected ")[2]) == (3, "at most 10, see limit inflight")


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_an_address_in_use(host: str, shown: str, start: Start) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        status, line = start("-p", port).refusal()
    assert status == 1
    assert line.startswith(f"slotmq: cannot listen on {shown}:{port}: ")


def test_an_address_of_no_machine(start: Start) -> None:
    status, line = start("--host", "no.such.host.invalid").refusal()
    assert status == 1
    assert "no.such.host.invalid:1883" in line


def test_tables_that_do_not_fit_the_heap(runtime: str, start: Start, tmp_path: Path) -> None:
    path = conf(tmp_path, f"listener {free_port()}", "limit message_bytes 100000")
    run = start("-c", path, "--board", "RPI_PICO_W")
    if runtime == "cpython":  # which has no fixed heap
        assert "listening" in run.headline()
        return
    status, line = run.refusal()
    assert status == 1
    assert re.search(r"tables take \d{6} bytes .* lower the limits of messages \(\d{6}\)", line)


# While it runs


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order(number: signal.Signals, start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    with exchange(("127.0.0.1", port), (CONNECT, CONNACK)) as client:
        run.stop(number)
        assert client.recv(1) == b""
    assert not serves("127.0.0.1", port)


def test_it_starts_again_at_once_on_the_same_port(start: Start) -> None:
    port = free_port()
    for _ in range(2):
        run = start("-p", port)
        run.headline()
        client = exchange(("127.0.0.1", port), (CONNECT, CONNACK))
        run.stop()
        client.close()


def test_sighup_reloads_what_can_change_and_says_what_cannot(start: Start, tmp_path: Path) -> None:
    port = free_port()
    lines = f"listener {port} 127.0.0.1", "allow_anonymous true"
    path = conf(tmp_path, *lines)
    run = start("-c", path)
    run.headline()
    assert serves("127.0.0.1", port)
    conf(tmp_path, lines[0], "allow_anonymous false", "qos2_delivery release")
    run.process.send_signal(signal.SIGHUP)
    run.wait_for(lambda: "new start" in run.errors.read_text(), "what cannot change")
    errors = run.errors.read_text()
    assert "changed: allow_anonymous.\n" in errors
    assert "changes: qos2_delivery.\n" in errors
    exchange(("127.0.0.1", port), (CONNECT, bytes.fromhex("2002 0005"))).close()
    run.stop()


def test_a_reload_of_a_bad_file_changes_nothing(start: Start, tmp_path: Path) -> None:
    port = free_port()
    listener = f"listener {port} 127.0.0.1"
    run = start("-c", conf(tmp_path, listener, "allow_anonymous true"))
    run.headline()
    conf(tmp_path, listener, "allow_anonymous maybe")
    run.process.send_signal(signal.SIGHUP)
    run.wait_for(lambda: "2: allow_anonymous: expected true or false" in run.everything(), "it")
    assert serves("127.0.0.1", port)
    run.stop()


def test_sigusr2_prints_the_subscription_tree(start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    with exchange(("127.0.0.1", port), (CONNECT, CONNACK), (SUBSCRIBE, SUBACK)):
        run.process.send_signal(signal.SIGUSR2)
        run.wait_for(lambda: "a" in run.output.read_text().partition("\n")[2], "the tree")
        run.stop()


def test_sigusr1_is_for_a_journal(start: Start) -> None:
    port = free_port()
    run = start("-p", port)
    run.headline()
    run.process.send_signal(signal.SIGUSR1)
    assert serves("127.0.0.1", port)
    run.stop()


def test_the_pid_file_names_the_process_that_takes_signals(start: Start, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    path = conf(tmp_path, f"listener {free_port()} 127.0.0.1", f"pid_file {pid_file}")
    run = start("-c", path)
    run.headline()
    assert pid_file.read_text() == f"{run.process.pid}\n"
    run.stop()
    assert not pid_file.exists()


def test_verbose_logs_every_type(start: Start, tmp_path: Path) -> None:
    port = free_port()
    log = tmp_path / "log"
    lines = f"listener {port}", "allow_anonymous true", f"log_dest file {log}", "log_type none"
    path = conf(tmp_path, *lines)
    run = start("-c", path, "-v")
    run.headline()
    assert serves("127.0.0.1", port)
    run.wait_for(lambda: "connected" in log.read_text(), "a line in the log")
    run.stop()
    assert re.fullmatch(r"(\d{10}: .*\n)+", log.read_text())
    assert run.errors.read_text() == ""
