"""Wall time from anchors: one board's boots, in whole nanoseconds and without Spark.

What is sought is the offset between wall time and a board's own uptime. An anchor bounds it
at its moment: within its error, plus two milliseconds for what was rounded away. Away from
the anchor the bounds widen by what a crystal may be off. All bounds of a boot hold at once,
so that each record gets their intersection: the estimate is its middle, the error half of it.

Which anchors are believed: none from before the recorder existed, none later than the harvest
that brought it; of the rest the better kind first (NTP, harvester, message, RTC), then the
smaller error, then the earlier; one that contradicts those before is not believed.

A boot without an anchor lies between its neighbours: after the last record of the boot before
it, and before the first of the one behind it and the harvest that brought it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MS = 1_000_000  # ns
ROUNDED = 2 * MS
DRIFT_PPM = 100  # 1 ppm of 1 ms is 1 ns
EARLIEST_MS = 1_704_067_200_000  # 2024: clocks that were never set start in 1970, 2000 or 2021
HARVEST_SLACK_MS = 60_000  # the clock of who harvests
NTP = 4

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
    def error(self) -> int:
        return self.error_ms * MS + ROUNDED


@dataclass(frozen=True)
class Boot:
    """A boot, as far as there are records of it."""

    boot: int
    first: int  # uptime of its first record, ms
    last: int
    harvested_ms: int | None  # of the last
    anchors: tuple[Anchor, ...] = ()  # in the order of seq


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
    for anchor in sorted(anchors, key=lambda a: (-a.quality, a.error_ms, a.seq)):
        if _is_possible(anchor) and all(_agree(anchor, other) for other in chosen):
            chosen.append(anchor)
    return sorted(chosen, key=lambda a: a.seq)


def _is_possible(anchor: Anchor) -> bool:
    if anchor.wall_ms < EARLIEST_MS:
        return False
    if anchor.quality == NTP or anchor.harvested_ms is None:
        return True
    return anchor.wall_ms - anchor.error_ms <= anchor.harvested_ms + HARVEST_SLACK_MS


def _agree(one: Anchor, other: Anchor) -> bool:
    drift = abs(one.uptime - other.uptime) * DRIFT_PPM
    return abs(one.offset - other.offset) <= one.error + other.error + drift


def tightened(anchors: Sequence[Anchor]) -> list[Bound]:
    """At each anchor the bounds that follow from all of them; there and back once each."""
    lows = [anchor.offset - anchor.error for anchor in anchors]
    highs = [anchor.offset + anchor.error for anchor in anchors]
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
    trusted = [believed(boot.anchors) for boot in boots]
    bounds = [tightened(anchors) for anchors in trusted]
    ends = _ends(boots, bounds)
    found: list[Piece] = []
    for boot, anchors, own, (start, end) in zip(boots, trusted, bounds, ends, strict=True):
        if own:
            found += _around(boot, anchors, own)
            continue
        known = start.low is not None and end.high is not None
        kind = BETWEEN if known else UNKNOWN
        found += [Piece(boot.boot, n, start, end, kind) for n in range(len(boot.anchors) + 1)]
    return found


def _around(boot: Boot, anchors: Sequence[Anchor], own: Sequence[Bound]) -> Iterator[Piece]:
    seqs = {anchor.seq: i for i, anchor in enumerate(anchors)}
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
