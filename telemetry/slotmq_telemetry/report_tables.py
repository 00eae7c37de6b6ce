"""The tables that a report is made of, with the boards' names in place of their ids, and its map:
when each board was up, recorded, lost records, was off and harvested."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from slotmq_tools.errors import ToolError, count

from . import gold
from . import report_charts as charts
from . import report_series as series
from .lake import Lake
from .schemas import BRONZE, GOLD, QUARANTINE, SILVER

Row = dict[str, Any]
BOARDS = 40  # in charts
FINE = 2 * series.DAY  # of less, charts have steps that are shorter than an hour
OFF = "off or restarted"  # reason of a gap between two boots


@dataclass(frozen=True)
class Choice:
    """Which boards the report is about; nothing: all."""

    boards: frozenset[str] = frozenset()  # names or ids
    sites: frozenset[str] = frozenset()

    def has(self, row: Row) -> bool:
        """Whether a row of gold/boards belongs to it."""
        if not (self.boards or self.sites):
            return True
        return bool({row["board"], row["name"]} & self.boards) or row["site"] in self.sites


class Tables:
    """Those of gold, of the boards that are chosen."""

    def __init__(self, lake: Lake, choice: Choice) -> None:
        self._lake = lake
        rows = [row for row in self._arrow("boards").to_pylist() if choice.has(row)]
        for word in choice.boards - {row[key] for row in rows for key in ("board", "name")}:
            raise ToolError(f"{lake.folder} has no board {word!r}")
        for word in choice.sites - {row["site"] for row in rows}:
            raise ToolError(f"{lake.folder} has no board of site {word!r}")
        self._names = {row["board"]: row["name"] for row in rows}
        self.ids = {name: board for board, name in self._names.items()}
        self._is_all = choice == Choice()
        rows = [row | {"board": row["name"]} for row in rows]
        self.boards = sorted(
            rows, key=lambda row: (natural(row["site"] or ""), natural(row["name"]))
        )

    def _arrow(self, name: str) -> pa.Table:
        """A table of gold. KeyError: it lacks a column."""
        found = self._lake.rows(GOLD[name])
        for column in GOLD[name].schema.names:
            if column not in found.schema.names:
                raise KeyError(column)
        return found

    def rows(self, name: str, boards: Iterable[str] | None = None) -> list[Row]:
        """Those of the boards that are chosen, or of some of them."""
        found = self._arrow(name)
        if boards is not None or not self._is_all:
            some = pa.array([self.ids[board] for board in boards or self.ids], pa.string())
            found = found.filter(pc.is_in(found.column("board"), some))
        rows: list[Row] = found.to_pylist()
        return [row | {"board": self._names.get(row["board"], row["board"])} for row in rows]

    @cached_property
    def boots(self) -> list[Row]:
        return self.rows("boots")

    @cached_property
    def gaps(self) -> list[Row]:
        return self.rows("gaps")

    @cached_property
    def offs(self) -> list[Row]:
        return [*off(self.boots)]

    @cached_property
    def unread(self) -> list[Row]:
        """What quarantine has, by board (None: unknown) and reason."""
        if self._lake.open(QUARANTINE) is None:
            return []
        sums = [("bytes", "sum"), ("bytes", "count"), ("harvested_ms", "max")]
        found = self._lake.rows(QUARANTINE).group_by(["board", "reason"]).aggregate(sums)
        return [
            {"board": self._names.get(row["board"], row["board"]), "reason": row["reason"],
             "pieces": row["bytes_count"], "bytes": row["bytes_sum"],
             "harvested": datetime.fromtimestamp(row["harvested_ms_max"] / 1000, UTC)}
            for row in sorted(found.to_pylist(), key=lambda r: (r["board"] or "", r["reason"]))
            if self._is_all or row["board"] in self._names
        ]  # fmt: skip

    @cached_property
    def sensors(self) -> list[Row]:
        return self.rows("sensors")

    @cached_property
    def readings(self) -> list[Row]:
        """Of what is measured and can be shown, of the boards that charts show."""
        counters = {field_of(row) for row in self.sensors if row["counter"]}
        return [
            row | {"start": series.ms(row["start"])}
            for row in self._stepped("readings")
            if field_of(row) not in counters
            and all(abs(row[name]) < series.MOST for name in ("min", "mean", "max"))
        ]

    @cached_property
    def dark(self) -> dict[str, list[series.Span]]:
        """When boards were off or lost records."""
        found: dict[str, list[series.Span]] = defaultdict(list)
        for row in (*self.offs, *self.gaps):
            if row["after"] and row["before"]:
                found[row["board"]].append((series.ms(row["after"]), series.ms(row["before"])))
        return found

    @cached_property
    def shown(self) -> list[str]:
        """The boards that charts show: those with the most findings, and then messages."""
        ranked = sorted(self.boards, key=lambda row: (-len(row["advice"]), -row["messages"]))
        some = {row["board"] for row in ranked[:BOARDS]}
        return [row["board"] for row in self.boards if row["board"] in some]

    def sites(self) -> dict[str, list[str]]:
        """The boards of each site, where there is a choice."""
        found = defaultdict(list)
        for row in self.boards:
            found[row["site"] or ""].append(row["board"])
        return dict(found)

    @cached_property
    def hours(self) -> list[Row]:
        """Messages of each step and topic, of the boards that charts show."""
        return [row | {"start": series.ms(row["start"])} for row in self._stepped("traffic")]

    @cached_property
    def step(self) -> int:
        """Of charts, in ms: an hour as in gold, or as short as what was recorded asks for."""
        ends = [series.ms(row[end]) for row in self.boots for end in ("first", "last") if row[end]]
        span = max(ends) - min(ends) if ends else FINE
        is_fine = span < FINE and self._lake.open(SILVER["messages"]) is not None
        return series.step_for(span) if is_fine else series.HOUR

    def _stepped(self, name: str) -> list[Row]:
        """Readings or traffic of the boards that charts show."""
        if self.step == series.HOUR:
            return self.rows(name, self.shown)
        found: list[Row] = []
        for board in self.shown:
            told, step = self._sent(self.ids[board]), 1000 * self.step
            columns = (gold.traffic(told, step) if name == "traffic"
                       else gold.readings(gold.Numbers(told), step))  # fmt: skip
            rows = GOLD[name].made(self.ids[board], columns)
            found += [row | {"board": board} for row in rows.to_pylist()]
        return found

    @cache  # noqa: B019 - a report is made once
    def _sent(self, board: str) -> gold.Sent:
        of_board = pc.field("board") == board
        return gold.Sent(gold.Silver(**{
            name: self._lake.dataset(table).to_table(table.schema.names, of_board)
            .cast(table.schema) for name, table in SILVER.items()
        }))  # fmt: skip

    def totals(self) -> list[Row]:
        """Messages and bytes of each topic."""
        sums = [("messages", "sum"), ("bytes", "sum")]
        rows = self._arrow("traffic").group_by(["board", "topic"]).aggregate(sums).to_pylist()
        return [
            {"board": self._names[row["board"]], "topic": row["topic"],
             "messages": row["messages_sum"], "bytes": row["bytes_sum"]}
            for row in rows if row["board"] in self._names
        ]  # fmt: skip

    def harvested(self) -> set[tuple[str, int]]:
        """When something of these boards was fetched."""
        if self._lake.open(BRONZE) is None:
            return set()
        wanted = [self.ids[name] for name in self.shown]
        there = self._lake.dataset(BRONZE)
        names = ["board", "harvested_ms"]
        found = set()
        for batch in there.to_batches(columns=names, filter=pc.field("board").isin(wanted)):
            each = pa.Table.from_batches([batch]).group_by(names).aggregate([])
            boards, times = (each.column(name).to_pylist() for name in names)
            found |= {(self._names[b], at) for b, at in zip(boards, times, strict=True)}
        return found


def natural(name: str) -> list[tuple[str, int]]:
    """A key that puts 2 before 10."""
    return [(text, int(part or 0)) for text, part in re.findall(r"(\D*)(\d*)", name)]


def field_of(row: Row) -> tuple[str, str, str]:
    """What a row of sensors or readings is about."""
    return row["board"], row["topic"], row["field"]


def off(boots: list[Row]) -> Iterator[Row]:
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
