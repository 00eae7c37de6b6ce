"""`slotmq passwd --port`: the password_file of a board, changed without a deploy.

The file is copied from the board, changed here, checked, and written back as a whole. Access to
the board's files stops its program, so the broker starts again and reads the users.
"""

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import boards
from ..errors import ToolError
from . import board_files, configuration, copying
from .repl import Repl


@contextmanager
def edited(repl: Repl, name: str) -> Iterator[Path]:
    """A copy of the board's password_file `name`, which is written back if it has changed.

    ToolError: the board's configuration names another file, or the new users cannot be used; the
    board's file is unchanged then. The board is reset in each case."""
    try:
        on_board = repl.hashes()
        path, most = _of_board(repl, on_board, name)
        with tempfile.TemporaryDirectory() as folder:
            here = Path(folder, "users")
            before = repl.read(path) if path in on_board else None
            if before is not None:
                here.write_bytes(before)
            try:
                yield here
                after = configuration.read_users(here, most) if here.exists() else before
            except ToolError as error:
                raise ToolError(str(error).replace(str(here), path)) from None
            if after is not None and after != before:
                repl.write(path, after)
    finally:
        repl.reset()


def _of_board(repl: Repl, on_board: Collection[str], name: str) -> tuple[str, int]:
    # The path of its password_file, and how many users there may be.
    text = copying.read_conf(repl, on_board)
    board = copying.read_network(repl, on_board).get("board")
    if text is None or board not in boards.names():
        raise ToolError("the board has no slotmq yet: `slotmq deploy` comes first")
    limits, settings, _ = configuration.read(configuration.from_board(text), board)
    users = settings.password_file
    path = configuration.path_on_board(board_files.CONF, name)
    if not users or configuration.path_on_board(board_files.CONF, users) != path:
        has = f"names {users}" if users else "has no password_file"
        raise ToolError(f"{path}: the board's slotmq.conf {has}")
    return path, limits.users
