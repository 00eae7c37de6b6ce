"""`slotmq telemetry delta`: copies the tables to Delta tables with the package deltalake, without
JVM or Spark.

A batch of bronze or quarantine is one commit, with the batch's name as transaction id. A version
of silver or gold replaces the previous one in one commit, which contains its name. So a run that
was killed can be repeated. Rows are copied in batches, so memory does not grow with the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from ..errors import ToolError
from .lake import Lake

_GROWING = ("bronze", "quarantine")
_MADE = ("silver", "gold")
_VERSION = "slotmq.version"
_DAY = "day"


def copy(lake: Lake, target: str) -> Iterator[tuple[str, int]]:
    """Copy what is new; -> each table, and the number of rows written."""
    if util.find_spec("deltalake") is None:
        raise ToolError("Delta tables need `pip install 'slotmq[delta]'`")
    if not lake.has("bronze"):
        raise ToolError(f"{lake.folder} has no bronze: nothing to copy")
    from deltalake.exceptions import DeltaError

    try:
        for name in _GROWING:
            yield from _grown(lake, name, f"{target}/{name}")
        for name in _MADE:
            if lake.has(name):
                yield from _made(lake.folder / name, f"{target}/{name}", name)
    except (DeltaError, ValueError, OSError) as error:
        told = " ".join(str(error).split())
        raise ToolError(f"{target}: {told}") from None


def _grown(lake: Lake, name: str, target: str) -> Iterator[tuple[str, int]]:
    from deltalake import CommitProperties, Transaction

    there = _table(target)
    rows = 0
    for folder in sorted((lake.folder / name).glob("batch=*")):
        if there is not None and there.transaction_version(folder.name) is not None:
            continue
        once = CommitProperties(app_transactions=[Transaction(folder.name, 1)])
        rows += _write(target, ds.dataset(folder, format="parquet"), "append", once)
        there = _table(target)
    yield name, rows


def _made(folder: Path, target: str, part: str) -> Iterator[tuple[str, int]]:
    from deltalake import CommitProperties

    made = folder.resolve()  # a version, that stays while it is read
    for table in sorted(path.name for path in made.iterdir() if path.is_dir()):
        there = _table(f"{target}/{table}")
        if there is not None and there.history(1)[0].get(_VERSION) == made.name:
            yield f"{part}/{table}", 0
            continue
        found = ds.dataset(
            made / table, format="parquet", partitioning=_partitioning(made / table)
        )
        once = CommitProperties(custom_metadata={_VERSION: made.name})
        yield f"{part}/{table}", _write(f"{target}/{table}", found, "overwrite", once)


def _partitioning(folder: Path) -> Any:
    if not any(folder.glob(f"{_DAY}=*")):
        return None
    return ds.partitioning(pa.schema([(_DAY, pa.date32())]), flavor="hive")


def _write(target: str, found: Any, mode: Any, once: Any) -> int:
    """-> how many rows."""
    from deltalake import write_deltalake

    if not found.files:
        return 0
    rows: int = found.count_rows()
    days = [_DAY] if _DAY in found.schema.names else None
    reader = found.scanner(use_threads=False).to_reader()
    write_deltalake(
        target, reader, mode=mode, partition_by=days, commit_properties=once,
        schema_mode="overwrite" if mode == "overwrite" else None,
    )  # fmt: skip
    return rows


def _table(target: str) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(target) if DeltaTable.is_deltatable(target) else None
