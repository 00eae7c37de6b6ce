"""A folder of harvests or of tables: on this computer, or in an object store (s3://BUCKET/PATH).

Object stores are read and written through Arrow's file systems; Delta's logs through deltalake.
Both take what they need to log in from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL...).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from slotmq_tools.errors import ToolError


class Folder:
    """Where files are, by their paths from it. What fails is an OSError."""

    def __init__(self, where: Path | str | Folder) -> None:
        self.is_remote = "://" in str(where)
        self.url = str(where).rstrip("/") if self.is_remote else str(Path(where).absolute())

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Path:
        """A path on this computer."""
        if self.is_remote:
            raise ToolError(f"{self.url} is not on this computer")
        return Path(self.url, name)

    def arrow(self, name: str) -> fs.FileSystem:
        """A folder in it, as Arrow's own threads read it."""
        system, root = _system(self.url) if self.is_remote else (fs.LocalFileSystem(), self.url)
        return fs.SubTreeFileSystem(f"{root}/{name}", system)

    def open(self, name: str) -> Any:
        """A file to read from, at any place."""
        if not self.is_remote:
            return (self / name).open("rb")
        system, root = _system(self.url)
        return system.open_input_file(f"{root}/{name}")

    def read(self, name: str) -> bytes | None:
        """All of a file; None: it is not there."""
        try:
            with self.open(name) as file:
                found: bytes = file.read()
                return found
        except FileNotFoundError:
            return None

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        if not self.is_remote:
            return (self / name).exists()
        system, root = _system(self.url)
        return bool(system.get_file_info(f"{root}/{name}").type == fs.FileType.File)

    def write(self, name: str, fill: Callable[[Any], None], *, synced: bool = False) -> int:
        """Write a file as a whole, in place of one with its name; `synced`: it is on the disk.
        -> its size."""
        if self.is_remote:
            system, root = _system(self.url)
            memory = pa.BufferOutputStream()
            fill(memory)
            data = memory.getvalue()
            with system.open_output_stream(f"{root}/{name}") as file:
                file.write(data)
            return int(data.size)
        target = self / name
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(f".{target.stem}.{uuid4().hex}")
        try:
            with fresh.open("wb") as local:
                fill(local)
                if synced:
                    local.flush()
                    os.fsync(local.fileno())
                size = local.tell()
            fresh.replace(target)
        except OSError as error:  # a full disk, say, has no name
            fresh.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror or str(error), str(target)) from None
        return size


@cache
def _system(url: str) -> tuple[Any, str]:
    """Arrow's file system, and the folder's path in it."""
    try:
        system, root = fs.FileSystem.from_uri(url)
    except (OSError, pa.ArrowException) as error:
        raise ToolError(f"{url}: {' '.join(str(error).split())}") from None
    return system, root.rstrip("/")
