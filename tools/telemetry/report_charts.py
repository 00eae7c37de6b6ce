"""The charts of the report, drawn with matplotlib."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from matplotlib import dates
from matplotlib.figure import Figure

from ..page import svg

Row = dict[str, Any]
GREEN, RED, BLUE = "#2f6f4f", "#b3362b", "#3b6ea5"
LINES = 8  # in a chart
BOARDS = 40
MOST = 1e300  # a larger double does not fit an axis


def traffic(rows: Sequence[Row], most: Sequence[Row]) -> str:
    """Messages per hour of the topics with the most."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots()
    topics = [row["topic"] for row in most[:LINES]]
    for topic in topics:
        points = sorted((r["start"], r["messages"]) for r in rows if r["topic"] == topic)
        axes.plot([p[0] for p in points], [p[1] for p in points], ".-", label=topic, linewidth=1)
    _finish(axes, "messages per hour", axes.get_lines(), topics)
    return svg(figure)


def readings(rows: Sequence[Row]) -> str:
    """Means with their range, one chart for each field; without values that no axis can show."""
    by_field: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if not all(abs(row[name]) < MOST for name in ("min", "mean", "max")):
            continue
        by_field[row["topic"], row["field"]].append(row)
    most = sorted(by_field, key=lambda key: (-sum(r["count"] for r in by_field[key]), key))[:4]
    figure = Figure(figsize=(10, 1.7 * max(1, len(most)) + 0.4), layout="constrained")
    for at, key in enumerate(most):
        axes = figure.add_subplot(len(most), 1, at + 1)
        points = sorted(by_field[key], key=lambda row: row["start"])
        times = [row["start"] for row in points]
        axes.fill_between(
            times, [r["min"] for r in points], [r["max"] for r in points], color=BLUE, alpha=0.2
        )
        axes.plot(times, [row["mean"] for row in points], color=BLUE, linewidth=1.2)
        axes.set_title(" ".join(part for part in key if part), fontsize=9, loc="left")
        axes.grid(alpha=0.3)
    return svg(figure)


def gaps(boards: Sequence[Row], rows: Sequence[Row]) -> str:
    """A bar on a time line for each board, with its gaps."""
    known = [row for row in boards if row["first"] is not None][:BOARDS]
    figure = Figure(figsize=(10, 0.3 * len(known) + 1), layout="constrained")
    axes = figure.subplots()
    for at, board in enumerate(known):
        axes.broken_barh([_span(board["first"], board["last"])], (at - 0.35, 0.7), color=GREEN)
        missing = [
            _span(row["after"], row["before"])
            for row in rows
            if row["board"] == board["board"] and row["after"] and row["before"]
        ]
        axes.broken_barh(missing, (at - 0.35, 0.7), color=RED)
    axes.set_yticks(range(len(known)), [row["board"] for row in known], fontsize=8)
    axes.xaxis_date()
    axes.grid(alpha=0.3, axis="x")
    return svg(figure)


def _span(first: Any, last: Any) -> tuple[float, float]:
    number: Any = dates.date2num
    start = float(number(first))
    return start, max(float(number(last)) - start, 1 / 1440)


def boards(rows: Sequence[Row]) -> str:
    """Messages and losses of each board."""
    some = rows[:BOARDS]
    figure = Figure(figsize=(10, 0.3 * len(some) + 1), layout="constrained")
    axes = figure.subplots()
    places = range(len(some))
    messages, lost = ([row[name] for row in some] for name in ("messages", "lost"))
    bars = [axes.barh(places, messages, color=GREEN)]
    bars.append(axes.barh(places, lost, left=messages, color=RED))
    axes.set_yticks(places, [row["board"] for row in some], fontsize=8)
    _finish(axes, "", bars, ("messages", "lost"))
    return svg(figure)


def _finish(axes: Any, label: str, drawn: Sequence[Any], names: Sequence[str]) -> None:
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    if drawn:
        axes.legend(drawn, names, fontsize=8, loc="best")
