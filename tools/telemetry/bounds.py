"""Bounds of a board's clock, as pieces between anchors, and the bounds of a record's time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..harvest.segments import TICKS_PERIOD
from .anchors import DRIFT_PPM, MS, Anchor

ANCHORED, BETWEEN, UNKNOWN = "anchored", "between", "unknown"
OWN = "own"  # of the board's own clock, for which nobody vouches
SUSPECT = "suspect"  # of anchors that contradict others which are as good


@dataclass(frozen=True)
class Bound:
    """Bounds of the offset at one uptime; None is no bound."""

    uptime: int
    low: int | None
    high: int | None

    def later(self, wraps: int) -> Bound:
        """The same where uptimes are by so many wraps more."""
        apart = wraps * TICKS_PERIOD
        low, high = (None if at is None else at - apart * MS for at in (self.low, self.high))
        return Bound(self.uptime + apart, low, high)


@dataclass(frozen=True)
class Piece:
    """The nearest bounds around the records of a stretch that have `passed` anchors of their
    boot before them."""

    boot: int
    stretch: int
    passed: int
    wraps: int  # to be added to the uptimes
    before: Bound | None
    after: Bound | None
    kind: str

    @property
    def where(self) -> tuple[int, int, int]:
        return self.boot, self.stretch, self.passed

    def at(self, uptime: int) -> tuple[int, int] | None:
        """The least and the greatest wall time at this uptime, in ns."""
        low, high = self.bounds(uptime)
        return None if low is None or high is None or low > high else (low, high)

    def bounds(self, uptime: int) -> tuple[int | None, int | None]:
        """The same, though only one of them may be known, or they leave no room."""
        return walls((self.before, self.after), uptime + self.wraps * TICKS_PERIOD)


def walls(bounds: Iterable[Bound | None], uptime: int) -> tuple[int | None, int | None]:
    """The same that follows from these."""
    near = [(b, abs(uptime - b.uptime) * DRIFT_PPM) for b in bounds if b]
    now = uptime * MS
    lows = [now + b.low - spread for b, spread in near if b.low is not None]
    highs = [now + b.high + spread for b, spread in near if b.high is not None]
    return max(lows, default=None), min(highs, default=None)


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
