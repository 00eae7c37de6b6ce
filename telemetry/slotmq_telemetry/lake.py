"""The folder of tables: Delta tables, whose files tasks write and the driver commits.
It is on this computer or in an object store (folder.py).

    bronze, quarantine          a row for each frame; grow
    silver/NAME, gold/NAME      of each board the files are replaced when it has something new
    .NAME.lock                  held by the process that writes; contains its id and computer. In
                                an object store Delta finds two writers at their commits

All are partitioned by board. A reader sees what the log of a table names, and nothing else of
what lies in its folder. Files that are no longer named stay for readers of older versions, until
`slotmq telemetry optimize`.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction

from slotmq_tools.errors import ToolError

from .folder import Folder
from .harvest import manifest
from .schemas import Table

_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_NOBODY = "__HIVE_DEFAULT_PARTITION__"
_REPEATED = ["boot", "segment", "type", "flags", "client", "topic", "line", "harvested_ms",
             "clock", "levels.list.element", "kind", "event", "field", "reason"]  # fmt: skip

_RISING = ["seq", "ticks", "offset", "uptime_ms", "wall", "wall_error_us", "crc"]
_ASKED_FOR = ["boot", "seq", "topic", "client", "wall", "start"]  # by readers, in a range


class File(NamedTuple):
    """A file of a table, of one partition."""

    table: str
    path: str  # from the folder of the table
    size: int
    rows: int


def write(
    folder: Folder | Path, table: Table, rows: pa.Table, name: str, *whose: str | None
) -> File:
    """Write a file of the partition `whose`; the same name again replaces it as a whole."""
    parts = (f"{part}={one or _NOBODY}" for part, one in zip(table.parts, whose, strict=True))
    path = "/".join((*parts, f"{name}.parquet"))
    chosen = rows.select(table.in_files.names).cast(table.in_files)
    names = table.in_files.names
    repeated = [name for name in _REPEATED if name.partition(".")[0] in names]

    def fill(file: Any) -> None:
        pq.write_table(
            chosen, file, compression="zstd", use_dictionary=repeated or False,
            column_encoding={name: "DELTA_BINARY_PACKED" for name in _RISING if name in names},
            write_statistics=[name for name in _ASKED_FOR if name in names],
            row_group_size=256 << 10, store_schema=False,
        )  # fmt: skip

    size = Folder(folder).write(f"{table.name}/{path}", fill, synced=table.is_source)
    return File(table.name, path, size, rows.num_rows)


class Lake:
    """A folder with tables."""

    def __init__(self, folder: Path | str | Folder) -> None:
        self.folder = Folder(folder)
        self._held: dict[str, DeltaTable] | None = None  # tables as they were, while locked
        self._known: dict[str, DeltaTable] = {}  # which only need be told what is new

    def made(self) -> Lake:
        """The same, once the folder is there."""
        if self.folder.has(manifest.NAME):
            raise ToolError(
                f"{self.folder} is a harvest folder; tables need a folder of their own"
            )
        if not self.folder.is_remote:
            try:
                Path(self.folder).mkdir(parents=True, exist_ok=True)
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
        """The table as it is now, or was when it was locked; None: there is none."""
        held = self._held if self._held is not None else {}
        if table.name not in held:
            where = f"{self.folder}/{table.name}"
            try:
                if not DeltaTable.is_deltatable(where):
                    self._known.pop(table.name, None)
                    return None
                if known := self._known.get(table.name):
                    known.update_incremental()
                held[table.name] = self._known[table.name] = known or DeltaTable(where)
            except (DeltaError, OSError) as error:
                raise ToolError(f"{where} cannot be read: {_line(error)}") from None
        return held[table.name]

    def files(self, table: Table) -> list[str]:
        """The paths of the files that the table has now."""
        return [*self.sizes(table)]

    def sizes(self, table: Table) -> dict[str, int]:
        """The same, with their bytes."""
        found = self.open(table)
        if found is None:
            return {}
        there = pa.table(found.get_add_actions())
        names = ("path", "size_bytes")
        return dict(zip(*(there.column(name).to_pylist() for name in names), strict=True))

    def dataset(self, table: Table) -> Any:
        """A table that Arrow reads by itself. With deltalake's own file system its threads call
        Python, which aborts the process if that ends meanwhile."""
        return self.need(table).to_pyarrow_dataset(filesystem=self.folder.arrow(table.name))

    def rows(self, table: Table) -> pa.Table:
        """All of a table, which has few."""
        try:
            return self.dataset(table).to_table()
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise ToolError(f"{self.folder}/{table.name} cannot be read: {_line(error)}") from None

    def commit(
        self, table: Table, written: Iterable[File], removed: Sequence[str] = (),
        marks: Mapping[str, int] = {}, *, is_new: bool = True,
    ) -> None:  # fmt: skip
        """In one transaction. `marks` say what was done; `marked` tells of them. Not `is_new`:
        what is added has the rows of what is removed.

        ToolError: somebody else has written the same since this process has locked it."""
        where = f"{self.folder}/{table.name}"
        there = self.open(table)
        at = int(time.time() * 1000)
        added = [
            AddAction(f.path, f.size, _parts(f.path), at, is_new,
                      json.dumps({"numRecords": f.rows}))
            for f in written
        ]  # fmt: skip
        gone = [RemoveAction(path, is_new, at, partition_values=_parts(path)) for path in removed]
        told = [Transaction(name, number) for name, number in marks.items()]
        try:
            if there is None:
                there = DeltaTable.create(
                    where, table.schema, partition_by=[*table.parts],
                    configuration={"delta.checkpointInterval": "10"},  # as Spark's Delta does
                )  # fmt: skip
            there.create_write_transaction(
                [*added, *gone], "append", there.schema(), [*table.parts],
                commit_properties=CommitProperties(app_transactions=told),
            )  # fmt: skip
        except (DeltaError, OSError) as error:
            raise ToolError(f"{where}: {_line(error)}") from None
        if self._held is not None:
            self._held.pop(table.name, None)

    def marked(self, table: Table, name: str) -> int | None:
        """What `commit` was told last under this name."""
        found = self.open(table)
        return None if found is None else found.transaction_version(name)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """While nobody else writes the same here; ToolError says who does."""
        with nullcontext() if self.folder.is_remote else _file_locked(self.folder, name):
            self._held = {}
            try:
                yield
            finally:
                self._held = None


@contextmanager
def _file_locked(folder: Folder, name: str) -> Iterator[None]:
    with (folder / f".{name}.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = lock.read().strip() or "another process"
            raise ToolError(f"{folder}: {who} is writing {name}") from None
        except OSError:
            pass  # a file system without locks keeps nobody away
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {platform.node()}\n")
        lock.flush()
        yield


def _line(error: Exception) -> str:
    """What an error says, in one line without colours."""
    return " ".join(_COLOUR.sub("", str(error)).split())


def _parts(path: str) -> dict[str, str | None]:
    """What a path says of its partition."""
    pairs = (part.split("=", 1) for part in path.split("/")[:-1])
    return {name: None if one == _NOBODY else one for name, one in pairs}


def board_of(path: str, part: str = "board") -> str | None:
    """Whose file it is."""
    begin = path.index(f"{part}=") + len(part) + 1
    whose = path[begin : path.index("/", begin)]
    return None if whose == _NOBODY else whose


def stem(path: str) -> str:
    """The name of the file, without what all of them end in."""
    return path.rpartition("/")[2].removesuffix(".parquet")
