"""What is missing of one board, and what is known of why; without Spark.

A hole is a run of numbers that no record has. GAP records and frames in quarantine explain
holes, and tell of losses behind the last record of a boot and of boots that left none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

UNEXPLAINED = "unexplained"
QUARANTINED = "quarantined"
NO_SEGMENT = 0xFFFFFFFF
TO_THE_END = 0xFFFFFFFF  # as a count: nobody knows


@dataclass(frozen=True)
class Told:
    """Records that somebody says are lost."""

    boot: int
    first: int
    count: int
    reason: str
    segment: int  # or NO_SEGMENT

    @property
    def last(self) -> int | None:
        """None: to the end of the boot, or until there are records again."""
        return None if self.count == TO_THE_END else self.first + self.count - 1

    def meets(self, hole: Hole) -> bool:
        """Whether it tells of a number in the hole."""
        starts = hole.last is None or self.first <= hole.last
        return self.count > 0 and starts and (self.last is None or self.last >= hole.first)


@dataclass(frozen=True)
class Hole:
    """A run of numbers without records; `last` None: nobody knows how many."""

    boot: int
    first: int
    last: int | None


@dataclass(frozen=True)
class Loss:
    """A hole with its reasons and the segments that were lost, as far as they are told."""

    hole: Hole
    reasons: list[str] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)


def losses(holes: Sequence[Hole], lasts: dict[int, int], told: Sequence[Told]) -> list[Loss]:
    """`holes` are those between records, `lasts` the last number of each boot with records."""
    every = [*holes, *_behind(lasts, told)]
    boots = lasts.keys() | {one.boot for one in told}
    seen = lasts.keys() | {hole.boot for hole in every}
    if boots:
        missing = [boot for boot in range(min(boots), max(boots)) if boot not in seen]
        every += [Hole(boot, 0, None) for boot in missing]
    by_boot: dict[int, list[Told]] = {}
    for one in told:
        by_boot.setdefault(one.boot, []).append(one)
    return [_explained(hole, by_boot.get(hole.boot, [])) for hole in every]


def _behind(lasts: dict[int, int], told: Sequence[Told]) -> list[Hole]:
    """Numbers that were given behind the last record of a boot, as far as is told."""
    found: dict[int, Hole] = {}
    for one in (one for one in told if one.count > 0):
        first = lasts.get(one.boot, -1) + 1
        if one.last is None and one.first >= first:
            found[one.boot] = Hole(one.boot, first, None)
        elif one.last is not None and one.last >= first:
            hole = found.get(one.boot, Hole(one.boot, first, one.last))
            last = None if hole.last is None else max(hole.last, one.last)
            found[one.boot] = Hole(one.boot, first, last)
    return list(found.values())


def _explained(hole: Hole, told: Sequence[Told]) -> Loss:
    fitting = [one for one in told if one.meets(hole)]
    reasons = sorted({one.reason for one in fitting}) or [UNEXPLAINED]
    segments = sorted({one.segment for one in fitting} - {NO_SEGMENT})
    return Loss(hole, reasons, segments)
