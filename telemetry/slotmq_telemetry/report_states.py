"""The map of the report: when each board was up, recorded, lost records, was off and harvested."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from slotmq_tools.errors import count

from . import report_charts as charts
from . import report_series as series
from .report_tables import OFF, Row, Tables


def states(tables: Tables) -> Iterator[Row]:
    """Rows of report_charts.states, of the boards that charts show."""
    shown = set(tables.shown)
    known = [row for row in tables.boots if row["first"] and row["board"] in shown]
    for row in known:
        text = f"boot {row['boot']}, {row['records']:,} records"
        yield _state(row, charts.QUIET, row["first"], row["last"], text)
    if not known:
        return
    first, last = min(r["first"] for r in known), max(r["last"] for r in known)
    yield from _recorded(tables, known)
    for row in (*tables.offs, *tables.gaps):
        if row["board"] not in shown or not (row["after"] and row["before"]):
            continue
        state = charts.OFF if row["reasons"] == [OFF] else charts.LOST
        text = ", ".join(row["reasons"])
        if state == charts.LOST:
            text = f"{count(row['lost'] or 0, 'record')}: {text}" if row["lost"] else text
        if row["after"] < last and row["before"] > first:
            since, until = max(row["after"], first), min(row["before"], last)
            yield _state(row, state, since, until, text)
    for board, at in tables.harvested():
        yield _state({"board": board}, charts.HARVESTED, at, at, "harvested")


def _recorded(tables: Tables, boots: Sequence[Row]) -> Iterator[Row]:
    """The hours with messages, within each boot."""
    by_board = defaultdict(list)
    for row in boots:
        by_board[row["board"]].append((series.ms(row["first"]), series.ms(row["last"])))
    hours = defaultdict(set)
    for row in tables.hours:
        hours[row["board"]].add(row["start"])
    for board, spans in by_board.items():
        for since, until in _joined(sorted(hours[board])):
            for first, last in spans:
                low, high = max(since, first), min(until, last)
                if low <= high:
                    yield {"board": board, "state": charts.RECORDED, "since": low,
                           "until": high, "text": ""}  # fmt: skip


def _joined(hours: Sequence[int]) -> Iterator[series.Span]:
    """Spans of hours that follow each other, or almost."""
    begins = [True, *(b - a > 2 * series.HOUR for a, b in pairwise(hours))]
    ends = [*begins[1:], True]
    firsts = [hour for hour, begin in zip(hours, begins, strict=False) if begin]
    lasts = [hour for hour, end in zip(hours, ends, strict=False) if end]
    yield from zip(firsts, (last + series.HOUR for last in lasts), strict=True)


def _state(row: Row, state: str, since: Any, until: Any, text: str) -> Row:
    low, high = (at if isinstance(at, int) else series.ms(at) for at in (since, until))
    return {"board": row["board"], "state": state, "since": low, "until": high, "text": text}
