"""Builds silver and gold: which tables are read and written, and in which order.

The transformations are in silver.py, bridges.py and gold*.py.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from . import bridges, bronze, gold, gold_health, schemas, silver
from .lake import Lake
from .schemas import ANCHORS, EVENTS, LOSSES, MESSAGES

SILVER = {"messages": MESSAGES, "events": EVENTS, "anchors": ANCHORS, "losses": LOSSES}
GOLD = {
    "traffic": schemas.TRAFFIC,
    "readings": schemas.READINGS,
    "silences": schemas.SILENCES,
    "gaps": schemas.GAPS,
    "sensors": schemas.SENSORS,
    "audit": schemas.AUDIT,
    "sessions": schemas.SESSIONS,
    "boots": schemas.BOOTS,
    "boards": schemas.BOARDS,
}
_BY_DAY = ("messages", "events")


def build_silver(spark: SparkSession, lake: Lake) -> None:
    """Make all of silver anew from bronze, and publish it at once."""
    with lake.need("bronze").locked("silver"):
        _build_silver(spark, lake)


def _build_silver(spark: SparkSession, lake: Lake) -> None:
    frames, bad = bronze.read(spark, lake), bronze.quarantine(spark, lake)
    with lake.staging("silver-steps") as steps, lake.staging("silver") as written:
        records = kept(spark, silver.ordered(frames), steps / "ordered")
        answers = kept(spark, silver.solved(silver.facts(records, bad)), steps / "solved")
        timed = silver.timed(records, answers)
        bridged = kept(spark, bridges.bridged(records), steps / "bridged")
        shared = kept(spark, bridges.shared(records), steps / "shared")
        found = {
            "messages": bridges.resolved(silver.messages(timed), records, bridged, shared),
            "events": silver.events(timed),
            "anchors": anchors(answers),
            "losses": losses(answers),
        }
        for name, rows in found.items():
            write(rows, SILVER[name], written / name, by_day=name in _BY_DAY)
        lake.publish("silver", written)


def build_gold(spark: SparkSession, lake: Lake) -> None:
    """Make all of gold anew from silver, and publish it at once."""
    with lake.need("silver").locked("gold"):
        _build_gold(spark, lake)


def _build_gold(spark: SparkSession, lake: Lake) -> None:
    messages, events, believed, lost = (
        read(spark, lake, "silver", name, schema) for name, schema in SILVER.items()
    )
    with lake.staging("gold-steps") as steps, lake.staging("gold") as written:
        numbers = kept(spark, gold.values(messages), steps / "values")
        found = {
            "traffic": gold.traffic(messages),
            "readings": gold.readings(numbers),
            "silences": gold.silences(messages, lost),
            "gaps": gold.gaps(lost),
            "sensors": gold.sensors(numbers),
            "audit": gold.audit(messages, lost),
            "sessions": gold_health.sessions(events, messages),
            "boots": gold_health.boots(messages, events),
            "boards": gold_health.boards(messages, events, lost, believed),
        }
        for name, rows in found.items():
            write(rows, GOLD[name], written / name)
        lake.publish("gold", written)


def kept(spark: SparkSession, rows: DataFrame, path: Path) -> DataFrame:
    """Write an intermediate step, and go on from the file."""
    rows.write.parquet(str(path))
    return spark.read.schema(rows.schema).parquet(str(path))


def write(rows: DataFrame, schema: StructType, path: Path, *, by_day: bool = False) -> None:
    """One table, with exactly the columns of its schema."""
    chosen = rows.select([f.col(column.name).cast(column.dataType) for column in schema])
    writer = chosen.write.partitionBy("day") if by_day else chosen.write
    writer.parquet(str(path))


def anchors(answers: DataFrame) -> DataFrame:
    """Every anchor, and whether it is believed."""
    rows = answers.where("answer = 'anchor'")
    return rows.withColumn("anchor", f.timestamp_micros("anchor_us"))


def losses(answers: DataFrame) -> DataFrame:
    """Every run of lost records."""
    return answers.where("answer = 'loss'").select(
        "board",
        "boot",
        "boots",
        f.col("seq").alias("first_seq"),
        f.col("last").alias("last_seq"),
        (f.col("last") - f.col("seq") + 1).alias("lost"),
        "reasons",
        "segments",
        f.timestamp_micros("from_us").alias("after"),
        f.timestamp_micros("to_us").alias("before"),
    )


def read(spark: SparkSession, lake: Lake, part: str, name: str, schema: StructType) -> DataFrame:
    """A table of silver or gold."""
    rows = spark.read.schema(schema).parquet(str(lake.folder / part / name))
    return rows.select(schema.names)
