"""Bronze and quarantine: decodes the lines of the manifest that they do not have yet.

A transaction of either table says how many lines of a harvest folder it has, and a checksum of
them. The folder is known by its id, so that it may be moved and compacted; several folders may
fill the same tables. For a line that cannot be read now each of the two has a file `unread-`, and
the next run reads it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from slotmq_tools.errors import ToolError, why

from . import manifest
from .decode import Place, frames_of, unread_rows
from .decode import decode as decode_bytes
from .engine import Engine, Work
from .folder import Folder
from .harvest.manifest import NAME, Key, Line, Manifest, Segment
from .lake import File, Lake, stem, write
from .manifest import Part
from .schemas import BRONZE, QUARANTINE, Table

_OPEN = re.compile(r"([0-9a-f]{16})-([0-9a-f]{8})-([0-9a-f]{8})")
_OPEN_FILE = re.compile(r"board=([0-9a-f]{16})/open-([0-9a-f]{8})-([0-9a-f]{8})-(\d+)\.parquet")
UNREAD = "unread"  # instead of a table: a line that a task cannot read
MANY = 20  # new bundles: if none of more can be read, their disk is away
_LEAST, _MOST = 4 << 20, 16 << 20  # bytes of bundles in a task


@dataclass(frozen=True)
class Taken:
    """What a run has read."""

    first: int  # line of the manifest that was new
    last: int  # behind the last one
    unread: tuple[str, ...] = ()  # bundles that cannot be read now, and why


def ingest(engine: Engine, harvest: Folder | Path, lake: Lake) -> Taken:
    """Read the lines that bronze has not got, and the segments that boards are still writing;
    running it again does nothing, but to ask again for bundles that could not be read."""
    folder = Folder(harvest)
    with lake.locked("bronze"):
        if not folder.is_remote and not folder.has(NAME):  # nothing is sealed yet
            fresh, old = _open_ones(folder, lake, lake.files(BRONZE), None)
            if fresh:
                lake.commit(BRONZE, fresh, old)
            return Taken(0, 0)
        with manifest.opened(folder) as lines:
            return _ingest(engine, lines, folder, lake)


def _ingest(engine: Engine, lines: Manifest, harvest: Folder, lake: Lake) -> Taken:
    first, count = done(lake, BRONZE, lines), lines.count()
    tables = {BRONZE: range(first, count), QUARANTINE: range(done(lake, QUARANTINE, lines), count)}
    paths = {table: lake.files(table) for table in tables}
    waiting = {table: _waiting(paths[table], lines) for table in tables}
    lacks = {table: {*waiting[table], *some} for table, some in tables.items()}
    fresh, old = _open_ones(harvest, lake, paths[BRONZE], lines)
    found, unread = [*fresh], dict[int, str]()
    late = lacks[QUARANTINE] - lacks[BRONZE]  # a run was killed between its two transactions
    for wanted in (late, waiting[BRONZE].keys(), tables[BRONZE]):
        files, failed = _read(engine, lines, harvest, lake, wanted)
        found += [file for file in files if wanted is not late or file.table == QUARANTINE.name]
        unread |= failed
    name, mark = f"harvest-{lines.id}", _mark(lines, count)
    for table in tables:
        new = [file for file in found if file.table == table.name]
        for line in unread.keys() & lacks[table] - waiting[table].keys():
            new += _note(lake, table, lines, line, unread[line])
        gone = [path for line, paths in waiting[table].items() if line not in unread
                for path in paths]  # fmt: skip
        gone += old if table is BRONZE else []
        if new or gone or (lake.marked(table, name) or 0) != mark:
            lake.commit(table, new, gone, {name: mark})
    told = (f"{lines.lines(n, n + 1)[0].path}: {unread[n]}" for n in sorted(unread))
    return Taken(first, count, (*told,))


def _waiting(paths: Iterable[str], lines: Manifest) -> dict[int, list[str]]:
    """The lines that could not be read, and the files of a table that note it."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in (path for path in paths if f"/unread-{lines.id}-" in path):
        found[int(stem(path).rpartition("-")[2])].append(path)
    return found


def _note(lake: Lake, table: Table, lines: Manifest, line: int, said: str) -> Iterable[File]:
    """Files that say that a line is not read: in bronze by name, in quarantine each segment."""
    name = f"unread-{lines.id}-{line}"
    if table is BRONZE:
        return [write(lake.folder, table, table.schema.empty_table(), name, None)]
    (about,) = lines.filled(lines.lines(line, line + 1))
    return written(lake.folder, [unread_rows(about, said)], name)


