"""The columns of every table, and which of them name its partitions.

docs/telemetry-reference.md describes the tables. bronze and quarantine have the columns of the
decoder (decode.py); a column that names partitions is in the path of a file and not in the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from . import decode

_TYPES: dict[str, pa.DataType] = {
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "string": pa.string(),
    "strings": pa.list_(pa.string()),
    "longs": pa.list_(pa.int64()),
    "binary": pa.binary(),
    "bool": pa.bool_(),
    "time": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class Table:
    """The schema of a table."""

    name: str  # with its part: gold/boards
    schema: pa.Schema
    parts: tuple[str, ...] = ("board",)  # columns that name partitions

    @property
    def is_source(self) -> bool:
        """It cannot be made anew: what was read live may be gone from the board."""
        return "/" not in self.name

    @property
    def in_files(self) -> pa.Schema:
        """The columns that its files have."""
        return pa.schema([field for field in self.schema if field.name not in self.parts])

    def made(
        self, board: str, found: pa.Table | dict[str, Any] | list[dict[str, Any]]
    ) -> pa.Table:
        """These columns, or rows, of a board; columns that the table has not are left out."""
        if isinstance(found, list):
            return pa.Table.from_pylist([{"board": board, **row} for row in found], self.schema)
        rows = pa.table(found)
        if "board" not in rows.column_names:
            rows = rows.append_column("board", pa.repeat(board, rows.num_rows))
        return rows.select(self.schema.names).cast(self.schema)


def _table(name: str, text: str, *parts: str) -> Table:
    """`name type` a column, separated by commas."""
    pairs = (column.split() for column in text.split(","))
    schema = pa.schema([(column, _TYPES[kind]) for column, kind in pairs])
    return Table(name, schema, parts or ("board",))


BRONZE = Table("bronze", pa.schema([f for f in decode.SCHEMA if f.name not in decode.ONLY_BAD]))
QUARANTINE = Table("quarantine", decode.SCHEMA)

_WHEN = "uptime_ms long, wall time, wall_error_us long, clock string,"
_BODY = (
    "client string, topic string, levels strings, qos int, retain bool, dup bool,"
    "kind string, number double, json string, text string, payload binary,"
    "copies long, conflict bool"
)
MESSAGES = _table(
    "silver/messages", "board string, boot long, segment long, seq long," + _WHEN + _BODY
)
BRIDGED = _table(
    "silver/bridged",
    "board string, boot long, seq long,"
    "recorder string, recorder_boot long, recorder_seq long, segment long," + _WHEN + _BODY,
    "board",
    "recorder",
)
EVENTS = _table(
    "silver/events",
    "board string, boot long, segment long, seq long,"
    + _WHEN
    + "stretch long, event string, client string, code int, detail string, heap_bytes long,"
    "payload binary, copies long, conflict bool",
)
ANCHORS = _table(
    "silver/anchors",
    "board string, boot long, seq long, quality string, believed bool, anchor time, error_ms long",
)
LOSSES = _table(
    "silver/losses",
    "board string, boot long, boots long, first_seq long, last_seq long, lost long,"
    "reasons strings, segments longs, after time, before time",
)
# The last one to be written says that all of them are there.
SILVER = {t.name.partition("/")[2]: t for t in (BRIDGED, EVENTS, ANCHORS, LOSSES, MESSAGES)}

_HOURS = "board string, topic string, start time,"
TRAFFIC = _table(
    "gold/traffic",
    _HOURS + "messages long, bytes long, acknowledged long, retained long, rate double",
)
READINGS = _table(
    "gold/readings",
    "board string, topic string, field string, start time, count long, min double, mean double,"
    "max double, p10 double, p50 double, p90 double, rate double",
)
SILENCES = _table(
    "gold/silences",
    "board string, topic string, after time, before time, seconds double, usual_s double,"
    "restarted bool",
)
GAPS = _table(
    "gold/gaps",
    "board string, boot long, boots long, first_seq long, last_seq long, lost long,"
    "reasons strings, files strings, after time, before time, seconds double",
)
SENSORS = _table(
    "gold/sensors",
    "board string, topic string, field string, count long, first time, last time,"
    "drift_per_day double, drift_r2 double, drifts bool, same long, same_since time, flat bool,"
    "counter bool",
)
AUDIT = _table(
    "gold/audit",
    "board string, boot long, seq long, client string, topic string, finding string,"
    "messages long, before_seq long, counter long, wall time",
)
SESSIONS = _table(
    "gold/sessions",
    "board string, client string, connects long, disconnects long, keep_alive_deaths long,"
    "takeovers long, wills long, most_connects long, flapping bool, messages long",
)
BOOTS = _table(
    "gold/boots", "board string, boot long, first time, last time, records long, cause int"
)
BOARDS = _table(
    "gold/boards",
    "board string, name string, site string, tags strings, first time, last time, boots long,"
    "messages long, without_time long, worst_error_us long, conflicts long, lost long,"
    "reasons strings, anchors long, wrong_anchors long, least_heap long, most_connected long,"
    "refusals long, full strings, advice strings",
)
GOLD = {
    t.name.partition("/")[2]: t
    for t in (TRAFFIC, READINGS, SILENCES, GAPS, SENSORS, AUDIT, SESSIONS, BOOTS, BOARDS)
}
ALL = (BRONZE, QUARANTINE, *SILVER.values(), *GOLD.values())
