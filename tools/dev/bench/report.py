"""Shows tables on the terminal, and writes them as Markdown."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

from .tables import Table
from .workloads import WORKLOADS

_PAGE = """\
# Benchmarks

Measured on {day} with

    {command}

with {versions}.
All brokers ran on the same machine, each in its own process, and took turns:
one round of each, {rounds} times, after one to warm up. A figure is the median
of the rounds; a ratio is the median of the rounds' ratios. The cost is CPU time
of the broker's process (user and system, all threads) per message delivered to
a subscriber, or per client for connect, subscribe, disconnect.

Every message has a number and is checked: a lost, duplicate, altered or
reordered message fails the broker's run. The load generator sends bursts while
earlier ones return, with a bounded number in flight. The last table shows that
it does not slow a broker down: how many messages the broker handled between
two moments without work. The relays are no brokers: they write what they read
and parse nothing.

{workloads}
"""


def show(tables: Sequence[Table], console: Console) -> None:
    """Print the tables."""
    for table in tables:
        shown = RichTable(title=table.title, title_justify="left")
        for index, column in enumerate(table.columns):
            shown.add_column(column, justify="right" if index else "left")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)


_CYCLES = "## Cycles of an RP2040\n"


def write(
    file: Path,
    tables: Sequence[Table],
    *,
    command: str,
    versions: dict[str, str],
    rounds: int,
    failures: Sequence[tuple[str, str, str]],
) -> None:
    """Write the page; its section of an emulated board (emulator/cycles.py) stays."""
    page = _PAGE.format(
        day=date.today().isoformat(),
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
        rounds=rounds,
        workloads="\n".join(f"- **{each.name}**: {each.title}" for each in WORKLOADS),
    )
    parts = [page, *map(_markdown, tables)]
    if failures:
        lines = [f"- {broker}, {workload}: {why}." for workload, broker, why in failures]
        parts.append("\n".join(["## What failed", "", *lines, ""]))
    file.parent.mkdir(exist_ok=True)
    kept = file.read_text().partition(_CYCLES)[2] if file.exists() else ""
    file.write_text("\n".join(parts) + (f"\n{_CYCLES}{kept}" if kept else ""))


def _markdown(table: Table) -> str:
    ruler = ["---", *(["---:"] * (len(table.columns) - 1))]
    lines = [_line(table.columns), _line(ruler), *map(_line, table.rows)]
    return "\n".join([f"## {table.title}", "", *lines, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
