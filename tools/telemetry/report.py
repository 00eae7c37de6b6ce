"""`slotmq telemetry report`: gold as one HTML page. It reads the tables without Spark.

Boards are called as boards.toml in the folder of tables said when gold was made (names.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import page
from ..errors import ToolError
from ..errors import shown as printable
from . import report_charts
from .lake import Lake
from .schemas import GOLD

Row = dict[str, Any]
MOST = 20  # rows of a table
OFF = "off"  # reason of a gap between two boots


def write(lake: Lake, file: Path) -> None:
    """Write the whole page, or no file."""
    try:
        text = page.html("Recordings of the boards", (), list(_Report(lake).sections()))
    except KeyError as error:
        text = f"no column {error}: another version wrote it; run `slotmq telemetry build`"
        raise ToolError(f"{lake.folder}: a table of gold has {text}") from None
    page.write(file, text.encode())


class _Report:
    """The tables of gold, with the boards' names in place of their ids."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._names = {row["board"]: row["name"] for row in self._rows("boards")}

    def _rows(self, name: str) -> list[Row]:
        """All rows of a table of gold, which has few."""
        rows: list[Row] = self._lake.rows(GOLD[name]).to_pylist()
        return rows

    def _table(self, name: str) -> list[Row]:
        rows = self._rows(name)
        return [row | {"board": self._names.get(row["board"], row["board"])} for row in rows]

    def sections(self) -> Iterator[page.Section]:
        boards, boots = self._table("boards"), self._table("boots")
        yield self._boards(boards)
        yield _gaps(boots, self._table("gaps"))
        yield _traffic(self._table("traffic"))
        sensors = self._table("sensors")
        counters = {(r["board"], r["topic"], r["field"]) for r in sensors if r["counter"]}
        measured = [
            row
            for row in self._table("readings")
            if (row["board"], row["topic"], row["field"]) not in counters
        ]
        words = (
            "Hourly means of the fields with the most values, without counters. The band shows"
            " minimum to maximum."
        )
        yield _section("Readings", words, report_charts.readings(measured))
        yield _sensors(sensors)
        heads: tuple[str, ...] = ("board", "topic", "after", "before", "seconds", "usual_s",
                                  "restarted")  # fmt: skip
        silences = sorted(self._table("silences"), key=lambda row: -row["seconds"])
        words = "Topics without messages for much longer than usual, while the board recorded."
        yield _section("Silences", words, "", heads, silences)
        heads = ("finding", "board", "client", "topic", "messages", "wall")
        words = (
            "QoS 2 messages that came twice; acknowledged messages that are missing; wrong order."
        )
        yield _section("QoS audit", words, "", heads, self._table("audit"))
        yield _sessions(self._table("sessions"))

    def _boards(self, boards: list[Row]) -> page.Section:
        messages = sum(row["messages"] for row in boards)
        lost = sum(row["lost"] for row in boards)
        words = f"{len(boards)} boards, {messages:,} messages, {lost:,} known lost records."
        heads: tuple[str, ...] = (
            "board", "site", "tags", "boots", "messages", "lost", "without_time", "least_heap",
            "most_connected", "refusals", "advice",
        )  # fmt: skip
        if not any(row["site"] or row["tags"] for row in boards):
            heads = tuple(h for h in heads if h not in ("site", "tags"))
        boards = sorted(boards, key=lambda row: (row["site"] or "", row["board"]))
        return _section("Boards", words, report_charts.boards(boards), heads, boards)


def _section(
    title: str, words: str, picture: str, heads: Sequence[str] = (), rows: Sequence[Row] = ()
) -> page.Section:
    cells = [[shown(row[head]) for head in heads] for row in rows[:MOST]]
    named = [head.replace("_", " ") for head in heads]
    return page.Section(title, words, picture, named, cells, max(0, len(rows) - MOST))


def _gaps(boots: list[Row], gaps: list[Row]) -> page.Section:
    heads = ("board", "boot", "boots", "lost", "reasons", "files", "after", "before", "seconds")
    off = [*_off(boots)]
    longest = sorted(gaps, key=lambda row: -(row["lost"] or 0))
    longest += sorted(off, key=lambda row: -row["seconds"])
    words = (
        "Green: a boot was recorded. Red: records are lost. White: the board was off, or nothing"
        " tells when it recorded. A gap without times is only in the table."
    )
    if off:
        words += (
            f" The boards began anew {len(off):,} times: what they recorded in the last"
            " record_flush_interval (10 s unless set otherwise) before each power cut is not"
            " recorded, and no number tells how much it was."
        )
    return _section("Gaps", words, report_charts.gaps(boots, gaps), heads, longest)


def _off(boots: list[Row]) -> Iterator[Row]:
    """The time between the records of a boot and those of the next one."""
    known = [row for row in boots if row["first"] is not None]
    for one, other in pairwise(sorted(known, key=lambda row: (row["board"], row["boot"]))):
        if one["board"] == other["board"] and one["boot"] + 1 == other["boot"]:
            seconds = (other["first"] - one["last"]).total_seconds()
            yield {
                "board": one["board"], "boot": one["boot"], "boots": 1, "lost": None,
                "reasons": [OFF], "files": [], "after": one["last"], "before": other["first"],
                "seconds": seconds,
            }  # fmt: skip


def _traffic(traffic: list[Row]) -> page.Section:
    totals: dict[tuple[str, str], Row] = {}
    for row in traffic:
        blank = {"board": row["board"], "topic": row["topic"], "messages": 0, "bytes": 0}
        total = totals.setdefault((row["board"], row["topic"]), blank)
        total["messages"] += row["messages"]
        total["bytes"] += row["bytes"]
    most = sorted(totals.values(), key=lambda r: (-r["messages"], r["board"], r["topic"]))
    words = f"{len(most)} topics of boards. The chart shows messages per hour of the busiest."
    heads = ("board", "topic", "messages", "bytes")
    return _section("Traffic", words, report_charts.traffic(traffic, most), heads, most)


def _sensors(sensors: list[Row]) -> page.Section:
    heads = ("board", "topic", "field", "count", "drifts", "drift_per_day", "flat", "same",
             "same_since")  # fmt: skip
    wrong = [row for row in sensors if (row["flat"] and not row["counter"]) or row["drifts"]]
    words = "Numeric fields that drift, or whose value no longer changes; counters are neither."
    return _section("Sensors that drift or stand still", words, "", heads, wrong)


def _sessions(sessions: list[Row]) -> page.Section:
    heads = ("board", "client", "flapping", "connects", "keep_alive_deaths", "takeovers", "wills")
    rows = sorted(sessions, key=lambda row: -row["most_connects"])
    troubled = [r for r in rows if r["flapping"] or r["keep_alive_deaths"] or r["takeovers"]]
    words = "Clients that reconnect often, time out or are taken over."
    return _section("Sessions in trouble", words, "", heads, troubled)


def shown(value: Any) -> str:
    """The text of a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(printable(each) for each in value)
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:,.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:%Y-%m-%d %H:%M:%S}" if hasattr(value, "strftime") else printable(value)
