"""In place of deploy's Repl: a board that is a dict of files, and stops answering on demand."""

import hashlib
from collections.abc import Iterator
from typing import Any

from slotmq_tools import boards
from slotmq_tools.deploy import board_files, mqtt_client, steps
from slotmq_tools.deploy.network import Network
from slotmq_tools.errors import ToolError

BOARD = "RPI_PICO_W"
HEADLINE = (
    "slotmq 0.1.0 on MicroPython 1.25.0 (32-bit), board RPI_PICO_W, heap 200 KB,"
    " listening on 0.0.0.0:1884"
)
STARTED = [HEADLINE, "wifi home: up, 192.168.1.7"]
HOME = Network("station", "home", "a secret")
HOME_AGAIN = Network("station", "home", None)  # with the password that the board has
# One name for each value that the code of steps.probe() prints, in that order
_PROBE = {
    "name": "micropython",
    "version": (1, 25, 0),
    "mpy": 4870,
    "machine": "Raspberry Pi Pico W with RP2040",
    "heap": 200_000,
    "flash": 10**6,
    "drivers": ["WLAN", "WIZNET5K", "PPP"],
}


def probe(**changes: Any) -> tuple[Any, ...]:
    """What the board answers to steps.probe()."""
    return tuple((_PROBE | changes).values())


class FakeRepl:
    """A board; `printed` are the lines that it prints after a reset."""

    def __init__(self, printed: list[str] = STARTED) -> None:
        self.files: dict[str, bytes] = {}
        self.probe: tuple[Any, ...] = probe()
        self.frozen: dict[str, str] = {}
        self.printed = printed
        self.written: list[str] = []
        self.resets = 0
        self.steps_left = 10**6  # writes and removes until the cable is pulled

    def value(self, code: str, _fits: object) -> Any:
        if "region.ioctl" in code:
            return None if "json" in code else 0  # the board has no raw flash
        if ".frozen" in code:
            return self.frozen
        return self.probe

    def run(self, _code: str) -> str:
        return ""

    def hashes(self) -> dict[str, str]:
        return {path: hashlib.sha256(each).hexdigest() for path, each in self.files.items()}

    def sizes(self) -> dict[str, int]:
        return {path: len(content) for path, content in self.files.items()}

    def read(self, path: str) -> bytes:
        return self.files[path]

    def write(self, path: str, content: bytes) -> None:
        self.files[path + board_files.NEW] = content[: len(content) // 2]
        self._step()
        del self.files[path + board_files.NEW]
        self.written.append(path)
        self.files[path] = content

    def remove(self, paths: list[str]) -> None:
        for path in paths:
            self._step()
            del self.files[path]

    def _step(self) -> None:
        if not self.steps_left:
            raise ToolError("the board stopped answering")
        self.steps_left -= 1

    def reset(self) -> None:
        self.resets += 1

    def lines(self, _seconds: float) -> Iterator[str]:
        yield from self.printed


def order(**changes: Any) -> steps.Order:
    wanted: dict[str, Any] = {
        "board": boards.load(BOARD),
        "conf": None,
        "network": HOME,
        "login": mqtt_client.Login(),
        "address": None,
    }
    return steps.Order(**(wanted | changes))


def deployed(board: FakeRepl, /, erase: bool = False, **changes: Any) -> list[str]:
    """Deploy; -> the lines that it prints. A board without a configuration lets in everybody."""
    given = changes.get("conf") or (board_files.CONF in board.files and not changes.get("no_conf"))
    changes.setdefault("anonymous", not given)
    lines: list[str] = []
    steps.deploy(order(**changes), board, lines.append, erase)  # type: ignore[arg-type]
    return lines