def _read(
    engine: Engine, lines: Manifest, harvest: Folder, lake: Lake, wanted: Collection[int]
) -> tuple[list[File], dict[int, str]]:
    """What these lines have, and why some cannot be read now, of which no file has anything."""
    runs = [wanted] if isinstance(wanted, range) else [range(line, line + 1) for line in wanted]
    bundles = lines.filled(each for run in runs for each in lines.lines(run.start, run.stop))
    unread: dict[int, str] = {}
    while True:
        found = decode(engine, harvest, bundles, lake.folder)
        failed = {file.size: file.path for file in found if file.table == UNREAD}
        if not failed:
            return found, unread
        there = {one.line: one.path for one in bundles if one.path}
        if isinstance(wanted, range) and failed.keys() == there.keys() and len(failed) > MANY:
            line, said = min(failed.items())
            raise ToolError(f"{harvest}: no new bundle can be read ({there[line]}: {said})")
        for file in found:
            engine.rows[file.table] -= file.rows
        unread |= failed
        bundles = [bundle for bundle in bundles if bundle.line not in unread]


def _growing(harvest: Folder) -> dict[Key, Path]:
    """The segments that boards are still writing, as far as they were fetched (live)."""
    found = {}
    for file in [] if harvest.is_remote else (harvest / ".").glob("partial/*.open"):
        if match := _OPEN.fullmatch(file.stem):
            found[match[1], int(match[2], 16), int(match[3], 16)] = file
    return found


def _open_ones(
    harvest: Folder, lake: Lake, paths: Iterable[str], lines: Manifest | None
) -> tuple[list[File], list[str]]:
    """Files of what growing segments have now, and those that they replace, or a bundle does."""
    there: dict[Key, tuple[int, str]] = {}
    for path in (path for path in paths if "/open-" in path):
        if match := _OPEN_FILE.fullmatch(path):
            key = match[1], int(match[2], 16), int(match[3], 16)
            there[key] = int(match[4]), path
    now = _growing(harvest)
    sealed = {key for key in {*there, *now} if lines and lines.copies(key=key)}
    fresh, old = [], [path for key, (_, path) in there.items() if key in sealed]
    for key, file in now.items():
        data, (size, before) = file.read_bytes(), there.get(key, (0, ""))
        if key in sealed or len(data) <= size:
            continue
        place = Place(file.name, -1, 0, int(file.stat().st_mtime * 1000))
        name = f"open-{key[1]:08x}-{key[2]:08x}-{len(data)}"
        some = written(lake.folder, decode_bytes(data, len(data), place, sealed=False), name)
        fresh += [one for one in some if one.table == BRONZE.name]
        old += [before] if before else []
    return fresh, old


def done(lake: Lake, table: Table, lines: Manifest) -> int:
    """How many lines of a harvest folder the table has."""
    mark = lake.marked(table, f"harvest-{lines.id}") or 0
    count = mark >> 32
    if count > lines.count():
        raise ToolError(
            f"{lines.folder} has {lines.count()} lines; {lake.folder} has read {count} of this"
            " harvest folder, so this is an older copy of it, or one that was harvested into"
            " differently: name the newer one, or use another folder of tables"
        )
    if mark != _mark(lines, count):
        raise ToolError(
            f"{lines.folder} begins like a harvest folder that {lake.folder} has read, and is"
            " another: use one folder of tables for each of the two"
        )
    return count


def _mark(lines: Manifest, count: int) -> int:
    """How many lines, and which."""
    return count << 32 | lines.history(count)


def decode(engine: Engine, harvest: Folder, bundles: Sequence[Line], target: Folder) -> list[File]:
    """Every frame of the bundles into files below `target`."""
    size = sum(bundle.size for bundle in bundles)
    limit = min(max(size // 16, _LEAST), _MOST)
    about = {"harvest": str(harvest), "target": str(target)}
    work = [about | {"parts": parts} for parts in manifest.parts(bundles, limit)]
    return engine.run(decoded, work, size)


def decoded(work: Work) -> Iterator[File]:
    """The files of a task, and the lines that it cannot read."""
    batches: list[pa.RecordBatch] = []
    for each in work["parts"]:
        *where, segments = each
        part = Part._make([*where, [Segment(*segment) for segment in segments]])
        try:
            batches += frames_of(Folder(work["harvest"]), part)
        except Exception as error:  # whatever it has, no bundle stops another
            yield File(UNREAD, why(error), part.line, 0)
    yield from written(Folder(work["target"]), batches)


def written(
    folder: Folder, batches: Iterable[pa.RecordBatch], name: str | None = None
) -> Iterator[File]:
    """A file of good frames, and one of bad ones, for each board."""
    found: dict[tuple[str, str | None], list[pa.Table]] = defaultdict(list)
    tables = {table.name: table for table in (BRONZE, QUARANTINE)}
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        is_good = pc.is_null(rows.column("reason"))
        for table, mask in ((BRONZE, is_good), (QUARANTINE, pc.invert(is_good))):
            for board, some in _by_board(rows.filter(mask)):
                found[table.name, board].append(some)
    name = name or uuid4().hex
    for (table_name, board), some in found.items():
        yield write(folder, tables[table_name], pa.concat_tables(some), name, board)


def _by_board(rows: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    boards = pc.unique(rows.column("board")).to_pylist()
    for board in boards:
        if len(boards) == 1:
            yield board, rows
        elif board is None:
            yield None, rows.filter(pc.is_null(rows.column("board")))
        else:
            yield board, rows.filter(pc.equal(rows.column("board"), board))
