"""`slotmq passwd --port` and `slotmq acl`: a board's password_file and acl_file, changed without a
deploy.

The password_file is copied from the board, changed here, checked, and written back as a whole. The
acl_file is a file of this computer, checked and written as a whole. Access to the board's files
stops its program, so the broker starts again and reads them.
"""

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import boards
from ..errors import ToolError
from . import access_files, board_files, configuration, copying
from .repl import Repl


@contextmanager
def edited(repl: Repl, name: str) -> Iterator[Path]:
    """A copy of the board's password_file `name`, which is written back if it has changed.

    ToolError: the board's configuration names another file, or the new users cannot be used; the
    board's file is unchanged then. The board is reset in each case."""
    try:
        on_board = repl.hashes()
        path, limits = _of_board(repl, on_board, name)
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder, "users")
            before = repl.read(path) if path in on_board else None
            if before is not None:
                here.write_bytes(before)
            try:
                yield here
                after = access_files.read_users(here, limits) if here.exists() else before
            except ToolError as error:
                raise ToolError(str(error).replace(str(here), path)) from None
            if after is not None and after != before:
                repl.write(path, after)
    finally:
        repl.reset()


def put_rules(repl: Repl, file: Path) -> str:
    """Replace the board's acl_file by this file; -> its path on the board.

    ToolError: the board's configuration names none, or its broker could not use this one; the
    board's file is unchanged then. The board is reset in each case."""
    try:
        limits, settings = _settings(repl, repl.hashes())
        if not settings.acl_file:
            raise ToolError(
                "the board's slotmq.conf has no acl_file: `slotmq deploy -c FILE` with that line"
            )
        path = access_files.path_on_board(board_files.CONF, settings.acl_file, "acl_file")
        repl.write(path, access_files.read_rules(file, limits))
    finally:
        repl.reset()
    return path


def _of_board(repl: Repl, on_board: Collection[str], name: str) -> tuple[str, Any]:
    # The path of its password_file, and its limits.
    limits, settings = _settings(repl, on_board)
    users = settings.password_file
    path = access_files.path_on_board(board_files.CONF, name)
    if not users or access_files.path_on_board(board_files.CONF, users) != path:
        has = f"names {users}" if users else "has no password_file"
        raise ToolError(f"{path}: the board's slotmq.conf {has}")
    return path, limits


def _settings(repl: Repl, on_board: Collection[str]) -> tuple[Any, Any]:
    # Limits and settings of its broker.
    text = copying.read_conf(repl, on_board)
    board = copying.read_network(repl, on_board).get("board")
    if text is None or board not in boards.names():
        raise ToolError("the board has no slotmq yet: `slotmq deploy` comes first")
    limits, settings, _ = configuration.read(configuration.from_board(text), board)
    return limits, settings
