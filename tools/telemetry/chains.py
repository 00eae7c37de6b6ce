"""Which of several spans of time to trust if they contradict their known order.

Two spans agree if the later one's latest beginning is not before the earlier one's earliest end.
The longest chain of spans that all agree is trusted. If several chains are equally long, only the
spans that are in all of them are trusted.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence

Span = tuple[int, int]  # when something begins at the latest and ends at the earliest


def outside(spans: Sequence[Span]) -> set[int]:
    """Those that are not of every longest chain."""
    turned = [(-ended, -begun) for begun, ended in reversed(spans)]
    ahead, behind = _chains(spans), [*reversed(_chains(turned))]
    total = max((ahead[i][0] + behind[i][1] for i in range(len(spans))), default=0)
    # Of a longest chain all are among these that end later than those in front of them.
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


def _chains(spans: Sequence[Span]) -> list[tuple[int, int]]:
    """For each, how long the longest chain is that ends with it and no later, and the longest
    of those in front of it that agree with it."""
    best, found = _Best([ended for _, ended in spans]), []
    for begun, ended in spans:
        found.append((best.until(min(begun, ended)) + 1, best.until(begun)))
        best.add(begun, ended)
    return found


class _Best:
    """How long the longest chain is that has ended by some time: it rises by steps of one."""

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

    def add(self, begun: int, ended: int) -> None:
        """One more span behind all others: chains that have ended before it begins go on with
        it, and those that end later go on to count where they are longer than these."""
        if ended > begun and self.until(ended) > self.until(begun):
            return
        self._rise(bisect_left(self._times, ended), 1)
        behind = bisect_right(self._rises, bisect_right(self._times, max(begun, ended)) - 1)
        if behind < len(self._rises):
            place = self._rises[behind]
            self._rise(place, -1)
            if not self._steps[place]:
                del self._rises[behind]

    def _rise(self, place: int, by: int) -> None:
        if by > 0 and not self._steps[place]:
            insort(self._rises, place)
        self._steps[place] += by
        place += 1
        while place < len(self._sums):
            self._sums[place] += by
            place += place & -place
