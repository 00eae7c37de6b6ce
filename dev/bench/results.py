"""The figures of a run: medians of its rounds, their ratios to mosquitto's, and targets.

A ratio is the median of the rounds' ratios, since a disturbance of the machine affects both sides
of a round. Its name is that of the figure with " ratio".
"""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

YARDSTICK = "mosquitto"
CPYTHON, MICROPYTHON = "slotmq-cpython", "slotmq-micropython32"
Row = dict[str, dict[str, float]]  # figures by broker
Results = dict[str, Row]  # by workload


@dataclass
class Cell:
    """One broker at one workload: the figures of each round, or why it failed."""

    rounds: list[dict[str, float]] = field(default_factory=list)
    failure: str | None = None


def medians(cells: Mapping[str, Cell]) -> Row:
    """The figures of each broker that has not failed."""
    peer = cells.get(YARDSTICK, Cell())
    row = {}
    for who, cell in cells.items():
        if cell.failure or not cell.rounds:
            continue
        row[who] = {name: _median(each[name] for each in cell.rounds) for name in cell.rounds[0]}
        if peer.rounds and not peer.failure:
            pairs = list(zip(cell.rounds, peer.rounds, strict=False))
            row[who] |= {
                f"{name} ratio": _median(ours[name] / theirs[name] for ours, theirs in pairs)
                for name in cell.rounds[0]
            }
    return row


def _median(values: Iterator[float]) -> float:
    return float(f"{statistics.median(values):.4g}")


@dataclass(frozen=True)
class Target:
    """The largest value that a figure of slotmq may have, at these workloads."""

    workloads: str
    at_most: float
    figure: str = "cpu_us ratio"
    only: str = ""  # the only runtime that it is for


_OF_5 = "qos0-v5 qos1-v5 qos2-v5 fan-out-v5 fan-in-v5 wildcards-v5 retained-v5"
TARGETS = (
    Target("qos0 qos1 qos2 fan-out fan-in wildcards retained", 1),
    Target(_OF_5, 1, only=CPYTHON),
    Target(_OF_5.replace(" retained-v5", ""), 0.3, only=MICROPYTHON),
    Target("retained-v5", 1, only=MICROPYTHON),
    Target("connect", 3),
    Target("round-trip", 1.3),
    Target("round-trip-1", 1.2, only=CPYTHON),
    Target("round-trip", 1.4, "p50_us ratio"),
    Target("round-trip", 2, "p99_us ratio"),
    *(Target(f"window-{qos}-{n}", 8, "wall_ms ratio") for qos in (1, 2) for n in (1, 5, 20)),
    Target("retained-late queued-late", 8, "wall_ms ratio"),
    Target("recorded recorded-16", 3.5, "recorded", only=MICROPYTHON),
)


def judged(results: Results) -> Iterator[tuple[str, str, float, dict[str, float]]]:
    """Each target's workload, figure, largest value, and values by broker of slotmq."""
    for target in TARGETS:
        for workload in target.workloads.split():
            row = results.get(workload, {})
            values = {
                who: row[who][target.figure]
                for who in (CPYTHON, MICROPYTHON)
                if target.only in ("", who) and target.figure in row.get(who, {})
            }
            if values:
                yield workload, target.figure, target.at_most, values


def number(value: float | None) -> str:
    """Three significant digits; a dash for None."""
    if value is None:
        return "-"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"
