"""Wall time of one board's records from its anchors, in whole nanoseconds and without Spark.

What is sought is the offset between wall time and a board's own uptime. An anchor bounds it
at its moment: within its error, plus two milliseconds for what was rounded away. Away from
the anchor the bounds widen by what a crystal may be off. All bounds of a boot hold at once,
so that each record gets their intersection: the estimate is its middle, the error half of it.
Which anchors are believed, and what a stretch is, says anchors.py; what the boots say of each
other's, and a board's own clock, which bounds nothing here, is in own_clock.py.

A boot without an anchor lies between its neighbours: after the last record of the boot before
it, and before the first of the one behind it and the harvest that brought it. Neighbours are of
one life: a board whose ring was made anew goes on with a boot that was drawn at random, and
nobody knows what was earlier.

So does a stretch without an anchor, in a boot that has some: it has as many wraps as the
stretch before it or more, and no more than the one behind it and than its harvest leave room
for. Where one number of wraps is left, the anchors around it bound it as if there was no hole.
Where only one side is known its time is unknown, yet it is not beyond that side.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from ..harvest.segments import TICKS_PERIOD
from .anchors import DRIFT_PPM, HARVEST_SLACK_MS, MS, Anchor, believed
from .bounds import ANCHORED, BETWEEN, UNKNOWN, Bound, Piece, tightened, walls

LIFE = 10_000  # boots that are further apart are of two lives


@dataclass(frozen=True)
class Stretch:
    """Records of a boot with few numbers missing between them."""

    first: int  # uptime of its first record as the ticks show it, ms
    last: int
    harvested_ms: int | None  # of the last
    anchors: tuple[Anchor, ...] = ()  # in the order of seq


@dataclass(frozen=True)
class Boot:
    """A boot, as far as there are records of it."""

    boot: int
    stretches: tuple[Stretch, ...]  # in order
    unfit: frozenset[int] = frozenset()  # numbers of anchors that its clock does not go by

    @property
    def first(self) -> int:
        return self.stretches[0].first

    @property
    def last(self) -> int:
        return self.stretches[-1].last

    def since(self, uptime: int) -> int:
        """At least so many ns of wall time between its first record and this uptime."""
        return (uptime - self.first) * (MS - DRIFT_PPM)

    @property
    def anchors(self) -> list[Anchor]:
        return [anchor for stretch in self.stretches for anchor in stretch.anchors]

    @cached_property
    def trusted(self) -> list[Anchor]:
        """The anchors that its clock goes by."""
        return believed([a for a in self.anchors if a.seq not in self.unfit])


def pieces(boots: Sequence[Boot]) -> list[Piece]:
    """The pieces of every boot of one board; `boots` are in order."""
    return [piece for life in lives(boots) for piece in _of_life(life)]


def lives(boots: Sequence[Boot]) -> Iterator[Sequence[Boot]]:
    """Boots that know of each other's time."""
    begin = 0
    for i in range(1, len(boots) + 1):
        if i == len(boots) or boots[i].boot - boots[i - 1].boot > LIFE:
            yield boots[begin:i]
            begin = i


def span(boot: Boot) -> tuple[int, int] | None:
    """When it begins at the latest and ends at the earliest, by its own anchors."""
    return _Anchored(boot).span() if boot.trusted else None


def _of_life(boots: Sequence[Boot]) -> list[Piece]:
    """Times go from each boot to the next one and back: none begins before the one before it
    has ended."""
    clocks: list[_Anchored | _Between] = [
        _Anchored(boot) if boot.trusted else _Between(boot) for boot in boots
    ]
    wall: int | None = None
    for clock in clocks:
        wall = clock.begins_after(wall)
    wall = None
    for clock in reversed(clocks):
        wall = clock.ends_before(wall)
    return [piece for clock in clocks for piece in clock.pieces()]


def _limit(wall: int | None, harvested_ms: int | None) -> int | None:
    harvest = [] if harvested_ms is None else [(harvested_ms + HARVEST_SLACK_MS) * MS]
    return min([*harvest, *([] if wall is None else [wall])], default=None)


class _Between:
    """The clock of a boot without anchors."""

    def __init__(self, boot: Boot) -> None:
        self._boot = boot
        self._low: int | None = None  # wall time of its first record, ns
        self._high: int | None = None  # of its last
        self._lasts = boot.since(boot.last)

    def begins_after(self, wall: int | None) -> int | None:
        """When it ends at the earliest."""
        self._low = wall
        return None if wall is None else wall + self._lasts

    def ends_before(self, wall: int | None) -> int | None:
        """When it begins at the latest."""
        self._high = _limit(wall, self._boot.stretches[-1].harvested_ms)
        return None if self._high is None else self._high - self._lasts

    def pieces(self) -> Iterator[Piece]:
        start, end = _held(self._boot.first, self._low, self._boot.last, self._high)
        kind = UNKNOWN if self._low is None or self._high is None else BETWEEN
        passed = 0
        for i, stretch in enumerate(self._boot.stretches):
            for n in range(len(stretch.anchors) + 1):
                yield Piece(self._boot.boot, i, passed + n, 0, start, end, kind)
            passed += len(stretch.anchors)


