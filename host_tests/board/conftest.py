"""One emulated board for all tests, onto which the broker was put by `slotmq deploy`.

Its flash lies in a file: whoever wants another configuration deploys that, which is
a matter of seconds once the code is there, and the next test module deploys its own.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from host_tests.wire import codec
from host_tests.wire.client import Client
from slotmq_tools.emulator.board import Board

NAME = "RPI_PICO_W"
PORT = 1883
PATIENCE_S = 300
ANSWER_S = 20


class Deployed:
    """A board with power, and what may be done to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.board = Board(folder, [PORT])
        self.clients: list[Client] = []

    def cli(self, *words: object, secret: str = "") -> tuple[int, str]:
        """A command of slotmq: its status and all that it said."""
        done = subprocess.run(
            [sys.executable, "-m", "slotmq_tools.cli", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            env={**os.environ, "SLOTMQ_WIFI_PASSWORD": secret},
        )
        return done.returncode, done.stdout + done.stderr

    def deploy(self, conf: str = "", *options: object) -> str:
        """Deploy with that configuration; what the command said."""
        self.hang_up()
        words: list[object] = ["deploy", "--board", NAME, "--ppp", "--port", self.board.device]
        words += ["--reach", "{}:{}".format(*self.address), *options]
        if conf:
            path = self.folder / "slotmq.conf"
            path.write_text(conf)
            words += ["-c", path]
        status, said = self.cli(*words)
        assert status == 0, said
        return said

    @property
    def address(self) -> tuple[str, int]:
        return self.board.reach(PORT)

    def open(self) -> Client:
        """A network connection that has said nothing."""
        client = Client(self.address)
        client.sock.settimeout(ANSWER_S)
        self.clients.append(client)
        return client

    def connect(self, name: str, *, clean: bool = True) -> Client:
        client = self.open()
        assert client.connect(codec.connect(name, clean=clean)).code == 0
        return client

    def hang_up(self) -> None:
        """All clients leave, and the board has noticed."""
        for client in self.clients:
            client.sock.close()
        if self.clients:
            time.sleep(0.5)
        self.clients.clear()

    def power_cycle(self) -> None:
        """Switch it off and on; it serves again."""
        self.hang_up()
        self.board.close()
        self.board = Board(self.folder, [PORT])
        self.wait_until(self.serves, "the board to serve again")

    def serves(self) -> bool:
        try:
            client = Client(self.address)
        except OSError:
            return False
        client.sock.settimeout(2)
        try:
            return client.connect(codec.connect("is it there?")).code == 0
        except (OSError, AssertionError):
            return False
        finally:
            client.sock.close()

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + ANSWER_S * 2
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what}"
            time.sleep(0.2)

    def system(self, topic: str) -> int:
        """A number of $SYS."""
        client = self.connect("system")
        client.subscribe(f"$SYS/{topic}")
        (message,) = client.receive_many(1)
        client.sock.close()
        self.clients.remove(client)
        return int(message.payload)


@pytest.fixture(scope="session")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    deployed = Deployed(tmp_path_factory.mktemp("board"))
    yield deployed
    deployed.hang_up()
    deployed.board.close()


@pytest.fixture(autouse=True)
def leave_nobody(board: Deployed) -> Iterator[None]:
    yield
    board.hang_up()
