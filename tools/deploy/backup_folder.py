"""The folder of a backup: what belongs to it, and how the next one takes its place.

slotmq-backup.json lists what belongs to it; whatever else lies there is left alone. The next
backup is written into a folder of its own in there, its list last. With that list it is whole:
its files take the place of the ones before, and what is cut off there is brought to its end by
whoever opens the backup next. Until then the one before is as it was.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ToolError

LIST = "slotmq-backup.json"
NEXT = "slotmq-backup.new"


def check(folder: Path) -> None:
    """ToolError: it cannot be the folder of a backup, since something else is there."""
    with _told(folder):
        if not folder.is_dir():
            return
        _finish(folder)
        if (folder / LIST).is_file():
            _names(folder)
        elif any(each.name != NEXT for each in folder.iterdir()):
            raise ToolError(
                f"{folder} has files and is no backup: name a folder that is empty or not there"
            )


def put(folder: Path, contents: dict[str, bytes]) -> None:
    """Let these be the backup; ToolError: they are not, and the one before is."""
    places = {name.lstrip("/") for name in contents}
    for name in contents:
        if len(places) < len(contents) or not _is_inside(folder, name):
            raise ToolError(f"the board has a file that cannot lie in {folder}: {name!r}")
    coming = folder / NEXT
    with _told(folder):
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
    """All of it; ToolError: that is no backup, or not whole."""
    with _told(folder):
        if folder.is_dir():
            _finish(folder)
    try:
        found = {name: (folder / name.lstrip("/")).read_bytes() for name in _names(folder)}
    except OSError as error:
        raise ToolError(f"{error.filename}: {error.strerror}: the backup is not whole") from None
    if not found:
        raise ToolError(f"{folder} is a backup that was interrupted, and has nothing to restore")
    return found


def _write(coming: Path, contents: dict[str, bytes]) -> None:
    coming.mkdir(0o700)
    for name, content in contents.items():
        target = coming / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(0o600)
        _write_down(target, content)
    listed = json.dumps({"files": list(contents)}, indent=2) + "\n"
    _write_down(coming / "list", listed.encode())
    (coming / "list").replace(coming / LIST)  # now it is whole


def _write_down(file: Path, content: bytes) -> None:
    with file.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _finish(folder: Path) -> None:
    # What is whole takes its place, if it has not yet.
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
    file = folder / name.lstrip("/")
    file.unlink(missing_ok=True)
    with suppress(OSError):  # something else is in there
        while file.parent != folder:
            file = file.parent
            file.rmdir()


def _names(folder: Path) -> list[str]:
    # Paths on the board, and the copy of a region
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
    raise ToolError(f"{folder / LIST} is not as `slotmq backup` has written it")


def _is_inside(folder: Path, name: str) -> bool:
    # Nor may it stand in the place of what a backup itself has there.
    place = name.lstrip("/")
    try:
        inside = folder.resolve()
        found = (inside / place).resolve()
    except (OSError, ValueError):
        return False
    own = (inside / LIST, inside / NEXT)
    return found.is_relative_to(inside) and found != inside and found not in own


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ToolError(f"{error.filename or folder}: {error.strerror}") from None
