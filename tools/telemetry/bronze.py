"""Bronze and quarantine: decodes the lines of the manifest that they do not have yet.

A transaction of either table says how many lines of a harvest folder it has, and a checksum of
them. The folder is known by its id, so that it may be moved and compacted; several folders may
fill the same tables.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ToolError
from ..harvest.manifest import NAME, Key, Manifest
from . import manifest
from .decode import Place, frames_of
from .decode import decode as decode_bytes
from .engine import Engine, Work
from .folder import Folder
from .lake import File, Lake, write
from .manifest import Bundle, Part
from .schemas import BRONZE, QUARANTINE, Table

_OPEN = re.compile(r"([0-9a-f]{16})-([0-9a-f]{8})-([0-9a-f]{8})")
_OPEN_FILE = re.compile(r"board=([0-9a-f]{16})/open-([0-9a-f]{8})-([0-9a-f]{8})-(\d+)\.parquet")
_LEAST, _MOST = 4 << 20, 16 << 20  # bytes of bundles in a task


@dataclass(frozen=True)
class Taken:
    """Which lines of the manifest a run has read, from the first up to the last."""

    first: int
    last: int


def ingest(engine: Engine, harvest: Folder | Path, lake: Lake) -> Taken:
    """Read the lines that bronze has not got, and the segments that boards are still writing;
    running it again does nothing."""
    folder = Folder(harvest)
    with lake.locked("bronze"):
        if not folder.is_remote and not folder.has(NAME):  # nothing is sealed yet
            fresh, old = _open_ones(folder, lake, None)
            if fresh:
                lake.commit(BRONZE, fresh, old)
            return Taken(0, 0)
        with manifest.opened(folder) as lines:
            return _ingest(engine, lines, folder, lake)


def _ingest(engine: Engine, lines: Manifest, harvest: Folder, lake: Lake) -> Taken:
    taken = Taken(done(lake, BRONZE, lines), lines.count())
    # A run that was killed between its two transactions has left one of them to do.
    late = min(done(lake, QUARANTINE, lines), taken.first)
    marks = {f"harvest-{lines.id}": _mark(lines, taken.last)}
    if late < taken.first:
        missed = manifest.bundles(lines.lines(late, taken.first))
        some = [f for f in decode(engine, harvest, missed, lake.folder) if _is_bad(f)]
        lake.commit(QUARANTINE, some, (), {f"harvest-{lines.id}": _mark(lines, taken.first)})
    new = manifest.bundles(lines.lines(taken.first, taken.last))
    found = decode(engine, harvest, new, lake.folder)
    fresh, old = _open_ones(harvest, lake, lines)
    if new or fresh or old:
        lake.commit(BRONZE, [*(f for f in found if not _is_bad(f)), *fresh], old, marks)
    if new:
        lake.commit(QUARANTINE, [f for f in found if _is_bad(f)], (), marks)
    return taken


def _is_bad(file: File) -> bool:
    return file.table == QUARANTINE.name


def _growing(harvest: Folder) -> dict[Key, Path]:
    """The segments that boards are still writing, as far as they were fetched (live)."""
    found = {}
    for file in [] if harvest.is_remote else (harvest / ".").glob("partial/*.open"):
        if match := _OPEN.fullmatch(file.stem):
            found[match[1], int(match[2], 16), int(match[3], 16)] = file
    return found


def _open_ones(
    harvest: Folder, lake: Lake, lines: Manifest | None
) -> tuple[list[File], list[str]]:
    """Files of what growing segments have now, and those that they replace, or a bundle does."""
    there: dict[Key, tuple[int, str]] = {}
    for path in (path for path in lake.files(BRONZE) if "/open-" in path):
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
        fresh += [one for one in some if not _is_bad(one)]
        old += [before] if before else []
    return fresh, old


def done(lake: Lake, table: Table, lines: Manifest) -> int:
    """How many lines of a harvest folder the table has."""
    mark = lake.marked(table, f"harvest-{lines.id}") or 0
    count = mark >> 32
    if count > lines.count() or mark != _mark(lines, count):
        raise ToolError(
            f"{lines.folder} begins like a harvest folder that {lake.folder} has read, and is"
            " another: use one folder of tables for each of the two"
        )
    return count


def _mark(lines: Manifest, count: int) -> int:
    """How many lines, and which."""
    return count << 32 | lines.history(count)


def decode(
    engine: Engine, harvest: Folder, bundles: Sequence[Bundle], target: Folder | None
) -> list[File]:
    """Every frame of the bundles into files below `target`; without one they are counted only."""
    size = sum(bundle.size for bundle in bundles)
    limit = min(max(size // 16, _LEAST), _MOST)
    work = [
        {"harvest": str(harvest), "target": target and str(target),
         "parts": [asdict(part) for part in parts]}
        for parts in manifest.parts(bundles, limit)
    ]  # fmt: skip
    return engine.run(decoded, work, size)


def decoded(work: Work) -> Iterator[File]:
    """The files of a task."""
    parts = (Part(Bundle(**part["bundle"]), part["start"], part["end"]) for part in work["parts"])
    batches = (b for p in parts for b in frames_of(Folder(work["harvest"]), p))
    if work["target"] is None:
        yield File("", "", 0, sum(batch.num_rows for batch in batches))
    else:
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
