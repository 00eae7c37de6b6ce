"""Wall time of one board's records from its anchors, in whole nanoseconds and without Spark.

What is sought is the offset between wall time and the board's own uptime. An anchor bounds it at
its moment: within its error, plus two milliseconds for what was rounded away. Away from the
anchor the bounds widen by what a crystal may be off. All bounds of a run hold at once.

A run is a stretch of a boot. A board takes a number every three days, so between records with no
more than three missing the ticks begin anew once at most, which shows in them. Where more are
missing begins another run, and nobody sees how often they did.

A run that has no believed anchor lies between its neighbours: after the last record of the one
before it, before the first of the one behind it, and before its harvest. To another run of its
boot it is a whole number of wraps; where one number is possible, it goes by the anchors there.
Neighbours are of one life: a board whose ring was made anew goes on with a boot that was drawn
at random, and nobody knows what was earlier.

The better kind of anchor decides first. One outside of what better ones allow is not believed.
Where runs contradict each other by anchors of one kind, nobody knows which are wrong (unless
clocks.toml says so): none of them bounds the others, and their times count in their own run
alone, as "suspect". So do those of a board's own clock (RTC), which may have been wrong by months.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .corrections import Corrections
from .harvest import segments as s

if TYPE_CHECKING:
    from .silver import Records

MS = 1_000_000  # ns
WRAP = s.TICKS_PERIOD * MS
ROUNDED = 2 * MS
DRIFT_PPM = 100  # 1 ppm of 1 ms is 1 ns
EARLIEST_MS = 1_704_067_200_000  # 2024: clocks that were never set start in 1970, 2000 or 2021
HARVEST_SLACK_MS = 60_000  # the clock of who harvests
RTC, MESSAGE, HARVESTER, NTP = 1, 2, 3, 4
LIFE = 10_000  # boots that are further apart are of two lives
NEVER = 2**62  # no bound; sums of decades leave it beyond the half
_TIME = np.dtype([("seconds", "<u4"), ("ms", "<u2"), ("error", "<u4")])

ANCHORED, BETWEEN, UNKNOWN = "anchored", "between", "unknown"
OWN = "own"  # of the board's own clock, for which nobody vouches
SUSPECT = "suspect"  # of anchors that contradict others which are as good


class Bound(NamedTuple):
    """Bounds of the offset at one uptime."""

    uptime: int  # ms
    low: int
    high: int

    def later(self, wraps: int) -> Bound:
        """The same for records that the ticks show by so many wraps too early."""
        apart = wraps * WRAP
        return Bound(self.uptime - wraps * s.TICKS_PERIOD, self.low + apart, self.high + apart)


class Anchor(NamedTuple):
    """What a record that says the time says of the offset."""

    at: Bound
    quality: int
    place: int  # among all anchors of the board


@dataclass
class Run:
    """Records of a boot with few numbers missing between them."""

    boot: int
    first: int  # uptime of its first record as the ticks show it, ms
    last: int
    limit: int  # wall time of its last record at most, by its harvest
    said: list[Anchor]  # those that may be true, in order
    trusted: list[Anchor] = field(default_factory=list)  # that other runs go by, too
    points: list[Bound] = field(default_factory=list)  # all that is known of its offset
    kind: str = UNKNOWN
    wraps: int = 0  # in its boot before it that the ticks do not show

    @property
    def lasts(self) -> int:
        """At least so many ns of wall time."""
        return (self.last - self.first) * (MS - DRIFT_PPM)


class Anchors:
    """All anchors of a board, as columns."""

    def __init__(self, records: Records, corrections: Corrections) -> None:
        self.at = np.flatnonzero(records.type == s.ANCHOR)  # among the records
        payloads = records.rows.column("payload").take(self.at).to_pylist()
        told = np.frombuffer(b"".join(payloads), _TIME)
        added = [corrections.get(boot, 0) for boot in records.boot[self.at].tolist()]
        self.corrected = np.array([b in corrections for b in records.boot[self.at].tolist()], bool)
        self.wall_ms = told["seconds"] * np.int64(1000) + told["ms"] + np.array(added, np.int64)
        self.error_ms = told["error"].astype(np.int64)
        self.quality = records.flags[self.at]
        self.believed = np.zeros(len(self.at), bool)


def runs(records: Records, anchors: Anchors) -> list[Run]:
    """All runs of a board in order, with what is known of their time; marks which anchors are
    believed."""
    found = [*_undecided(records, anchors)]
    begins = [i for i, (a, b) in enumerate(pairwise(found), 1) if b.boot - a.boot > LIFE]
    for begin, end in pairwise([0, *begins, len(found)] if found else []):
        _decide(found[begin:end], anchors.believed)
    return found


def _undecided(records: Records, anchors: Anchors) -> Iterator[Run]:
    firsts, lasts = records.runs(records.boot, records.stretch)
    uptime = records.uptime[anchors.at]
    harvested = records.harvested[anchors.at]
    quality = np.where(anchors.corrected, NTP, anchors.quality)
    offset, error = (anchors.wall_ms - uptime) * MS, anchors.error_ms * MS + ROUNDED
    in_time = anchors.wall_ms - anchors.error_ms <= harvested + HARVEST_SLACK_MS
    is_one = (quality >= RTC) & (quality <= NTP) & (anchors.wall_ms >= EARLIEST_MS)
    some = np.flatnonzero(is_one & ((quality == NTP) | in_time))
    columns = (uptime, offset - error, offset + error, quality)
    there = [
        Anchor(Bound(*bound), kind, place)
        for *bound, kind, place in zip(
            *(column[some].tolist() for column in columns), some.tolist(), strict=True
        )
    ]
    cuts = np.searchsorted(anchors.at[some], [*firsts, len(records)]).tolist()
    for first, last, (begin, end) in zip(firsts, lasts, pairwise(cuts), strict=True):
        limit = min(NEVER, (int(records.harvested[last]) + HARVEST_SLACK_MS) * MS)
        ends = int(records.uptime[first]), int(records.uptime[last])
        yield Run(int(records.boot[first]), *ends, limit, there[begin:end])


def _decide(runs: Sequence[Run], believed: Any) -> None:
    """What the runs of one life know of each other's time."""
    apart = [*(_apart(before, run) for before, run in pairwise(runs)), 0]
    lasts = [run.lasts + gap for run, gap in zip(runs, apart, strict=True)]
    passed = [0, *accumulate(lasts)]
    for quality in (NTP, HARVESTER, MESSAGE):
        _bound(runs, apart)
        more = {i: sorted([*run.trusted, *new]) for i, run in enumerate(runs)
                if (new := _agreeing(run, quality))}  # fmt: skip
        points = {i: tightened(trusted) for i, trusted in more.items()}
        # Without what all runs in front have recorded at least: so that two agree only if those
        # between them, of which no time may be known, have room.
        spans = [(walls(points[i], runs[i].first)[1] - passed[i],
                  walls(points[i], runs[i].last)[0] - passed[i] - runs[i].lasts)
                 for i in more]  # fmt: skip
        for i, is_wrong in zip(more, against(spans), strict=True):
            if not is_wrong:
                runs[i].trusted, runs[i].points = more[i], points[i]
    _bound(runs, apart)
    for _, boot in groupby(runs, lambda run: run.boot):
        _finish([*boot])
    for run in runs:
        of_own_clock = _agreeing(run, RTC) if run.kind in (ANCHORED, OWN) else []
        believed[[anchor.place for anchor in (*run.trusted, *of_own_clock)]] = True


