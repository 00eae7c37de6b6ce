"""Many runs of a scenario: several seeds, and a grid of limits.

Each run gives a row of COLUMNS, the same on every machine. For a run that failed, failures()
prints the command that repeats it.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from slotmq.config.capacities import fields

from ..errors import ToolError
from . import broker_config
from .read import read_text

# name: Spark type
COLUMNS = {
    "seed": "long", "point": "long", "failure": "string", "trace": "string", "due": "long",
    "delivered": "long", "lost": "long", "late": "long", "ram": "long", "first": "string",
}  # fmt: skip
Row = dict[str, Any]


class Work(NamedTuple):
    """What all runs have in common; it is sent to the executors."""

    text: str  # of the scenario
    board: str | None
    grid: tuple[dict[str, int], ...]


def seeds(text: str) -> range:
    """The seeds of `A..B`, both included."""
    found = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if not found or int(found[1]) > int(found[2]):
        raise ToolError(f"--seeds {text}: expected A..B, as in 0..999")
    return range(int(found[1]), int(found[2]) + 1)


def grid(texts: Sequence[str]) -> tuple[dict[str, int], ...]:
    """All combinations of texts as `name=1,2,3`."""
    known = {name for name, *_ in fields()}
    axes = []
    for text in texts:
        name, _, values = text.partition("=")
        if name not in known or not re.fullmatch(r"\d+(,\d+)*", values):
            raise ToolError(f"--grid {text}: expected LIMIT=N,N,..., as in connections=4,8")
        axes.append([(name, int(value)) for value in values.split(",")])
    return tuple(dict(point) for point in itertools.product(*axes))


def check(work: Work) -> None:
    """Raise ToolError before anything is sent to executors."""
    for point in work.grid:
        broker_config.make(_scenario(work, 0, point))


def run(work: Work, jobs: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """A row for each (seed, point of the grid); an exception becomes a row with a failure."""
    for seed, point in jobs:
        row: Row = dict.fromkeys(COLUMNS) | {"seed": seed, "point": point}
        try:
            yield row | _run_one(work, seed, point)
        except Exception as error:
            yield row | {"failure": f"{type(error).__name__}: {error}"}


def _scenario(work: Work, seed: int, point: dict[str, int]) -> Any:
    limits = tomllib.loads(work.text).get("limits", {}) | point
    overrides: dict[str, Any] = {"seed": seed} | ({"limits": limits} if limits else {})
    return read_text(work.text, **overrides, **({"board": work.board} if work.board else {}))


def _run_one(work: Work, seed: int, point: int) -> Row:
    from .outcome import simulate

    outcome = simulate(_scenario(work, seed, work.grid[point]), lambda _percent: None)
    row: Row = {name: outcome.total(name) for name in ("due", "delivered", "late")}
    row |= {"lost": sum(outcome.causes.values()), "ram": outcome.ram_bytes}
    first = outcome.hits[0].limit if outcome.hits else ""
    return row | {"trace": outcome.trace, "first": first}


def failures(rows: Sequence[Row], work: Work, file: str) -> Iterator[str]:
    """Two lines for each failed run: the failure, and the command that repeats it."""
    for row in rows:
        if row["failure"]:
            yield f"seed {row['seed']}{_named(work, row)}: {row['failure']}"
            yield f"  {_replay(row['seed'], work, file)}"


def _named(work: Work, row: Row) -> str:
    point = work.grid[row["point"]]
    return "".join(f", {name} {value}" for name, value in point.items())


def _replay(seed: int, work: Work, file: str) -> str:
    board = f" --board {work.board}" if work.board else ""
    return f"slotmq sim {file} --seed {seed}{board}"


def capacity(rows: Sequence[Row], work: Work) -> tuple[list[str], list[list[str]]]:
    """A table: its heads, and a row for each point of the grid."""
    head = [*work.grid[0], "seeds", "delivered %", "worst %", "of seed", "lost", "late",
            "tables' bytes", "first full"]  # fmt: skip
    table = []
    for number, point in enumerate(work.grid):
        own = [row for row in rows if row["point"] == number and not row["failure"]]
        if own:
            table.append([*map(str, point.values()), *_capacity(own)])
    return head, table


def _capacity(rows: Sequence[Row]) -> list[str]:
    worst = min(rows, key=lambda row: (_percent(row), row["seed"]))
    mean = sum(map(_percent, rows)) / len(rows)
    first = Counter(row["first"] for row in rows).most_common(1)[0]
    sums = (sum(row[name] for row in rows) for name in ("lost", "late"))
    return [
        str(len(rows)), f"{mean:.2f}", f"{_percent(worst):.2f}", str(worst["seed"]),
        *(f"{value:,}" for value in sums), f"{rows[0]['ram']:,}",
        f"{first[0]} ({first[1]})" if first[0] else "-",
    ]  # fmt: skip


def _percent(row: Row) -> float:
    return float(100 * row["delivered"] / row["due"]) if row["due"] else 100.0
