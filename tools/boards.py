"""What the tools know of a board: the facts in boards/<NAME>/board.json."""

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

from .errors import ToolError


@dataclass(frozen=True)
class Board:
    """A board's facts; board.json says where each of them is from."""

    name: str
    product: str
    mcu: str
    mpy_arch: str  # of its native code, as mpy-cross names it
    heap_kb: int
    sockets: int
    listener_is_socket: bool  # does a listener take one of the sockets?
    network: str  # wifi, ethernet, or host: that is there already
    files_kb: int  # of the flash that stock firmware gives its file system; 0: it is no flash
    machines: list[str]  # how the names begin that its firmware gives the board
    tables_bytes: dict[str, int]  # what a start leaves for the tables, by heap/room.py's WAYS
    sources: dict[str, str]

    def is_it(self, machine: str) -> bool:
        """Is it this board that says so of itself, in sys.implementation._machine?

        Its name, " with ", and its processor; how that is written has changed: ESP32-S3."""
        name, _, mcu = machine.rpartition(" with ")
        return name.startswith(tuple(self.machines)) and _plain(mcu) == self.mcu


def names() -> list[str]:
    """The boards there are, in alphabetical order."""
    folders = resources.files("slotmq_boards").iterdir()
    return sorted(folder.name for folder in folders if folder.joinpath("board.json").is_file())


def which(machine: str) -> list[str]:
    """The boards that it may be."""
    return [name for name in names() if load(name).is_it(machine)]


def load(name: str) -> Board:
    """The facts of one board."""
    if name not in names():
        raise ToolError(f"there is no board {name}, only {', '.join(names())}")
    text = resources.files("slotmq_boards").joinpath(name, "board.json").read_text()
    facts: dict[str, Any] = json.loads(text)
    return Board(**facts)


def _plain(mcu: str) -> str:
    return mcu.replace("-", "").lower()
