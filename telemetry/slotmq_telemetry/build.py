"""Makes silver and gold of the boards that have something new.

A file of silver is called by a hash of the files of bronze and quarantine that it was made from,
and one of gold by a hash of those of silver: so what is up to date shows by the names of the
files (one that several were put together to counts as these), and a run that was killed is simply
repeated. The last table that a step commits (messages, boards) has a file for each board that is
done, and a mark of all that it was made of.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from slotmq_tools.errors import why

from . import corrections, gold, gold_health, names, silver
from .engine import Engine, Task, Work
from .folder import Folder
from .lake import File, Lake, board_of, stem, write
from .names import Named
from .schemas import BRIDGED, BRONZE, GOLD, QUARANTINE, SILVER, Table

_MADE = "8"  # another number lets all be made anew: for another way to make it
FAILED = "failed"  # instead of a table: a board of which nothing can be made
TOGETHER = "of-"  # begins the name of a file that several were put together to; the rest says them


@dataclass
class Source:
    """The files that tables of a board are made of."""

    files: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by table
    size: int = 0  # bytes

    def name(self, board: str, told: Any) -> str:
        """What a file that is made of these is called; `told`: by people."""
        made_of = sorted((table, together(paths)) for table, paths in self.files.items())
        return hashlib.sha256(repr((_MADE, board, made_of, told)).encode()).hexdigest()[:24]


def together(paths: Iterable[str]) -> int:
    """The same for all orders of files, and for those that they are put together to."""
    return sum(_number(stem(path)) for path in paths) % (1 << 128)


def _number(name: str) -> int:
    try:
        return int(name.removeprefix(TOGETHER), 16)  # as most are
    except ValueError:
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")


class Built(NamedTuple):
    """What a step has done."""

    boards: int = 0  # that had something new
    failed: tuple[str, ...] = ()  # boards whose tables stay as they were, and why


def build_silver(engine: Engine, lake: Lake) -> Built:
    lake.need(BRONZE)
    with lake.locked("silver"):
        told = corrections.read(lake.folder).items()
        corrected = {board: sorted(boots.items()) for board, boots in told}
        return _build(engine, lake, (BRONZE, QUARANTINE), SILVER, make_silver, corrected)


def build_gold(engine: Engine, lake: Lake) -> Built:
    if lake.open(SILVER["messages"]) is None:
        return Built()  # nothing was readable yet
    called = {board: astuple(named) for board, named in names.read(lake.folder).items()}
    with lake.locked("gold"):
        return _build(engine, lake, SILVER.values(), GOLD, make_gold, called)


def check(lake: Lake) -> None:
    """ToolError: what people have written is not as it must be."""
    corrections.read(lake.folder)
    names.read(lake.folder)


def warnings(lake: Lake) -> Iterator[str]:
    """Boards and boots of which people say something, and of which there is nothing."""
    there = {board_of(path) for path in lake.files(GOLD["boards"])}
    corrected = corrections.read(lake.folder)
    for file, told in ((names.FILE, names.read(lake.folder)), (corrections.FILE, corrected)):
        for board in sorted(told.keys() - there):
            yield f"{lake.folder}/{file}: no board {board} has recorded anything"
    for board in sorted(corrected.keys() & there):
        of_board = pc.field("board") == board
        rows = lake.dataset(SILVER["anchors"]).to_table(columns=["boot"], filter=of_board)
        for boot in sorted(corrected[board].keys() - {*rows["boot"].to_pylist()}):
            where = f"{lake.folder}/{corrections.FILE}, [{board}]"
            yield f"{where}: boot {boot} was told no time: nothing to correct"


def _of_boards(lake: Lake, tables: Iterable[Table]) -> dict[str, Source]:
    found: dict[str, Source] = defaultdict(Source)
    for table in tables:
        for path, size in lake.sizes(table).items():
            if (board := board_of(path)) is not None:
                found[board].files[table.name].append(path)
                found[board].size += size
    return found


def _build(
    engine: Engine, lake: Lake, of: Iterable[Table], tables: dict[str, Table],
    make: Any, known: Mapping[str, Any],
) -> Built:  # fmt: skip
    *_, last = tables.values()
    mark = {"made-of": _mark(lake, of, known)}
    if lake.marked(last, "made-of") == mark["made-of"]:
        return Built()
    sources, there = _of_boards(lake, of), {stem(path) for path in lake.files(last)}
    work: list[Work] = []
    for board, source in sorted(sources.items()):
        told = known.get(board)
        name = source.name(board, told)
        if name not in there:
            work.append({"board": board, "name": name, "files": source.files, "told": told})
    failed: dict[str, str] = {}
    if work:
        task: Task = partial(_attempt, partial(make, lake.folder))
        made = engine.run(task, work, sum(sources[each["board"]].size for each in work))
        failed = dict(file.path.split(" ", 1) for file in made if file.table == FAILED)
        if done := {each["board"] for each in work} - failed.keys():
            # Without the mark the next run tries again those that failed.
            _commit(lake, tables.values(), done, made, {} if failed else mark)
    elif there:
        lake.commit(last, (), (), mark)
    told = (f"board {board}: {why}" for board, why in sorted(failed.items()))
    return Built(len(work) - len(failed), (*told,))


def _attempt(make: Task, work: Work) -> Iterable[File]:
    """The files of a board, or why there are none: no board stops another."""
    try:
        return [*make(work)]
    except Exception as error:
        return [File(FAILED, f"{work['board']} {why(error)}", 0, 0)]


def _mark(lake: Lake, of: Iterable[Table], known: Mapping[str, Any]) -> int:
    """Of all that tables are made of: where it is the same, no file need be looked at."""
    found = [(t.metadata().id, t.version()) for t in map(lake.open, of) if t]
    text = repr((_MADE, found, sorted(known.items())))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def _commit(
    lake: Lake, tables: Iterable[Table], boards: set[str], made: list[File], mark: dict[str, int]
) -> None:
    """Of these boards what was made replaces what was there; the last table gets the mark."""
    by_table: dict[str, list[File]] = defaultdict(list)
    for file in made:
        by_table[file.table].append(file)
    *_, last = tables
    for table in tables:
        whose = "recorder" if table is BRIDGED else "board"
        added = {file.path for file in by_table[table.name]}
        there = {path for path in lake.files(table) if board_of(path, whose) in boards}
        new = [file for file in by_table[table.name] if file.path not in there]
        lake.commit(table, new, sorted(there - added), mark if table is last else {})


def read(
    folder: Folder, table: Table, paths: Iterable[str], without: Container[str] = ()
) -> pa.Table:
    """These files, with the columns that are in their paths, and without some."""
    names = [name for name in table.schema.names if name not in without]
    schema = pa.schema([table.schema.field(name) for name in names])
    found = []
    for path in paths:
        with folder.open(f"{table.name}/{path}") as file:
            rows = pq.ParquetFile(file).read([n for n in names if n not in table.parts])
        for part in table.parts:
            rows = rows.append_column(part, pa.repeat(board_of(path, part), rows.num_rows)
                                      .cast(pa.string()))  # fmt: skip
        found.append(rows.select(names).cast(schema))
    return pa.concat_tables(found) if found else schema.empty_table()


def make_silver(folder: Folder, work: Work) -> Iterator[File]:
    """The files of a board."""
    board, files, name = work["board"], work["files"], work["name"]
    frames = read(folder, BRONZE, files.get("bronze", ()))
    bad = read(folder, QUARANTINE, files.get("quarantine", ())).to_pylist()
    for table, rows in silver.of_board(board, frames, bad, dict(work["told"] or ())).items():
        if table != "bridged":
            yield write(folder, SILVER[table], rows, name, board)
            continue
        for origin in sorted({*rows.column("board").to_pylist()}):
            some = rows.filter(pc.equal(rows.column("board"), origin))
            yield write(folder, BRIDGED, some, name, origin, board)


def make_gold(folder: Folder, work: Work) -> Iterator[File]:
    """The files of a board."""
    board, files, name = work["board"], work["files"], work["name"]
    told = gold.Silver(**{n: read(folder, t, files.get(t.name, ())) for n, t in SILVER.items()})
    sent = gold.Sent(told)
    timed = gold.Numbers(sent)
    for table, rows in {
        "traffic": gold.traffic(sent),
        "readings": gold.readings(timed),
        "silences": gold.silences(told),
        "gaps": gold.gaps(told),
        "sensors": gold.sensors(timed),
        "audit": gold.audit(sent, told.holes),
        "sessions": gold_health.sessions(told),
        "boots": gold_health.boots(told),
        "boards": gold_health.boards(told, Named(*(work["told"] or (board,)))),
    }.items():
        yield write(folder, GOLD[table], GOLD[table].made(board, rows), name, board)
