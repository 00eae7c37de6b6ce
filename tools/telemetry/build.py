"""Makes silver and gold of the boards that have something new.

A file of silver is called by a hash of the files of bronze and quarantine that it was made from,
and one of gold by a hash of those of silver: so what is up to date shows by the names of the
files, and a run that was killed is simply repeated. The last table that a step commits (messages,
boards) has a file for each board that is done.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import corrections, gold, gold_health, names, silver
from .engine import Engine, Task, Work
from .lake import File, Lake, board_of, write
from .names import Named
from .schemas import BRIDGED, BRONZE, GOLD, QUARANTINE, SILVER, Table

_MADE = "3"  # another number lets all be made anew: for another way to make it
Files = dict[str, dict[str, list[str]]]  # by board and table, their paths


def build_silver(engine: Engine, lake: Lake) -> int:
    """-> how many boards had something new."""
    lake.need(BRONZE)
    with lake.locked("silver"):
        told = corrections.read(lake.folder).items()
        corrected = {board: sorted(boots.items()) for board, boots in told}
        sources = _of_boards(lake, (BRONZE, QUARANTINE))
        return _build(engine, lake, sources, SILVER, make_silver, corrected)


def build_gold(engine: Engine, lake: Lake) -> int:
    """-> how many boards had something new."""
    if lake.open(SILVER["messages"]) is None:
        return 0  # nothing was readable yet
    called = {board: astuple(named) for board, named in names.read(lake.folder).items()}
    with lake.locked("gold"):
        sources = _of_boards(lake, SILVER.values())
        return _build(engine, lake, sources, GOLD, make_gold, called)


def _of_boards(lake: Lake, tables: Iterable[Table]) -> Files:
    found: Files = defaultdict(lambda: defaultdict(list))
    for table in tables:
        for path in lake.files(table):
            if (board := board_of(path)) is not None:
                found[board][table.name].append(path)
    return found


def _build(
    engine: Engine, lake: Lake, sources: Files, tables: dict[str, Table],
    make: Any, known: Mapping[str, Any],
) -> int:  # fmt: skip
    *_, last = tables.values()
    there = {PurePosixPath(path).stem for path in lake.files(last)}
    work: list[Work] = []
    for board, files in sorted(sources.items()):
        told = known.get(board)  # by people
        made_of = repr((_MADE, board, sorted((t, sorted(p)) for t, p in files.items()), told))
        name = hashlib.sha256(made_of.encode()).hexdigest()[:24]
        if name not in there:
            work.append({"board": board, "name": name, "files": files, "told": told})
    if work:
        task: Task = partial(make, lake.folder)
        made = engine.run(task, work, _size(lake.folder, work))
        _commit(lake, tables.values(), {each["board"] for each in work}, made)
    return len(work)


def _size(folder: Path, work: Iterable[Work]) -> int:
    paths = (folder / t / p for each in work for t, some in each["files"].items() for p in some)
    return sum(path.stat().st_size for path in paths)


def _commit(lake: Lake, tables: Iterable[Table], boards: set[str], made: list[File]) -> None:
    """Of these boards what was made replaces what was there."""
    by_table: dict[str, list[File]] = defaultdict(list)
    for file in made:
        by_table[file.table].append(file)
    for table in tables:
        whose = "recorder" if table is BRIDGED else "board"
        added = {file.path for file in by_table[table.name]}
        there = {path for path in lake.files(table) if board_of(path, whose) in boards}
        new = [file for file in by_table[table.name] if file.path not in there]
        lake.commit(table, new, sorted(there - added))


def read(folder: Path, table: Table, paths: Iterable[str], board: str) -> pa.Table:
    """These files, with the columns that are in their paths."""
    found = []
    for path in paths:
        rows = pq.ParquetFile(folder / table.name / path).read()
        for part in table.parts:
            whose = pa.array([board_of(path, part)], pa.string()).take(
                pa.array([0] * rows.num_rows, pa.int8())
            )
            rows = rows.append_column(part, whose)
        found.append(rows.select(table.schema.names).cast(table.schema))
    return pa.concat_tables(found) if found else table.schema.empty_table()


def make_silver(folder: Path, work: Work) -> Iterator[File]:
    """The files of a board."""
    board, files, name = work["board"], work["files"], work["name"]
    frames = read(folder, BRONZE, files.get("bronze", ()), board)
    bad = read(folder, QUARANTINE, files.get("quarantine", ()), board).to_pylist()
    for table, rows in silver.of_board(board, frames, bad, dict(work["told"] or ())).items():
        if table != "bridged":
            yield write(folder, SILVER[table], rows, name, board)
            continue
        for origin in sorted({*rows.column("board").to_pylist()}):
            some = rows.filter(pc.equal(rows.column("board"), origin))
            yield write(folder, BRIDGED, some, name, origin, board)


def make_gold(folder: Path, work: Work) -> Iterator[File]:
    """The files of a board."""
    board, files, name = work["board"], work["files"], work["name"]
    told = gold.Silver(
        **{n: read(folder, t, files.get(t.name, ()), board) for n, t in SILVER.items()}
    )
    sent = gold.Sent(told)
    timed = gold.Numbers(sent)
    for table, rows in {
        "traffic": gold.traffic(board, sent),
        "readings": gold.readings(board, timed),
        "silences": gold.silences(board, told),
        "gaps": gold.gaps(board, told),
        "sensors": gold.sensors(board, timed),
        "audit": gold.audit(board, sent, told.holes),
        "sessions": gold_health.sessions(board, told),
        "boots": gold_health.boots(board, told),
        "boards": gold_health.boards(board, told, work["told"] and Named(*work["told"])),
    }.items():
        yield write(folder, GOLD[table], rows, name, board)
