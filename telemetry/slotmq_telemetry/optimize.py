"""`slotmq telemetry optimize`: small files of bronze become fewer, and old ones are deleted.

Each ingest gives every board with something new a file of bronze. Of those that are small, the
files of a board are put together. The name of such a file says what it was made of (build.py),
so silver stays up to date. Silver and gold have a file for each board anyway.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from math import ceil

from .build import TOGETHER, read, together
from .engine import Engine, Work
from .folder import Folder
from .lake import File, Lake, board_of, stem, write
from .schemas import BRONZE, QUARANTINE, Table

SMALL, MOST = 16 << 20, 64 << 20  # bytes of files that are put together, and of what they become
LEAST = 4  # files of a board; fewer stay


def compact(engine: Engine, lake: Lake) -> int:
    """Put small files together; -> how many went."""
    count = 0
    with lake.locked("bronze"):
        for table in (BRONZE, QUARANTINE):
            sizes = lake.sizes(table)
            work = [*_work(table, sizes)]
            size = sum(sizes[path] for each in work for path in each["paths"])
            made = engine.run(partial(_put_together, lake.folder), work, size)
            gone = [path for each in work for path in each["paths"]]
            if made:
                lake.commit(table, made, gone, is_new=False)
            count += len(gone)
    return count


def _work(table: Table, sizes: dict[str, int]) -> Iterator[Work]:
    by_board: dict[str | None, list[str]] = defaultdict(list)
    for path, size in sorted(sizes.items()):
        if size < SMALL and not stem(path).startswith(("open-", "unread-")):
            by_board[board_of(path)].append(path)
    for board, paths in by_board.items():
        while len(paths) >= LEAST:
            some, size = 0, 0
            while some < len(paths) and size < MOST:
                size += sizes[paths[some]]
                some += 1
            yield {"table": table.name, "board": board, "paths": paths[:some]}
            paths = paths[some:]


def _put_together(folder: Folder, work: Work) -> Iterator[File]:
    table = next(each for each in (BRONZE, QUARANTINE) if each.name == work["table"])
    rows = read(folder, table, work["paths"])
    name = f"{TOGETHER}{together(work['paths']):032x}"
    yield write(folder, table, rows, name, work["board"])


def vacuum(lake: Lake, tables: Iterable[Table], hours: float) -> Iterator[tuple[str, int]]:
    """Delete what no version of the last hours names; -> how many files, of each table."""
    for table in tables:
        found = lake.open(table)
        if found is not None:
            old = partial(found.vacuum, ceil(hours), enforce_retention_duration=False)
            # Delta names a file in each run, also long after it is gone
            gone = [path for path in old() if lake.folder.has(f"{table.name}/{path}")]
            if gone:
                old(dry_run=False)
            yield table.name, len(gone)
