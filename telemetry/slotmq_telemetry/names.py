"""boards.toml in the folder of tables: what people call the boards.

[286f000000000001]
name = "greenhouse"
site = "farm"
tags = ["outdoor"]
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slotmq_tools.errors import ToolError

from .folder import Folder

FILE = "boards.toml"
_ID = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Named:
    """A board, as people call it."""

    name: str
    site: str | None = None
    tags: tuple[str, ...] = ()


def read(where: Path | Folder) -> dict[str, Named]:
    """By id; {} without the file. ToolError: it is not as it must be."""
    folder = Folder(where)
    path = f"{folder}/{FILE}"
    told = tables_of(folder, FILE)
    found = {board: _named(f"{path}, [{board}]", board, one) for board, one in told.items()}
    names = [one.name for one in found.values()]
    for name in names:
        if names.count(name) > 1:
            raise ToolError(f"{path}: two boards are called {name!r}")
    return found


def tables_of(folder: Folder, name: str) -> dict[str, Any]:
    """A TOML file; {} without it. ToolError: it cannot be read."""
    try:
        return tomllib.loads((folder.read(name) or b"").decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ToolError(f"{folder}/{name} cannot be read: {error}") from None


def is_id(board: str) -> bool:
    """Whether it may be a board's."""
    return bool(_ID.fullmatch(board))


def _named(where: str, board: str, told: object) -> Named:
    if not is_id(board):
        raise ToolError(f"{where}: a board's id has 16 hex digits, in lower case")
    if not isinstance(told, dict) or told.keys() - {"name", "site", "tags"}:
        raise ToolError(f"{where}: a board has `name`, `site` and `tags`")
    name, site, tags = told.get("name", board), told.get("site"), told.get("tags", [])
    if name != board and is_id(str(name)):
        raise ToolError(f"{where}: the name {name!r} is another board's id")
    right = (
        isinstance(name, str) and name and isinstance(site, str | None) and isinstance(tags, list)
    )
    if not right or not all(isinstance(tag, str) for tag in tags):
        raise ToolError(
            f"{where}: `name` (not empty) and `site` are texts, `tags` is a list of texts"
        )
    return Named(name, site, tuple(tags))
