"""The figures of a run as tables of texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .brokers import BROKERS
from .results import Results, Row, ratio
from .targets import TARGETS, Target

YARDSTICK = "mosquitto"
COST = f"CPU of the broker per delivered message, µs (as a ratio to {YARDSTICK})"
OURS = tuple(broker.name for broker in BROKERS if broker.is_ours)

_NOTHING = "-"
_FIGURES = {
    "p50_us": "round trip, median, µs",
    "p99_us": "round trip, 99th percentile, µs",
    "later_us": "99th percentile with 100 new clients a second, less the one without, µs",
    "wall_ms": "{workload}: time until the last message has come, ms",
    "client_kb": "memory per idle client, KB",
    "broker_mb": "memory of the broker with 200 idle clients, MB",
    "recorded": "cost of a QoS 0 message that is recorded, against one that is not",
    "growth_1000": "cost with 1,000 subscriptions that do not match, against 10",
    "growth_10000": "cost with 10,000 subscriptions that do not match, against 10",
}


@dataclass(frozen=True)
class Table:
    """A table: the first column is text, the others are figures."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def all_tables(results: Results) -> list[Table]:
    """All tables that have rows."""
    tables = [
        _by_broker(COST, results, _cost),
        _others(results),
        _targets(results),
        _by_broker("The load generator's CPU per message, µs", results, _figure("generator_us")),
        _by_broker(
            "Messages until the broker once had nothing to do", results, _figure("per_sleep")
        ),
    ]
    return [table for table in tables if table.rows]


def failures(results: Results) -> list[tuple[str, str, str]]:
    """(workload, broker, reason) of all failures."""
    return [
        (workload, broker, cell.failure)
        for workload, row in results.items()
        for broker, cell in row.items()
        if cell.failure
    ]


def number(value: float | None) -> str:
    """Three significant digits; a dash for None."""
    if value is None:
        return _NOTHING
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def _by_broker(title: str, results: Results, show: Callable[[Row, str], str]) -> Table:
    """A row per workload that has a cost, a column per broker."""
    brokers = _brokers(results)
    rows = [
        [workload, *(show(row, broker) if broker in row else _NOTHING for broker in brokers)]
        for workload, row in results.items()
        if any(cell.median("cpu_us") is not None for cell in row.values())
    ]
    return Table(title, ["workload", *brokers], rows)


def _brokers(results: Results) -> list[str]:
    return list(dict.fromkeys(name for row in results.values() for name in row))


def _cost(row: Row, broker: str) -> str:
    if row[broker].failure:
        return "fails"
    cost = number(row[broker].median("cpu_us"))
    against = ratio(row, "cpu_us", broker, YARDSTICK)
    return cost if against is None else f"{cost} ({number(against)})"


def _figure(name: str) -> Callable[[Row, str], str]:
    return lambda row, broker: number(row[broker].median(name))


def _others(results: Results) -> Table:
    brokers = _brokers(results)
    rows = []
    for workload, row in results.items():
        for figure, title in _FIGURES.items():
            values = [row[broker].median(figure) if broker in row else None for broker in brokers]
            if any(value is not None for value in values):
                rows.append([title.format(workload=workload), *map(number, values)])
    return Table("Other figures", ["figure", *brokers], rows)


def _targets(results: Results) -> Table:
    rows = []
    for target in TARGETS:
        values = [target.value(results, broker) for broker in OURS]
        if any(value is not None for value in values):
            rows.append([*_describe(target), *(_judge(target, value) for value in values)])
    return Table("Targets", ["workload", "figure", "against", "at most", "aim", *OURS], rows)


def _describe(target: Target) -> list[str]:
    aim = "" if target.aim is None else number(target.aim)
    peer = target.peer or "itself"
    return [target.workload, target.figure, peer, number(target.at_most), aim]


def _judge(target: Target, value: float | None) -> str:
    if value is None:
        return _NOTHING
    return f"{number(value)} {'met' if value <= target.at_most else 'NOT MET'}"
