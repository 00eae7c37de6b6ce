"""The facts about each board, read from boards/<NAME>/board.json."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import slotmq_boards

from .errors import ToolError

_FOLDER: Any = Path(slotmq_boards.__path__[0])
if not _FOLDER.is_dir():  # it is in an archive, on an executor of Spark
    # Not in general: it loads zipfile and more, which a broker on CPython would keep
    from importlib.resources import files

    _FOLDER = files(slotmq_boards)


@dataclass(frozen=True)
class Board:
    """A board's facts, as board.json has them."""

    name: str
    product: str
    mcu: str
    mpy_arch: str  # the architecture of its native code, as mpy-cross names it; "": none
    heap_kb: int
    sockets: int
    listener_is_socket: bool  # a listener uses one of the sockets
    network: str  # "wifi", "ethernet" or "host" (the operating system's)
    files_kb: int  # size of the file system in flash with stock firmware; 0: no flash
    machines: list[str]  # prefixes of sys.implementation._machine
    tables_bytes: dict[str, int]  # heap left for the tables; key: a way to install (dev/heap)
    sources: dict[str, str]  # where each fact is from

    def matches(self, machine: str) -> bool:
        """Whether a board with this sys.implementation._machine is of this kind.

        `machine` is "NAME with PROCESSOR"; some versions write ESP32-S3, others ESP32S3."""
        name, _, mcu = machine.rpartition(" with ")
        return name.startswith(tuple(self.machines)) and _plain(mcu) == self.mcu


def names() -> list[str]:
    """The names of all boards, sorted."""
    return sorted(each.name for each in _FOLDER.iterdir() if (each / "board.json").is_file())


def matching(machine: str) -> list[str]:
    """The names of the boards that sys.implementation._machine fits."""
    return [name for name in names() if load(name).matches(machine)]


def load(name: str) -> Board:
    """The facts of one board. ToolError: there is no such board."""
    if name not in names():
        raise ToolError(f"there is no board {name}, only {', '.join(names())}")
    import json

    facts: dict[str, Any] = json.loads((_FOLDER / name / "board.json").read_text())
    return Board(**facts)


def _plain(mcu: str) -> str:
    return mcu.replace("-", "").lower()
