"""Bronze and quarantine: decodes the lines of the manifest that bronze does not have yet.

A folder of tables belongs to one harvest folder, since it counts the lines that it has. A hash of
these lines identifies the harvest folder, so that the folder may be moved and compacted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from ..errors import ToolError
from . import bronze_files, manifest
from .bronze_files import BAD, GOOD
from .lake import Lake
from .schemas import BRONZE, QUARANTINE

_FOLDER = "harvest"  # what is remembered of it
_LINES = re.compile(r"lines-(\d+)-(\d+)")


@dataclass(frozen=True)
class Taken:
    """Which lines of the manifest a run has read, from the first up to the last."""

    first: int
    last: int


def ingest(spark: SparkSession, harvest: Path, lake: Lake) -> Taken:
    """Read the lines that bronze has not got; running it again does nothing."""
    with lake.locked("bronze"):
        return _ingest(spark, harvest, lake)


def _ingest(spark: SparkSession, harvest: Path, lake: Lake) -> Taken:
    bundles = manifest.read(harvest)
    taken = Taken(done(lake), len(bundles))
    first = taken.first
    check_folder(lake, harvest)
    if taken.last == first:
        return taken
    batch = f"lines-{first:08}-{taken.last:08}"
    with lake.staging(batch) as written:
        bronze_files.decode(spark, harvest, bundles[first:], written)
        lake.remember(_FOLDER, {"lines": taken.last, "mark": manifest.mark(bundles)})
        _drop_halves(lake)
        _publish(lake, batch, written)
    return taken


def check_folder(lake: Lake, harvest: Path) -> None:
    """ToolError if bronze was made of another harvest folder."""
    bundles, first = manifest.read(harvest), done(lake)
    known = lake.remembered(_FOLDER)
    lines = int(known.get("lines", first))
    right = known.get("mark", manifest.mark(bundles[:lines])) == manifest.mark(bundles[:lines])
    if len(bundles) < max(lines, first) or not right:
        raise ToolError(
            f"{lake.folder} has the tables of another harvest folder, not of {harvest}: use one"
            " folder of tables for each harvest folder, or harvest into one folder"
        )


def _drop_halves(lake: Lake) -> None:
    """What a run that was killed had put into quarantine, but not into bronze: the lines may
    come in a batch of another name now."""
    there = lake.batches()
    for name in lake.batches("quarantine"):
        if _LINES.fullmatch(name) and name not in there:
            lake.drop_batch("quarantine", name)


def done(lake: Lake) -> int:
    """How many lines bronze has."""
    found = (_LINES.fullmatch(name) for name in lake.batches())
    return max((int(match[2]) for match in found if match), default=0)


def commit(lake: Lake, batch: str, frames: DataFrame) -> int:
    """Write frames, good and bad ones, as one batch; -> how many were good."""
    name, _, good = GOOD.partition("=")
    kind = f.when(f.col("reason").isNull(), good).otherwise(BAD.partition("=")[2])
    with lake.staging(batch) as written:
        frames.withColumn(name, kind).write.partitionBy(name).parquet(str(written))
        count = bronze_files.rows(written / GOOD)
        _publish(lake, batch, written)
    return count


def _publish(lake: Lake, batch: str, written: Path) -> None:
    """The batch's folder in bronze comes last, and says that all is there."""
    lake.add_batch("quarantine", batch, written / BAD)
    lake.add_batch("bronze", batch, written / GOOD)


def read(spark: SparkSession, lake: Lake) -> DataFrame:
    """Every good frame there is, doubles too."""
    frames = spark.read.schema(BRONZE).parquet(str(lake.folder / "bronze"))
    return frames.select(BRONZE.names)


def quarantine(spark: SparkSession, lake: Lake) -> DataFrame:
    """Every bad frame."""
    frames = spark.read.schema(QUARANTINE).parquet(str(lake.folder / "quarantine"))
    return frames.select(QUARANTINE.names)
