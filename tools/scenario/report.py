"""The answer as text: what happened in plain words, then the tables."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from textwrap import fill

from rich import box
from rich.console import Console
from rich.table import Table

from .message_state import CAUSES
from .outcome import Group, Outcome
from .refusal import CLIENTS
from .units import time_text
from .usage import Hit

# What to do about a limit that was full
_ADVICE = {
    "connections": "more clients were there at a time than may be connected",
    "max_connections": "more clients were there at a time than settings.max_connections lets in",
    "sessions": "more client ids are known than it holds; clean = true, or an expiry, ends some",
    "subscriptions": "there are more filters than it holds",
    "nodes": "the levels of all filters are too many, or too long for limit name_bytes",
    "retained": "more topics have a retained message than it holds",
    "retained_name_bytes": "the names of topics with a retained message are too long together",
    "messages": "more messages waited than it holds",
    "message_bytes": "the messages that waited were too long together",
    "deliveries": "more messages were under way to all receivers together than it holds",
    "queued": "one client did not take its messages fast enough, or was away too long",
    "received": "a client had too many QoS 2 messages under way",
    "reassembly": "several long packets came in pieces at a time; they waited, nothing was lost",
    "shares": "there are more groups of shared subscriptions than it holds",
    "aliases": "topic aliases found no room",
    "tx_bytes": "a link was too slow for what went over it at QoS 0",
}
_MEDIA = {"flash": "a raw region", "littlefs": "a file"}
WIDTH = 98
_TABLE_WIDTH = 130


def advice(limit: str) -> str:
    """What it means that this limit was full."""
    return _ADVICE[limit]


def text(outcome: Outcome) -> str:
    """All of it."""
    return "\n".join([summary(outcome), "", *_tables(outcome)])


def summary(outcome: Outcome) -> str:
    """What one would say, in lines that fit a terminal."""
    lines = (fill(line, WIDTH, subsequent_indent="  ") for line in sentences(outcome))
    return "\n".join(lines)


def sentences(outcome: Outcome) -> Iterator[str]:
    """What one would say."""
    scenario = outcome.scenario
    groups = [f"{group.clients.count} x {group.clients.name}" for group in outcome.groups]
    yield (
        f"{', '.join(groups)} on {scenario.board} for {time_text(scenario.duration)},"
        f" seed {scenario.seed}"
    )
    yield ""
    yield delivered(outcome)
    for cause, count in outcome.causes.most_common():
        yield f"  {count:,} lost: {CAUSES[cause]}"
    if outcome.power_cuts:
        kept = "true" if scenario.persistence else "false"
        often = "once" if outcome.power_cuts == 1 else f"{outcome.power_cuts:,} times"
        yield f"The power failed {often}, with persistence {kept}."
    for hit in outcome.refusals:
        yield f"The broker refused a client{_when(hit)}: {CLIENTS[hit.limit]}."
    yield from _limits(outcome)
    yield _ram(outcome)
    if outcome.wear:
        yield _wear(outcome)


def delivered(outcome: Outcome) -> str:
    """The sum of it in a sentence."""
    due, done = outcome.total("due"), outcome.total("delivered")
    if not due:
        return "No message was due: nobody published what somebody had subscribed to."
    lost, waiting = sum(outcome.causes.values()), outcome.total("waiting")
    told = f"Of {due:,} messages due {done:,} were delivered ({_percent(done, due)})"
    late = outcome.total("late")
    told += f", {late:,} of them later than {time_text(outcome.scenario.late_after)}" * (late > 0)
    told += f"; {lost:,} lost ({_percent(lost, due)})" if lost else "; none was lost"
    return told + (f"; {waiting:,} still wait." if waiting else ".")


def _percent(part: int, whole: int) -> str:
    value = 100 * part / whole
    close = 0 < value < 0.05 or 99.95 <= value < 100
    return f"{value:.3f} %" if close else f"{value:.1f} %".replace(".0 %", " %")


def _limits(outcome: Outcome) -> Iterator[str]:
    if not outcome.hits:
        yield "No limit was hit."
        return
    first, *others = outcome.hits
    yield f"The first limit that was hit: {first.limit}{_when(first)}: {advice(first.limit)}."
    yield f"  {_remedy(outcome, first.limit)}"
    if others:
        yield "Then: " + ", ".join(f"{hit.limit}{_when(hit)}" for hit in others) + "."


def _when(hit: Hit) -> str:
    at = f" at {clock(hit.ms)}" if hit.ms >= 0 else " at the start"
    return at + (f" ({hit.who})" if hit.who else "")


def clock(ms: int) -> str:
    """A time of the run."""
    seconds = ms // 1000
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _remedy(outcome: Outcome, limit: str) -> str:
    if limit == "max_connections":
        now = outcome.scenario.settings[limit]
        return f"settings.{limit} is {now}; raise it, up to limit connections."
    now = getattr(outcome.limits, limit)
    told = f"limit {limit} is {now:,}"
    more = _twice(outcome, limit)
    if limit == "connections" and outcome.scenario.board != "HOST":
        return (
            f"{told}, as many as there are sockets for; who stays takes one, who sleeps"
            " (sleeps = true) only for a moment."
        )
    if more == 0:
        return told + "; a higher one takes no RAM, but more of deliveries and messages."
    return told + (f"; twice as much takes {more:,} bytes more." if more else "; raise it.")


def _twice(outcome: Outcome, limit: str) -> int | None:
    try:
        double = outcome.limits.replaced({limit: 2 * getattr(outcome.limits, limit)})
    except ValueError:
        return None
    return int(double.ram_bytes() - outcome.limits.ram_bytes())


def _ram(outcome: Outcome) -> str:
    told = f"RAM: the tables take {outcome.ram_bytes:,} bytes"
    if not outcome.room:
        return told + "."
    told += f" of the {outcome.room:,} that a start leaves for them"
    if outcome.fits:
        return told + "."
    owner = max(outcome.ram, key=lambda row: row[1])[0]
    return f"{told}: THE BOARD WOULD NOT START. Most of it goes to {owner}."


def _wear(outcome: Outcome) -> str:
    wear = outcome.wear
    assert wear
    told = f"Flash, as {_MEDIA[wear.medium]}: {wear.commits:,} commits,"
    told += f" {wear.programmed:,} bytes programmed, {wear.erased:,} erased"
    if wear.medium == "littlefs":
        told += " (an estimate from measurements)"
    if wear.years is None or wear.raw_years is None:
        return told + "; it does not wear."
    told += f": {_years(wear.years)} at this rate"
    if wear.medium == "littlefs":
        told += "; as a raw region of 256 KB, which stock firmware does not have, "
        told += _years(wear.raw_years)
    return told + "."


def _years(years: float) -> str:
    return f"{years:,.1f} years" if years < 1000 else "more than 1,000 years"


# Tables


def _tables(outcome: Outcome) -> Iterator[str]:
    for title, heads, rows in tables(outcome):
        if rows:
            yield title
            yield _printed(heads, rows)


def tables(outcome: Outcome) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, heads and rows of each."""
    yield "Clients", _HEADS, [_group(group) for group in outcome.groups]
    lost = [[CAUSES[cause], f"{count:,}"] for cause, count in outcome.causes.items()]
    yield "Lost", ["why", "messages"], lost
    full = [
        [
            *(table.name, f"{table.size:,}", f"{table.peak:,}"),
            *(_share(table.peak, table.size), f"{table.refused:,}" if table.refused else ""),
        ]
        for table in outcome.tables
    ]
    yield "Tables", ["limit", "size", "peak", "full", "refused"], full
    ram = [[owner, f"{size:,}", f"{many:,}"] for owner, size, many in outcome.ram]
    yield "RAM", ["owner", "bytes", "slots"], [*ram, ["tables", f"{outcome.ram_bytes:,}", ""]]


_HEADS = [
    *("clients", "count", "sent", "due", "came", "late", "lost", "waiting", "twice"),
    *("50 % ms", "99 % ms", "most ms", "refused", "broken"),
]


def _group(group: Group) -> list[str]:
    tally = group.tally
    counts = [tally.published, tally.due, tally.delivered, tally.late]
    counts += [sum(tally.lost.values()), tally.waiting, tally.twice]
    took = [group.took(part) for part in (0.5, 0.99, 1)]
    cells = [f"{count:,}" if count else "" for count in counts]
    cells += ["" if ms is None else f"{ms:,}" for ms in took]
    cells += [f"{count:,}" if count else "" for count in (group.refused, group.breaks)]
    return [group.clients.name, str(group.clients.count), *cells]


def _share(peak: int, size: int) -> str:
    return f"{100 * peak / size:.0f} %" if size else ""


def _printed(heads: Iterable[str], rows: list[list[str]]) -> str:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for at, head in enumerate(heads):
        shown.add_column(head, justify="right" if at else "left")
    for row in rows:
        shown.add_row(*row)
    out = io.StringIO()
    Console(file=out, width=_TABLE_WIDTH).print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines()) + "\n"
