"""The memory of a broker that has just started, and what `slotmq run --small` serves."""

import signal
import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from host_tests.support.program import CONNACK, CONNECT, Run, exchange
from slotmq_boards.SMALL.limits import LIMITS
from slotmq_tools.cli import main
from slotmq_tools.ports import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="VmRSS is Linux's")

# MB that are promised (docs/operate.md), and what another kernel or C library may take beside
ROOM = 1.1
AT_MOST = {(): 24 * ROOM, ("--small",): 18 * ROOM}


def resident_mb(run: Run) -> float:
    return psutil.Process(run.process.pid).memory_info().rss / 2**20


def refused(*options: str) -> str:
    outcome = CliRunner().invoke(main, ["run", *options])
    assert outcome.exit_code == 2
    return outcome.output


@pytest.mark.parametrize("options", AT_MOST)
def test_memory_on_cpython(options: tuple[str, ...], tmp_path: Path) -> None:
    run = Run(tmp_path, "cpython", "-p", free_port(), *options)
    try:
        run.headline()
        assert resident_mb(run) < AT_MOST[options]
    finally:
        run.kill()


def test_small_on_micropython_is_one_process(tmp_path: Path) -> None:
    port = free_port()
    run = Run(tmp_path, "micropython", "-p", port, "--small")
    try:
        assert "board SMALL" in run.headline()
        process = psutil.Process(run.process.pid)
        assert not process.children()
        assert resident_mb(run) < 12
        exchange(("127.0.0.1", port), (CONNECT, CONNACK)).close()
        run.stop()
    finally:
        if run.process.poll() is None:
            run.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_small_serves_its_clients_and_stops(number: signal.Signals, tmp_path: Path) -> None:
    port = free_port()
    run = Run(tmp_path, "cpython", "-p", port, "--small")
    clients = []
    try:
        run.headline()
        for _ in range(LIMITS.connections):
            clients.append(exchange(("127.0.0.1", port), (CONNECT, CONNACK)))
        run.stop(number)
    finally:
        for client in clients:
            client.close()
        if run.process.poll() is None:
            run.kill()


def test_small_in_the_background(tmp_path: Path) -> None:
    port = free_port()
    pid_file = tmp_path / "pid"
    conf = tmp_path / "slotmq.conf"
    conf.write_text(f"pid_file {pid_file}\nlog_dest none\nlimit connections 3\n")
    run = Run(tmp_path, "cpython", "-c", conf, "-p", port, "--small", "-d")
    assert run.process.wait(20) == 0
    broker = psutil.Process(int(pid_file.read_text()))
    try:
        exchange(("127.0.0.1", port), (CONNECT, CONNACK)).close()
    finally:
        broker.terminate()
        broker.wait(10)


def test_small_has_limits_of_its_own() -> None:
    assert "leave --board out" in refused("--small", "--board", "RPI_PICO_W")
