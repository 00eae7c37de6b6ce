"""MANIFEST.sqlite, the list of bundles that are safely on the disk; and the lock of the folder.

    folder     one row: an id, which stays if the folder is moved or copied
    bundles    a line for each. Its number is the offset of a stream, so the line of a bundle that
               was merged into a larger one stays, without a path
    segments   what lies in each bundle, in order

Only what is asked for is read.
"""

import fcntl
import os
import sqlite3
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4
from zlib import crc32

from slotmq_tools.errors import ToolError

NAME = "MANIFEST.sqlite"
BUNDLES = "bundles"
_PATIENCE_S = 30.0  # until another process has read or written
Key = tuple[str, int, int]  # board, boot, segment

_TABLES = """
begin;
create table folder (id text not null);
create table bundles (
    line integer primary key, path text not null, size integer not null, sha256 text not null,
    segment_size integer not null, harvested real not null, source text not null,
    history integer not null  -- a checksum of this line and all before it
);
create table segments (
    line integer not null, place integer not null, board text not null, boot integer not null,
    number integer not null, first integer not null, last integer not null,
    grown integer,  -- bytes that were there, if the board was still writing it
    primary key (line, place)
) without rowid;
create index by_board on segments (board, number, boot);
insert into folder values ('{}');
commit;
"""
_BUNDLES = "select line, path, size, sha256, segment_size, harvested, source from bundles"
_COPIES = """
select board, boot, number, first, last, grown, place,
       line, path, size, sha256, segment_size, harvested, source
from segments join bundles using (line) {} order by last desc, grown is not null, line
"""


class Segment(NamedTuple):
    """A segment in a bundle."""

    board: str
    boot: int
    number: int
    first: int  # seqs
    last: int
    grown: int | None = None  # bytes that were there, if the board was still writing it

    @property
    def key(self) -> Key:
        return self[:3]


@dataclass
class Line:
    """One bundle."""

    path: str
    size: int
    sha256: str
    segment_size: int
    harvested: float  # Unix time, s
    source: str
    segments: list[Segment] = field(default_factory=list)
    line: int = -1


@dataclass(frozen=True)
class Copy:
    """Where a segment lies."""

    line: Line  # without its segments
    index: int  # of the segments of its bundle
    segment: Segment

    @property
    def last(self) -> int:
        return self.segment.last

    @property
    def grown(self) -> int | None:
        return self.segment.grown


