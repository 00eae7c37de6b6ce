"""`slotmq telemetry report`: gold and the gaps as one HTML page. Reads Parquet, needs no Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import ToolError
from ..errors import shown as printable
from . import pictures
from .lake import Lake

Row = dict[str, Any]
MOST = 20  # rows of a table, lines of a picture that would be longer
_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em;
  color: #222; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; margin: 2em 0 .3em }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: .15em .7em; text-align: left; border-bottom: 1px solid #ddd; font-weight: 400;
  vertical-align: top }
th { color: #666 } .bad { color: #b3362b }
div { overflow-x: auto } svg { width: 100%; height: auto }
"""


@dataclass(frozen=True)
class Section:
    """A heading, what to know, a picture or none, and a table."""

    title: str
    words: str
    picture: str  # SVG
    heads: Sequence[str]
    rows: list[Row]


def write(lake: Lake, file: Path) -> None:
    """Write the page; all of it or nothing."""
    lake.need("gold")
    text = page(lake)
    made = file.with_name(f".{file.name}.part")
    try:
        made.write_text(text, "utf-8")
        made.replace(file)
    except OSError as error:
        made.unlink(missing_ok=True)
        raise ToolError(f"{file}: {error.strerror}") from None


def table(lake: Lake, name: str) -> list[Row]:
    """All rows of a table of gold: they are few by their nature."""
    path = lake.folder / "gold" / name
    try:
        rows: list[Row] = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        why = str(error).splitlines()[0]
        raise ToolError(f"{path} cannot be read: {why}") from None
    return rows


def page(lake: Lake) -> str:
    """The whole text."""
    try:
        sections = list(_sections(lake))
    except KeyError as error:
        told = f"no column {error}, as another version has made it; run `slotmq telemetry gold`"
        raise ToolError(f"{lake.folder}: a table of gold has {told}") from None
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f"<title>slotmq telemetry</title><style>\n{_STYLE}</style></head><body>",
            "<h1>What the boards have recorded</h1>",
            *(line for section in sections for line in _html(section)),
            "</body></html>\n",
        ]
    )


def _sections(lake: Lake) -> Iterator[Section]:
    boards, gaps = table(lake, "boards"), table(lake, "gaps")
    traffic = table(lake, "traffic")
    yield _boards(boards)
    yield _gaps(boards, gaps)
    yield _traffic(traffic)
    readings = table(lake, "readings")
    yield Section(
        "Measured", "Hourly means of the fields with the most values; the band is from the least"
        " to the greatest.", pictures.readings(readings), (), [],
    )  # fmt: skip
    sensors = [row for row in table(lake, "sensors") if row["flat"] or row["drifts"]]
    heads: tuple[str, ...] = (
        "topic",
        "field",
        "count",
        "drifts",
        "drift_per_day",
        "flat",
        "same",
        "same_since",
    )
    yield Section("Sensors that drift or stand still", "", "", heads, sensors)
    heads = ("board", "topic", "after", "before", "seconds", "usual_s", "restarted")
    silences = sorted(table(lake, "silences"), key=lambda row: -row["seconds"])
    yield Section("Silences", "Topics that were quiet for much longer than usual.", "", heads,
                  silences)  # fmt: skip
    heads = ("finding", "board", "client", "topic", "messages", "wall")
    words = "Messages that came twice with QoS 2, are missing in a count, or out of order."
    yield Section("QoS audit", words, "", heads, table(lake, "audit"))
    sessions = sorted(table(lake, "sessions"), key=lambda row: -row["most_connects"])
    heads = ("board", "client", "flapping", "connects", "keep_alive_deaths", "takeovers", "wills")
    troubled = [r for r in sessions if r["flapping"] or r["keep_alive_deaths"] or r["takeovers"]]
    yield Section("Sessions in trouble", "", "", heads, troubled)


def _boards(boards: list[Row]) -> Section:
    messages = sum(row["messages"] for row in boards)
    lost = sum(row["lost"] for row in boards)
    words = f"{len(boards)} boards, {messages:,} messages; {lost:,} records are known to be lost."
    heads = ("board", "boots", "messages", "lost", "without_time", "least_heap",
             "most_connected", "refusals", "advice")  # fmt: skip
    return Section("Boards", words, pictures.boards(boards), heads, boards)


def _gaps(boards: list[Row], gaps: list[Row]) -> Section:
    heads = ("board", "boot", "boots", "lost", "reasons", "files", "after", "before")
    longest = sorted(gaps, key=lambda row: -(row["lost"] or 0))
    words = "Green is recorded, red is a gap in it. A gap without times is in the table only."
    return Section("Gaps", words, pictures.gaps(boards, gaps), heads, longest)


def _traffic(traffic: list[Row]) -> Section:
    totals: dict[str, Row] = {}
    for row in traffic:
        total = totals.setdefault(
            row["topic"], {"topic": row["topic"], "messages": 0, "bytes": 0}
        )  # fmt: skip
        total["messages"] += row["messages"]
        total["bytes"] += row["bytes"]
    most = sorted(totals.values(), key=lambda row: (-row["messages"], row["topic"]))
    words = f"{len(most)} topics; messages in each hour of those with the most."
    heads = ("topic", "messages", "bytes")
    return Section("Traffic", words, pictures.traffic(traffic, most), heads, most)


def _html(section: Section) -> Iterator[str]:
    yield f"<h2>{escape(section.title)}</h2>"
    if section.words:
        yield f"<p>{escape(section.words)}</p>"
    yield section.picture
    if section.heads and not section.rows:
        yield "<p>None.</p>"
    if section.rows:
        heads = "".join(f"<th>{escape(head.replace('_', ' '))}</th>" for head in section.heads)
        yield f"<div><table><tr>{heads}</tr>"
        for row in section.rows[:MOST]:
            cells = "".join(f"<td>{escape(shown(row[head]))}</td>" for head in section.heads)
            yield f"<tr>{cells}</tr>"
        yield "</table></div>"
    if len(section.rows) > MOST:
        yield f"<p>and {len(section.rows) - MOST:,} more.</p>"


def shown(value: Any) -> str:
    """A cell for people."""
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
