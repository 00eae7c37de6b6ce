"""What deploy changes on a board: which files it writes, in which order, and what it leaves alone.

A deploy may be cut off at any moment, by the cable or by power. Each file is written beside
the old one and renamed, so it is the old or the new one. While more than one of them
changes, a mark makes `import slotmq` fail with a line that says so: a board boots the old
program, the new one, or says that a deploy was interrupted, and the next one goes on.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from ..errors import ToolError
from . import board_files, frozen
from .repl import Repl

# MicroPython takes a package's __init__.py before its __init__.mpy, and what lies beside main.py
# before what is in its firmware.
MARK, MARK_FROZEN = "/lib/slotmq/__init__.py", "/slotmq.py"
MARKS = tuple(mark + end for mark in (MARK, MARK_FROZEN) for end in ("", board_files.NEW))
INTERRUPTED = b"raise ImportError('a deploy of slotmq was interrupted')\n"
MAIN, KEPT, OURS = "/main.py", "/main.own.py", "/slotmq_main.py"
KEEP, REPLACE = "keep", "replace"
_BLOCK = 4096


@dataclass(frozen=True)
class Change:
    """What is to become of a board's files."""

    wanted: dict[str, bytes]
    paths: list[str]  # of these, what the board has not yet
    old: list[str]  # what goes
    there: dict[str, str]  # after an erase: what it has left
    mark: str = MARK


def plan(
    wanted: dict[str, bytes],
    main: str | None,
    repl: Repl,
    there: dict[str, str],
    in_firmware: Collection[str] = (),
) -> Change:
    """What is to be done that the board has these files; ToolError: it is not to be done."""
    wanted = frozen.without(wanted, in_firmware)
    _make_room_for_main(wanted, main, there, repl)
    old = [path for path in board_files.left_over(wanted, there) if path not in MARKS]
    if OURS not in wanted and there.get(OURS) in board_files.mains():
        old.append(OURS)
    mark = MARK_FROZEN if "slotmq" in in_firmware else MARK
    return Change(wanted, board_files.changed(wanted, there), old, there, mark)


def _make_room_for_main(
    wanted: dict[str, bytes], main: str | None, there: dict[str, str], repl: Repl
) -> None:
    if there.get(MAIN) in (None, *board_files.mains()):
        return
    if main == KEEP:
        wanted[OURS] = wanted.pop(MAIN)
    elif main == REPLACE:
        if KEPT in there and there[KEPT] != there[MAIN]:
            raise ToolError(
                f"{KEPT} is there already, from the last time: save it, and remove it with"
                f" `mpremote rm :{KEPT}`"
            )
        wanted[KEPT] = repl.read(MAIN)
    else:
        raise ToolError(
            f"the board has a main.py that is not slotmq's: `--main {REPLACE}` puts slotmq's in"
            f" its place and leaves yours at {KEPT}, `--main {KEEP}` leaves yours where it is and"
            f" puts slotmq's at {OURS}"
        )


def check_room(change: Change, free: int, repl: Repl, erase: bool = False) -> None:
    """Is there flash for it, each file beside the one whose place it takes, or after all went?"""
    if _blocks(sum(len(change.wanted[path]) + _BLOCK for path in change.paths)) <= free:
        return
    sizes = repl.sizes()
    gone = [path for path in sizes if path not in change.there] if erase else change.old
    free += sum(sizes[path] // _BLOCK * _BLOCK for path in gone)
    most = used = 0
    for path in change.paths:
        used += _blocks(len(change.wanted[path]))
        most = max(most, used)
        used -= sizes[path] // _BLOCK * _BLOCK if path in change.there else 0
    if most > free:
        way = "that is all it has" if erase else "`slotmq deploy --erase` makes room"
        raise ToolError(f"{most:,} bytes are to be written and {free:,} are free: {way}")


def copy(change: Change, repl: Repl, say: Callable[[str], None]) -> None:
    """Write what is not there yet, and remove what is not wanted any more."""
    paths, old = change.paths, change.old
    marks = [path for path in change.there if path in MARKS]
    marked = bool(len(paths) + len(old) > 1 or marks)
    if marked:
        repl.write(change.mark, INTERRUPTED)
    # Of a mark that is written again nothing is left but itself.
    others = [path for path in marks if path.removesuffix(board_files.NEW) != change.mark]
    repl.remove([*old, *others, *(path for path in change.there if path == board_files.BOOTS)])
    for path in paths:
        repl.write(path, change.wanted[path])
    if marked:
        repl.remove([change.mark])
    say(f"{len(paths)} of {len(change.wanted)} files written, {len(old)} removed")


def knows_password(repl: Repl, ssid: str) -> bool:
    """Has the board the password of that network?"""
    found = network_there(repl, repl.hashes())
    return found.get("ssid") == ssid and "password" in found


def conf_there(repl: Repl, there: dict[str, str]) -> bytes | None:
    """The board's slotmq.conf."""
    return repl.read(board_files.CONF) if board_files.CONF in there else None


def network_there(repl: Repl, there: dict[str, str]) -> dict[str, Any]:
    """What the board's network.json says."""
    if board_files.NETWORK not in there:
        return {}
    try:
        found = json.loads(repl.read(board_files.NETWORK))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _blocks(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK
