"""Decodes bundles into Parquet files, in Spark's tasks.

Decoded rows do not pass through the JVM, where a row costs more than its decoding. A task writes
good frames into one file and bad ones into another, and returns their numbers. A repeated task
writes the same file again, by one rename.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from . import harvest_source, manifest
from .manifest import Bundle, Part

GOOD, BAD = "kind=bronze", "kind=quarantine"  # folders of what is written
_LEAST, _MOST = 4 << 20, 16 << 20  # bytes of bundles in a file
_GROUP = 100_000  # rows of a row group, or a few more
_ONLY_BAD = ("file", "reason")
_REPEATED = [
    "board",
    "boot",
    "segment",
    "type",
    "flags",
    "client",
    "topic",
    "line",
    "harvested_ms",
]
_COUNTS = pa.schema([("good", pa.int64()), ("bad", pa.int64())])


def decode(
    spark: SparkSession, harvest: Path, bundles: Sequence[Bundle], target: Path | None
) -> tuple[int, int]:
    """Every frame of the bundles into files below `target`; how many were good, and bad.

    Without a target they are decoded and counted only.
    """
    folders = [target / kind for kind in (GOOD, BAD)] if target else []
    for folder in folders:
        folder.mkdir(parents=True)
    cores = spark.sparkContext.defaultParallelism
    size = sum(bundle.size for bundle in bundles) // (2 * cores)
    work = list(manifest.parts(bundles, min(max(size, _LEAST), _MOST)))
    if not work:
        return 0, 0
    tasks = spark.range(0, len(work), 1, len(work))
    task = partial(_task, harvest.absolute(), target, work)
    counts = tasks.mapInArrow(task, "good long, bad long").collect()
    for left in (each for folder in folders for each in folder.glob(".*")):
        left.unlink()  # of a task that was killed
    return sum(row["good"] for row in counts), sum(row["bad"] for row in counts)


def rows(folder: Path) -> int:
    """How many the files of a folder have, by what they say at their ends."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))


def _task(
    harvest: Path, target: Path | None, work: Sequence[Sequence[Part]], numbers: Iterator[Any]
) -> Iterator[Any]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            name = f"part-{number:06}.parquet"
            good = _File(target and target / GOOD / name, _ONLY_BAD)
            bad = _File(target and target / BAD / name)
            for part in work[number]:
                for frames in harvest_source.frames_of(harvest, part):
                    (good if frames.column("reason").null_count else bad).add(frames)
            counts = [[good.close()], [bad.close()]]
            yield pa.RecordBatch.from_arrays(list(map(pa.array, counts)), schema=_COUNTS)


class _File:
    """A Parquet file that is there when it is closed; without a path it counts rows only."""

    def __init__(self, path: Path | None, without: Sequence[str] = ()) -> None:
        self._path, self._without = path, list(without)
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[Any] = []
        self._rows = self._waits = 0

    def add(self, frames: Any) -> None:
        self._rows += frames.num_rows
        if self._path is not None:
            self._waiting.append(frames)
            self._waits += frames.num_rows
            if self._waits >= _GROUP:
                self._flush(self._path)

    def close(self) -> int:
        """How many rows there were."""
        if self._path is not None and self._waiting:
            self._flush(self._path)
        if self._path is not None and self._writer is not None:
            self._writer.close()
            self._fresh.replace(self._path)
        return self._rows

    def _flush(self, path: Path) -> None:
        table = pa.Table.from_batches(self._waiting).drop_columns(self._without)
        if self._writer is None:
            self._fresh = path.with_name(f".{path.name}.{uuid4().hex}")
            self._writer = pq.ParquetWriter(
                self._fresh, table.schema, compression="zstd", use_dictionary=_REPEATED
            )
        self._writer.write_table(table)
        self._waiting, self._waits = [], 0
