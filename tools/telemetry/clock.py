"""Wall time from anchors: one board's boots, in whole nanoseconds and without Spark.

What is sought is the offset between wall time and a board's own uptime. An anchor bounds it
at its moment: within its error, plus two milliseconds for what was rounded away. Away from
the anchor the bounds widen by what a crystal may be off. All bounds of a boot hold at once,
so that each record gets their intersection: the estimate is its middle, the error half of it.

Which anchors are believed: none from before the recorder existed, none later than the harvest
that brought it; of the rest the better kind first (NTP, harvester, message, RTC), then the
smaller error, then the earlier; one that contradicts those before is not believed.

A boot without an anchor lies between its neighbours: after the last record of the boot before
it, and before the first of the one behind it and the harvest that brought it. Neighbours are of
one life: a board whose ring was made anew goes on with a boot that was drawn at random, and
nobody knows what was earlier.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

MS = 1_000_000  # ns
ROUNDED = 2 * MS
DRIFT_PPM = 100  # 1 ppm of 1 ms is 1 ns
EARLIEST_MS = 1_704_067_200_000  # 2024: clocks that were never set start in 1970, 2000 or 2021
HARVEST_SLACK_MS = 60_000  # the clock of who harvests
NTP = 4
LIFE = 10_000  # boots that are further apart are of two lives

ANCHORED, BETWEEN, UNKNOWN = "anchored", "between", "unknown"


@dataclass(frozen=True)
class Anchor:
    """A record that says what time it was."""

    seq: int
    uptime: int  # ms
    quality: int
    wall_ms: int
    error_ms: int
    harvested_ms: int | None

    @property
    def offset(self) -> int:
        return (self.wall_ms - self.uptime) * MS

    @property
    def low(self) -> int:
        return self.offset - self.error_ms * MS - ROUNDED

    @property
    def high(self) -> int:
        return self.offset + self.error_ms * MS + ROUNDED


@dataclass(frozen=True)
class Boot:
    """A boot, as far as there are records of it."""

    boot: int
    first: int  # uptime of its first record, ms
    last: int
    harvested_ms: int | None  # of the last
    anchors: tuple[Anchor, ...] = ()  # in the order of seq

    @cached_property
    def trusted(self) -> list[Anchor]:
        return believed(self.anchors)


@dataclass(frozen=True)
class Bound:
    """Bounds of the offset at one uptime; None is no bound."""

    uptime: int
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Piece:
    """The nearest bounds around the records that have `passed` anchors before them."""

    boot: int
    passed: int
    before: Bound | None
    after: Bound | None
    kind: str

    def at(self, uptime: int) -> tuple[int, int] | None:
        """The least and the greatest wall time at this uptime, in ns."""
        lows, highs = [], []
        for bound in (self.before, self.after):
            if bound is not None:
                spread = abs(uptime - bound.uptime) * DRIFT_PPM
                lows += [] if bound.low is None else [bound.low - spread]
                highs += [] if bound.high is None else [bound.high + spread]
        if not lows or not highs or max(lows) > min(highs):
            return None
        return max(lows) + uptime * MS, min(highs) + uptime * MS


def believed(anchors: Sequence[Anchor]) -> list[Anchor]:
    """The anchors that do not contradict better ones, in the order of seq."""
    chosen: list[Anchor] = []
    highs, lows = Ceiling(), Ceiling()  # of those chosen; lows with their sign turned
    for anchor in sorted(anchors, key=lambda a: (-a.quality, a.error_ms, a.seq)):
        if not _is_possible(anchor):
            continue
        over, under = highs.at(anchor.uptime), lows.at(anchor.uptime)
        if over is None or under is None or (anchor.low <= over and -anchor.high <= under):
            chosen.append(anchor)
            highs.lower(anchor.uptime, anchor.high)
            lows.lower(anchor.uptime, -anchor.low)
    return sorted(chosen, key=lambda a: a.seq)


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


def _is_possible(anchor: Anchor) -> bool:
    if anchor.wall_ms < EARLIEST_MS:
        return False
    if anchor.quality == NTP or anchor.harvested_ms is None:
        return True
    return anchor.wall_ms - anchor.error_ms <= anchor.harvested_ms + HARVEST_SLACK_MS


def tightened(anchors: Sequence[Anchor]) -> list[Bound]:
    """At each anchor the bounds that follow from all of them; there and back once each."""
    lows = [anchor.low for anchor in anchors]
    highs = [anchor.high for anchor in anchors]
    count = len(anchors)
    for order in (range(1, count), range(count - 2, -1, -1)):
        step = 1 if order.step < 0 else -1
        for i in order:
            drift = abs(anchors[i].uptime - anchors[i + step].uptime) * DRIFT_PPM
            lows[i] = max(lows[i], lows[i + step] - drift)
            highs[i] = min(highs[i], highs[i + step] + drift)
    return [Bound(a.uptime, low, high) for a, low, high in zip(anchors, lows, highs, strict=True)]


def pieces(boots: Sequence[Boot]) -> list[Piece]:
    """The pieces of every boot of one board; `boots` are in order."""
    return [piece for life in _lives(boots) for piece in _of_life(life)]


def _lives(boots: Sequence[Boot]) -> Iterator[Sequence[Boot]]:
    begin = 0
    for i in range(1, len(boots) + 1):
        if i == len(boots) or boots[i].boot - boots[i - 1].boot > LIFE:
            yield boots[begin:i]
            begin = i


def _of_life(boots: Sequence[Boot]) -> list[Piece]:
    bounds = [tightened(boot.trusted) for boot in boots]
    ends = _ends(boots, bounds)
    found: list[Piece] = []
    for boot, own, (start, end) in zip(boots, bounds, ends, strict=True):
        if own:
            found += _around(boot, own)
            continue
        known = start.low is not None and end.high is not None
        kind = BETWEEN if known else UNKNOWN
        found += [Piece(boot.boot, n, start, end, kind) for n in range(len(boot.anchors) + 1)]
    return found


def _around(boot: Boot, own: Sequence[Bound]) -> Iterator[Piece]:
    seqs = {anchor.seq: i for i, anchor in enumerate(boot.trusted)}
    latest = -1  # of those that are believed
    for passed in range(len(boot.anchors) + 1):
        if passed:
            latest = seqs.get(boot.anchors[passed - 1].seq, latest)
        before = own[latest] if latest >= 0 else None
        after = own[latest + 1] if latest + 1 < len(own) else None
        yield Piece(boot.boot, passed, before, after, ANCHORED)


def _ends(boots: Sequence[Boot], bounds: Sequence[list[Bound]]) -> list[tuple[Bound, Bound]]:
    """For each boot the lower bound at its first record, and the upper one at its last, as
    they follow from the other boots; of use for one without anchors."""
    lows: list[int | None] = []
    wall: int | None = None  # the earliest end of the boots so far
    for boot, own in zip(boots, bounds, strict=True):
        low = None if wall is None else wall - boot.first * MS
        lows.append(low)
        reached = _lowest(own, boot, low)
        wall = wall if reached is None else reached + boot.last * MS
    highs: list[int | None] = []
    wall = None  # the latest start of the boots behind
    for boot, own in zip(reversed(boots), reversed(bounds), strict=True):
        limits = [wall] if wall is not None else []
        if boot.harvested_ms is not None:
            limits.append((boot.harvested_ms + HARVEST_SLACK_MS) * MS)
        high = min(limits) - boot.last * MS if limits else None
        highs.append(high)
        reached = _highest(own, boot, high)
        wall = wall if reached is None else reached + boot.first * MS
    highs.reverse()
    return [
        (Bound(boot.first, low, None), Bound(boot.last, None, high))
        for boot, low, high in zip(boots, lows, highs, strict=True)
    ]


def _lowest(own: Sequence[Bound], boot: Boot, low: int | None) -> int | None:
    """The lower bound of the offset at the boot's last record."""
    if own and own[-1].low is not None:
        return own[-1].low - (boot.last - own[-1].uptime) * DRIFT_PPM
    return None if low is None else low - (boot.last - boot.first) * DRIFT_PPM


def _highest(own: Sequence[Bound], boot: Boot, high: int | None) -> int | None:
    """The upper bound of the offset at the boot's first record."""
    if own and own[0].high is not None:
        return own[0].high + (own[0].uptime - boot.first) * DRIFT_PPM
    return None if high is None else high + (boot.last - boot.first) * DRIFT_PPM
