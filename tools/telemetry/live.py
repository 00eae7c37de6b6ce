"""`slotmq telemetry live`: from the boards' rings into bronze, a micro-batch at a time.

A batch of the stream is a batch of bronze, of the same name whenever it is repeated: it
arrives by one rename and takes the place of what a killed run had written of it. So every
record is in bronze once, whoever was killed and when. Silver and gold are made from bronze
as after a harvest, and take a record once that came both ways.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ..errors import ToolError
from ..harvest.manifest import replace_file
from . import bronze
from .lake import Lake
from .ring_source import NAME, RingSource

CHECKPOINT = ".live"  # in the folder of the tables


def start(
    spark: SparkSession, lake: Lake, options: dict[str, str], every: float | None
) -> StreamingQuery:
    """The running query; with `every` None it ends when it has what is there now."""
    spark.dataSource.register(RingSource)
    checkpoint = lake.made().folder / CHECKPOINT
    name = _name(checkpoint)

    def take(frames: DataFrame, number: int) -> None:
        bronze.commit(lake, f"live-{name}-{number:010}", frames)

    writer = spark.readStream.format(NAME).options(**options).load().writeStream
    writer = writer.foreachBatch(take).option("checkpointLocation", str(checkpoint / "spark"))
    once = {"availableNow": True} if every is None else {"processingTime": f"{every} seconds"}
    return writer.trigger(**once).start()


def run(
    spark: SparkSession, lake: Lake, options: dict[str, str], every: float | None,
    seconds: float | None = None,
) -> int:  # fmt: skip
    """Until it ends by itself, or after so many seconds, or on Ctrl-C; -> records read."""
    query = start(spark, lake, options, every)
    try:
        query.awaitTermination(seconds)  # type: ignore[arg-type]
    except StreamingQueryException as error:
        raise ToolError(_reason(error)) from None
    except KeyboardInterrupt:
        pass
    if query.isActive:
        query.stop()
    return sum(progress.numInputRows for progress in query.recentProgress)


def _name(checkpoint: Path) -> str:
    """Of the stream: another checkpoint counts its batches anew."""
    file = checkpoint / "name"
    if not file.exists():
        replace_file(file, uuid.uuid4().hex[:8].encode())
    return file.read_text()


def _reason(error: StreamingQueryException) -> str:
    """The line of a Python traceback that says it."""
    lines = [line.strip() for line in str(error).splitlines()]
    ours = [line for line in lines if "ToolError: " in line]
    return ours[-1].partition("ToolError: ")[2] if ours else lines[0]
