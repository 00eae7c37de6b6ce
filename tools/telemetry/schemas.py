"""The columns of every table. All are declared here; Spark infers none.

bronze and quarantine have the columns of the decoder (decode.py). docs/telemetry.md describes the
tables of silver and gold.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TYPES: dict[str, DataType] = {
    "long": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
    "string": StringType(),
    "strings": ArrayType(StringType()),
    "longs": ArrayType(LongType()),
    "binary": BinaryType(),
    "bool": BooleanType(),
    "time": TimestampType(),
    "day": DateType(),
}


def _schema(text: str) -> StructType:
    """`name type` a column, separated by commas; a new object each, since add() changes one."""
    pairs = (column.split() for column in text.split(","))
    return StructType([StructField(name, _TYPES[kind]) for name, kind in pairs])


# What the Data Source gives: good rows have no `reason`.
FRAMES = _schema(
    "board string, boot long, segment long, seq long, ticks long, type int, flags int,"
    "client string, topic string, payload binary, crc long,"
    "line long, offset long, harvested_ms long, file string, reason string"
)

BRONZE = StructType([column for column in FRAMES if column.name not in ("file", "reason")])
QUARANTINE = StructType([*FRAMES])

# What is needed of a board to know its clock and its losses (silver.facts).
FACTS = _schema(
    "board string, fact string, boot long, seq long, uptime_ms long, uptime_before long,"
    "passed long, passed_before long, stretch long, stretch_before long, hole long,"
    "flags int, payload binary, harvested_ms long, harvested_before long,"
    "segment long, segment_before long"
)
# What follows from them (board_task.py).
SOLVED = _schema(
    "board string, answer string, boot long, stretch long, passed long, wraps long, clock string,"
    "before_ms long, before_low long, before_high long,"
    "after_ms long, after_low long, after_high long,"
    "seq long, last long, boots long, believed bool, quality string, anchor_us long,"
    "error_ms long, reasons strings, segments longs, from_us long, to_us long"
)

_WHOSE = "board string, boot long, segment long, seq long, uptime_ms long,"
_WHEN = "wall time, wall_error_us long, clock string, day day,"
MESSAGES = _schema(
    _WHOSE + _WHEN + "client string, topic string, levels strings, qos int, retain bool, dup bool,"
    "kind string, number double, json string, text string, payload binary,"
    "origin_board string, origin_boot long, origin_seq long,"
    "possible_duplicate bool, copies long, conflict bool"
)
EVENTS = _schema(
    _WHOSE
    + _WHEN
    + "stretch long, event string, client string, code int, detail string, heap_bytes long,"
    "payload binary, copies long, conflict bool"
)
ANCHORS = _schema(
    "board string, boot long, seq long, quality string, believed bool, anchor time, error_ms long"
)
LOSSES = _schema(
    "board string, boot long, boots long, first_seq long, last_seq long, lost long,"
    "reasons strings, segments longs, after time, before time"
)

TRAFFIC = _schema(
    "board string, topic string, start time, messages long, bytes long, acknowledged long,"
    "retained long, possible_duplicates long, rate double"
)
READINGS = _schema(
    "board string, topic string, field string, start time, count long, min double, mean double,"
    "max double, p10 double, p50 double, p90 double, rate double"
)
SILENCES = _schema(
    "board string, topic string, after time, before time, seconds double, usual_s double,"
    "restarted bool"
)
GAPS = _schema(
    "board string, boot long, boots long, first_seq long, last_seq long, lost long,"
    "reasons strings, files strings, after time, before time, seconds double"
)
SENSORS = _schema(
    "board string, topic string, field string, count long, first time, last time,"
    "drift_per_day double, drift_r2 double, drifts bool, same long, same_since time, flat bool,"
    "counter bool"
)
AUDIT = _schema(
    "board string, boot long, seq long, client string, topic string, finding string,"
    "messages long, before_seq long, counter long, wall time"
)
SESSIONS = _schema(
    "board string, client string, connects long, disconnects long, keep_alive_deaths long,"
    "takeovers long, wills long, most_connects long, flapping bool, messages long"
)
BOOTS = _schema("board string, boot long, first time, last time, records long, cause int")
BOARDS = _schema(
    "board string, first time, last time, boots long, messages long, without_time long,"
    "worst_error_us long, conflicts long, lost long, reasons strings, anchors long,"
    "wrong_anchors long, least_heap long, most_connected long, refusals long, full strings,"
    "advice strings"
)
