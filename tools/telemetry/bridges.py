"""Silver: messages that several brokers recorded (bridged ones), with or without their origin.

Where a record says whose it first was, all of its copies are one message: the original where
it is there, else the copy with the least identity. Without an origin two are never taken for
one; they are marked, if another board may have had the same payload on the same topic within
seconds, as far as their times are known.

`bridged` and `shared` are small as a rule, and written first: Spark sees by their size whether
each executor can have the whole of them, or the rows have to be sorted.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.window import WindowSpec

from . import segment as s
from . import silver

WITHIN_US = 5_000_000
_EVER = 2**62  # µs
_SO_FAR = Window.unboundedPreceding, Window.currentRow
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
    """The identities that may be doubles, of messages that do not say.

    The time of each is a range: within its error, and any where it is not known. Sorted by
    their least times, ranges of two boards overlap where the greatest time of another board's
    before reaches this one's least, or this one's greatest the next of another board. That is
    a few passes over sorted rows, however long the ranges are.
    """
    at, error = f.unix_micros("wall"), f.col("wall_error_us")
    rows = (
        messages.where("origin_board is null")
        .select(
            *_IDENTITY, "topic", "payload",
            f.coalesce(at - error, f.lit(-_EVER)).alias("_least"),
            f.coalesce(at + error + WITHIN_US, f.lit(_EVER)).alias("_most"),
        )
        .join(shared, "topic", "left_semi")
    )  # fmt: skip
    same = Window.partitionBy("topic", "payload")
    order = ("_least", *_IDENTITY)
    later = same.orderBy(*(f.desc(name) for name in order))
    next_board, next_least = (f.lag(name).over(later) for name in ("board", "_least"))
    another = f.when(next_board != f.col("board"), next_least)
    found = _reaching(rows, same.orderBy(*order)).withColumn("_another", another)
    next_one = f.last("_another", ignorenulls=True).over(later.rowsBetween(*_SO_FAR))
    return (
        found.withColumn("_next", next_one)
        .where("_reached >= _least or _next <= _most")
        .select(*_IDENTITY)
    )


def _reaching(rows: DataFrame, own: WindowSpec) -> DataFrame:
    """`_reached`: the greatest `_most` so far of all boards but the row's own.

    Where the greatest of all is its own board's, what counts is the greatest of the others: of
    rows that were not of the board that led when they came, and of leaders that were overtaken.
    """
    so_far = own.rowsBetween(*_SO_FAR)
    first = f.max(f.struct("_most", "board")).over(so_far)
    led = f.lag("_first").over(own)
    is_leader = f.col("_first.board") == f.col("board")
    overtaken = f.when(led.board != f.col("_first.board"), led["_most"])
    return (
        rows.withColumn("_first", first)
        .withColumn("_second", f.when(is_leader, overtaken).otherwise(f.col("_most")))
        .withColumn("_second", f.max("_second").over(so_far))
        .withColumn(
            "_reached", f.when(is_leader, f.col("_second")).otherwise(f.col("_first._most"))
        )
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
