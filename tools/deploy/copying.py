"""What deploy changes on a board: which files it writes, in which order, and what it leaves alone.

A deploy may be interrupted at any moment, by the cable or by power. Each file is written beside
the old one and renamed, so the board has the old file or the new one. While several files
change, a mark file makes `import slotmq` fail with a message. So a board starts the old program,
or the new one, or reports an interrupted deploy; the next deploy continues.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from ..errors import ToolError
from . import board_files, frozen
from .board_files import MAIN
from .repl import Repl

# MicroPython imports a package's __init__.py before its __init__.mpy, and modules beside main.py
# before frozen ones.
MARK, MARK_FROZEN = "/lib/slotmq/__init__.py", "/slotmq.py"
MARKS = tuple(mark + end for mark in (MARK, MARK_FROZEN) for end in ("", board_files.NEW))
INTERRUPTED = b"raise ImportError('a deploy of slotmq was interrupted')\n"
# Where --main puts the one of two main.py that does not start the board: the user's, slotmq's
MAIN_SAVED, MAIN_BESIDE = "/main.own.py", "/slotmq_main.py"
KEEP, REPLACE = "keep", "replace"  # values of --main
_BLOCK = 4096
_INLINE = 512  # bytes: an eighth of a block (LFS_CONFIG inline_max)


@dataclass(frozen=True)
class Change:
    """What is to be done to a board's files."""

    wanted: dict[str, bytes]  # content by path
    paths: list[str]  # those of `wanted` that must be written, in this order
    old: list[str]  # files to be removed
    on_board: dict[str, str]  # SHA-256 by path; with --erase: of files that stay
    mark: str = MARK


def plan(
    wanted: dict[str, bytes],
    main: str | None,
    repl: Repl,
    on_board: dict[str, str],
    in_firmware: Collection[str] = (),
) -> Change:
    """The change after which the board has the wanted files.

    `main` is the option --main. ToolError: the board has a main.py of the user, and `main` does
    not say what to do with it."""
    wanted = frozen.without(wanted, in_firmware)
    _place_main(wanted, main, on_board, repl)
    old = [path for path in board_files.obsolete(wanted, on_board) if path not in MARKS]
    if MAIN_BESIDE not in wanted and on_board.get(MAIN_BESIDE) in board_files.known_mains():
        old.append(MAIN_BESIDE)
    mark = MARK_FROZEN if "slotmq" in in_firmware else MARK
    return Change(wanted, board_files.changed(wanted, on_board), old, on_board, mark)


def _place_main(
    wanted: dict[str, bytes], main: str | None, on_board: dict[str, str], repl: Repl
) -> None:
    if on_board.get(MAIN) in (None, *board_files.known_mains()):
        return
    if main == KEEP:
        wanted[MAIN_BESIDE] = wanted.pop(MAIN)
    elif main == REPLACE:
        if MAIN_SAVED in on_board and on_board[MAIN_SAVED] != on_board[MAIN]:
            raise ToolError(
                f"the board already has a {MAIN_SAVED} of an earlier deploy: save it, then remove"
                f" it with `mpremote rm :{MAIN_SAVED}`"
            )
        wanted[MAIN_SAVED] = repl.read(MAIN)
    else:
        raise ToolError(
            f"the board has a main.py that is not slotmq's: `--main {REPLACE}` moves yours to"
            f" {MAIN_SAVED} and starts slotmq's, `--main {KEEP}` leaves yours in place and writes"
            f" slotmq's to {MAIN_BESIDE}"
        )


def check_space(change: Change, free: int, repl: Repl, erase: bool = False) -> None:
    """ToolError: the change needs more than `free` bytes of flash, plus what it removes.

    Each file needs space beside the file that it replaces. With `erase`, all files that do not
    stay are removed first."""
    if _blocks(sum(len(change.wanted[path]) + _BLOCK for path in change.paths)) <= free:
        return
    sizes = repl.sizes()
    removed = [path for path in sizes if path not in change.on_board] if erase else change.old
    free += sum(_freed(sizes[path]) for path in removed)
    most = used = 0
    for path in change.paths:
        used += _blocks(len(change.wanted[path]))
        most = max(most, used)
        used -= _freed(sizes[path]) if path in change.on_board else 0
    if most > free:
        advice = "the board has no more" if erase else "`slotmq deploy --erase` frees space"
        raise ToolError(f"{most:,} bytes of flash are needed and {free:,} are free: {advice}")


def copy(change: Change, repl: Repl, say: Callable[[str], None]) -> None:
    """Write the new files and remove the old ones."""
    paths, old = change.paths, change.old
    marks = [path for path in change.on_board if path in MARKS]
    needs_mark = bool(len(paths) + len(old) > 1 or marks)
    if needs_mark:
        repl.write(change.mark, INTERRUPTED)
    # The mark was just written, so its unfinished copy from an earlier deploy does not exist.
    others = [path for path in marks if path.removesuffix(board_files.NEW) != change.mark]
    boots = [path for path in change.on_board if path == board_files.BOOTS]
    repl.remove([*old, *others, *boots])
    for path in paths:
        repl.write(path, change.wanted[path])
    if needs_mark:
        repl.remove([change.mark])
    say(f"{len(paths)} of {len(change.wanted)} files written, {len(old)} removed")


def has_password(repl: Repl, ssid: str) -> bool:
    """Does the board's network.json contain the password of this network?"""
    found = read_network(repl, repl.hashes())
    return found.get("ssid") == ssid and "password" in found


def read_conf(repl: Repl, on_board: Collection[str]) -> bytes | None:
    """The board's slotmq.conf; None: it has none."""
    return repl.read(board_files.CONF) if board_files.CONF in on_board else None


def read_network(repl: Repl, on_board: Collection[str]) -> dict[str, Any]:
    """The board's network.json; {}: it has none, or one that is no JSON object."""
    if board_files.NETWORK not in on_board:
        return {}
    try:
        found = json.loads(repl.read(board_files.NETWORK))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _freed(size: int) -> int:
    # littlefs may keep a small file within its folder's block.
    return _blocks(size) if size > _INLINE else 0


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
