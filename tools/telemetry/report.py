"""`slotmq telemetry report`: gold as one HTML page. It reads the Parquet files, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .. import page
from ..errors import ToolError
from ..errors import shown as printable
from . import report_charts
from .lake import Lake

Row = dict[str, Any]
MOST = 20  # rows of a table


def write(lake: Lake, file: Path) -> None:
    """Write the whole page, or no file."""
    try:
        text = page.html("Recordings of the boards", (), list(_sections(lake)))
    except KeyError as error:
        text = f"no column {error}: another version wrote it; run `slotmq telemetry gold`"
        raise ToolError(f"{lake.folder}: a table of gold has {text}") from None
    page.write(file, text.encode())


def table(lake: Lake, name: str) -> list[Row]:
    """All rows of a table of gold, which has few."""
    path = lake.folder / "gold" / name
    try:
        rows: list[Row] = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        why = str(error).splitlines()[0]
        raise ToolError(f"{path} cannot be read: {why}") from None
    return rows


def _section(
    title: str, words: str, picture: str, heads: Sequence[str] = (), rows: Sequence[Row] = ()
) -> page.Section:
    cells = [[shown(row[head]) for head in heads] for row in rows[:MOST]]
    named = [head.replace("_", " ") for head in heads]
    return page.Section(title, words, picture, named, cells, max(0, len(rows) - MOST))


def _sections(lake: Lake) -> Iterator[page.Section]:
    boards, gaps = table(lake, "boards"), table(lake, "gaps")
    traffic = table(lake, "traffic")
    yield _boards(boards)
    yield _gaps(boards, gaps)
    yield _traffic(traffic)
    words = "Hourly means of the fields with the most values. The band shows minimum to maximum."
    yield _section("Readings", words, report_charts.readings(table(lake, "readings")))
    sensors = [row for row in table(lake, "sensors") if row["flat"] or row["drifts"]]
    heads: tuple[str, ...] = ("topic", "field", "count", "drifts", "drift_per_day", "flat", "same",
                              "same_since")  # fmt: skip
    words = "Numeric fields that drift, or whose value no longer changes."
    yield _section("Sensors that drift or stand still", words, "", heads, sensors)
    heads = ("board", "topic", "after", "before", "seconds", "usual_s", "restarted")
    silences = sorted(table(lake, "silences"), key=lambda row: -row["seconds"])
    words = "Topics without messages for much longer than usual, while the board recorded."
    yield _section("Silences", words, "", heads, silences)
    heads = ("finding", "board", "client", "topic", "messages", "wall")
    words = "QoS 2 messages that came twice; acknowledged messages that are missing; wrong order."
    yield _section("QoS audit", words, "", heads, table(lake, "audit"))
    sessions = sorted(table(lake, "sessions"), key=lambda row: -row["most_connects"])
    heads = ("board", "client", "flapping", "connects", "keep_alive_deaths", "takeovers", "wills")
    troubled = [r for r in sessions if r["flapping"] or r["keep_alive_deaths"] or r["takeovers"]]
    words = "Clients that reconnect often, time out or are taken over."
    yield _section("Sessions in trouble", words, "", heads, troubled)


def _boards(boards: list[Row]) -> page.Section:
    messages = sum(row["messages"] for row in boards)
    lost = sum(row["lost"] for row in boards)
    words = f"{len(boards)} boards, {messages:,} messages, {lost:,} known lost records."
    heads = ("board", "boots", "messages", "lost", "without_time", "least_heap",
             "most_connected", "refusals", "advice")  # fmt: skip
    return _section("Boards", words, report_charts.boards(boards), heads, boards)


def _gaps(boards: list[Row], gaps: list[Row]) -> page.Section:
    heads = ("board", "boot", "boots", "lost", "reasons", "files", "after", "before")
    longest = sorted(gaps, key=lambda row: -(row["lost"] or 0))
    words = "Green: recorded. Red: a gap. A gap without times is only in the table."
    return _section("Gaps", words, report_charts.gaps(boards, gaps), heads, longest)


def _traffic(traffic: list[Row]) -> page.Section:
    totals: dict[str, Row] = {}
    for row in traffic:
        blank = {"topic": row["topic"], "messages": 0, "bytes": 0}
        total = totals.setdefault(row["topic"], blank)
        total["messages"] += row["messages"]
        total["bytes"] += row["bytes"]
    most = sorted(totals.values(), key=lambda row: (-row["messages"], row["topic"]))
    words = f"{len(most)} topics. The chart shows messages per hour of those with the most."
    heads = ("topic", "messages", "bytes")
    return _section("Traffic", words, report_charts.traffic(traffic, most), heads, most)


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
