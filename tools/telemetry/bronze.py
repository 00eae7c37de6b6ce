"""Bronze and quarantine: decodes the lines of the manifest that they do not have yet.

A transaction of either table says how many lines of a harvest folder it has. The folder is known
by its first line, and is checked by a hash of all lines that were read, so that it may be moved
and compacted; several folders may fill the same tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ToolError
from . import manifest
from .decode import frames_of
from .engine import Engine, Work
from .lake import File, Lake, write
from .manifest import Bundle, Part
from .schemas import BRONZE, QUARANTINE, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEAST, _MOST = 4 << 20, 16 << 20  # bytes of bundles in a task


@dataclass(frozen=True)
class Taken:
    """Which lines of the manifest a run has read, from the first up to the last."""

    first: int
    last: int


def ingest(engine: Engine, harvest: Path, lake: Lake) -> Taken:
    """Read the lines that bronze has not got; running it again does nothing."""
    with lake.locked("bronze"):
        bundles = manifest.read(harvest)
        taken = Taken(done(lake, BRONZE, harvest, bundles), len(bundles))
        # A run that was killed between its two transactions has left one of them to do.
        late = min(done(lake, QUARANTINE, harvest, bundles), taken.first)
        for first, last, tables in (
            (late, taken.first, [QUARANTINE]),
            (taken.first, taken.last, [BRONZE, QUARANTINE]),
        ):
            if first < last:
                found = decode(engine, harvest, bundles[first:last], lake.folder)
                marks = {_folder(bundles): last, _read(bundles[:last]): last}
                for table in tables:
                    lake.commit(table, [f for f in found if f.table == table.name], (), marks)
        return taken


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


def written(folder: Path, batches: Iterable[pa.RecordBatch], prefix: str = "") -> Iterator[File]:
    """A file of good frames, and one of bad ones, for each board."""
    found: dict[tuple[str, str | None], list[pa.Table]] = defaultdict(list)
    tables = {table.name: table for table in (BRONZE, QUARANTINE)}
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        is_good = pc.is_null(rows.column("reason"))
        for table, mask in ((BRONZE, is_good), (QUARANTINE, pc.invert(is_good))):
            for board, some in _by_board(rows.filter(mask)):
                found[table.name, board].append(some)
    name = f"{prefix}{uuid4().hex}"
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


def commit(lake: Lake, batch: str, frames: DataFrame) -> int:
    """Write frames, good and bad ones, as one batch; -> how many were good.

    Its transaction of bronze comes last, and says that all is there. What a run that was killed
    had put into quarantine is replaced: the ring may have lost more since.
    """
    task = partial(_from_spark, lake.folder, f"{batch}-")
    rows = frames.mapInArrow(task, "table string, path string, size long, rows long").collect()
    found = [File(*row) for row in rows]
    half = [path for path in lake.files(QUARANTINE) if f"/{batch}-" in path]
    for table, gone in ((QUARANTINE, half), (BRONZE, [])):
        lake.commit(table, [f for f in found if f.table == table.name], gone, {batch: 1})
    return sum(file.rows for file in found if file.table == BRONZE.name)


def _from_spark(
    folder: Path, prefix: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    files: list[Any] = [*written(folder, batches, prefix)]
    if files:
        columns = [pa.array(column) for column in zip(*files, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, names=["table", "path", "size", "rows"])
