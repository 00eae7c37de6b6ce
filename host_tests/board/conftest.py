"""An emulated board for each test module, with the broker installed by `slotmq deploy`.

The board's flash is a file. After a first deploy a copy goes into the cache, for this version of
the broker, and each module starts from it. A test that needs another configuration deploys it,
which takes seconds. Modules run in parallel, since they mostly wait.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client
from slotmq_dev.emulator import image
from slotmq_dev.emulator.board import Board
from slotmq_tools import boards, cache
from slotmq_tools.deploy import board_files
from slotmq_tools.deploy.repl import Repl

NAME = "RPI_PICO_W"
PORT = 1883
TIMEOUT_S = 300
RESET_S = 120
ANSWER_S = 60  # long enough for a machine that is busy


class Deployed:
    """A board that is switched on, and its clients."""

    def __init__(
        self, folder: Path, firmware: Path | None = None, more: Sequence[int] = ()
    ) -> None:
        """more: its ports that are reached, too."""
        self.folder = folder
        self.firmware = firmware
        self.ports = [PORT, *more]
        self.board = Board(folder, self.ports, firmware=firmware)
        self.clients: list[Client] = []

    def cli(self, *words: object, secret: str = "", typed: str = "") -> tuple[int, str]:
        """Run a command of slotmq with this standard input; -> its status and its output."""
        done = subprocess.run(
            [sys.executable, "-m", "slotmq_tools.cli", *map(str, words)],
            capture_output=True,
            input=typed,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            env={**os.environ, "SLOTMQ_WIFI_PASSWORD": secret},
        )
        return done.returncode, done.stdout + done.stderr

    def deploy(self, conf: str | None = "", *options: object, typed: str = "") -> str:
        """Deploy a configuration; "": none, which lets in everybody, or a --user; None: the
        board's own. -> the output."""
        self.hang_up()
        words: list[object] = ["deploy", "--board", NAME, "--ppp", "--port", self.board.device]
        words += ["--reach", "{}:{}".format(*self.address), *options]
        if conf:
            path = self.folder / "slotmq.conf"
            path.write_text(conf)
            words += ["-c", path]
        elif conf is not None:
            words += ["--no-config"] + ["--anonymous"] * ("--user" not in options)
        status, said = self.cli(*words, typed=typed)
        assert status == 0, f"{said}\n{self.board.figures()}"
        return said

    @property
    def address(self) -> tuple[str, int]:
        return self.board.reach(PORT)

    def open(self, kind: type[Client] = Client) -> Client:
        """A network connection on which nothing was sent."""
        client = kind(self.address)
        client.sock.settimeout(ANSWER_S)
        self.clients.append(client)
        return client

    def connect(self, name: str, kind: type[Client] = Client, **options: Any) -> Client:
        client = self.open(kind)
        assert client.connect(kind.codec.connect(name, **options)).code == 0
        return client

    def hang_up(self) -> None:
        """Close all clients, and wait until the board has noticed."""
        for client in self.clients:
            client.sock.close()
        if self.clients:
            time.sleep(0.5)
        self.clients.clear()

    def power_cycle(self) -> None:
        """Switch the board off and on, and wait until it serves."""
        self.hang_up()
        self.board.close()
        self.board = Board(self.folder, self.ports, firmware=self.firmware)
        self.wait_until(self.serves, "the board to serve again")

    def serves(self) -> bool:
        return self.comes_in()

    def comes_in(self, **who: Any) -> bool:
        try:
            client = Client(self.address)
        except OSError:
            return False
        client.sock.settimeout(10)
        try:
            return bool(client.connect(codec.connect("is it there?", **who)).code == 0)
        except (OSError, AssertionError):
            return False
        finally:
            client.sock.close()

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 2 * ANSWER_S
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what}"
            time.sleep(0.2)

    def system(self, topic: str) -> int:
        """The number that a $SYS topic has."""
        client = self.connect("system")
        client.subscribe(f"$SYS/{topic}")
        (message,) = client.receive_many(1)
        client.sock.close()
        self.clients.remove(client)
        return int(message.payload)


def reset_until(repl: Repl, last: str) -> list[str]:
    """Reset the board; -> what it prints, up to the line with this text."""
    repl.reset()
    lines: list[str] = []
    for line in repl.lines(RESET_S):
        lines.append(line)
        if last in line:
            return lines
    raise AssertionError(f"no {last}: {lines}")


def fresh(folder: Path, firmware: Path | None = None) -> None:
    """Copy the flash of a board after its first deploy into a folder."""
    digest = hashlib.sha256(f"{image.build().folder} {firmware}".encode())
    for name, content in sorted(board_files.code(NAME, boards.load(NAME).mpy_arch).items()):
        digest.update(f"{name} {len(content)}\n".encode() + content)

    def fill(made: Path) -> None:
        deployed = Deployed(made, firmware)
        try:
            deployed.deploy()
        finally:
            deployed.board.close()

    kept = cache.folder(f"rp2040-deployed/{digest.hexdigest()[:16]}", fill)
    shutil.copy(kept / "flash.bin", folder)


@pytest.fixture(scope="module")
def board(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("board")
    blank = getattr(request.module, "BLANK", False)
    firmware = getattr(request.module, "firmware", lambda: None)()
    if not blank:
        fresh(folder, firmware)
    deployed = Deployed(folder, firmware, getattr(request.module, "MORE_PORTS", ()))
    if not blank:
        deployed.wait_until(deployed.serves, "the broker")
    yield deployed
    deployed.hang_up()
    deployed.board.close()


@pytest.fixture(autouse=True)
def leave_nobody(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "board" in request.fixturenames:
        request.getfixturevalue("board").hang_up()
