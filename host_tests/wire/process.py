"""Starts a broker as a process of its own, and sees that it ends well."""

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

RUNTIMES = ("cpython", "micropython")
PEER = "mosquitto"  # a broker that the tests themselves are tried on
PATIENCE_S = 20.0
# The tables of brokers with a configuration of their own, which then start in a
# third of the time; the one without runs with all that the HOST preset has.
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
# What the peer always does, and has no key for.
PEERS_WAY = ("qos2_delivery release",)
# What a Python says when something raised that nobody caught.
COMPLAINTS = ("Traceback", "Error:", "Exception", "MemoryError")


def command(runtime: str, configuration: Path) -> list[str]:
    """The command line of a broker with this configuration file."""
    if runtime == PEER:
        from slotmq_tools.peers import mosquitto

        return [*mosquitto.broker(), "-c", str(configuration)]
    run = [sys.executable, "-m", "slotmq_tools.cli", "run", "--runtime", runtime]
    return [*run, "--board", "HOST", "-c", str(configuration)]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class BrokerProcess:
    """A broker on a free port of the loopback interface."""

    def __init__(self, runtime: str, text: str, folder: Path) -> None:
        self.runtime = runtime
        self.address = ("127.0.0.1", free_port())
        self.file = folder / "slotmq.conf"
        self.write(text)
        self._errors = folder / "stderr"
        with self._errors.open("w") as errors:
            self.process = subprocess.Popen(
                command(runtime, self.file), stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()
        self._until(self._started, "the broker to start")

    def write(self, text: str) -> None:
        """Write the configuration file, which a reload reads anew."""
        listener = f"listener {self.address[1]} {self.address[0]}\n"
        anyone = "allow_anonymous true\n" if "allow_anonymous" not in text else ""
        if self.runtime == PEER:
            lines = [line for line in text.splitlines() if line not in PEERS_WAY]
            text = "\n".join(["set_tcp_nodelay true", *lines])
        elif text:
            text = MODEST + text
        self.file.write_text(listener + anyone + text + "\n")

    def alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def await_line(self, text: str, start: int = 0) -> int:
        """Wait until a line of the output, from that one on, is `text`; its number."""
        return self._until(lambda: _index(self.lines, text, start), f"line {text!r}") - 1

    def stop(self) -> None:
        """End it in order, and be sure that it was in order."""
        self.signal(signal.SIGTERM)
        self.finish()

    def finish(self) -> None:
        """Wait for its end, which must be a good one."""
        try:
            status = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.runtime}: did not stop in {PATIENCE_S} s") from None
        self._reader.join()
        assert status == 0, f"{self.runtime} ended with {status}: {self.complaints()}"
        assert not any(word in self.complaints() for word in COMPLAINTS), self.complaints()

    def kill(self) -> None:
        """End it whatever state it is in; for one that has failed already."""
        self.process.kill()
        self.process.wait()
        self._reader.join()

    def complaints(self) -> str:
        """What it has written to its standard error."""
        return self._errors.read_text()

    def _read_lines(self) -> None:
        assert self.process.stdout
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip("\n"))

    def _started(self) -> int:
        assert self.alive(), f"{self.runtime} did not start: {self.complaints()}"
        return _listens(self.address) if self.runtime == PEER else len(self.lines)

    def _until(self, condition, what: str) -> int:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + PATIENCE_S
        while not (found := condition()):
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
            time.sleep(0.005)
        return int(found)


def _listens(address: tuple[str, int]) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(address) == 0


def _index(lines: list[str], text: str, start: int) -> int:
    """The number, from 1 on, of the first such line from `start` on; 0 if there is none."""
    for i in range(start, len(lines)):
        if lines[i] == text:
            return i + 1
    return 0