def _held(first: int, low: int | None, last: int, high: int | None) -> tuple[Bound, Bound]:
    """Bounds by the wall times of a first and a last record."""
    start = Bound(first, None if low is None else low - first * MS, None)
    return start, Bound(last, None, None if high is None else high - last * MS)


class _Anchored:
    """The clock of a boot with anchors: the least and the most wraps of each stretch."""

    def __init__(self, boot: Boot) -> None:
        self._boot = boot
        self._own = tightened(boot.trusted)
        self._uptimes = [bound.uptime for bound in self._own]
        self._known = {anchor.stretch: anchor.wraps for anchor in boot.trusted}
        self._least: list[int | None] = []
        self._most: list[int | None] = []

    def span(self) -> tuple[int, int]:
        first, last = self._known[min(self._known)], self._known[max(self._known)]
        return self._latest(self._boot.first, first), self._earliest(self._boot.last, last)

    def begins_after(self, wall: int | None) -> int | None:
        """When it ends at the earliest."""
        first, last = self._boot.first, self._boot.last
        wraps = None if wall is None else _first(partial(self._latest, first), wall)
        if wraps is not None and wraps > self._known[min(self._known)]:
            wraps = None  # the boot before contradicts
        for i in range(len(self._boot.stretches)):
            wraps = self._known.get(i, wraps)
            self._least.append(wraps)
        assert wraps is not None
        return self._earliest(last, wraps)

    def ends_before(self, wall: int | None) -> int | None:
        """When it begins at the latest."""
        wraps: int | None = None
        for i, stretch in reversed([*enumerate(self._boot.stretches)]):
            limit = _limit(wall, stretch.harvested_ms)
            if i in self._known:
                wraps = self._known[i]
            elif limit is not None:
                room = _last(partial(self._earliest, stretch.last), limit)
                wraps = room if wraps is None else min(wraps, room)
            self._most.append(wraps)
        self._most.reverse()
        return None if wraps is None else self._latest(self._boot.first, wraps)

    def _earliest(self, uptime: int, wraps: int) -> int:
        """Wall time at this uptime at the earliest, with so many wraps before it."""
        return self._walls(uptime + wraps * TICKS_PERIOD)[0]

    def _latest(self, uptime: int, wraps: int) -> int:
        return self._walls(uptime + wraps * TICKS_PERIOD)[1]

    def _walls(self, uptime: int) -> tuple[int, int]:
        place = bisect_left(self._uptimes, uptime)
        low, high = walls(self._own[max(0, place - 1) : place + 1], uptime)
        assert low is not None and high is not None, "an anchor has both"
        return low, high

    def pieces(self) -> Iterator[Piece]:
        trusted = {anchor.seq: i for i, anchor in enumerate(self._boot.trusted)}
        pairs = zip(self._least, self._most, strict=True)
        base = next(least for least, most in pairs if least is not None and least == most)
        passed, latest = 0, -1  # anchors, and the last that is believed
        for i, stretch in enumerate(self._boot.stretches):
            yield self._piece(i, passed, base, latest)
            for anchor in stretch.anchors:
                passed, latest = passed + 1, trusted.get(anchor.seq, latest)
                yield self._piece(i, passed, base, latest)

    def _piece(self, i: int, passed: int, base: int, latest: int) -> Piece:
        least, most = self._least[i], self._most[i]
        wraps = 0 if least is None else max(0, least - base)
        what = self._boot.boot, i, passed, wraps
        if least is not None and least == most:
            before = self._own[latest].later(-base) if latest >= 0 else None
            after = self._own[latest + 1].later(-base) if latest + 1 < len(self._own) else None
            return Piece(*what, before, after, ANCHORED)
        stretch = self._boot.stretches[i]
        high = None if most is None else self._latest(stretch.last, most)
        low = None if least is None else self._earliest(stretch.first, least)
        is_open = least is None or most is None or least > most
        start, end = _held(stretch.first, low, stretch.last, high)
        kind = UNKNOWN if is_open else BETWEEN
        return Piece(*what, start.later(wraps), end.later(wraps), kind)


def _first(wall: Callable[[int], int], at: int) -> int:
    """The fewest wraps with which `wall` is not before `at`."""
    wraps = (at - wall(0)) // (TICKS_PERIOD * MS)
    while wall(wraps) < at:
        wraps += 1
    while wall(wraps - 1) >= at:
        wraps -= 1
    return wraps


def _last(wall: Callable[[int], int], at: int) -> int:
    """The most wraps with which `wall` is not behind `at`."""
    return _first(wall, at + 1) - 1
