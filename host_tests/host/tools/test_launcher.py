"""Running the broker: orders, readiness, exit status, and no orphans.

A script takes the broker's place. It notes its session and its orders in a file, since its output
is part of the tests.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slotmq_tools.ports import free_port
from slotmq_tools.run import orders

TIMEOUT_S = 20

CHILD = """\
import os, sys
def note(text):
    with open(sys.argv[1], "a") as notes:
        notes.write(text + "\\n")
note(f"session {os.getsid(0)}")
print("shown", flush=True)
if len(sys.argv) > 2:
    exec(sys.argv[2])
os.write(int(os.environ["SLOTMQ_READY_FD"]), b"!")
note("listening")
os.set_blocking(0, True)
order = True
while order and order != b"s":
    order = os.read(0, 1)
    note(f"order {order.decode()}")
note("end")
"""

LAUNCHER = """\
import os, sys
from slotmq_tools.run import daemon, launcher
background = sys.argv[1] == "-d"
ready = daemon.detach(keeps_log=True) if background else lambda: print("ready", flush=True)
command = [sys.executable, *sys.argv[2:]]
sys.exit(launcher.supervise(command, dict(os.environ), ready, relay=background))
"""


class Run:
    """A launcher whose child is the script CHILD."""

    def __init__(self, folder: Path, *child_code: str, mode: str = "-f") -> None:
        (folder / "child.py").write_text(CHILD)
        self.notes = folder / "notes"
        self.notes.touch()
        command = [sys.executable, "-c", LAUNCHER, mode, str(folder / "child.py")]
        self.process = subprocess.Popen(
            [*command, str(self.notes), *child_code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, note: str) -> None:
        wait_until(lambda: note in self.noted(), f"no {note!r} among {self.noted()}")

    def noted(self) -> list[str]:
        return self.notes.read_text().splitlines()

    def session(self) -> int:
        return int(self.noted()[0].removeprefix("session "))


def wait_until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.01)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start_one(*child_code: str, mode: str = "-f") -> Run:
        runs.append(Run(tmp_path, *child_code, mode=mode))
        return runs[-1]

    yield start_one
    for run in runs:
        run.process.kill()
        run.process.communicate()


@pytest.mark.parametrize(
    ("number", "order"),
    [
        (signal.SIGHUP, "order r"),
        (signal.SIGUSR1, "order c"),
        (signal.SIGUSR2, "order t"),
    ],
)
def test_a_signal_becomes_an_order(
    number: signal.Signals, order: str, start: Callable[..., Run]
) -> None:
    run = start()
    run.wait_for("listening")
    run.process.send_signal(number)
    run.wait_for(order)
    assert run.process.poll() is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_stop_becomes_an_order_and_the_status_is_0(
    number: signal.Signals, start: Callable[..., Run]
) -> None:
    run = start()
    run.wait_for("listening")
    run.process.send_signal(number)
    assert run.process.wait(TIMEOUT_S) == 0
    assert run.noted()[-2:] == ["order s", "end"]


def test_a_broker_that_is_told_of_an_order_that_is_not_there_does_not_wait() -> None:
    order_in, order_out = orders.pipe()
    with pytest.raises(BlockingIOError):
        os.read(order_in, 1)
    os.close(order_in)
    os.close(order_out)


def test_a_signal_before_the_broker_listens_is_not_lost(start: Callable[..., Run]) -> None:
    run = start("import time; time.sleep(0.5)")
    wait_until(lambda: bool(run.noted()), "the child never started")
    run.process.send_signal(signal.SIGTERM)
    assert run.process.wait(TIMEOUT_S) == 0
    assert run.noted()[-2:] == ["order s", "end"]


def test_other_signals_do_not_end_a_start(runtime: str) -> None:
    others = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    process = subprocess.Popen(
        [sys.executable, "-m", "slotmq_tools.entry", "--runtime", runtime, "-p", str(free_port())],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    os.set_blocking(process.stdout.fileno(), False)
    try:
        wait_until(lambda: ignores(process.pid, *others), "it does not ignore them")
        while "listening" not in (process.stdout.readline() or ""):
            for number in others:
                process.send_signal(number)
            time.sleep(0.01)
            assert process.poll() is None
        process.terminate()
        assert process.wait(2 * TIMEOUT_S) == 0
    finally:
        process.kill()
        process.communicate()


def ignores(pid: int, *numbers: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(status.partition("SigIgn:")[2].split()[0], 16)
    return all(mask >> number - 1 & 1 for number in numbers)


def test_output_comes_before_ready(start: Callable[..., Run]) -> None:
    run = start()
    run.wait_for("listening")
    run.process.terminate()
    output, _ = run.process.communicate(timeout=TIMEOUT_S)
    assert output == "shown\nready\n"


def test_the_child_has_a_session_of_its_own(start: Callable[..., Run]) -> None:
    run = start()
    run.wait_for("listening")
    assert run.session() not in (os.getsid(0), os.getsid(run.process.pid))


def test_the_broker_stops_if_its_launcher_is_killed(start: Callable[..., Run]) -> None:
    run = start()
    run.wait_for("listening")
    run.process.kill()
    run.wait_for("end")
    assert run.noted()[-2:] == ["order ", "end"]


@pytest.mark.parametrize(
    ("code", "status"),
    [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 128 + 9)],
)
@pytest.mark.parametrize("mode", ["-f", "-d"])
def test_the_status_of_a_refused_start_is_passed_on(
    code: str, status: int, mode: str, start: Callable[..., Run]
) -> None:
    run = start(f"print('why', file=sys.stderr); {code}", mode=mode)
    _, errors = run.process.communicate(timeout=TIMEOUT_S)
    assert run.process.returncode == status
    assert "why" in errors
    assert "listening" not in run.noted()


def test_in_the_background_the_command_ends_when_the_broker_listens(
    start: Callable[..., Run],
) -> None:
    run = start(mode="-d")
    output, errors = run.process.communicate(timeout=TIMEOUT_S)
    assert run.process.returncode == 0
    run.wait_for("listening")
    os.kill(parent_of(run.session()), signal.SIGTERM)
    run.wait_for("end")
    assert output + errors == "shown\n"


def parent_of(pid: int) -> int:
    # A session's id is the process id of its leader, here the child. Its parent is the daemon.
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])
