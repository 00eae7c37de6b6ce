"""Where the work on tables is done: little of it in this process, much of it in Spark's tasks.

A piece of work is a JSON object; what a task has written comes back as File rows, so that no row
of a table passes through the JVM or the driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .lake import File

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS, _EACH = 4, 4 << 20  # at least so many, or of so many bytes
SMALL = 64 << 20  # bytes; starting Spark takes longer than decoding so much
_FILES = pa.schema(
    [("table", pa.string()), ("path", pa.string()), ("size", pa.int64()), ("rows", pa.int64())]
)
Work = dict[str, Any]
Task = Callable[[Work], Iterable[File]]


class Engine:
    """Runs tasks; `session` makes the Spark session when it is needed, or always if `always`."""

    def __init__(self, session: Callable[[], SparkSession], *, always: bool = False) -> None:
        self._session, self._always = session, always

    def run(self, task: Task, work: Sequence[Work], size: int) -> list[File]:
        """Do all of it; `size` in bytes."""
        if not work:
            return []
        if not self._is_large(size):
            return [file for each in work for file in task(each)]
        spark = self._session()
        rows = spark.createDataFrame([(json.dumps(each),) for each in work], "work string")
        tasks = rows.repartition(min(len(work), max(_TASKS, size // _EACH)))
        names = "table string, path string, size long, rows long"
        done = tasks.mapInArrow(partial(_in_spark, task), names).collect()
        return [File(*row) for row in done]

    def _is_large(self, size: int) -> bool:
        return self._always or size > SMALL


def _in_spark(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for each in batch.column(0).to_pylist():
            files = [*task(json.loads(each))]
            columns = [pa.array(column) for column in zip(*files, strict=True)]
            if files:
                yield pa.RecordBatch.from_arrays(columns, schema=_FILES)
