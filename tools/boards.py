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
    tables_bytes: dict[str, int]  # what a start leaves for the tables, by heap/room.py's WAYS
    sources: dict[str, str]


def names() -> list[str]:
    """The boards there are, in alphabetical order."""
    folders = resources.files("slotmq_boards").iterdir()
    return sorted(folder.name for folder in folders if folder.joinpath("board.json").is_file())


def load(name: str) -> Board:
    """The facts of one board."""
    if name not in names():
        raise ToolError(f"there is no board {name}, only {', '.join(names())}")
    text = resources.files("slotmq_boards").joinpath(name, "board.json").read_text()
    facts: dict[str, Any] = json.loads(text)
    return Board(**facts)
