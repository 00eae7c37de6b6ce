"""Files of a board, saved in a folder here and written back.

What deploy writes anyway (the code) is left out; an application's own main.py is not. A journal in
raw flash is one file more, for `slotmq inspect`. The folder is for its owner only, since
network.json has the network's password, and is nobody else's: slotmq-backup.json lists what
belongs to it, and whatever else lies there is neither changed nor written to a board.
"""

import json
from pathlib import Path

from ..errors import ToolError
from . import copying, flash, payload
from .repl import Repl

REGION = "journal-in-flash.bin"
LIST = "slotmq-backup.json"
_CODE = (*payload.OWN, *copying.MARKS, payload.BOOTS)
_MAINS = (copying.MAIN, copying.OURS)


def save(repl: Repl, folder: Path) -> list[str]:
    """Copy all that the code did not bring; -> the names."""
    before = _of_before(folder)
    names = [path for path, digest in sorted(repl.hashes().items()) if not _is_ours(path, digest)]
    contents = {name: repl.read(name) for name in names}
    region = flash.read(repl)
    if region is not None and region.strip(b"\xff"):
        contents[REGION] = region
    _take(folder, before)  # now that the board has given all
    for name, content in contents.items():
        target = folder / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(0o600)
        target.write_bytes(content)
    _write_list(folder, list(contents))
    return list(contents)


def _is_ours(path: str, digest: str) -> bool:
    return path.startswith(_CODE) or (path in _MAINS and digest in payload.mains())


def _of_before(folder: Path) -> list[str]:
    # What a backup before this one has there; ToolError: something else is there.
    if not folder.is_dir() or not any(folder.iterdir()):
        return []
    if not (folder / LIST).is_file():
        raise ToolError(
            f"{folder} has files and is no backup: name a folder that is empty or not there"
        )
    return _read_list(folder)


def _take(folder: Path, before: list[str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        _write_list(folder, [])  # until all is there
        for name in before:
            (folder / name.lstrip("/")).unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"{folder}: {error.strerror}") from None


def _write_list(folder: Path, names: list[str]) -> None:
    (folder / LIST).write_text(json.dumps({"files": names}, indent=2) + "\n")


def _read_list(folder: Path) -> list[str]:
    # Paths on the board, and REGION
    try:
        found = [str(name) for name in json.loads((folder / LIST).read_bytes())["files"]]
        inside = folder.resolve()
        if all((inside / name.lstrip("/")).resolve().is_relative_to(inside) for name in found):
            return found
    except OSError:
        raise ToolError(
            f"{folder} is no backup: it has no {LIST}, which `slotmq backup` writes"
        ) from None
    except (ValueError, KeyError, TypeError):
        pass
    raise ToolError(f"{folder / LIST} is not as `slotmq backup` has written it")


def _contents(folder: Path) -> dict[str, bytes]:
    # All of it, before anything is written
    try:
        found = {name: (folder / name.lstrip("/")).read_bytes() for name in _read_list(folder)}
    except OSError as error:
        raise ToolError(f"{error.filename}: {error.strerror}: the backup is not whole") from None
    if not found:
        raise ToolError(f"{folder} is a backup that was interrupted, and has nothing to restore")
    return found


def restore(repl: Repl, folder: Path) -> list[str]:
    """Write the files of a backup back; -> the names."""
    contents = _contents(folder)
    region = contents.pop(REGION, None)
    if region is not None:  # first, since it may be refused
        flash.write(repl, region)
    for name, content in contents.items():
        repl.write(name, content)
    return list(contents) + [REGION] * (region is not None)


def erase(repl: Repl, board: str) -> str:
    """Remove every file, and a journal in raw flash; -> what was there."""
    blocks = flash.erase(repl, board)
    paths = sorted(repl.hashes())
    repl.remove(paths)
    journal = f", {blocks} blocks of a journal in raw flash erased" if blocks else ""
    return f"{len(paths)} files removed{journal}"
