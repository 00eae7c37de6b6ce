"""The result as text: a summary, then tables."""

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

# Why a limit was reached
_ADVICE = {
    "connections": "more clients were there at a time than it allows",
    "max_connections": "more clients were there at a time than settings.max_connections allows",
    "sessions": "there are more sessions; clean = true, or an expiry, removes some",
    "subscriptions": "there are more topic filters",
    "nodes": "all filters together have more levels, or they are too long for limit name_bytes",
    "retained": "more topics have a retained message",
    "retained_name_bytes": "the topics with a retained message are too long together",
    "messages": "more messages were queued",
    "message_bytes": "the queued messages were too long together",
    "deliveries": "more messages were queued for all receivers together",
    "queued": "one client received its messages too slowly, or was offline for too long",
    "received": "a client had more unreleased QoS 2 messages",
    "reassembly": "more long packets arrived in pieces at a time; they waited, nothing was lost",
    "shares": "there are more groups of shared subscriptions",
    "aliases": "there are more topic aliases",
    "tx_bytes": "a link was too slow for its QoS 0 messages",
}
# The limit of a cause that has another name
_LIMIT_OF = {"oldest": "queued", "busy": "tx_bytes", "settings": "max_connections"}
_MEDIA = {"flash": "a raw region", "littlefs": "a file"}
WIDTH = 98
_TABLE_WIDTH = 130


def advice(limit: str) -> str:
    """Why this limit was reached."""
    return _ADVICE[limit]


def text(outcome: Outcome) -> str:
    """Summary and tables."""
    return "\n".join([summary(outcome), "", *_tables(outcome)])


def summary(outcome: Outcome) -> str:
    """The summary in lines that fit a terminal."""
    lines = (fill(line, WIDTH, subsequent_indent="  ") for line in sentences(outcome))
    return "\n".join(lines)


def sentences(outcome: Outcome) -> Iterator[str]:
    """The lines of the summary."""
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
        persistence = "true" if scenario.persistence else "false"
        often = "once" if outcome.power_cuts == 1 else f"{outcome.power_cuts:,} times"
        yield f"The power failed {often}, with persistence {persistence}."
    for hit in outcome.refusals:
        yield f"The broker refused a client{_when(hit)}: {CLIENTS[hit.limit]}."
    yield from _limits(outcome)
    yield _ram(outcome)
    if outcome.wear:
        yield _wear(outcome)


def delivered(outcome: Outcome) -> str:
    """How many messages were delivered."""
    due, done = outcome.total("due"), outcome.total("delivered")
    if not due:
        return "No message was due: no client had subscribed to what was published."
    lost, waiting = sum(outcome.causes.values()), outcome.total("waiting")
    line = f"{done:,} of {due:,} messages ({_percent(done, due)}) were delivered"
    late = outcome.total("late")
    line += f", {late:,} of them later than {time_text(outcome.scenario.late_after)}" * (late > 0)
    line += f"; {lost:,} ({_percent(lost, due)}) were lost" if lost else "; none was lost"
    return line + (f"; {waiting:,} are still queued." if waiting else ".")


def _percent(part: int, whole: int) -> str:
    value = 100 * part / whole
    close = 0 < value < 0.05 or 99.95 <= value < 100
    return f"{value:.3f} %" if close else f"{value:.1f} %".replace(".0 %", " %")


def _limits(outcome: Outcome) -> Iterator[str]:
    if not outcome.hits:
        yield "No limit was reached."
        return
    first, *_ = outcome.hits
    worst = max(outcome.hits, key=lambda hit: _lost_by(outcome, hit.limit))  # of equals the first
    which = "first limit that was reached" if worst is first else "limit that lost most"
    yield f"The {which}: {worst.limit}{_when(worst)}: {advice(worst.limit)}."
    yield f"  {_remedy(outcome, worst.limit)}"
    if others := [f"{hit.limit}{_when(hit)}" for hit in outcome.hits if hit is not worst]:
        yield f"{'Then' if worst is first else 'Reached, too'}: {', '.join(others)}."


def _lost_by(outcome: Outcome, limit: str) -> int:
    """How many messages were lost for want of more of it."""
    return sum(n for cause, n in outcome.causes.items() if _LIMIT_OF.get(cause, cause) == limit)


def _when(hit: Hit) -> str:
    at = f" at {clock(hit.ms)}" if hit.ms >= 0 else " at the start"
    return at + (f" ({hit.who})" if hit.who else "")


