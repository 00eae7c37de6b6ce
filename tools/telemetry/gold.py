"""Gold tables of messages: traffic, readings, silences, sensors, audit.

A topic belongs to a board, since every board is a broker of its own: the one whose message it
first was, for one that a bridge brought.

Each function makes one table from tables of silver. A message whose time is unknown, or not known
to the hour, is in no table about time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

WINDOW = "1 hour"
WINDOW_S = 3600
QUIET_TIMES, QUIET_S, QUIET_OF = 5, 60, 5  # longer than usual, at least, of so many messages
FLAT_COUNT, FLAT_S = 10, 3600
DRIFT_COUNT, DRIFT_S, DRIFT_R2 = 20, 6 * 3600, 0.7
SHRINK = 2.0**-600  # a power of two changes no digit; the square of the greatest double is one
LARGE = 1e100
COUNTER = "n"  # the field in which a publisher counts its messages
COUNTED = 5  # values, from which on a counter shows as one
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$"


def seconds(since: str, until: str) -> Column:
    """Between two times, with a fraction."""
    return (f.unix_micros(until) - f.unix_micros(since)) / f.lit(1_000_000.0)


def is_finite(number: Column) -> Column:
    """Neither infinite nor NaN, which Spark takes for greater than all."""
    return f.abs(number) < f.lit(math.inf)


def mean() -> Column:
    """Of `value`; between the least and the greatest, where their sum is too large for a double
    too."""
    plain, shrunk = f.avg("value"), f.avg(f.col("value") * SHRINK) / SHRINK
    held = f.greatest(f.least(shrunk, f.max("value")), f.min("value"))
    return f.when(is_finite(plain), plain).otherwise(held)


def trend(of: Callable[[Column, Column], Column], shrink: float = 1.0) -> Column:
    """Slope or fit of `value` by `_days`; null where it is too large for a double.

    Sums of products of large numbers are: those of the shrunk ones count there.
    """
    days = f.col("_days")
    plain, shrunk = of(f.col("value"), days), of(f.col("value") * SHRINK, days) / shrink
    found = f.when(f.max(f.abs("value")) > LARGE, shrunk).otherwise(plain)
    return f.when(is_finite(found), found)


def is_placed() -> Column:
    """Whether the time of a row is known well enough to say in which windows it may be."""
    close = f.col("wall").isNotNull() & (f.col("wall_error_us") <= WINDOW_S * 1_000_000)
    return f.coalesce(close, f.lit(False))


def source() -> Column:
    """The board whose message it first was."""
    return f.coalesce("origin_board", "board").alias("board")


def window_start() -> Column:
    return f.window("wall", WINDOW).getField("start")


def traffic(messages: DataFrame) -> DataFrame:
    """Messages and bytes of each topic of a board in each hour."""
    return (
        messages.where(is_placed())
        .groupBy(source(), "topic", window_start().alias("start"))
        .agg(
            f.count("*").alias("messages"),
            f.sum(f.length("payload")).alias("bytes"),
            f.count_if(f.col("qos") > 0).alias("acknowledged"),
            f.count_if("retain").alias("retained"),
            f.count_if("possible_duplicate").alias("possible_duplicates"),
            (f.count("*") / f.lit(float(WINDOW_S))).alias("rate"),
        )
    )


def values(messages: DataFrame) -> DataFrame:
    """Every number: a payload that is one, and the fields of an object on its first level."""
    fields = f.from_json("json", "map<string,string>")
    rows = messages.where(is_placed()).select(
        source(), "boot", "seq", "topic", "wall", "number",
        f.when(f.startswith(f.col("json"), f.lit("{")), fields).alias("_fields"),
    )  # fmt: skip
    plain = f.when(
        f.col("number").isNotNull(),
        f.array(f.struct(f.lit("").alias("key"), f.col("number").cast("string").alias("value"))),
    )
    return (
        rows.withColumn("_each", f.explode(f.coalesce(plain, once("_fields"))))
        .select("*", f.col("_each.key").alias("field"), f.col("_each.value").alias("_text"))
        .where(f.rlike("_text", f.lit(_NUMBER)))
        .withColumn("value", f.col("_text").try_cast("double"))
        .where(is_finite(f.col("value")))  # 1e400 is none
        .select("board", "boot", "seq", "topic", "field", "wall", "value")
    )


def once(fields: str) -> Column:
    """The entries of a map that has a name several times, as JSON may: the last of each.

    They are sorted, so that the next one tells: of n no more than n * log n are compared."""
    every, names = f.map_entries(fields), f.map_keys(fields)

    def part(entry: Column, name: str) -> Column:
        return entry.getField(name).alias(name)

    def numbered(entry: Column, i: Column) -> Column:
        return f.struct(part(entry, "key"), i.alias("i"), part(entry, "value"))

    def lasts(there: Column) -> Column:
        def is_last(entry: Column, i: Column) -> Column:
            return ~f.get(there, i + 1).getField("key").eqNullSafe(entry.getField("key"))

        return f.filter(there, is_last)

    in_order = f.sort_array(f.transform(every, numbered))
    kept = f.get(f.transform(f.array(in_order), lasts), f.lit(0))  # sorted once
    several = f.transform(kept, lambda e: f.struct(part(e, "key"), part(e, "value")))
    return f.when(f.size(f.array_distinct(names)) < f.size(names), several).otherwise(every)


def readings(numbers: DataFrame) -> DataFrame:
    """What each field of each topic of a board was in each hour."""
    # Of a quarter, as the step between the greatest and the least double is none.
    parts = f.percentile(f.col("value") / 4, f.array(*(f.lit(part) for part in (0.1, 0.5, 0.9))))
    return (
        numbers.groupBy("board", "topic", "field", window_start().alias("start"))
        .agg(
            f.count("*").alias("count"),
            f.min("value").alias("min"),
            f.max("value").alias("max"),
            mean().alias("mean"),
            parts.alias("_parts"),
            (f.count("*") / f.lit(float(WINDOW_S))).alias("rate"),
        )
        .select(
            "*", *((f.col("_parts")[i] * 4).alias(n) for i, n in enumerate(("p10", "p50", "p90")))
        )
    )


def silences(messages: DataFrame, losses: DataFrame) -> DataFrame:
    """When a topic was quiet for much longer than it is usually; `restarted`: its broker was
    off or began anew meanwhile.

    Only what the recording shows: a pause in which records are lost, or messages of the topic
    have no time, is none.
    """
    own = Window.partitionBy("board", "topic").orderBy("wall", "boot", "seq")
    steps = (
        messages.where(is_placed())
        .select("board", "topic", "boot", "seq", "wall", f.struct("boot", "seq").alias("_end"))
        .withColumn("after", f.lag("wall").over(own))
        .withColumn("_begin", f.lag("_end").over(own))
        .withColumn("restarted", f.col("_begin.boot") != f.col("boot"))
        .withColumn("seconds", seconds("after", "wall"))
        .where("after is not null")
    )
    usual = steps.groupBy("board", "topic").agg(
        f.median("seconds").alias("usual_s"), f.count("*").alias("_steps")
    )
    long = steps.where(f.col("seconds") > QUIET_S).join(usual, ["board", "topic"])
    quiet = long.where(
        (f.col("seconds") > f.col("usual_s") * QUIET_TIMES) & (f.col("_steps") + 1 >= QUIET_OF)
    )
    shown = _without(quiet, losses.withColumnRenamed("first_seq", "seq"), "board")
    return _without(shown, messages.where(~is_placed()), "board", "topic").withColumnRenamed(
        "wall", "before"
    )


def _without(pauses: DataFrame, others: DataFrame, *whose: str) -> DataFrame:
    """The pauses between whose ends, by their numbers, none of the others lies.

    Each looks at the last of the others before its later end: sorted, and not joined, since
    both may be many.
    """
    ends = f.col("_begin"), f.col("_end")
    marks = others.select(*whose, f.struct("boot", "seq").alias("_at"))
    rows = pauses.withColumn("_at", f.greatest(*ends)).unionByName(
        marks.withColumn("_mark", f.col("_at")), allowMissingColumns=True
    )
    so_far = Window.partitionBy(*whose).orderBy("_at").rowsBetween(Window.unboundedPreceding, 0)
    return (
        rows.withColumn("_last", f.last("_mark", ignorenulls=True).over(so_far))
        .where("_end is not null")
        .where(f.col("_last").isNull() | (f.col("_last") < f.least(*ends)))
        .drop("_at", "_mark", "_last")
    )


def gaps(losses: DataFrame) -> DataFrame:
    """What was not recorded, with the files of the ring that are gone by name."""
    names = f.transform(
        "segments", lambda number: f.concat(f.lpad(f.lower(f.hex(number)), 8, "0"), f.lit(".seg"))
    )
    return losses.withColumn("files", names).withColumn("seconds", seconds("after", "before"))


def sensors(numbers: DataFrame) -> DataFrame:
    """Per field: whether its value creeps in one direction, and since when it has not moved.

    A counter does neither: the field `n`, or whole numbers of which more than half rise, and
    none falls but to 0 or 1, where counting begins anew.
    """
    whose = ["board", "topic", "field"]
    own = Window.partitionBy(*whose).orderBy("wall", "boot", "seq")
    so_far = own.rowsBetween(Window.unboundedPreceding, 0)
    changed = f.coalesce((f.col("value") != f.lag("value").over(own)).cast("long"), f.lit(0))
    step = f.col("value") - f.lag("value").over(own)
    # Counted from the first, since squares of days since 1970 leave too few digits.
    since = f.unix_micros("wall") - f.unix_micros(f.first("wall").over(so_far))
    runs = (
        numbers.withColumn("_changed", changed)
        .withColumn("_step", step)
        .withColumn("_run", f.sum("_changed").over(so_far))
        .withColumn("_days", since / f.lit(86_400_000_000.0))
    )
    whole = runs.groupBy(*whose).agg(
        f.count("*").alias("count"),
        f.min("wall").alias("first"),
        f.max("wall").alias("last"),
        f.max("_run").alias("_last_run"),
        trend(f.regr_slope, SHRINK).alias("drift_per_day"),
        trend(f.regr_r2).alias("drift_r2"),
        counts().alias("_counts"),
    )
    last = runs.groupBy(*whose, f.col("_run").alias("_last_run")).agg(
        f.count("*").alias("same"), f.min("wall").alias("same_since")
    )
    found = whole.join(last, [*whose, "_last_run"])
    still = seconds("same_since", "last") >= FLAT_S
    lasting = seconds("first", "last") >= DRIFT_S
    counter = (f.col("field") == COUNTER) | f.col("_counts")
    flat = (f.col("same") >= FLAT_COUNT) & still
    return (
        found.withColumn("counter", counter)
        .withColumn("flat", flat)
        .withColumn(
            "drifts",
            ~counter
            & (f.col("count") >= DRIFT_COUNT)
            & lasting
            & (f.coalesce(f.col("drift_r2"), f.lit(0.0)) >= DRIFT_R2)
            & (f.coalesce(f.col("drift_per_day"), f.lit(0.0)) != 0),
        )
    )


def counts() -> Column:
    """Whether the values are those of a counter."""
    rises = f.count_if(f.col("_step") > 0) * 2 > f.count("*")
    falls = f.count_if((f.col("_step") < 0) & ~f.col("value").isin(0.0, 1.0))
    parts = f.count_if(f.col("value") % 1 != 0)
    return (f.count("*") >= COUNTED) & rises & (falls == 0) & (parts == 0)


def audit(messages: DataFrame, losses: DataFrame) -> DataFrame:
    """What QoS promises and a recording contradicts, per client and topic.

    twice         QoS 2, and the message before it, of QoS 2 too, has the same payload: it
                  comes with DUP, or has a counter
    lost          a counter goes on by more than one between two messages of QoS 1 or 2, and
                  nothing is missing in the recording between them
    order broken  a counter goes back, and not to 0 or 1, where a publisher starts anew
    """
    own = Window.partitionBy("board", "boot", "client", "topic").orderBy("seq")
    counted = (
        messages.where("client is not null and origin_board is null")
        .select(
            "board", "boot", "seq", "client", "topic", "qos", "dup", "payload", "wall",
            f.get_json_object("json", f"$.{COUNTER}").try_cast("long").alias("counter"),
        )
        .withColumn("before_seq", f.lag("seq").over(own))
        .withColumn("_counter", f.lag("counter").over(own))
        .withColumn("_qos", f.lag("qos").over(own))
        .withColumn("_same", f.lag("payload").over(own) == f.col("payload"))
    )  # fmt: skip
    both = (f.col("qos") == 2) & (f.col("_qos") == 2) & f.col("_same")
    ahead = f.col("counter") - f.col("_counter")
    finding = (
        f.when(both & (f.col("dup") | f.col("counter").isNotNull()), "twice")
        .when((ahead < 0) & (f.col("counter") > 1), "order broken")
        .when((ahead > 1) & (f.col("qos") > 0) & (f.col("_qos") > 0), "lost")
    )
    found = counted.withColumn("finding", finding).where("finding is not null")
    holes = losses.select("board", "boot", f.col("first_seq").alias("_hole"))
    between = (f.col("_hole") > f.col("before_seq")) & (f.col("_hole") < f.col("seq"))
    beside = found.alias("a").join(
        holes.alias("b"),
        (f.col("a.board") == f.col("b.board")) & (f.col("a.boot") == f.col("b.boot")) & between,
        "left_anti",
    )
    certain = beside.where("finding = 'lost'").withColumn("messages", ahead - 1)
    return certain.unionByName(
        found.where("finding <> 'lost'").withColumn("messages", f.lit(1).cast("long"))
    )
