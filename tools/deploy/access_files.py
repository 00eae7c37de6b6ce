"""The password_file and the acl_file of a board: their paths there, and whether its broker could
read them. Errors show no content of a password_file.
"""

import tempfile
from pathlib import Path, PurePosixPath
from typing import Any

from slotmq.access import users_file
from slotmq.config.settings import ConfError

from .. import passwd
from ..config.check import check_rules
from ..errors import ToolError
from .board_files import APP, BOOTS, CONF, MAIN, NETWORK, NEW, OWN
from .copying import MAIN_BESIDE, MAIN_SAVED, MARKS

# Names that they cannot have
_DEPLOYS = (CONF, NETWORK, APP, BOOTS, MAIN, MAIN_SAVED, MAIN_BESIDE)
_TAKEN = (*MARKS, *_DEPLOYS, *(name + NEW for name in _DEPLOYS))


def path_on_board(name: str, file: str, key: str = "password_file") -> str:
    """Of the `key`'s file; the board's working directory is /. ToolError: the name is taken."""
    path = PurePosixPath("/", file)
    if ".." in path.parts or str(path) in _TAKEN or str(path).startswith(OWN):
        raise ToolError(f"{name}: {key} {file}: expected a path without `..`, unused by slotmq")
    return str(path)


def read_users(file: Path, limits: Any) -> bytes:
    """The content. ToolError: it is no password_file that the board could use; the error shows
    none of its content."""
    content = file.read_bytes()
    try:
        # without lines that work on a computer only
        users_file.read(str(file), limits.users, longest=limits.client_id_bytes)
    except ValueError as error:
        raise ToolError(str(error)) from None
    return content


def read_rules(file: Path, limits: Any) -> bytes:
    """The content. ToolError, with all errors: it is no acl_file that the board could use."""
    content = file.read_bytes()
    check(str(file), content, limits)
    return content


def check(name: str, content: bytes, limits: Any) -> None:
    """ToolError, with all errors, at lines of `name`: it is no acl_file for these limits."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "rules")
        copy.write_bytes(content)
        try:
            check_rules([str(copy)], limits)
        except ConfError as error:
            raise ToolError(str(error).replace(str(copy), name)) from None


def slow_users(file: Path, limits: Any) -> list[str]:
    """A warning for each user whose first login takes more than 10 s on a board."""
    rows: list[Any] = users_file.read(str(file), limits.users)
    slow = [(row[0].decode(), row[1]) for row in rows if row[1] > passwd.MANY_ON_BOARD]
    return [f"{file}: user {name}: {passwd.SLOW.format(f'{n:,}')}" for name, n in slow]