def clock(ms: int) -> str:
    """A time of the run as hours, minutes and seconds."""
    seconds = ms // 1000
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _remedy(outcome: Outcome, limit: str) -> str:
    if limit == "max_connections":
        now = outcome.scenario.settings[limit]
        return f"settings.{limit} is {now}; raise it, up to limit connections."
    now = getattr(outcome.limits, limit)
    line = f"limit {limit} is {now:,}"
    more = _twice(outcome, limit)
    if limit == "connections" and outcome.scenario.board != "HOST":
        return (
            f"{line}, since the board has no more sockets. A client with sleeps = true uses one"
            " only while it sends."
        )
    if more == 0:
        return line + "; a higher one needs no RAM, but more deliveries and messages."
    return line + (f"; twice as much needs {more:,} bytes more." if more else "; raise it.")


def _twice(outcome: Outcome, limit: str) -> int | None:
    try:
        double = outcome.limits.replaced({limit: 2 * getattr(outcome.limits, limit)})
    except ValueError:
        return None
    return int(double.ram_bytes() - outcome.limits.ram_bytes())


def _ram(outcome: Outcome) -> str:
    line = f"RAM: the tables need {outcome.ram_bytes:,} bytes"
    if not outcome.available:
        return line + "."
    line += f" of the {outcome.available:,} that are free after a start"
    if outcome.fits:
        return line + "."
    owner = max(outcome.ram, key=lambda row: row[1])[0]
    return f"{line}: THE BOARD WOULD NOT START. The largest part is {owner}."


def _wear(outcome: Outcome) -> str:
    wear = outcome.wear
    assert wear
    line = f"Flash, as {_MEDIA[wear.medium]}: {wear.commits:,} commits,"
    line += f" {wear.programmed:,} bytes programmed, {wear.erased:,} erased"
    if wear.medium == "littlefs":
        line += " (an estimate from measurements)"
    if wear.years is None or wear.raw_years is None:
        return line + "; no wear."
    line += f": {_years(wear.years)} at this rate"
    if wear.medium == "littlefs":
        line += "; in a raw region of 256 KB, which stock firmware does not have, "
        line += _years(wear.raw_years)
    return line + "."


def _years(years: float) -> str:
    return f"{years:,.1f} years" if years < 1000 else "more than 1,000 years"


# Tables


def _tables(outcome: Outcome) -> Iterator[str]:
    for title, heads, rows in tables(outcome):
        if rows:
            yield title
            yield printed(heads, rows)


def tables(outcome: Outcome) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Title, heads and rows of each."""
    yield "Clients", _HEADS, [_group(group) for group in outcome.groups]
    lost = [[CAUSES[cause], f"{count:,}"] for cause, count in outcome.causes.items()]
    yield "Lost", ["cause", "messages"], lost
    full = [
        [
            *(table.name, f"{table.size:,}", f"{table.peak:,}"),
            *(
                _percent_full(table.peak, table.size),
                f"{table.refused:,}" if table.refused else "",
            ),
        ]
        for table in outcome.tables
    ]
    yield "Tables", ["limit", "size", "peak", "full", "refused"], full
    ram = [[owner, f"{size:,}", f"{slots:,}"] for owner, size, slots in outcome.ram]
    yield "RAM", ["owner", "bytes", "slots"], [*ram, ["tables", f"{outcome.ram_bytes:,}", ""]]


_HEADS = [
    *("clients", "count", "sent", "due", "delivered", "late", "lost", "waiting", "duplicates"),
    *("50 % ms", "99 % ms", "max ms", "refused", "broken"),
]


def _group(group: Group) -> list[str]:
    tally = group.tally
    counts = [tally.published, tally.due, tally.delivered, tally.late]
    counts += [sum(tally.lost.values()), tally.waiting, tally.duplicates]
    delays = [group.delay(part) for part in (0.5, 0.99, 1)]
    cells = [f"{count:,}" if count else "" for count in counts]
    cells += ["" if ms is None else f"{ms:,}" for ms in delays]
    cells += [f"{count:,}" if count else "" for count in (group.refused, group.breaks)]
    return [group.clients.name, str(group.clients.count), *cells]


def _percent_full(peak: int, size: int) -> str:
    return f"{100 * peak / size:.0f} %" if size else ""


def printed(heads: Iterable[str], rows: list[list[str]]) -> str:
    """A table as text."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for at, head in enumerate(heads):
        shown.add_column(head, justify="right" if at else "left")
    for row in rows:
        shown.add_row(*row)
    out = io.StringIO()
    Console(file=out, width=_TABLE_WIDTH).print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines()) + "\n"
