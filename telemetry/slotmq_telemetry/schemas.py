"""The tables: the columns of each, and which of them name its partitions.

telemetry/reference.md describes them; its end is made by

    python -m slotmq_telemetry.schemas

A column that names partitions is in the path of a file and not in the file. columns.py says of
each column its type and what it means.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from .columns import COLUMNS

PAGE = Path(__file__).resolve().parents[1] / "reference.md"
_HEAD = """## Columns

Made from the schemas by `python -m slotmq_telemetry.schemas`. Times are in UTC. Each table
is partitioned by `board`.
"""
# The types by the names that columns.py has for them, and what the page calls them.
_TYPES: dict[str, tuple[pa.DataType, str]] = {
    "long": (pa.int64(), "int64"),
    "int": (pa.int32(), "int32"),
    "double": (pa.float64(), "double"),
    "string": (pa.string(), "string"),
    "strings": (pa.list_(pa.string()), "list of string"),
    "longs": (pa.list_(pa.int64()), "list of int64"),
    "binary": (pa.binary(), "binary"),
    "bool": (pa.bool_(), "bool"),
    "time": (pa.timestamp("us", "UTC"), "timestamp"),
}


@dataclass(frozen=True)
class Table:
    """The columns of a table."""

    name: str  # with its part: gold/boards
    schema: pa.Schema
    text: str = ""  # what a row is
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


def _column(table: str, name: str) -> tuple[str, str]:
    """Its type and what it means."""
    kind, text = COLUMNS.get(f"{table}.{name}") or COLUMNS[name]
    return kind, text


def _table(name: str, text: str, columns: str, *parts: str) -> Table:
    kinds = ((column, _TYPES[_column(name, column)[0]][0]) for column in columns.split())
    return Table(name, pa.schema([*kinds]), text, parts or ("board",))


_FRAME = (
    "board boot segment seq ticks type flags client topic payload crc line offset harvested_ms "
)
ONLY_BAD = "file reason bytes first_seq last_seq"
_WHEN = " uptime_ms wall wall_error_us clock "
_BODY = "client topic levels qos retain dup kind number json text payload copies conflict"
BRONZE = _table(
    "bronze", "A row for each frame as it was decoded.",
    _FRAME,
)  # fmt: skip
QUARANTINE = _table(
    "quarantine", "A row for each frame that cannot be a row of bronze.",
    _FRAME + ONLY_BAD,
)  # fmt: skip
MESSAGES = _table(
    "silver/messages", "A row for each message that a board recorded.",
    "board boot segment seq" + _WHEN + _BODY,
)  # fmt: skip
BRIDGED = _table(
    "silver/bridged", "A row for each copy of a message that a bridge brought from another board.",
    "board boot seq recorder recorder_boot recorder_seq segment" + _WHEN + _BODY,
    "board", "recorder",
)  # fmt: skip
EVENTS = _table(
    "silver/events", "A row for each event that a board recorded.",
    "board boot segment seq" + _WHEN +
    "stretch event client code detail heap_bytes payload copies conflict",
)  # fmt: skip
ANCHORS = _table(
    "silver/anchors", "A row for each record that says what time it was.",
    "board boot seq quality believed anchor error_ms",
)  # fmt: skip
LOSSES = _table(
    "silver/losses", "A row for each run of numbers that no record has.",
    "board boot boots first_seq last_seq lost reasons segments after before",
)  # fmt: skip
# The last one to be written says that all of them are there.
SILVER = {t.name.partition("/")[2]: t for t in (BRIDGED, EVENTS, ANCHORS, LOSSES, MESSAGES)}
TRAFFIC = _table(
    "gold/traffic", "A row for each hour of a topic.",
    "board topic start messages bytes acknowledged retained rate",
)  # fmt: skip
READINGS = _table(
    "gold/readings", "A row for each hour of a number: a payload, or a field of a JSON object.",
    "board topic field start count min mean max p10 p50 p90 rate",
)  # fmt: skip
SILENCES = _table(
    "gold/silences", "A row for each pause of a topic that is much longer than usual there.",
    "board topic after before seconds usual_s restarted",
)  # fmt: skip
GAPS = _table(
    "gold/gaps", "A row for each loss.",
    "board boot boots first_seq last_seq lost reasons files after before seconds",
)  # fmt: skip
SENSORS = _table(
    "gold/sensors", "A row for each number: a payload, or a field of a JSON object.",
    "board topic field count first last drift_per_day drift_r2 drifts same same_since flat "
    "counter",
)  # fmt: skip
AUDIT = _table(
    "gold/audit", "A row for each message that contradicts what its QoS promises.",
    "board boot seq client topic finding messages before_seq counter wall",
)  # fmt: skip
SESSIONS = _table(
    "gold/sessions", "A row for each client of a board.",
    "board client connects disconnects keep_alive_deaths takeovers wills most_connects "
    "flapping messages",
)  # fmt: skip
BOOTS = _table(
    "gold/boots", "A row for each boot of a board.",
    "board boot first last records cause",
)  # fmt: skip
BOARDS = _table(
    "gold/boards", "A row for each board.",
    "board name site tags first last boots messages without_time worst_error_us conflicts "
    "lost reasons anchors wrong_anchors least_heap most_connected refusals full advice",
)  # fmt: skip
GOLD = {
    t.name.partition("/")[2]: t
    for t in (TRAFFIC, READINGS, SILENCES, GAPS, SENSORS, AUDIT, SESSIONS, BOOTS, BOARDS)
}
ALL = (BRONZE, QUARANTINE, *SILVER.values(), *GOLD.values())


def page() -> str:
    """The page, with these columns."""
    before, _, _ = PAGE.read_text().partition("## Columns\n")
    return before + _HEAD + "".join(_section(table) for table in ALL)


def _section(table: Table) -> str:
    about = ((name, *_column(table.name, name)) for name in table.schema.names)
    rows = (f"| `{name}` | {_TYPES[kind][1]} | {text} |\n" for name, kind, text in about)
    head = f"\n### {table.name}\n\n{table.text}\n\n| column | type | |\n|---|---|---|\n"
    return head + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
