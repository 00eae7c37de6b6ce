"""`slotmq sim --spark`: runs a batch on the executors of Spark, and collects the rows.

Each task has an overhead of 0.1 s, so there are only four for each core.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import util
from typing import Any

from slotmq_tools.errors import ToolError
from slotmq_tools.scenario.batch import COLUMNS, Row, Work, run

_TASKS = 4  # for each core
_ROWS = 200  # of a frame of results


def rows(master: str, work: Work, seeds: range) -> list[Row]:
    """A row for each seed and point of the grid, in order."""
    if util.find_spec("pyspark") is None:
        raise ToolError("--spark needs Spark: `pip install slotmq-telemetry`")
    from slotmq_telemetry import session

    spark = session.start(master)
    try:
        return rows_in(spark, work, seeds)
    finally:
        spark.stop()


def rows_in(spark: Any, work: Work, seeds: range) -> list[Row]:
    """The same in a session."""
    points = len(work.grid)
    count = len(seeds) * points
    jobs = spark.range(0, count, 1, min(count, _TASKS * _cores(spark)))
    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    first = seeds.start

    def simulate(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            runs = [(first + job // points, job % points) for job in frame["id"].tolist()]
            for start in range(0, len(runs), _ROWS):
                yield _frame(list(run(work, runs[start : start + _ROWS])))

    found: list[Row] = [row.asDict() for row in jobs.mapInPandas(simulate, schema).collect()]
    return sorted(found, key=lambda row: (row["seed"], row["point"]))


def _cores(spark: Any) -> int:
    """How many tasks run at once: as many as Spark divides rows into."""
    from pyspark.sql.functions import spark_partition_id

    rows = spark.range(10_000).select(spark_partition_id().alias("part"))
    return int(rows.distinct().count())


def _frame(rows: list[Row]) -> Any:
    """A frame with the type of each column, even where all its values are missing."""
    import pandas as pd

    types = {name: "Int64" if kind == "long" else "object" for name, kind in COLUMNS.items()}
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(types)
