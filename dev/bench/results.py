"""The figures of a run: rounds by workload and broker, their medians and ratios.

A ratio is the median of the rounds' ratios, since a disturbance of the machine affects both sides
of a round.
"""

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Cell:
    """One broker at one workload: the figures of each round, or why it failed."""

    rounds: list[dict[str, float]] = field(default_factory=list)
    failure: str | None = None

    def median(self, figure: str) -> float | None:
        """The median of the rounds; None if there is no such figure."""
        values = [each[figure] for each in self.rounds if figure in each]
        return statistics.median(values) if values and not self.failure else None


Row = dict[str, Cell]  # by the broker's name
Results = dict[str, Row]  # by the workload's name


def ratio(row: Row, figure: str, broker: str, peer: str) -> float | None:
    """The broker's figure divided by the peer's; None if either has none."""
    if broker not in row or peer not in row:
        return None
    own, others = row[broker], row[peer]
    if own.median(figure) is None or others.median(figure) is None:
        return None
    pairs = zip(own.rounds, others.rounds, strict=False)
    return statistics.median(ours[figure] / other[figure] for ours, other in pairs)


def save(results: Results, file: Path) -> None:
    """Write the results, for load()."""
    found = {
        name: {who: asdict(cell) for who, cell in row.items()} for name, row in results.items()
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found))


def load(file: Path) -> Results:
    """What save() has written; nothing where there is no such file. ValueError: it is another."""
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text())
        return {
            name: {who: Cell(**cell) for who, cell in row.items()} for name, row in found.items()
        }
    except (TypeError, AttributeError, ValueError):
        raise ValueError(f"{file} has no results of this benchmark") from None
