"""Bronze and quarantine: decodes the lines of the manifest that they do not have yet.

A transaction of either table says how many lines of a harvest folder it has. The folder is known
by its first line, and is checked by a hash of all lines that were read, so that it may be moved
and compacted; several folders may fill the same tables.
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
from . import manifest
from .decode import Place, frames_of
from .decode import decode as decode_bytes
from .engine import Engine, Work
from .lake import File, Lake, write
from .manifest import NAME as MANIFEST
from .manifest import Bundle, Key, Part
from .schemas import BRONZE, QUARANTINE, Table

_OPEN = re.compile(r"([0-9a-f]{16})-([0-9a-f]{8})-([0-9a-f]{8})")
_OPEN_FILE = re.compile(r"board=([0-9a-f]{16})/open-([0-9a-f]{8})-([0-9a-f]{8})-(\d+)\.parquet")
_LEAST, _MOST = 4 << 20, 16 << 20  # bytes of bundles in a task


@dataclass(frozen=True)
class Taken:
    """Which lines of the manifest a run has read, from the first up to the last."""

    first: int
    last: int


def ingest(engine: Engine, harvest: Path, lake: Lake) -> Taken:
    """Read the lines that bronze has not got, and the segments that boards are still writing;
    running it again does nothing."""
    with lake.locked("bronze"):
        bundles = manifest.read(harvest) if (harvest / MANIFEST).exists() else []
        taken = Taken(done(lake, BRONZE, harvest, bundles), len(bundles))
        # A run that was killed between its two transactions has left one of them to do.
        late = min(done(lake, QUARANTINE, harvest, bundles), taken.first)
        if late < taken.first:
            found = decode(engine, harvest, bundles[late : taken.first], lake.folder)
            _commit(lake, QUARANTINE, found, (), bundles[: taken.first])
        found = decode(engine, harvest, bundles[taken.first :], lake.folder)
        fresh, old = _open_ones(harvest, lake)
        if taken.first < taken.last or fresh or old:
            _commit(lake, BRONZE, [*found, *fresh], old, bundles)
        if taken.first < taken.last:
            _commit(lake, QUARANTINE, found, (), bundles)
        return taken


def _commit(
    lake: Lake, table: Table, found: Iterable[File], removed: Sequence[str],
    bundles: Sequence[Bundle],
) -> None:  # fmt: skip
    marks = {_folder(bundles): len(bundles), _read(bundles): len(bundles)} if bundles else {}
    lake.commit(table, [f for f in found if f.table == table.name], removed, marks)


def growing(harvest: Path) -> dict[Key, Path]:
    """The segments that boards are still writing, as far as they were fetched (live)."""
    found = {}
    for file in harvest.glob("partial/*.open"):
        if match := _OPEN.fullmatch(file.stem):
            found[match[1], int(match[2], 16), int(match[3], 16)] = file
    return found


def _open_ones(harvest: Path, lake: Lake) -> tuple[list[File], list[str]]:
    """Files of what growing segments have now, and those that they replace, or a bundle does."""
    there: dict[Key, tuple[int, str]] = {}
    for path in lake.files(BRONZE):
        if match := _OPEN_FILE.fullmatch(path):
            key = match[1], int(match[2], 16), int(match[3], 16)
            there[key] = int(match[4]), path
    now = growing(harvest)
    if not (there or now):
        return [], []
    sealed = manifest.segments(harvest) if (harvest / MANIFEST).exists() else set()
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


def done(lake: Lake, table: Table, harvest: Path, bundles: Sequence[Bundle]) -> int:
    """How many lines of a harvest folder the table has."""
    lines = lake.marked(table, _folder(bundles)) or 0 if bundles else 0
    if lines and (lines > len(bundles) or lake.marked(table, _read(bundles[:lines])) != lines):
        raise ToolError(
            f"{harvest} begins like a harvest folder that {lake.folder} has read, and is another:"
            " use one folder of tables for each of the two"
        )
    return lines


def _folder(bundles: Sequence[Bundle]) -> str:
    return f"harvest-{manifest.mark(bundles[:1])[:16]}"


def _read(bundles: Sequence[Bundle]) -> str:
    return f"lines-{manifest.mark(bundles)[:16]}"


def decode(
    engine: Engine, harvest: Path, bundles: Sequence[Bundle], target: Path | None
) -> list[File]:
    """Every frame of the bundles into files below `target`; without one they are counted only."""
    size = sum(bundle.size for bundle in bundles)
    limit = min(max(size // 16, _LEAST), _MOST)
    work = [
        {"harvest": str(harvest.absolute()), "target": target and str(target),
         "parts": [asdict(part) for part in parts]}
        for parts in manifest.parts(bundles, limit)
    ]  # fmt: skip
    return engine.run(decoded, work, size)


def decoded(work: Work) -> Iterator[File]:
    """The files of a task."""
    parts = (Part(Bundle(**part["bundle"]), part["start"], part["end"]) for part in work["parts"])
    batches = (b for p in parts for b in frames_of(Path(work["harvest"]), p))
    if work["target"] is None:
        yield File("", "", 0, sum(batch.num_rows for batch in batches))
    else:
        yield from written(Path(work["target"]), batches)


def written(
    folder: Path, batches: Iterable[pa.RecordBatch], name: str | None = None
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
