"""Messages that more than one broker recorded: bridged ones, with their origin or without.

Where a record says whose it first was, all of its copies are one message: the original where
it is there, else the copy with the least identity. Without an origin two are never taken for
one; they are marked, if another board has the same payload on the same topic within seconds.

`bridged` and `shared` are small as a rule, and written first: Spark sees by their size whether
each executor can have the whole of them, or the rows have to be sorted.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from . import segment as s
from . import silver

WITHIN_US = 5_000_000
_IDENTITY = ["board", "boot", "seq"]
_ORIGIN = [f"origin_{name}" for name in _IDENTITY]


def bridged(records: DataFrame) -> DataFrame:
    """The identities of messages that say whose they first were."""
    rows = records.where(f.col("type") == s.MESSAGE)
    return silver.with_origin(rows).where("origin_board is not null").select(*_IDENTITY, *_ORIGIN)


def shared(records: DataFrame) -> DataFrame:
    """The topics on which more than one board has a message that does not say."""
    silent = f.col("flags").bitwiseAND(s.HAS_ORIGIN) == 0
    return (
        records.where((f.col("type") == s.MESSAGE) & silent)
        .groupBy("topic")
        .agg((f.min("board") != f.max("board")).alias("_shared"))
        .where("_shared")
        .select("topic")
    )


def doubles(bridged: DataFrame, records: DataFrame) -> DataFrame:
    """The identities of copies that are one too many."""
    wanted = bridged.select(
        *(f.col(own).alias(name) for own, name in zip(_ORIGIN, _IDENTITY, strict=True))
    ).distinct()
    originals = (
        records.where(f.col("type") == s.MESSAGE)
        .select(*_IDENTITY)
        .join(wanted, _IDENTITY, "left_semi")
        .select(*(f.col(name).alias(f"origin_{name}") for name in _IDENTITY))
        .withColumn("_there", f.lit(True))
    )
    rank = f.row_number().over(Window.partitionBy(*_ORIGIN).orderBy(*_IDENTITY))
    return (
        bridged.withColumn("_rank", rank)
        .join(originals, _ORIGIN, "left")
        .where("_there or _rank > 1")
        .select(*_IDENTITY)
    )


def possible(messages: DataFrame, shared: DataFrame) -> DataFrame:
    """The identities that may be doubles, of messages that do not say."""
    rows = messages.where("origin_board is null and wall is not null").select(
        *_IDENTITY, "topic", "payload", f.unix_micros("wall").alias("_us")
    )
    around = (
        Window.partitionBy("topic", "payload").orderBy("_us").rangeBetween(-WITHIN_US, WITHIN_US)
    )
    return (
        rows.join(shared, "topic", "left_semi")
        .withColumn("_others", f.min("board").over(around) != f.max("board").over(around))
        .where("_others")
        .select(*_IDENTITY)
    )


def resolved(
    messages: DataFrame, records: DataFrame, bridged: DataFrame, shared: DataFrame
) -> DataFrame:
    """`messages` without the doubles, and with `possible_duplicate`."""
    once = messages.join(doubles(bridged, records), _IDENTITY, "left_anti")
    marked = possible(once, shared).withColumn("_marked", f.lit(True))
    return once.join(marked, _IDENTITY, "left").withColumn(
        "possible_duplicate", f.coalesce(f.col("_marked"), f.lit(False))
    )
