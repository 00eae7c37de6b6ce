"""MANIFEST.jsonl: a line for each bundle that is safe. Its number is a stream's offset,
so that lines are only ever added, and one whose bundle went into a larger one stays, empty.

A line without its newline was cut by a crash, and is none. The folder's lock is here too.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ToolError

NAME = "MANIFEST.jsonl"
BUNDLES = "bundles"
Key = tuple[str, int, int]  # board, boot, segment


@dataclass
class Line:
    """One bundle."""

    path: str
    size: int
    sha256: str
    segment_size: int
    segments: list[list[Any]]  # [board, boot, segment, first seq, last seq]
    harvested: float
    source: str
    growing: list[list[Any]] = field(default_factory=list)  # [board, boot, segment, bytes]

    def compacted(self, source: str) -> "Line":
        """The same line when its segments are in another bundle."""
        return Line("", 0, "", self.segment_size, [], self.harvested, source)


@dataclass(frozen=True)
class Copy:
    """Where a segment lies."""

    line: Line
    index: int  # of the segments of its bundle
    last: int
    grown: int | None  # bytes that were there, if the board was still writing it


class Manifest:
    """All lines of a folder; changes are on the disk when a method returns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / NAME
        self.lines = [Line(**entry) for entry in self._entries()]

    def _entries(self) -> Iterator[dict[str, Any]]:
        text = self._path.read_bytes() if self._path.exists() else b""
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line)
                yield {name: entry[name] for name in Line.__annotations__ if name in entry}
            except (ValueError, TypeError):
                raise ToolError(f"{self._path}:{number}: this is no line of a manifest") from None

    def append(self, line: Line) -> None:
        """Add a line behind the last whole one."""
        self.lines.append(line)
        text = self._path.read_bytes() if self._path.exists() else b""
        whole = text.rfind(b"\n") + 1
        with self._path.open("r+b" if text else "wb") as file:
            file.truncate(whole)
            file.seek(whole)
            file.write(_written(line))
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self.folder)

    def replace(self, lines: list[Line]) -> None:
        """All lines anew, at once."""
        replace_file(self._path, b"".join(map(_written, lines)))
        self.lines = lines

    def copies(self) -> dict[Key, Copy]:
        """The fullest copy of every segment."""
        found: dict[Key, Copy] = {}
        for line in self.lines:
            grown = {(board, boot, number): length for board, boot, number, length in line.growing}
            for index, (board, boot, number, _, last) in enumerate(line.segments):
                key = (board, boot, number)
                if key not in found or fuller(last, grown.get(key), found[key]):
                    found[key] = Copy(line, index, last, grown.get(key))
        return found


def fuller(last: int, grown: int | None, there: Copy) -> bool:
    """Does a copy have more, or the certainty that no more will come?"""
    return (last, grown is None) > (there.last, there.grown is None)


def _written(line: Line) -> bytes:
    entry = asdict(line)
    if not line.growing:
        del entry["growing"]
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name, then give it this one: never half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Names in it are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def locked(folder: Path) -> Iterator[Manifest]:
    """The folder's manifest, while nobody else harvests into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ToolError(f"{folder}: another harvest is at work there") from None
            yield Manifest(folder)
    except OSError as error:
        raise ToolError(f"{error.filename or folder}: {error.strerror}") from None
