"""The curves of a picture, whatever draws them."""

from __future__ import annotations

from dataclasses import dataclass

from .gauges import CURVES
from .ledger import BUCKETS
from .outcome import Outcome

COLOURS = ("#2f6f4f", "#d98a1f", "#b3362b", "#3b6ea5", "#7a5195")


@dataclass(frozen=True)
class Chart:
    """Lines over the time of the run."""

    title: str
    unit: str
    seconds: list[float]
    lines: dict[str, list[float]]
    until: float  # seconds

    @property
    def top(self) -> float:
        """The highest value of the axis."""
        most = max((max(line) for line in self.lines.values()), default=0)
        step = 10 ** (len(str(int(most))) - 1) if most >= 1 else 0.1
        return max(-(-most // step) * step, step)


def charts(outcome: Outcome) -> list[Chart]:
    """Messages a second, and how full the tables were."""
    duration = outcome.scenario.duration
    width = max(1, -(-duration // BUCKETS))
    count = -(-duration // width)
    seconds = [at * width / 1000 for at in range(count)]
    rates = {
        name: [value * 1000 / width for value in outcome.curves[name][:count]]
        for name in ("delivered", "late", "lost")
    }
    sizes = {table.name: table.size for table in outcome.tables}
    full = {
        name: [100 * value / sizes[name] for value in outcome.curves[name][:count]]
        for name in CURVES
        if sizes[name]
    }
    return [
        Chart("Messages", "a second", seconds, rates, duration / 1000),
        Chart("How full the tables were", "%", seconds, full, duration / 1000),
    ]
