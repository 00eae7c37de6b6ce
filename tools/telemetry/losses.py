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


@dataclass(frozen=True)
class Told:
    """Records that somebody says are lost."""

    boot: int
    first: int
    count: int
    reason: str
    segment: int  # or NO_SEGMENT

    @property
    def last(self) -> int:
        return self.first + self.count - 1


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
    ends: dict[int, int] = {}
    for one in told:
        ends[one.boot] = max(one.last, ends.get(one.boot, -1))
    firsts = {boot: lasts.get(boot, -1) + 1 for boot in ends}
    return [Hole(boot, firsts[boot], end) for boot, end in ends.items() if end >= firsts[boot]]


def _explained(hole: Hole, told: Sequence[Told]) -> Loss:
    fitting = [
        one
        for one in told
        if one.count > 0 and hole.last is not None and one.first <= hole.last
        and one.last >= hole.first
    ]  # fmt: skip
    reasons = sorted({one.reason for one in fitting}) or [UNEXPLAINED]
    segments = sorted({one.segment for one in fitting} - {NO_SEGMENT})
    return Loss(hole, reasons, segments)
