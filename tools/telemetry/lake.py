"""The folder of tables: Delta tables, whose files tasks write and the driver commits.

    bronze, quarantine          a row for each frame; grow
    silver/NAME, gold/NAME      of each board the files are replaced when it has something new
    .NAME.lock                  held by the process that writes; contains its id and computer

All are partitioned by board. A reader sees what the log of a table names, and nothing else of
what lies in its folder. Files that are no longer named stay for readers of older versions, until
`slotmq telemetry optimize`.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from ..errors import ToolError
from ..harvest.manifest import NAME as MANIFEST
from .schemas import Table

_NOBODY = "__HIVE_DEFAULT_PARTITION__"
_REPEATED = ["boot", "segment", "type", "flags", "client", "topic", "line", "harvested_ms",
             "clock", "levels.list.element", "kind", "event", "field", "reason"]  # fmt: skip


class File(NamedTuple):
    """A file of a table, of one partition."""

    table: str
    path: str  # from the folder of the table
    size: int
    rows: int


def write(folder: Path, table: Table, rows: pa.Table, name: str, *whose: str | None) -> File:
    """Write a file of the partition `whose`; the same name again replaces it as a whole."""
    parts = (f"{part}={one or _NOBODY}" for part, one in zip(table.parts, whose, strict=True))
    path = "/".join((*parts, f"{name}.parquet"))
    target = folder / table.name / path
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{name}.{uuid4().hex}")
    chosen = rows.select(table.in_files.names).cast(table.in_files)
    repeated = [n for n in _REPEATED if n.partition(".")[0] in table.in_files.names]
    with fresh.open("wb") as file:
        pq.write_table(
            chosen, file, compression="zstd", use_dictionary=repeated or False,
            row_group_size=256 << 10, store_schema=False,
        )  # fmt: skip
        if table.is_source:
            file.flush()
            os.fsync(file.fileno())
    fresh.replace(target)
    return File(table.name, path, target.stat().st_size, rows.num_rows)


class Lake:
    """A folder with tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def made(self) -> Lake:
        """The same, once the folder is there."""
        if (self.folder / MANIFEST).exists():
            raise ToolError(
                f"{self.folder} is a harvest folder; tables need a folder of their own"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(f"{self.folder}: {error.strerror}") from None
        return self

    def need(self, table: Table) -> DeltaTable:
        """The table, or ToolError."""
        found = self.open(table)
        if found is None:
            raise ToolError(
                f"{self.folder} has no {table.name}: run `slotmq telemetry ingest` first"
            )
        return found

    def open(self, table: Table) -> DeltaTable | None:
        """The table as it is now; None: there is none."""
        path = self.folder / table.name
        if not (path / "_delta_log").exists():
            return None
        try:
            return DeltaTable(str(path))
        except (DeltaError, OSError) as error:
            raise ToolError(f"{path} cannot be read: {' '.join(str(error).split())}") from None

    def files(self, table: Table) -> list[str]:
        """The paths of the files that the table has now."""
        found = self.open(table)
        return (
            [] if found is None else pa.table(found.get_add_actions()).column("path").to_pylist()
        )

    def rows(self, table: Table) -> pa.Table:
        """All of a table, which has few."""
        path = self.folder / table.name
        try:
            return self.need(table).to_pyarrow_table()
        except (DeltaError, OSError, pa.ArrowException) as error:
            why = " ".join(str(error).split())
            raise ToolError(f"{path} cannot be read: {why}") from None

    def commit(
        self, table: Table, written: Iterable[File], removed: Sequence[str] = (),
        marks: Mapping[str, int] = {},
    ) -> None:  # fmt: skip
        """In one transaction. `marks` say what was done; `marked` tells of them."""
        there = self.open(table)
        if there is None:
            path = str(self.folder / table.name)
            there = DeltaTable.create(path, table.schema, partition_by=[*table.parts])
        at = int(time.time() * 1000)
        added = [
            AddAction(f.path, f.size, _parts(f.path), at, True, json.dumps({"numRecords": f.rows}))
            for f in written
        ]
        gone = [RemoveAction(path, True, at, partition_values=_parts(path)) for path in removed]
        told = [Transaction(name, number) for name, number in marks.items()]
        try:
            there.create_write_transaction(
                [*added, *gone], "append", there.schema(), [*table.parts],
                commit_properties=CommitProperties(app_transactions=told),
            )  # fmt: skip
        except (DeltaError, OSError) as error:
            why = " ".join(str(error).split())
            raise ToolError(f"{self.folder / table.name}: {why}") from None

    def marked(self, table: Table, name: str) -> int | None:
        """What `commit` was told last under this name."""
        found = self.open(table)
        return None if found is None else found.transaction_version(name)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """While nobody else writes the same here; ToolError says who does."""
        with (self.folder / f".{name}.lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                who = lock.read().strip() or "another process"
                raise ToolError(f"{self.folder}: {who} is writing {name}") from None
            except OSError:
                pass  # a file system without locks keeps nobody away
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on {platform.node()}\n")
            lock.flush()
            yield


def _parts(path: str) -> dict[str, str | None]:
    """What a path says of its partition."""
    pairs = (part.split("=", 1) for part in path.split("/")[:-1])
    return {name: None if one == _NOBODY else one for name, one in pairs}


def board_of(path: str, part: str = "board") -> str | None:
    """Whose file it is."""
    return _parts(path)[part]


def vacuum(lake: Lake, tables: Iterable[Table], hours: float) -> Iterator[tuple[str, int]]:
    """Delete what no version of the last hours names; -> how many files, of each table."""
    for table in tables:
        found = lake.open(table)
        if found is not None:
            gone = found.vacuum(int(hours), dry_run=False, enforce_retention_duration=False)
            yield table.name, len(gone)
