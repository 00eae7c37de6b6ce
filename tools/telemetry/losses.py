"""The losses of one board: which records are missing, and why. Without Spark.

A hole is a run of numbers (seq) that no record has. GAP records and frames in quarantine explain
holes; they also show losses after the last record of a boot, and boots without any record.
Consecutive boots of which nothing is known are one loss, however many they are: a board whose ring
was made anew continues with a random boot.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

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


@dataclass(frozen=True)
class Hole:
    """A run of numbers without records; `last` None: nobody knows how many."""

    boot: int
    first: int
    last: int | None
    boots: int = 1  # this and those behind it, all without a record


@dataclass(frozen=True)
class Loss:
    """A hole with its reasons and the segments that were lost, as far as they are told."""

    hole: Hole
    reasons: list[str] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)


def losses(holes: Sequence[Hole], lasts: dict[int, int], told: Sequence[Told]) -> list[Loss]:
    """`holes` are those between records, `lasts` the last number of each boot with records."""
    every = [*holes, *_behind(lasts, told)]
    if boots := lasts.keys() | {one.boot for one in told}:
        seen = lasts.keys() | {hole.boot for hole in every}
        known = sorted({min(boots) - 1, *seen, max(boots)})
        every += [Hole(a + 1, 0, None, b - a - 1) for a, b in pairwise(known) if b - a > 1]
    by_boot: dict[int, list[Told]] = {}
    for one in told:
        by_boot.setdefault(one.boot, []).append(one)
    of_boot: dict[int, list[Hole]] = {}
    for hole in every:
        of_boot.setdefault(hole.boot, []).append(hole)
    return [
        loss for boot, some in of_boot.items() for loss in _explained(some, by_boot.get(boot, []))
    ]


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


def _explained(holes: Sequence[Hole], told: Sequence[Told]) -> Iterable[Loss]:
    """The holes of one boot. Each that is told finds its holes, which do not overlap."""
    holes = sorted(holes, key=lambda hole: hole.first)
    firsts = [hole.first for hole in holes]
    lasts = [TO_THE_END if hole.last is None else hole.last for hole in holes]
    fitting: list[set[tuple[str, int]]] = [set() for _ in holes]
    closed = (one for one in told if one.count > 0 and one.last is not None)
    for one in {*closed, *_open(told)}:
        begin = bisect_left(lasts, one.first)
        end = len(holes) if one.last is None else bisect_right(firsts, one.last)
        for some in fitting[begin:end]:
            some.add((one.reason, one.segment))
    for hole, some in zip(holes, fitting, strict=True):
        reasons = sorted({reason for reason, _ in some}) or [UNEXPLAINED]
        yield Loss(hole, reasons, sorted({segment for _, segment in some} - {NO_SEGMENT}))


def _open(told: Sequence[Told]) -> Iterable[Told]:
    """Those without an end; of each kind the first, which tells of all that the others do."""
    first: dict[tuple[str, int], Told] = {}
    for one in (one for one in told if one.last is None):
        there = first.setdefault((one.reason, one.segment), one)
        first[one.reason, one.segment] = min(there, one, key=lambda each: each.first)
    return first.values()
