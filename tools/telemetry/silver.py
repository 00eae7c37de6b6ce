"""Silver: one row for each message and event, without duplicates, with its time; and the losses.

    ordered   frames once each, in the order of their numbers; ticks without the wraps that
              show in them; a stretch ends where numbers are missing (anchors.py)
    solved    per board: what its anchors say of its clock, and what is missing (board_task.py)
    timed     ordered, with the wall time

`ordered` and `solved` are written once and read several times: they are the two places at
which all rows, or all of a board's facts, have to be together. No table is said to be small:
Spark sees by the files' sizes whether it is.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from . import segment as s
from .anchors import DRIFT_PPM, MISSING, MS
from .board_task import solve
from .bounds import UNKNOWN
from .payloads import typed
from .ring_fetch import OVERWRITTEN
from .schemas import FACTS, SOLVED

_IDENTITY = ("board", "boot", "seq")


def ordered(frames: DataFrame) -> DataFrame:
    """Each identity once: the copy of the earliest harvest."""
    same = Window.partitionBy(*_IDENTITY)
    first = same.orderBy(f.col("harvested_ms").asc_nulls_last(), "line", "offset")
    boot = Window.partitionBy("board", "boot").orderBy("seq")
    once = (
        frames.repartition("board", "boot")
        .withColumn("_copy", f.row_number().over(first))
        .withColumn("copies", f.count("*").over(same))
        .withColumn("conflict", f.min("crc").over(same) != f.max("crc").over(same))
        .where("_copy = 1")
    )
    so_far = boot.rowsBetween(Window.unboundedPreceding, 0)
    wrapped = (f.col("ticks") < f.lag("ticks").over(boot)).cast("long")
    anchors = (f.col("type") == s.ANCHOR).cast("long")
    return (
        once.withColumn("_wrapped", f.coalesce(wrapped, f.lit(0)))
        .withColumn(
            "uptime_ms", f.col("ticks") + f.sum("_wrapped").over(so_far) * f.lit(s.TICKS_PERIOD)
        )
        .withColumn("passed", f.sum(anchors).over(so_far))
        .withColumn("_before", f.coalesce(f.lag("seq").over(boot), f.lit(-1)))
        .withColumn("uptime_before", f.lag("uptime_ms").over(boot))
        .withColumn("passed_before", f.lag("passed").over(boot))
        .withColumn("harvested_before", f.lag("harvested_ms").over(boot))
        .withColumn("segment_before", f.coalesce(f.lag("segment").over(boot), f.lit(-1)))
        .withColumn("hole", f.when(f.col("seq") > f.col("_before") + 1, f.col("_before") + 1))
        .withColumn("stretch", f.sum(_begins_stretch()).over(so_far))
        .withColumn("stretch_before", f.lag("stretch").over(boot))
        .drop("_copy", "_wrapped", "_before", "ticks", "crc", "line", "offset")
    )


def _begins_stretch() -> Column:
    """1 where so much is missing between this record and the one before."""
    missing = f.col("seq") - f.col("_before") - 1
    return ((missing > MISSING) & f.col("uptime_before").isNotNull()).cast("long")


def facts(records: DataFrame, quarantine: DataFrame) -> DataFrame:
    """The few rows of a board from which its clock and its losses follow."""
    boots = records.groupBy("board", "boot").agg(
        f.lit("boot").alias("fact"),
        f.min("uptime_ms").alias("uptime_before"),
        f.max("uptime_ms").alias("uptime_ms"),
        f.max("seq").alias("seq"),
        f.max("passed").alias("passed"),
        f.max("stretch").alias("stretch"),
        f.max_by("harvested_ms", "seq").alias("harvested_ms"),
        f.max_by("segment", "seq").alias("segment"),
    )
    kinds = f.when(f.col("type") == s.ANCHOR, "anchor").when(f.col("type") == s.GAP, "told")
    told = records.where(f.col("type").isin(s.ANCHOR, s.GAP)).withColumn("fact", kinds)
    holes = records.where("hole is not null").withColumn("fact", f.lit("hole"))
    # What a live source found overwritten says so as a board's own record does.
    gone = (f.col("type") == s.GAP) & (f.col("reason") == OVERWRITTEN)
    gone = f.coalesce(gone, f.lit(False))
    told = told.unionByName(quarantine.where(gone).withColumn("fact", f.lit("told")), True)
    bad = quarantine.where(~gone & f.col("seq").isNotNull()).withColumn("fact", f.lit("bad"))
    # Of the others the segment may be known, and with it between which records they were.
    torn = quarantine.where("seq is null and segment is not null")
    torn = torn.select("board", "boot", "segment").distinct().withColumn("fact", f.lit("torn"))
    found = _conforming(boots)
    for part in (told, holes, bad, torn):
        found = found.unionByName(_conforming(part))
    return found


def _conforming(rows: DataFrame) -> DataFrame:
    """The columns of FACTS, null where there are none."""
    return rows.select(
        *(
            (f.col(column.name) if column.name in rows.columns else f.lit(None))
            .cast(column.dataType)
            .alias(column.name)
            for column in FACTS
        )
    )


def solved(found: DataFrame) -> DataFrame:
    """Pieces of clocks, losses, and which anchors are believed."""
    return found.groupBy("board").applyInArrow(solve, SOLVED)


def timed(records: DataFrame, answers: DataFrame) -> DataFrame:
    """Records with `wall`, `wall_error_us` and `clock`."""
    pieces = answers.where("answer = 'piece'").select(
        "board", "boot", "stretch", "passed", "wraps", "clock",
        *(f"{side}_{what}" for side in ("before", "after") for what in ("ms", "low", "high")),
    )  # fmt: skip
    by = ["board", "boot", "stretch", "passed"]
    wrapped = f.coalesce("wraps", f.lit(0)) * f.lit(s.TICKS_PERIOD)
    both = records.join(pieces, by, "left")
    known = both.withColumn("uptime_ms", f.col("uptime_ms") + wrapped)
    low = f.greatest(*(_bound(side, "low") for side in ("before", "after")))
    high = f.least(*(_bound(side, "high") for side in ("before", "after")))
    fits = f.col("_least") <= f.col("_most")
    up = f.col("uptime_ms") * MS
    return (
        known.withColumn("_least", low)
        .withColumn("_most", high)
        .withColumn("_low", f.when(fits, f.col("_least") + up))
        .withColumn("_high", f.when(fits, f.col("_most") + up))
        .withColumn("wall", f.timestamp_micros(f.expr("(_low + _high) div 2000")))
        .withColumn("wall_error_us", f.expr("(_high - _low) div 2000 + 2"))
        .withColumn("clock", f.when(fits, f.col("clock")).otherwise(UNKNOWN))
    )


def _bound(side: str, what: str) -> Column:
    sign = -1 if what == "low" else 1
    spread = f.abs(f.col("uptime_ms") - f.col(f"{side}_ms")) * f.lit(DRIFT_PPM * sign)
    return f.col(f"{side}_{what}") + spread


def messages(records: DataFrame) -> DataFrame:
    """Messages of `timed`, before what several brokers have recorded is put together."""
    rows = (
        with_origin(records.where(f.col("type") == s.MESSAGE))
        .withColumn("qos", f.col("flags").bitwiseAND(3))
        .withColumn("retain", f.col("flags").bitwiseAND(s.RETAIN) != 0)
        .withColumn("dup", f.col("flags").bitwiseAND(s.DUP) != 0)
        .withColumn("levels", f.split("topic", "/"))
        .withColumn("day", f.to_date("wall"))
    )
    return typed(rows)


def with_origin(rows: DataFrame) -> DataFrame:
    """Whose message it first was, where the record says so, and the payload without that."""
    has_origin = f.col("flags").bitwiseAND(s.HAS_ORIGIN) != 0
    body = f.expr(f"substring(payload, {s.ORIGIN_SIZE + 1})")
    origin = f.when(has_origin, f.lower(f.hex(f.expr("substring(payload, 1, 8)"))))
    return (
        rows.withColumn("origin_board", origin)
        .withColumn("origin_boot", f.when(has_origin, little_endian("payload", 9)))
        .withColumn("origin_seq", f.when(has_origin, little_endian("payload", 13)))
        .withColumn("payload", f.when(has_origin, body).otherwise(f.col("payload")))
    )


def events(records: DataFrame) -> DataFrame:
    """Events of `timed`, their detail by its meaning."""
    names = f.create_map(*(f.lit(part) for pair in s.EVENTS.items() for part in pair))
    name = f.coalesce(names[f.col("flags")], f.concat(f.lit("event "), f.col("flags")))
    number = f.conv(f.hex(f.expr("substring(payload, 1, 1)")), 16, 10).cast("int")
    of_text = f.col("event").isin("subscribe", "unsubscribe", "table full")
    of_number = f.col("event").isin("boot", "connect", "disconnect") & (f.length("payload") > 0)
    of_heap = (f.col("event") == "heap low-water") & (f.length("payload") >= 4)
    return (
        records.where(f.col("type") == s.EVENT)
        .withColumn("event", name)
        .withColumn("code", f.when(of_number, number))
        .withColumn("detail", f.when(of_text, f.expr("make_valid_utf8(cast(payload as string))")))
        .withColumn("heap_bytes", f.when(of_heap, little_endian("payload", 1)))
        .withColumn("day", f.to_date("wall"))
    )


def little_endian(column: str, start: int) -> Column:
    """The u32 at `start`, from 1, of a binary column."""
    digits = f.hex(f.expr(f"substring({column}, {start}, 4)"))
    turned = f.concat(*(f.substring(digits, 7 - 2 * i, 2) for i in range(4)))
    return f.conv(turned, 16, 10).cast("long")
