"""Bronze and quarantine: every frame of the lines of the manifest that are not there yet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from . import manifest
from .lake import Lake
from .schemas import BRONZE, QUARANTINE
from .source import NAME

_LINES = re.compile(r"lines-(\d+)-(\d+)")
_KIND = "kind"


@dataclass(frozen=True)
class Taken:
    """Which lines of the manifest a run has read, from the first up to the last."""

    first: int
    last: int


def ingest(spark: SparkSession, harvest: Path, lake: Lake) -> Taken:
    """Read the lines that bronze has not got; running it again does nothing."""
    first = done(lake)
    taken = Taken(first, manifest.count(harvest))
    manifest.read(harvest, first)  # complains here, in one line
    if taken.last <= first:
        return taken
    options = {"path": str(harvest.absolute()), "first": str(first), "last": str(taken.last)}
    frames = spark.read.format(NAME).options(**options).load()
    commit(lake, f"lines-{first:08}-{taken.last:08}", frames)
    return taken


def done(lake: Lake) -> int:
    """How many lines bronze has."""
    found = (_LINES.fullmatch(name) for name in lake.batches())
    return max((int(match[2]) for match in found if match), default=0)


def commit(lake: Lake, batch: str, frames: DataFrame) -> None:
    """Write frames as one batch. Its folder in bronze comes last, and says that all is there."""
    kind = f.when(f.col("reason").isNull(), "bronze").otherwise("quarantine")
    with lake.staging(batch) as written:
        frames.withColumn(_KIND, kind).write.partitionBy(_KIND).parquet(str(written))
        for table in ("quarantine", "bronze"):
            lake.add_batch(table, batch, written / f"{_KIND}={table}")


def read(spark: SparkSession, lake: Lake) -> DataFrame:
    """Every good frame there is, doubles too."""
    frames = spark.read.schema(BRONZE).parquet(str(lake.folder / "bronze"))
    return frames.select(BRONZE.names)


def quarantine(spark: SparkSession, lake: Lake) -> DataFrame:
    """Every bad frame."""
    frames = spark.read.schema(QUARANTINE).parquet(str(lake.folder / "quarantine"))
    return frames.select(QUARANTINE.names)
