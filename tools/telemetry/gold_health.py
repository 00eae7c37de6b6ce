"""Gold tables of events: sessions of clients, health of boards, which limit to raise."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from .gold import is_placed

FLAPPING = 5  # connects within the time below
FLAPPING_MS = 600_000
_SO_FAR = Window.unboundedPreceding, Window.currentRow
TIMED_OUT = 8  # reason of a disconnect; lib/slotmq/protocol/packet.py has them all
LOW_HEAP = 10_240  # bytes; less is too little for a connection


def of(event: str) -> Column:
    return f.col("event") == event


def sessions(events: DataFrame, messages: DataFrame) -> DataFrame:
    """Per client of a board: how often it came, went, and why."""
    sent = messages.where("origin_board is null").groupBy("board", "client").agg(
        f.count("*").alias("messages")
    )  # fmt: skip
    counts = (
        events.where("client is not null")
        .groupBy("board", "client")
        .agg(
            f.count_if(of("connect")).alias("connects"),
            f.count_if(of("disconnect")).alias("disconnects"),
            f.count_if(of("disconnect") & (f.col("code") == TIMED_OUT)).alias("keep_alive_deaths"),
            f.count_if(of("takeover")).alias("takeovers"),
            f.count_if(of("will")).alias("wills"),
        )
    )
    whose = ["board", "client"]
    return (
        counts.join(most_connects(events), whose, "left")
        .join(sent, whose, "left")
        .withColumn("most_connects", f.coalesce("most_connects", f.lit(0).cast("long")))
        .withColumn("messages", f.coalesce("messages", f.lit(0).cast("long")))
        .withColumn("flapping", f.col("most_connects") >= FLAPPING)
    )


def most_connects(events: DataFrame) -> DataFrame:
    """Per client of a board: most CONNECTs within ten minutes of a boot, by its own clock,
    which needs no anchor.

    Each adds one when it comes, and takes it back ten minutes later. Each stretch begins with
    none: days may be missing between two of them, though their uptimes do not show it.
    """
    own = Window.partitionBy("board", "boot", "stretch", "client").orderBy("_step.at", "_step.by")
    both = [
        f.struct((f.col("uptime_ms") + later).alias("at"), f.lit(by).alias("by"))
        for later, by in ((0, 1), (FLAPPING_MS, -1))
    ]
    return (
        events.where(of("connect") & f.col("client").isNotNull())
        .select("board", "boot", "stretch", "client", f.explode(f.array(*both)).alias("_step"))
        .withColumn("_count", f.sum("_step.by").over(own.rowsBetween(*_SO_FAR)))
        .groupBy("board", "client")
        .agg(f.max("_count").alias("most_connects"))
    )


def most_connected(events: DataFrame, losses: DataFrame) -> DataFrame:
    """Per board: most clients that were connected at once in a boot, as far as is recorded.

    Where numbers are missing nobody knows who went: behind them it begins with nobody, so that
    there were at least so many.
    """
    boot = Window.partitionBy("board", "boot").orderBy("seq")
    holes = losses.select(
        "board", "boot", f.col("first_seq").alias("seq"), f.lit(1).alias("_hole")
    )  # fmt: skip
    part = Window.partitionBy("board", "boot", "_part").orderBy("seq")
    came_before = f.lag(of("connect"), 1, False).over(
        Window.partitionBy("board", "boot", "_part", "client").orderBy("seq")
    )
    came = of("connect").cast("long") - came_before.cast("long")  # -1: it went
    return (
        events.where((of("connect") | of("disconnect")) & f.col("client").isNotNull())
        .select("board", "boot", "seq", "event", "client")
        .unionByName(holes, allowMissingColumns=True)
        .withColumn("_part", f.count("_hole").over(boot))
        .where("_hole is null")
        .withColumn("connected", came)
        .withColumn("connected", f.sum("connected").over(part))
        .groupBy("board")
        .agg(f.max("connected").alias("most_connected"))
    )


def boots(messages: DataFrame, events: DataFrame) -> DataFrame:
    """Per boot: when it was up, as far as records of known time show it, and why it began."""
    cause = f.when(of("boot"), f.col("code")).alias("cause")
    rows = events.select("board", "boot", "wall", "wall_error_us", cause).unionByName(
        messages.select("board", "boot", "wall", "wall_error_us"), allowMissingColumns=True
    )
    time = f.when(is_placed(), f.col("wall"))
    return rows.groupBy("board", "boot").agg(
        f.min(time).alias("first"),
        f.max(time).alias("last"),
        f.count("*").alias("records"),
        f.max("cause").alias("cause"),
    )


def boards(
    messages: DataFrame, events: DataFrame, losses: DataFrame, anchors: DataFrame
) -> DataFrame:
    """Per board: what it has seen, what it lacked, and what to do about it."""
    sent = messages.groupBy("board").agg(
        f.count("*").alias("messages"),
        f.count_if(~is_placed()).alias("without_time"),
        f.max("wall_error_us").alias("worst_error_us"),
        f.count_if("conflict").alias("conflicts"),
        f.min(f.when(is_placed(), f.col("wall"))).alias("first"),
        f.max(f.when(is_placed(), f.col("wall"))).alias("last"),
    )
    seen = events.groupBy("board").agg(
        f.count_if(of("boot")).alias("boots"),
        f.min("heap_bytes").alias("least_heap"),
        f.count_if(of("table full")).alias("refusals"),
        f.array_sort(f.collect_set(f.when(of("table full"), f.col("detail")))).alias("full"),
    )
    gone = losses.groupBy("board").agg(
        f.sum("lost").alias("lost"),
        f.array_sort(f.array_distinct(f.flatten(f.collect_list("reasons")))).alias("reasons"),
    )
    clocks = anchors.groupBy("board").agg(
        f.count("*").alias("anchors"), f.count_if(~f.col("believed")).alias("wrong_anchors")
    )
    found = sent
    for other in (seen, gone, clocks, most_connected(events, losses)):
        found = found.join(other, "board", "full_outer")
    empty = f.array().cast("array<string>")
    zero = ("messages", "without_time", "conflicts", "boots", "refusals", "lost", "anchors",
            "wrong_anchors", "most_connected")  # fmt: skip
    for name in zero:
        found = found.withColumn(name, f.coalesce(name, f.lit(0).cast("long")))
    for name in ("full", "reasons"):
        found = found.withColumn(name, f.coalesce(name, empty))
    return found.withColumn("advice", advice())


def advice() -> Column:
    """One sentence for each finding."""
    said = [
        f.transform("full", lambda table: f.concat(f.lit("raise limit "), table)),
        _when(f.col("least_heap") < LOW_HEAP, "lower a limit: the heap was nearly used up"),
        _when(
            f.array_contains("reasons", "overwritten"),
            "harvest sooner, or raise record_budget: records were overwritten",
        ),
        _when(
            f.array_contains("reasons", "ring full"),
            "harvest sooner, or raise record_budget: the ring was full",
        ),
        _when(f.array_contains("reasons", "write failed"), "check the flash: a write failed"),
        _when(
            f.col("anchors") - f.col("wrong_anchors") == 0,
            "send the time to the board ($SLOTMQ/time)",
        ),
        _when(f.col("wrong_anchors") > 0, "a clock that it used is wrong"),
        _when(
            f.col("conflicts") > 0, "the board used record numbers twice: give it a new identity"
        ),
    ]
    return f.flatten(f.array(*said))


def _when(condition: Column, sentence: str) -> Column:
    none = f.array().cast("array<string>")
    return f.when(f.coalesce(condition, f.lit(False)), f.array(f.lit(sentence))).otherwise(none)
