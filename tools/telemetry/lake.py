"""The data lake: the folder of tables, its layout, commits and locks.

    bronze/batch=.../       good frames; a batch arrives by one rename, after its quarantine
    quarantine/batch=.../   bad frames
    silver, gold            links to .versions/..., replaced by one rename
    .NAME.json              where the tables come from
    .NAME.lock              held by the process that writes NAME; contains its id and computer

Everything is written to .staging first. So any glob below bronze, quarantine, silver or gold finds
committed files only.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import ToolError
from ..harvest.manifest import NAME as MANIFEST
from ..harvest.manifest import replace_file

LAST = "bronze"  # of the tables of a batch: what is there of it says that all is
_KEPT = 2  # versions: the newest, and the one that somebody may still be reading


class Lake:
    """A folder with tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def made(self) -> Lake:
        """The same, once the folder is there."""
        if (self.folder / MANIFEST).exists():
            raise ToolError(
                f"{self.folder} is a harvest folder; tables need a folder of their own"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ".staging").mkdir(exist_ok=True)
        except OSError as error:
            raise ToolError(f"{self.folder}: {error.strerror}") from None
        return self

    def batches(self, table: str = "bronze") -> list[str]:
        """The names of the batches that a table has."""
        there = self.folder.glob(f"{table}/batch=*")
        return sorted(path.name.removeprefix("batch=") for path in there)

    def remembered(self, name: str) -> dict[str, Any]:
        """What `remember` was told; {} if it was not."""
        path = self._memory(name)
        try:
            told = json.loads(path.read_text()) if path.exists() else {}
        except (OSError, ValueError) as error:
            raise ToolError(f"{path} cannot be read: {error}") from None
        return told if isinstance(told, dict) else {}

    def remember(self, name: str, told: dict[str, Any]) -> None:
        """On the disk when it returns."""
        replace_file(self._memory(name), json.dumps(told).encode())

    def _memory(self, name: str) -> Path:
        return self.folder / f".{name}.json"

    def has(self, name: str) -> bool:
        """Whether there is bronze, silver or gold."""
        return (self.folder / name).exists()

    def need(self, name: str) -> Lake:
        """The same, or ToolError: that step has not been taken."""
        if not self.has(name):
            raise ToolError(f"{self.folder} has no {name}: run `slotmq telemetry {name}` first")
        return self

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """While nobody else makes the same here; ToolError says who does."""
        with self._lock(name).open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                who = lock.read().strip() or "another process"
                raise ToolError(f"{self.folder}: {who} is writing {name}") from None
            except OSError:
                pass  # a file system without locks keeps nobody away
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {platform.node()}\n")
            lock.flush()
            yield

    def _lock(self, name: str) -> Path:
        return self.folder / f".{name}.lock"

    @contextmanager
    def staging(self, name: str) -> Iterator[Path]:
        """A folder to write in, empty, and gone afterwards but for what was committed."""
        path = self.folder / ".staging" / f"{name}-{os.getpid()}"
        shutil.rmtree(path, ignore_errors=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def add_batch(self, table: str, batch: str, written: Path) -> None:
        """Let `written` be a batch of `table`; one of bronze that is there is whole and stays."""
        target = self.folder / table / f"batch={batch}"
        target.parent.mkdir(exist_ok=True)
        written.mkdir(exist_ok=True, parents=True)
        _sync(written)
        if target.exists():
            if table == LAST:
                return
            shutil.rmtree(target)  # of a run that was stopped before it was done
        written.replace(target)
        _sync_folder(target.parent)

    def drop_batch(self, table: str, batch: str) -> None:
        """A batch that was never whole goes."""
        shutil.rmtree(self.folder / table / f"batch={batch}")

    def publish(self, name: str, written: Path) -> None:
        """Let `written`, with its tables, be what `name` shows from now on."""
        versions = self.folder / ".versions"
        versions.mkdir(exist_ok=True)
        last = max((_number(path) for path in versions.glob(f"{name}-*")), default=0)
        _sync(written)
        target = versions / f"{name}-{last + 1:06}"
        written.replace(target)
        link = self.folder / f".{name}-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(target.relative_to(self.folder))
        link.replace(self.folder / name)
        _sync_folder(self.folder)
        for old in sorted(versions.glob(f"{name}-*"), key=_number)[:-_KEPT]:
            shutil.rmtree(old)


def _number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])


def _sync(folder: Path) -> None:
    """Its files are on the disk before a rename says that they are."""
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir() or path.suffix == ".parquet":
            _sync_folder(path)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
