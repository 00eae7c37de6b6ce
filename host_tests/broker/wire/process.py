"""Starts a broker as a process of its own, and checks that it ends in order."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from slotmq_tools.ports import free_port

RUNTIMES = ("cpython", "micropython")
PEER = "mosquitto"  # the tests themselves are tried on this broker
TIMEOUT_S = 60.0  # a first start packs the broker, which a busy computer takes long for
# Smaller tables, for brokers with a configuration of their own: they start in a third of the
# time. The broker without a configuration has the tables of the HOST preset.
MODEST = """
limit connections 64
limit sessions 256
limit subscriptions 2000
limit nodes 2000
limit name_bytes 65536
limit retained 500
limit retained_name_bytes 65536
limit messages 2000
limit message_bytes 4194304
limit deliveries 4000
"""
# Settings that the peer has not: it always releases at PUBREL, and its tables grow.
OURS_ONLY = ("qos2_delivery release", "limit ")
# Words in the output of Python after an exception that was not caught.
COMPLAINTS = ("Traceback", "Error:", "Exception", "MemoryError")
DEFECT = ", a defect: "  # in the log of the broker


class Program:
    """A broker as a process: its output is read, and it must end without an error."""

    address: tuple[str, int]  # where it listens; subclasses choose it

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int | None = None,
    ) -> None:
        self.lines: list[str] = []
        self._errors = folder / "stderr"
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=env,
                cwd=cwd,
            )
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        """Stop it by SIGTERM, and check that it ends in order."""
        self.signal(signal.SIGTERM)
        self.finish()

    def finish(self) -> None:
        """Wait for its end: with status 0, and without an exception in its output."""
        try:
            status = self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it did not stop in {TIMEOUT_S} s") from None
        self._reader.join()
        assert status == 0, f"it ended with {status}: {self.complaints()}"
        assert not any(word in self.complaints() for word in COMPLAINTS), self.complaints()
        assert not any(DEFECT in line for line in self.lines), self.lines

    def complaints(self) -> str:
        """Its standard error."""
        return self._errors.read_text()

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds that no packet shows."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            was_alive = self.alive()  # asked first: the condition may be that it ends
            if condition():
                return
            assert was_alive, f"it ended: {self.complaints()}"
            assert time.monotonic() < deadline, f"waited {TIMEOUT_S} s for {what}"
            time.sleep(0.005)

    def _read_lines(self) -> None:
        assert self.process.stdout
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip("\n"))


class BrokerProcess(Program):
    """A broker with this configuration on a free port of the loopback interface."""

    program: tuple[str, ...] = ("-m", "slotmq_tools.cli", "run")

    def __init__(self, runtime: str, text: str, folder: Path) -> None:
        self.runtime = runtime
        self.address = ("127.0.0.1", free_port())
        self.file = folder / "slotmq.conf"
        self.write(text)
        super().__init__(self._command(), folder)
        self.wait_for(self._listens, "the broker to listen")

    def write(self, text: str) -> None:
        """Write the configuration file; a reload reads it again."""
        listener = self._listeners()
        anyone = "allow_anonymous true\n" if "allow_anonymous" not in text else ""
        if self.runtime == PEER:  # some of its keys belong to the listener above them
            lines = [line for line in text.splitlines() if not line.startswith(OURS_ONLY)]
            self.file.write_text("\n".join([listener, anyone, "set_tcp_nodelay true", *lines, ""]))
            return
        self.file.write_text(anyone + (MODEST + text if text else "") + "\n" + listener)

    def _listeners(self) -> str:
        return f"listener {self.address[1]} {self.address[0]}\n"

    def _command(self) -> list[str]:
        if self.runtime == PEER:
            from slotmq_dev.peers import mosquitto

            return [*mosquitto.broker(), "-c", str(self.file)]
        run = [sys.executable, *self.program, "--runtime", self.runtime]
        return [*run, "--board", "HOST", "-c", str(self.file)]

    def _listens(self) -> bool:
        """Has it printed so? (The peer prints nothing on its standard output.)"""
        if self.runtime != PEER:
            return bool(self.lines)
        with socket.socket() as sock:
            return sock.connect_ex(self.address) == 0
