"""The folder of a backup: which files belong to it, and how the next backup replaces them.

slotmq-backup.json lists the files of the backup; other files in the folder are left alone. The
next backup is written into the subfolder slotmq-backup.new, its list last. Once the list is
there, the new backup is complete and its files replace the old ones. If that is interrupted,
whatever opens the folder next finishes it. Until then the old backup is unchanged.
"""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from ..errors import ToolError

LIST = "slotmq-backup.json"
NEXT = "slotmq-backup.new"


def check(folder: Path) -> None:
    """ToolError: the folder contains files and is no backup."""
    if not folder.is_dir():
        return
    _finish(folder)
    if (folder / LIST).is_file():
        _names(folder)
    elif any(each.name != NEXT for each in folder.iterdir()):
        raise ToolError(f"{folder} has files and is no backup: name an empty folder, or a new one")


def replace(folder: Path, contents: dict[str, bytes]) -> None:
    """Make `contents`, by path on the board, the backup. On an error the old one stays."""
    places = {name.lstrip("/") for name in contents}
    for name in contents:
        if len(places) < len(contents) or not _is_inside(folder, name):
            raise ToolError(f"the board has a file that cannot be saved in {folder}: {name!r}")
    coming = folder / NEXT
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    shutil.rmtree(coming, ignore_errors=True)
    try:
        _write(coming, contents)
    except OSError:
        shutil.rmtree(coming, ignore_errors=True)
        raise
    _finish(folder)


def contents(folder: Path) -> dict[str, bytes]:
    """All files, by path on the board. ToolError: this is no backup, or files are missing."""
    if folder.is_dir():
        _finish(folder)
    try:
        found = {name: (folder / name.lstrip("/")).read_bytes() for name in _names(folder)}
    except OSError as error:
        raise ToolError(f"{error.filename}: {error.strerror}: the backup is incomplete") from None
    if not found:
        raise ToolError(f"{folder} is a backup without files: there is nothing to restore")
    return found


def _write(coming: Path, contents: dict[str, bytes]) -> None:
    coming.mkdir(0o700)
    for name, content in contents.items():
        target = coming / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(0o600)
        _write_synced(target, content)
    listed = json.dumps({"files": list(contents)}, indent=2) + "\n"
    _write_synced(coming / NEXT, listed.encode())  # a name that no file of a board has
    (coming / NEXT).replace(coming / LIST)  # from here on the new backup is complete


def _write_synced(file: Path, content: bytes) -> None:
    with file.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _finish(folder: Path) -> None:
    # Replace the old backup by a complete new one, or continue to.
    coming = folder / NEXT
    if not (coming / LIST).is_file():
        return
    names = _names(coming)
    before = _names(folder) if (folder / LIST).is_file() else []
    for name in before:
        if name not in names:
            _remove(folder, name)
    for name in names:
        place = name.lstrip("/")
        if (coming / place).is_file():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (coming / place).replace(folder / place)
    (coming / LIST).replace(folder / LIST)
    shutil.rmtree(coming, ignore_errors=True)


def _remove(folder: Path, name: str) -> None:
    # The file, and folders that are empty without it
    file = folder / name.lstrip("/")
    file.unlink(missing_ok=True)
    with suppress(OSError):
        while file.parent != folder:
            file = file.parent
            file.rmdir()


def _names(folder: Path) -> list[str]:
    # The entries of the list: paths on the board, and the copy of a region
    try:
        found = [str(name) for name in json.loads((folder / LIST).read_bytes())["files"]]
        if all(_is_inside(folder, name) for name in found):
            return found
    except OSError:
        raise ToolError(
            f"{folder} is no backup: it has no {LIST}, which `slotmq backup` writes"
        ) from None
    except (ValueError, KeyError, TypeError):
        pass
    raise ToolError(f"{folder / LIST} is not a list that `slotmq backup` wrote")


def _is_inside(folder: Path, name: str) -> bool:
    # Does the path stay inside the folder, and is it none of the backup's own two names?
    place = name.lstrip("/")
    try:
        inside = folder.resolve()
        found = (inside / place).resolve()
    except (OSError, ValueError):
        return False
    own = (inside / LIST, inside / NEXT)
    return found.is_relative_to(inside) and found != inside and found not in own