class Manifest:
    """The lines of a folder; changes are on the disk when a method returns."""

    def __init__(self, folder: Path, lines: sqlite3.Connection) -> None:
        self.folder, self._lines = folder, lines
        ((self.id,),) = lines.execute("select id from folder")

    def count(self) -> int:
        """How many lines there are."""
        ((count,),) = self._lines.execute("select coalesce(max(line) + 1, 0) from bundles")
        return int(count)

    def bundles(self, first: int = 0) -> int:
        """How many lines have a bundle, from `first` on; others were merged into one of these."""
        asked = "select count(*) from bundles where path != '' and line >= ?"
        ((count,),) = self._lines.execute(asked, (first,))
        return int(count)

    def history(self, count: int) -> int:
        """A checksum of the first so many lines, which stays when their bundles are merged."""
        found = self._lines.execute("select history from bundles where line = ?", (count - 1,))
        return next((int(sum_) for (sum_,) in found), 0)

    def lines(self, first: int = 0, last: int | None = None) -> list[Line]:
        """The lines from `first` up to, not including, `last`; without their segments."""
        end = self.count() if last is None else last
        asked = f"{_BUNDLES} where line >= ? and line < ? order by line"
        return [_line(row) for row in self._lines.execute(asked, (first, end))]

    def filled(self, lines: Iterable[Line] | None = None) -> list[Line]:
        """These lines with their segments; all by default."""
        asked = ("select board, boot, number, first, last, grown from segments where line = ?"
                 " order by place")  # fmt: skip
        found = self.lines() if lines is None else list(lines)
        for line in found:
            line.segments = [Segment(*row) for row in self._lines.execute(asked, (line.line,))]
        return found

    def append(self, *lines: Line) -> None:
        """Add lines."""
        with self._lines:
            self._add(lines)

    def replace(self, gone: Iterable[Line], fresh: Sequence[Line], source: str) -> None:
        """At once: add lines, and take bundles and segments from others, which `source` tells."""
        with self._lines:
            for line in gone:
                change = "update bundles set path = '', size = 0, sha256 = '', source = ?"
                self._lines.execute(f"{change} where line = ?", (source, line.line))
                self._lines.execute("delete from segments where line = ?", (line.line,))
            self._add(fresh)

    def _add(self, lines: Iterable[Line]) -> None:
        count = self.count()
        history = self.history(count)
        for line in lines:
            line.line = count
            history = crc32(f"{line.segment_size} {line.harvested}".encode(), history)
            row = (count, line.path, line.size, line.sha256, line.segment_size, line.harvested,
                   line.source, history)  # fmt: skip
            self._lines.execute("insert into bundles values (?, ?, ?, ?, ?, ?, ?, ?)", row)
            self._lines.executemany(
                "insert into segments values (?, ?, ?, ?, ?, ?, ?, ?)",
                [(count, place, *each) for place, each in enumerate(line.segments)],
            )
            count += 1

    def copies(
        self, board: str | None = None, key: Key | None = None, without: Container[str] = ()
    ) -> dict[Key, Copy]:
        """The fullest copy of every segment, of a board's, or of one; but for the bundles with
        these paths."""
        where, of = "", ()  # type: tuple[str, tuple[Any, ...]]
        if key is not None:
            where, of = "where board = ? and boot = ? and number = ?", key
        elif board is not None:
            where, of = "where board = ?", (board,)
        found: dict[Key, Copy] = {}
        for row in self._lines.execute(_COPIES.format(where), of):
            segment, index, line = Segment(*row[:6]), row[6], row[7:]
            if segment.key not in found and line[1] not in without:
                found[segment.key] = Copy(_line(line), index, segment)
        return found


def _line(row: Sequence[Any]) -> Line:
    number, *about = row
    return Line(*about, line=number)


def fuller(last: int, grown: int | None, there: Copy) -> bool:
    """Does a copy have more, or the certainty that no more will come?"""
    return (last, grown is None) > (there.last, there.grown is None)


def _make_tables(lines: sqlite3.Connection) -> None:
    """Those of a new folder, if the file has none yet."""
    if not lines.execute("select count(*) from sqlite_master").fetchone()[0]:
        lines.executescript(_TABLES.format(uuid4().hex[:16]))


@contextmanager
def opened(folder: Path | str, file: Path) -> Iterator[Manifest]:
    """To read only, the file of a folder; ToolError: it cannot be read."""
    try:
        where = f"{file.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(where, timeout=_PATIENCE_S, uri=True)) as lines:
            yield Manifest(Path(folder), lines)
    except sqlite3.Error as error:
        raise ToolError(f"{folder}/{NAME} cannot be read: {error}") from None


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
    """The folder's manifest, while nobody else harvests into it. A folder that is new, and in
    which nothing has come when the block fails, is not left behind."""
    try:
        is_new = not (folder / NAME).exists()
        if is_new and (folder / "bronze").exists():
            raise ToolError(f"{folder} is a folder of tables; a harvest needs a folder of its own")
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ToolError(f"{folder}: another harvest is running there") from None
            with closing(sqlite3.connect(folder / NAME, timeout=_PATIENCE_S)) as lines:
                _make_tables(lines)
                found = Manifest(folder, lines)
                try:
                    yield found
                except BaseException:
                    if is_new and not found.count():
                        _remove(folder)
                    raise
    except OSError as error:
        raise ToolError(f"{error.filename or folder}: {error.strerror}") from None
    except sqlite3.Error as error:
        raise ToolError(f"{folder / NAME}: {error}") from None


def _remove(folder: Path) -> None:
    """If there are no pieces of segments in it."""
    with suppress(OSError):
        if (folder / "partial").exists():
            (folder / "partial").rmdir()
        (folder / NAME).unlink()
        (folder / ".lock").unlink()
        folder.rmdir()
