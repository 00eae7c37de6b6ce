"""Spans of time that have an order, and contradict it here and there: which of them to believe.

Spans agree that none of them begins, at the latest, before one in front of it has ended, at the
earliest. Believed is the heaviest chain of spans that all agree. Where several are as heavy,
nobody knows which of them is right: only those that are of all of them are believed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence

Span = tuple[int, int]  # when something begins at the latest and ends at the earliest


def outside(spans: Sequence[Span], weights: Sequence[int]) -> set[int]:
    """Those that are not of every heaviest chain."""
    turned = [(-ended, -begun) for begun, ended in reversed(spans)]
    ahead, behind = _chains(spans, weights), [*reversed(_chains(turned, weights[::-1]))]
    total = max((ahead[i][0] + behind[i][1] for i in range(len(spans))), default=0)
    # Of a heaviest chain all are among these that end later than those in front of them.
    latest = [ahead[i][0] + behind[i][1] == total for i in range(len(spans))]
    soonest = [behind[i][0] + ahead[i][1] == total for i in range(len(spans))]
    count = len(spans) - 1
    return {
        *_contradicting(spans, latest),
        *(count - i for i in _contradicting(turned, soonest[::-1])),
    }


def _contradicting(spans: Sequence[Span], good: Sequence[bool]) -> Iterator[int]:
    """Those that contradict a good one in front of them."""
    reached: int | None = None
    for i, (begun, ended) in enumerate(spans):
        if reached is not None and begun < reached:
            yield i
        if good[i]:
            reached = ended if reached is None else max(reached, ended)


def _chains(spans: Sequence[Span], weights: Sequence[int]) -> list[tuple[int, int]]:
    """For each, what the heaviest chain weighs that ends with it and no later, and the heaviest
    of those in front of it that agree with it."""
    best, found = _Best([ended for _, ended in spans]), []
    for (begun, ended), weight in zip(spans, weights, strict=True):
        found.append((best.until(min(begun, ended)) + weight, best.until(begun)))
        best.add(begun, ended, weight)
    return found


class _Best:
    """What the heaviest chain weighs that has ended by some time: it rises by steps."""

    def __init__(self, times: Sequence[int]) -> None:
        self._times = sorted({*times})
        self._steps = [0] * len(self._times)
        self._sums = [0] * (len(self._times) + 1)  # a Fenwick tree of the steps
        self._rises: list[int] = []  # the places of those that are not 0

    def until(self, time: int) -> int:
        place, found = bisect_right(self._times, time), 0
        while place:
            found += self._sums[place]
            place &= place - 1
        return found

    def add(self, begun: int, ended: int, weight: int) -> None:
        """One more span behind all others: chains that have ended before it begins go on with
        it, and those that end later go on to count where they are heavier than these."""
        over = self.until(ended) - self.until(begun) if ended > begun else 0
        weight = max(0, weight - over)
        self._rise(bisect_left(self._times, ended), weight)
        behind = bisect_right(self._rises, bisect_right(self._times, max(begun, ended)) - 1)
        end = behind
        while weight and end < len(self._rises):
            place = self._rises[end]
            less = min(weight, self._steps[place])
            weight -= less
            self._rise(place, -less)
            end += not self._steps[place]
        del self._rises[behind:end]

    def _rise(self, place: int, by: int) -> None:
        if by > 0 and not self._steps[place]:
            insort(self._rises, place)
        self._steps[place] += by
        place += 1
        while place < len(self._sums):
            self._sums[place] += by
            place += place & -place
