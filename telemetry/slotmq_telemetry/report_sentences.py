"""What the report has to say of the boards, in sentences; each with the board that it is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from slotmq_tools.errors import count
from slotmq_tools.errors import shown as printable

from .decode import UNREAD
from .harvest.segments import TORN
from .report_tables import natural

Row = dict[str, Any]
Said = tuple[tuple[str, ...], str]  # boards, and a sentence about them
NAMED = 3  # boards in a sentence


def when(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


def lasted(seconds: float) -> str:
    """In two units at most."""
    if 0 < seconds < 1:
        return "less than 1 s"
    whole = max(0, round(seconds))
    parts = zip((86_400, 3600, 60, 1), ("d", "h", "min", "s"), strict=True)
    told: list[str] = []
    for size, unit in parts:
        count, whole = divmod(whole, size)
        if count or told:
            told.append(f"{count} {unit}" if count else "")
        if len(told) == 2:
            break
    return " ".join(filter(None, told)) or "0 s"


def number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:,.4g}"


def advice(boards: Iterable[Row]) -> Iterator[Said]:
    """One for each finding on the boards' health."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in boards:
        for each in row["advice"]:
            found[each].append(row["board"])
    for each, whose in found.items():
        yield tuple(whose), f"{named(whose)}: {printable(each)}."


def losses(gaps: Iterable[Row]) -> Iterator[Said]:
    """One for each reason, and board if they are few."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in gaps:
        found[", ".join(row["reasons"])][row["board"]].append(row)
    for reasons, by_board in sorted(found.items()):
        for whose, rows in few(by_board):
            yield whose, _lost(whose, reasons, rows)


def _lost(whose: Sequence[str], reasons: str, rows: Sequence[Row]) -> str:
    known = sum(row["lost"] or 0 for row in rows)
    some = count(known, "record") if known else "an unknown number of records"
    if known and any(row["lost"] is None for row in rows):
        some = f"at least {some}"
    largest = max(rows, key=lambda row: (bool(row["after"] and row["before"]), row["lost"] or 0))
    ends = [f"{when(largest[end])}" for end in ("after", "before") if largest[end]]
    time = f" between {' and '.join(ends)}" if len(ends) == 2 else ""
    if len(rows) > 1:
        of = count(largest["lost"], "record") if largest["lost"] else "an unknown number"
        some += f" in {len(rows)} gaps"
        time = time and f", {of} of them{time}"
    verb = "lost" if reasons != UNREAD else "lacks" if len(whose) == 1 else "lack"
    return f"{named(whose)} {verb} {some}{time} ({printable(reasons)})."


def unread(rows: Iterable[Row]) -> Iterator[Said]:
    """What is in quarantine; not torn records, which power cuts leave."""
    for row in (row for row in rows if row["reason"] != TORN):
        whose = row["board"] or "A board that nobody knows"
        told = (
            f"{whose}: {count(row['bytes'], 'byte')} cannot be read ({printable(row['reason'])})."
        )
        yield (row["board"],) if row["board"] else (), told


def cuts(offs: Iterable[Row]) -> Iterator[Said]:
    """What no number tells of."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in offs:
        found[row["board"]].append(row)
    for whose, rows in few(found):
        longest = max(rows, key=lambda row: row["seconds"])
        of = f" of {longest['board']}" if len(whose) > 1 else ""
        time = f"{lasted(longest['seconds'])}{of}, from {when(longest['after'])}"
        told = (
            f"{named(whose)} began anew {count(len(rows), 'time')}. Up to record_flush_interval"
            " (10 s unless set otherwise) before each power cut are not recorded. The longest"
            f" time without records: {time}."
        )
        yield whose, told


def few(by_board: Mapping[str, list[Row]]) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    """Each board with its rows, or all in one where they are many."""
    if len(by_board) <= NAMED:
        yield from (((board,), by_board[board]) for board in sorted(by_board, key=natural))
    else:
        yield (
            tuple(sorted(by_board, key=natural)),
            [row for rows in by_board.values() for row in rows],
        )


def named(whose: Sequence[str]) -> str:
    """The boards, or some of them."""
    if len(whose) <= NAMED:
        return ", ".join(whose)
    return f"{len(whose):,} boards ({', '.join(whose[:NAMED])} and others)"


def sensors(rows: Iterable[Row], last: dict[tuple[str, str, str], float]) -> Iterator[Said]:
    """Of what creeps or stands still; `last`: values of board, topic and field."""
    for row in rows:
        name = f"{row['board']}: {printable(' '.join(filter(None, (row['topic'], row['field']))))}"
        if row["flat"] and not row["counter"]:
            value = last.get((row["board"], row["topic"], row["field"]))
            stands = f"has stood still at {number(value)}" if value is not None else "stands still"
            since = f" since {when(row['same_since'])}" if row.get("same_since") else ""
            yield (row["board"],), f"{name} {stands}{since} ({count(row['same'], 'value')})."
        elif row["drifts"]:
            slope = row["drift_per_day"]
            verb = "rises" if slope > 0 else "falls"
            yield (row["board"],), f"{name} {verb} steadily, by {abs(slope):,.3g} a day."


def audit(rows: Iterable[Row]) -> Iterator[Said]:
    """One for each client, topic and finding."""
    found: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["board"], row["client"], row["topic"], row["finding"]].append(row)
    for (board, client, topic, finding), some in sorted(found.items()):
        total = sum(row["messages"] for row in some)
        whose = f"{board}: of client {printable(client)} on {printable(topic)}"
        first = min((row["wall"] for row in some if row["wall"]), default=None)
        time = f", first at {when(first)}" if first else ""
        said = {
            "twice": f"{count(total, 'message')} of QoS 2 came twice",
            "lost": f"{count(total, 'message')} of QoS 1 or 2 {'is' if total == 1 else 'are'}"
            " missing, though what was sent before and after was recorded",
            "order broken": f"the order was broken {count(total, 'time')}",
        }[finding]
        yield (board,), f"{whose}, {said}{time}."


def sessions(rows: Iterable[Row]) -> Iterator[Said]:
    """Of clients in trouble."""
    for row in rows:
        client, told = printable(row["client"]), []
        if row["flapping"]:
            told.append(f"connected {row['most_connects']} times within ten minutes")
        if row["keep_alive_deaths"]:
            told.append(f"timed out {count(row['keep_alive_deaths'], 'time')}")
        if row["takeovers"]:
            told.append(f"was taken over {count(row['takeovers'], 'time')}")
        if told:
            yield (row["board"],), f"{row['board']}: client {client} {' and '.join(told)}."


def silences(rows: Iterable[Row]) -> Iterator[Said]:
    """One for each topic: that it has ended with, or its longest while the board was up."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if not (row["restarted"] and row["before"]):
            found[row["board"], row["topic"]].append(row)
    for (board, topic), some in sorted(found.items()):
        longest = max(some, key=lambda row: (not row["before"], row["seconds"]))
        more = f" and {count(len(some) - 1, 'other time')}" if len(some) > 1 else ""
        to_the_end = "" if longest["before"] else ", up to the end of the recording"
        told = (
            f"{board}: {printable(topic)} was silent for {lasted(longest['seconds'])} from"
            f" {when(longest['after'])}{to_the_end}{more}; it usually pauses for"
            f" {lasted(longest['usual_s'])}."
        )
        yield (board,), told