def _apart(before: Run, run: Run) -> int:
    """At least so many ns are between them."""
    return (run.first - before.last) * (MS - DRIFT_PPM) if run.boot == before.boot else 0


def _bound(runs: Sequence[Run], apart: Sequence[int]) -> None:
    """Bound the runs without trusted anchors by those around them: none begins before the one
    before it has ended."""
    wall, lows = -NEVER, []
    for run, gap in zip(runs, apart, strict=True):
        lows.append(wall)
        wall = gap + (walls(run.points, run.last)[0] if run.trusted else wall + run.lasts)
    wall = NEVER
    for run, low, gap in zip(runs[::-1], lows[::-1], [*apart[-2::-1], 0], strict=True):
        if run.trusted:
            wall = walls(run.points, run.first)[1] - gap
            continue
        wall = min(wall, run.limit)
        drift = (run.last - run.first) * DRIFT_PPM
        least, most = low - run.first * MS, wall - run.last * MS
        run.points = [
            Bound(run.first, least, most + drift), Bound(run.last, least - drift, most),
        ]  # fmt: skip
        wall -= run.lasts + gap


def _agreeing(run: Run, quality: int) -> list[Anchor]:
    """Its anchors of this kind that do not contradict what is known, nor one before them. (NTP
    is better than what the harvests' times say, and decides before anything else is known.)"""
    low, high, at, found = -NEVER, NEVER, run.first, []
    for anchor in (anchor for anchor in run.said if anchor.quality == quality):
        uptime, least, most = anchor.at
        known = walls(run.points, uptime)
        spread, at = (uptime - at) * DRIFT_PPM, uptime
        low, high = low - spread, high + spread
        fits = known[0] <= most + uptime * MS and least + uptime * MS <= known[1]
        if (fits or quality == NTP) and low <= most and least <= high:
            low, high = max(low, least), min(high, most)
            found.append(anchor)
    return found


