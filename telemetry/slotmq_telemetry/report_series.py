"""What the charts of a report show: values over time, in steps that a chart has room for.

A line is cut into runs: a new one begins where values are missing for much longer than usual,
or for more than two days, or where the board was off or lost records. Times are in ms since 1970.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Any

Row = dict[str, Any]
Span = tuple[float, float]
Quantity = tuple[str, str]  # topic and field
HOUR = 3_600_000
MINUTE, DAY = HOUR // 60, HOUR * 24
STEPS = (1000, 5000, 10_000, 30_000, MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR,
         6 * HOUR, 12 * HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY)  # fmt: skip
POINTS = 300  # of a line
BREAK = 2  # a line ends where a step is longer than so many usual ones
MOST = 1e300  # a larger double does not fit an axis


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def step_for(span: float) -> int:
    """The shortest step of which few enough fill so many ms."""
    return next((step for step in STEPS if span / step <= POINTS), STEPS[-1])


def merged(rows: Iterable[Row], step: int) -> list[Row]:
    """Rows of hours as rows of longer steps."""
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["board"], row["start"] // step * step].append(row)
    return [
        {
            "board": board, "start": start, "count": (count := sum(r["count"] for r in some)),
            "mean": sum(r["mean"] * (r["count"] / count) for r in some),
            "min": min(r["min"] for r in some), "max": max(r["max"] for r in some),
        }
        for (board, start), some in sorted(found.items())
    ]  # fmt: skip


def runs(rows: Sequence[Row], step: int, dark: Mapping[str, Sequence[Span]]) -> list[Row]:
    """The rows in order, with the `run` that each belongs to, and whether it is `alone` there.

    dark: when boards were off or lost records.
    """
    found: list[Row] = []
    by_board: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["start"]):
        by_board[row["board"]].append(row)
    for board, some in sorted(by_board.items()):
        widths = [b["start"] - a["start"] for a, b in pairwise(some)]
        usual = max(min(median(widths), DAY), step) if widths else step
        ends = [
            width > BREAK * usual or _is_dark(dark.get(board, ()), a["start"] + step, b["start"])
            for width, (a, b) in zip(widths, pairwise(some), strict=True)
        ]
        run = 0
        for row, before, after in zip(some, [True, *ends], [*ends, True], strict=True):
            run += before
            found.append(row | {"run": run, "alone": before and after})
    return found


def _is_dark(spans: Sequence[Span], since: float, until: float) -> bool:
    return since < until and any(a < until and b > since for a, b in spans)
