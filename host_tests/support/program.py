"""The command `slotmq run` in a process of its own, and clients that send a few bytes."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

TIMEOUT_S = 90
CONNECT = bytes.fromhex("100c 0004 4d515454 04 02 003c 0000")  # no client id, clean
CONNACK = bytes.fromhex("2002 0000")


class Run:
    """A running `slotmq run`. Its output goes to files."""

    def __init__(self, folder: Path, runtime: str, *options: object) -> None:
        self.output = folder / "stdout"
        self.errors = folder / "stderr"
        command = [sys.executable, "-m", "slotmq_tools.cli", "run", "--runtime", runtime]
        with self.output.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [*command, *map(str, options)], stdout=output, stderr=errors
            )

    def kill(self) -> None:
        """Kill all its processes, as a power cut would."""
        family = [psutil.Process(self.process.pid)]
        family += family[0].children(recursive=True)
        for process in reversed(family):
            os.kill(process.pid, signal.SIGKILL)
        self.process.wait()

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Suspend all its processes meanwhile."""
        family = [psutil.Process(self.process.pid)]
        family += family[0].children(recursive=True)
        for process in family:
            process.suspend()
        try:
            yield
        finally:
            for process in family:
                process.resume()

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what}: {self.everything()}"
            time.sleep(0.01)

    def headline(self) -> str:
        """Wait for the line that says where it listens."""
        self.wait_for(lambda: "\n" in self.output.read_text() or self.ended(), "its first line")
        lines = self.output.read_text().splitlines()
        assert lines, self.everything()
        return lines[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop it in order; it must end with status 0."""
        self.process.send_signal(number)
        assert self.process.wait(TIMEOUT_S) == 0, self.everything()
        assert "Traceback" not in self.everything()

    def refusal(self) -> tuple[int, str]:
        """-> the status of a refused start, and the one line that it prints"""
        status = self.process.wait(TIMEOUT_S)
        assert self.output.read_text() == ""
        (line,) = self.errors.read_text().splitlines()
        return status, line

    def ended(self) -> bool:
        return self.process.poll() is not None

    def everything(self) -> str:
        return self.output.read_text() + self.errors.read_text()


Start = Callable[..., Run]


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
    """Does a client connect there? False if the port is closed."""
    try:
        exchange((host, port), (CONNECT, CONNACK)).close()
    except ConnectionRefusedError:
        return False
    return True