def against(spans: Sequence[tuple[int, int]]) -> list[bool]:
    """Which leave another one no room: begin before one in front of them has ended, or end after
    one behind them has begun. A span is when something begins at the latest, and ends at the
    earliest."""
    begun, ended = np.array(spans, np.int64).reshape(-1, 2).T
    reached = np.maximum.accumulate([-NEVER, *ended])[:-1]
    left = np.minimum.accumulate([NEVER, *begun[::-1]])[:-1][::-1]
    found: list[bool] = ((begun < reached) | (ended > left)).tolist()
    return found


def tightened(anchors: Sequence[Anchor]) -> list[Bound]:
    """At each anchor, in order, the bounds that follow from all of them."""
    uptime, low, high = np.array([anchor.at for anchor in anchors], np.int64).T
    drift = uptime * DRIFT_PPM
    low, high = (
        np.maximum(
            np.maximum.accumulate(side + drift) - drift,
            np.maximum.accumulate((side - drift)[::-1])[::-1] + drift,
        )
        for side in (low, -high)
    )
    return [*map(Bound, uptime.tolist(), low.tolist(), (-high).tolist())]


def walls(points: Sequence[Bound], uptime: int) -> tuple[int, int]:
    """The least and the greatest wall time at this uptime, in ns."""
    place = bisect_left(points, (uptime,))
    near = [(p, abs(uptime - p.uptime) * DRIFT_PPM) for p in points[max(0, place - 1) : place + 1]]
    low, high = max(p.low - far for p, far in near), min(p.high + far for p, far in near)
    return low + uptime * MS, high + uptime * MS


def _finish(runs: Sequence[Run]) -> None:
    """Decide how the runs of a boot know their time, and count the wraps that are known."""
    nothing: list[Bound] = []
    before = accumulate(
        runs[:-1], lambda near, run: run.points[-1:] if run.trusted else near, initial=nothing
    )
    behind = accumulate(
        runs[:0:-1], lambda near, run: run.points[:1] if run.trusted else near, initial=nothing
    )
    wraps, known = 0, None
    for run, left, right in zip(runs, before, [*behind][::-1], strict=True):
        if run.trusted:
            run.kind = ANCHORED
        else:
            _place(run, [*left, *right])
        if run.kind == ANCHORED:
            offset = run.points[0].low + run.points[0].high
            wraps += 0 if known is None else max(0, round((offset - known) / (2 * WRAP)))
            known = offset
        run.wraps = wraps


def _place(run: Run, near: Sequence[Bound]) -> None:
    """A run without trusted anchors; `near` are the nearest bounds of others in its boot."""
    _, low, high = run.points[0]
    is_held = low > -NEVER // 2 and high < NEVER // 2
    fitting = [_with_wraps(run.points[0], one) for one in near] if is_held else []
    best = next((q for q in (NTP, HARVESTER, MESSAGE, RTC) if _agreeing(run, q)), 0)
    sure = [some[0] for some in fitting if len(some) == 1]
    around = walls(sure, run.first) if sure else (1, 0)
    if around[0] <= around[1]:
        run.kind, run.points = ANCHORED, sure
    elif best:
        run.kind = OWN if best == RTC else SUSPECT
        run.points = tightened(_agreeing(run, best))
    elif is_held and low <= high:
        run.kind = BETWEEN


def _with_wraps(held: Bound, near: Bound) -> list[Bound]:
    """Where this one is with each number of wraps that leaves it within the other; two are as
    good as more."""
    least, most = (held.low - near.high) // WRAP, (held.high - near.low) // WRAP + 1
    moved = map(near.later, range(least, min(most, least + 3) + 1))
    return [one for one in moved if not _excludes(held, one)]


def _excludes(held: Bound, one: Bound) -> bool:
    low, high = (wall - held.uptime * MS for wall in walls([one], held.uptime))
    return high < held.low or low > held.high
