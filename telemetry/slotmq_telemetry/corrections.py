"""clocks.toml in the folder of tables: by how much clocks were wrong, as somebody knows.

    [286f000000000001]      # the board
    7 = 3456000             # boot 7: so many seconds are added to all times that it was told

What is corrected is believed as NTP is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from slotmq_tools.errors import ToolError

from .folder import Folder
from .names import is_id, tables_of

FILE = "clocks.toml"
Corrections = Mapping[int, int]  # ms, by boot
_BOOT = re.compile("0|[1-9][0-9]{,9}")
NONE: Corrections = {}


def read(where: Path | Folder) -> dict[str, Corrections]:
    """By board; {} without the file. ToolError: it is not as it must be."""
    folder = Folder(where)
    path = f"{folder}/{FILE}"
    told = tables_of(folder, FILE)
    for board, boots in told.items():
        if not is_id(board):
            raise ToolError(f"{path}, [{board}]: a board's id has 16 hex digits, in lower case")
        if not isinstance(boots, dict) or not all(map(_is_one, boots.items())):
            raise ToolError(f"{path}, [{board}]: a line has the number of a boot, and seconds")
    return {
        board: {int(boot): round(seconds * 1000) for boot, seconds in boots.items()}
        for board, boots in told.items()
    }


def _is_one(told: tuple[str, object]) -> bool:
    boot, seconds = told
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return bool(_BOOT.fullmatch(boot)) and int(boot) < 1 << 32 and abs(seconds) < 1e10
