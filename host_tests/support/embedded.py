"""A program with an embedded broker, in a process of its own."""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client

TIMEOUT_S = 20


class Program:
    """It runs in a folder, where its output is a file, and listens on a loopback port."""

    def __init__(
        self, folder: Path, port: int, command: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self.port = port
        self.output = folder / "output"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=output
            )

    def connect(self, name: str) -> Client:
        """Connect a client, as soon as the port is open."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                client = Client(("127.0.0.1", self.port))
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline and self.process.poll() is None, self.said()
                time.sleep(0.05)
        assert client.connect(codec.connect(name)).code == 0
        return client

    def said(self) -> str:
        """Return its output until now."""
        return self.output.read_text(errors="replace")

    def says(self, text: str) -> None:
        """Wait until its output contains the text."""
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self.said():
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
