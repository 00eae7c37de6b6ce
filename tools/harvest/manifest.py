"""MANIFEST.jsonl, the list of bundles that are safely on the disk; and the lock of the folder.

The number of a line is the offset of a stream. So lines are only added, and the line of a bundle
that was merged into a larger one stays, empty. A line without a newline was cut by a crash and is
ignored.
"""

import fcntl
import json
import os
from collections.abc import Container, Iterator
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

    @property
    def is_even(self) -> bool:
        """Does every segment lie where its number says? An older slotmq wrote those that were
        longer than their size as they were, and what follows one cannot be found."""
        return self.size == self.segment_size * len(self.segments)

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
        self.lines = list(self._read())

    def _read(self) -> Iterator[Line]:
        text = self._path.read_bytes() if self._path.exists() else b""
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield _line(json.loads(line))
            except (ValueError, TypeError, KeyError, RecursionError):
                raise ToolError(f"{self._path}:{number}: not a manifest line") from None

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

    def copies(self, without: Container[str] = ()) -> dict[Key, Copy]:
        """The fullest copy of every segment, of those that can be found in their bundles, but
        for the bundles with these paths."""
        found: dict[Key, Copy] = {}
        for line in self.lines:
            if not line.is_even or line.path in without:
                continue
            grown = {(board, boot, number): length for board, boot, number, length in line.growing}
            for index, (board, boot, number, _, last) in enumerate(line.segments):
                key = (board, boot, number)
                if key not in found or fuller(last, grown.get(key), found[key]):
                    found[key] = Copy(line, index, last, grown.get(key))
        return found


def fuller(last: int, grown: int | None, there: Copy) -> bool:
    """Does a copy have more, or the certainty that no more will come?"""
    return (last, grown is None) > (there.last, there.grown is None)


def _line(told: Any) -> Line:
    """What a line says, if it is one; ValueError, TypeError or KeyError."""
    entry = {name: told[name] for name in Line.__annotations__ if name != "growing"}
    line = Line(**entry, growing=told.get("growing", []))
    texts = (line.path, line.sha256, line.source)
    parts = Path(line.path).parts
    right = (
        all(isinstance(text, str) for text in texts)
        and isinstance(line.size, int)
        and isinstance(line.segment_size, int)
        and isinstance(line.harvested, int | float)
        and all(_numbered(each, 4) for each in line.segments)
        and all(_numbered(each, 3) for each in line.growing)
        and (line.path == "" or (len(parts) == 2 and parts[0] == BUNDLES))
    )
    if not right:
        raise ValueError
    return line


def _numbered(entry: list[Any], count: int) -> bool:
    board, *numbers = entry
    return isinstance(board, str) and [type(one) for one in numbers] == [int] * count


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
        if (folder / "bronze").exists() and not (folder / NAME).exists():
            raise ToolError(f"{folder} is a folder of tables; a harvest needs a folder of its own")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ToolError(f"{folder}: another harvest is running there") from None
            yield Manifest(folder)
    except OSError as error:
        raise ToolError(f"{error.filename or folder}: {error.strerror}") from None
