"""The charts of the report, drawn with matplotlib. A line ends where values are missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from math import nan
from statistics import median
from typing import Any

from matplotlib import dates
from matplotlib.figure import Figure

from ..page import svg

Row = dict[str, Any]
GREEN, RED, BLUE = "#2f6f4f", "#b3362b", "#3b6ea5"
LINES = 8  # in a chart
BOARDS = 40
MOST = 1e300  # a larger double does not fit an axis
HOUR = timedelta(hours=1)  # of a row of traffic or readings
BREAK = 2  # a line ends where a step is longer than so many usual ones


def traffic(rows: Sequence[Row], most: Sequence[Row]) -> str:
    """Messages per hour of the topics with the most."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots()
    shown = [(row["board"], row["topic"]) for row in most[:LINES]]
    for key in shown:
        own = [row for row in rows if (row["board"], row["topic"]) == key]
        times, counts = broken(own, "messages")
        axes.plot(times, counts, ".-", label=" ".join(key), linewidth=1)
    _finish(axes, "messages per hour", axes.get_lines(), [" ".join(key) for key in shown])
    _hours(axes, [row["start"] for row in rows])
    return svg(figure)


def readings(rows: Sequence[Row]) -> str:
    """Means with their range, one chart for each field; without values that no axis can show."""
    by_field: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if not all(abs(row[name]) < MOST for name in ("min", "mean", "max")):
            continue
        by_field[row["board"], row["topic"], row["field"]].append(row)
    most = sorted(by_field, key=lambda key: (-sum(r["count"] for r in by_field[key]), key))[:4]
    figure = Figure(figsize=(10, 1.7 * max(1, len(most)) + 0.4), layout="constrained")
    for at, key in enumerate(most):
        axes = figure.add_subplot(len(most), 1, at + 1)
        times, means, lows, highs = broken(by_field[key], "mean", "min", "max")
        axes.fill_between(times, lows, highs, color=BLUE, alpha=0.2)
        axes.plot(times, means, ".-", color=BLUE, linewidth=1.2, markersize=3)
        axes.set_title(" ".join(part for part in key if part), fontsize=9, loc="left")
        axes.grid(alpha=0.3)
        _hours(axes, [row["start"] for one in most for row in by_field[one]])
    return svg(figure)


def broken(rows: Iterable[Row], *names: str) -> list[list[Any]]:
    """Times, and the values of each column, with nan in steps that are much longer than usual."""
    points = sorted(rows, key=lambda row: row["start"])
    found: list[list[Any]] = [[] for _ in (0, *names)]
    steps = [b["start"] - a["start"] for a, b in pairwise(points)]
    usual = max(median(steps), HOUR) if steps else HOUR
    last: datetime | None = None
    for row in points:
        if last is not None and row["start"] - last > BREAK * usual:
            for column, value in zip(found, (last + usual, *(nan for _ in names)), strict=True):
                column.append(value)
        for column, name in zip(found, ("start", *names), strict=True):
            column.append(row[name])
        last = row["start"]
    return found


def _hours(axes: Any, starts: Sequence[datetime]) -> None:
    """The axis shows the hours that there are; of one alone matplotlib would make years."""
    if starts:
        axes.set_xlim(min(starts) - HOUR / 2, max(starts) + HOUR)


def gaps(boots: Sequence[Row], rows: Sequence[Row]) -> str:
    """A line for each board, with a bar for each boot, and its losses."""
    known = [row for row in boots if row["first"] is not None]
    names = sorted({row["board"] for row in known})[:BOARDS]
    figure = Figure(figsize=(10, 0.3 * len(names) + 1), layout="constrained")
    axes = figure.subplots()
    first: Any = min((row["first"] for row in known), default=None)
    last: Any = max((row["last"] for row in known), default=None)
    least = (last - first).total_seconds() / 1000 if known else 0  # what can be seen
    for at, name in enumerate(names):
        up = [_span(row["first"], row["last"], least) for row in known if row["board"] == name]
        missing = [
            _span(max(row["after"], first), min(row["before"], last), least)
            for row in rows
            if row["board"] == name and row["after"] and row["before"]
            and row["after"] < last and row["before"] > first
        ]  # fmt: skip
        axes.broken_barh(up, (at - 0.35, 0.7), color=GREEN)
        axes.broken_barh(missing, (at - 0.35, 0.7), color=RED)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.xaxis_date()
    if known:
        margin = max((last - first) / 50, timedelta(seconds=1))
        axes.set_xlim(first - margin, last + margin)
    axes.grid(alpha=0.3, axis="x")
    return svg(figure)


def _span(first: datetime, last: datetime, least: float) -> tuple[float, float]:
    number: Any = dates.date2num
    start = float(number(first))
    return start, max(float(number(last)) - start, max(least, 0.01) / 86_400)


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
