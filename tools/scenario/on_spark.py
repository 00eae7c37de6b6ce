"""Sends runs of the simulator to the executors of Spark, and brings their rows back.

Tasks are few and long, since each costs some 0.1 s of its own: four for each core. The
rows are small, so that they are collected; runs of one task share a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import util
from typing import Any

from ..errors import ToolError
from .batch import COLUMNS, Row, Work, run

_TASKS = 4  # for each core
_ROWS = 200  # of a frame that goes back


def rows(master: str, work: Work, seeds: range) -> list[Row]:
    """A row for each seed and point of the grid, in order."""
    if util.find_spec("pyspark") is None:
        raise ToolError("--spark needs Spark: `pip install 'slotmq[telemetry]'`")
    from ..telemetry.cluster import session

    spark = session(master)
    try:
        return rows_in(spark, work, seeds)
    finally:
        spark.stop()


def rows_in(spark: Any, work: Work, seeds: range) -> list[Row]:
    """The same on a session that is there."""
    points = len(work.grid)
    count = len(seeds) * points
    jobs = spark.range(0, count, 1, min(count, _TASKS * spark.sparkContext.defaultParallelism))
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    first = seeds.start

    def simulate(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            wanted = [(first + job // points, job % points) for job in frame["id"].tolist()]
            for start in range(0, len(wanted), _ROWS):
                yield _frame(list(run(work, wanted[start : start + _ROWS])))

    found: list[Row] = [row.asDict() for row in jobs.mapInPandas(simulate, schema).collect()]
    return sorted(found, key=lambda row: (row["seed"], row["point"]))


def _frame(made: list[Row]) -> Any:
    """With a type for each column, whatever is missing in all of these rows."""
    import pandas as pd

    types = {name: "Int64" if kind == "long" else "object" for name, kind in COLUMNS.items()}
    return pd.DataFrame(made, columns=list(COLUMNS)).astype(types)
