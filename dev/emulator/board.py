"""Starts an emulated board; its REPL and its network are ports of loopback.

    with Board(folder, forward=[1883]) as board:
        board.device          # for mpremote and `slotmq deploy --port`
        board.reach(1883)     # the address that forwards to its port 1883

The network is up once the program on the board opens PPP on UART 1 with TX on GP4 and RX on GP5
(`link ppp` of the firmware). The content of its flash is stored in a file.
"""

import json
import shlex
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slotmq_tools.errors import ToolError
from slotmq_tools.ports import LOOPBACK, free_port

from ..peers import node
from . import image, toolchain

_HERE = Path(__file__).parent
_MAIN = _HERE / "machine/main.cjs"
_PACKAGE_JSON = _HERE / "package.json"
_ADDRESS = "10.0.2.15"  # slirp gives it to the board
_SLIRP = "usr/bin/slirp-fullbolt"
_STOP_S = 10


class Board:
    """A board from power-on to power-off; `folder` holds its flash and the logs."""

    def __init__(
        self, folder: Path, forward: Sequence[int] = (), *, firmware: Path | None = None
    ) -> None:
        """Switch it on. `forward`: ports of the board; `firmware`: an image other than stock.

        ToolError: the emulator does not start."""
        self.flash = folder / "flash.bin"
        self.log = folder / "emulator.log"
        self._ports = {port: free_port() for port in forward}
        words, environment = command(self.flash, firmware)
        if forward:
            words += [f"--slirp={self._slirp()}", f"--log={folder / 'slirp.log'}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.PIPE,  # the emulator ends with it, even if this process is killed
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ToolError(f"the emulator does not start: {self.log.read_text().strip()[-300:]}")
        self._offers: dict[str, int] = json.loads(line)

    @property
    def device(self) -> str:
        """The address of the REPL, as mpremote takes it."""
        return f"socket://{LOOPBACK}:{self._offers['repl']}"

    def reach(self, port: int) -> tuple[str, int]:
        """Host and port that forward to a port of the board."""
        return LOOPBACK, self._ports[port]

    def figures(self) -> dict[str, Any]:
        """Counters: resets, watchdog resets (`bites`), erased sectors, instructions, seconds."""
        with socket.create_connection((LOOPBACK, self._offers["control"]), timeout=10) as sock:
            pieces = iter(lambda: sock.recv(4096), b"")
            figures: dict[str, Any] = json.loads(b"".join(pieces))
        return figures

    def close(self) -> None:
        """Switch it off and write its flash to the file."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _slirp(self) -> str:
        unpacked = toolchain.slirp()
        loader, *rest = unpacked.command(_SLIRP)
        preload = ["--preload", str(image.build().loopback)]
        rules = [f"redir tcp {host} to {_ADDRESS}:{port}" for port, host in self._ports.items()]
        return shlex.join([loader, *preload, *rest, "ppp", *rules])


def run_script(
    script: Path,
    flash: Path | None = None,
    *,
    firmware: Path | None = None,
    save: bool = True,
    plain: bool = False,
    counted: str = "",
) -> dict[str, Any]:
    """Run a script on a freshly started board, faster than real time.

    -> {"marks", "output", "errors"}. A mark is (number, cycles, instructions, calls of the
    function `counted` of the stock image, cycles in these calls). `firmware`: another image. Runs
    with the same flash give the same marks; so use `save=False`. With `plain` rp2040js executes
    all instructions itself. ToolError: the emulator failed."""
    words, environment = command(flash, firmware)
    done = subprocess.run(
        [
            *words,
            f"--exec={script}",
            *([] if save else ["--keep=no"]),
            *(["--plain=yes"] if plain else []),
            *([f"--count={image.build().address(counted)}"] if counted else []),
        ],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise ToolError(f"the emulator stopped: {done.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def command(flash: Path | None, firmware: Path | None = None) -> tuple[list[str], dict[str, str]]:
    """The command line of the emulator, and its environment."""
    made = image.build()
    words, environment = node.command(_MAIN, _PACKAGE_JSON)
    words += [f"--firmware={firmware or made.firmware}", f"--rom={made.rom}"]
    return [*words, *([f"--flash={flash}"] if flash else [])], environment
