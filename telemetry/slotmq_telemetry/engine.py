"""Where the work on tables is done: little of it in this process, much of it in Spark's tasks.

A piece of work is a JSON object; what a task has written comes back as File rows, so that no row
of a table passes through the JVM or the driver.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .lake import File

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS, _EACH = 4, 4 << 20  # at least so many, or of so many bytes
WATCH_S = 0.5
SMALL = 64 << 20  # bytes; starting Spark takes longer than decoding so much
_FILES = pa.schema(
    [("table", pa.string()), ("path", pa.string()), ("size", pa.int64()), ("rows", pa.int64())]
)
Work = dict[str, Any]
Task = Callable[[Work], Iterable[File]]
Progress = Callable[[float], None]  # told of the percentage that is done


class Engine:
    """Runs tasks; `session` makes the Spark session when it is needed, or always if `always`."""

    def __init__(self, session: Callable[[], SparkSession], *, always: bool = False) -> None:
        self._session, self._always = session, always
        self.progress: Progress = lambda percent: None
        self.rows: Counter[str] = Counter()  # that were written, by table

    def run(self, task: Task, work: Sequence[Work], size: int) -> list[File]:
        """Do all of it; `size` in bytes."""
        if not work:
            return []
        is_large = self._always or size > SMALL
        done = self._in_spark(task, work, size) if is_large else self._here(task, work)
        for file in done:
            self.rows[file.table] += file.rows
        return done

    def _here(self, task: Task, work: Sequence[Work]) -> list[File]:
        found: list[File] = []
        for count, each in enumerate(work, 1):
            found += task(each)
            self.progress(100 * count / len(work))
        return found

    def _in_spark(self, task: Task, work: Sequence[Work], size: int) -> list[File]:
        spark = self._session()
        rows = spark.createDataFrame([(json.dumps(each),) for each in work], "work string")
        tasks = rows.repartition(min(len(work), max(_TASKS, size // _EACH)))
        names = "table string, path string, size long, rows long"
        with _watched(spark, self.progress):
            done = tasks.mapInArrow(partial(_in_spark, task), names).collect()
        return [File(*row) for row in done]


@contextmanager
def _watched(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Tell of Spark's tasks meanwhile. Spark Connect calls a handler. A classic session has none,
    and is asked by way of its context, which Spark Connect lacks and nothing else here uses."""
    over = Event()

    def tell(stages: Any, **_: Any) -> None:
        for stage in [stage for stage in stages or () if stage.num_tasks and not stage.done][-1:]:
            progress(100 * stage.num_completed_tasks / stage.num_tasks)

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not over.wait(WATCH_S):
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if stages := [stage for stage in found if stage and stage.numTasks]:
                progress(100 * stages[-1].numCompletedTasks / stages[-1].numTasks)

    watcher = Thread(target=watch, daemon=True)
    session: Any = spark
    is_connect = ".connect." in type(spark).__module__
    session.registerProgressHandler(tell) if is_connect else watcher.start()
    try:
        yield
    finally:
        over.set()
        session.removeProgressHandler(tell) if is_connect else watcher.join()


def _in_spark(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for each in batch.column(0).to_pylist():
            files = [*task(json.loads(each))]
            columns = [pa.array(column) for column in zip(*files, strict=True)]
            if files:
                yield pa.RecordBatch.from_arrays(columns, schema=_FILES)
