"""Which anchors of one boot are trusted, and how often the ticks wrapped in its holes.
own_clock.py compares the boots with each other.

None of a kind that the format does not know, none from before the recorder existed, none later
than the harvest that brought it; of the rest the better kind first (NTP, harvester, message, RTC),
then the smaller error, then the earlier; one that contradicts those before is not believed.

A board takes a number every three days, so between records with no more than three missing the
ticks begin anew once at most, which shows in them. Where more are missing begins another stretch,
and nobody sees how often they did: a stretch is moved by as many wraps as make its best anchor
agree with those of the others. No number of wraps that fits is a contradiction; more than one,
and the anchor says too little.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..harvest.segments import TICKS_PERIOD

MS = 1_000_000  # ns
ROUNDED = 2 * MS
DRIFT_PPM = 100  # 1 ppm of 1 ms is 1 ns
EARLIEST_MS = 1_704_067_200_000  # 2024: clocks that were never set start in 1970, 2000 or 2021
HARVEST_SLACK_MS = 60_000  # the clock of who harvests
RTC, NTP = 1, 4  # the worst kind: nobody vouches for it (own_clock.py); and the best
MISSING = 3  # numbers: more begin a stretch; four times three days are less than a wrap


@dataclass(frozen=True)
class Anchor:
    """A record that says what time it was."""

    seq: int
    uptime: int  # ms
    quality: int
    wall_ms: int
    error_ms: int
    harvested_ms: int | None
    stretch: int = 0  # of its boot
    wraps: int = 0  # that are in `uptime` and not seen in the ticks; of one boot, any may have 0

    @property
    def offset(self) -> int:
        return (self.wall_ms - self.uptime) * MS

    @property
    def low(self) -> int:
        return self.offset - self.error_ms * MS - ROUNDED

    @property
    def high(self) -> int:
        return self.offset + self.error_ms * MS + ROUNDED

    def later(self, wraps: int) -> Anchor:
        """The same by so many wraps more."""
        moved = self.uptime + wraps * TICKS_PERIOD
        return replace(self, uptime=moved, wraps=self.wraps + wraps) if wraps else self


def believed(anchors: Sequence[Anchor]) -> list[Anchor]:
    """The anchors that do not contradict better ones, in the order of seq, with the wraps of
    their stretches."""
    chosen: list[Anchor] = []
    better = _Chosen()
    for anchor in sorted(anchors, key=lambda a: (-a.quality, a.error_ms, a.seq)):
        fitting = better.fitting(anchor) if is_possible(anchor) else []
        if len(fitting) == 1:
            chosen += fitting
            better.add(fitting[0])
    return sorted(chosen, key=lambda a: a.seq)


class _Chosen:
    """What follows from the anchors that are believed so far."""

    def __init__(self) -> None:
        self._highs, self._lows = Ceiling(), Ceiling()  # lows with their sign turned
        self._stretches: list[int] = []  # in order, those that have an anchor
        self._wraps: list[int] = []  # theirs, which never become fewer

    def add(self, anchor: Anchor) -> None:
        """One more anchor, one of `fitting`."""
        self._highs.lower(anchor.uptime, anchor.high)
        self._lows.lower(anchor.uptime, -anchor.low)
        place = bisect_left(self._stretches, anchor.stretch)
        if self._stretches[place : place + 1] != [anchor.stretch]:
            self._stretches.insert(place, anchor.stretch)
            self._wraps.insert(place, anchor.wraps)

    def fitting(self, anchor: Anchor) -> list[Anchor]:
        """The anchor with each number of wraps by which it contradicts nothing."""
        if not self._stretches:
            return [anchor]
        place = bisect_left(self._stretches, anchor.stretch)
        if self._stretches[place : place + 1] == [anchor.stretch]:
            least = most = self._wraps[place]
        else:
            least, most = self._near(anchor.later(self._wraps[max(0, place - 1)]))
            least = max(least, self._wraps[place - 1]) if place else least
            most = min(most, self._wraps[place]) if place < len(self._wraps) else most
        moved = (anchor.later(wraps) for wraps in range(least, most + 1))
        return [one for one in moved if self._agrees(one)]

    def _near(self, anchor: Anchor) -> tuple[int, int]:
        """No other numbers of wraps can fit; drift makes up for less than one."""
        over, under = self._highs.at(anchor.uptime), self._lows.at(anchor.uptime)
        assert over is not None
        assert under is not None
        period = TICKS_PERIOD * MS
        least, most = (anchor.low - over) // period - 1, (anchor.high + under) // period + 1
        return anchor.wraps + least, anchor.wraps + most

    def _agrees(self, anchor: Anchor) -> bool:
        over, under = self._highs.at(anchor.uptime), self._lows.at(anchor.uptime)
        return over is None or under is None or (anchor.low <= over and -anchor.high <= under)


class Ceiling:
    """The least of many upper bounds, each of which widens away from its uptime.

    Only bounds that are the least at their own uptime are kept. Of these, the nearest on
    either side is the least of its side.
    """

    def __init__(self) -> None:
        self._uptimes: list[int] = []  # in order
        self._bounds: list[int] = []

    def at(self, uptime: int) -> int | None:
        """None: there is no bound yet."""
        place = bisect_left(self._uptimes, uptime)
        near = range(max(0, place - 1), min(place + 1, len(self._uptimes)))
        return min((self._from(i, uptime) for i in near), default=None)

    def lower(self, uptime: int, bound: int) -> None:
        """One more bound."""
        there = self.at(uptime)
        if there is not None and there <= bound:
            return
        begin = end = bisect_left(self._uptimes, uptime)
        while begin and self._is_above(begin - 1, uptime, bound):
            begin -= 1
        while end < len(self._uptimes) and self._is_above(end, uptime, bound):
            end += 1
        self._uptimes[begin:end] = [uptime]
        self._bounds[begin:end] = [bound]

    def _from(self, i: int, uptime: int) -> int:
        return self._bounds[i] + abs(uptime - self._uptimes[i]) * DRIFT_PPM

    def _is_above(self, i: int, uptime: int, bound: int) -> bool:
        return bound + abs(uptime - self._uptimes[i]) * DRIFT_PPM <= self._bounds[i]


def is_possible(anchor: Anchor) -> bool:
    """It is of a kind that is known, not from before the recorder existed, nor from after its
    harvest."""
    if not RTC <= anchor.quality <= NTP or anchor.wall_ms < EARLIEST_MS:
        return False
    if anchor.quality == NTP or anchor.harvested_ms is None:
        return True
    return anchor.wall_ms - anchor.error_ms <= anchor.harvested_ms + HARVEST_SLACK_MS
