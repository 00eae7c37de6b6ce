"""A board's own clock (RTC): the time of records for which nothing better is known.

Nobody vouches for it: it may have been wrong by months all the while. So it bounds only the
stretch in which it was read, and says nothing of other stretches or boots. There it is gone by
as it stands, as "own", where no better anchor has a say, unless it contradicts what is known:
what those of other boots and the harvest leave room for, or the own clocks of other stretches.
Each boot read its own clock once, and told it anew in each stretch: so it has one vote. Of these
as many are believed as can agree, and where that leaves a choice, neither is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .anchors import RTC, Anchor, believed, is_possible
from .boot_order import agreed, anchors_of, contradicts
from .bounds import ANCHORED, OWN, Bound, Piece, tightened
from .chains import Span, outside
from .clock import Boot, lives, pieces

Where = tuple[int, int, int]  # a piece: boot, stretch and anchors that have passed
Believed = set[tuple[int, int]]  # boots and numbers of anchors


@dataclass(frozen=True)
class _Own:
    """The clock of a stretch without a better one."""

    boot: int
    stretch: int
    anchors: dict[int, Anchor]  # of the board's own clock, by their places among all of the boot
    first: int  # uptimes of the stretch, ms
    last: int

    @cached_property
    def _places(self) -> list[int]:
        return [*self.anchors]

    @cached_property
    def _bounds(self) -> list[Bound]:
        return tightened([*self.anchors.values()])

    def piece(self, other: Piece) -> Piece:
        """In place of another."""
        count = bisect_right(self._places, other.passed)
        before, after = self._bounds[count - 1 : count], self._bounds[count : count + 1]
        sides = (bound[0].later(other.wraps) if bound else None for bound in (before, after))
        return replace(other, before=next(sides), after=next(sides), kind=OWN)

    def span(self, boot: Boot, before: int) -> Span:
        """When it begins at the latest and ends at the earliest, without what was recorded at
        least in its boot and `before` that."""
        at = Piece(self.boot, self.stretch, 0, 0, None, None, OWN)
        _, begun = replace(at, after=self._bounds[0]).bounds(self.first)
        ended, _ = replace(at, before=self._bounds[-1]).bounds(self.last)
        assert begun is not None
        assert ended is not None
        return begun - before - boot.since(self.first), ended - before - boot.since(self.last)


def clocks(boots: Sequence[Boot]) -> tuple[list[Piece], Believed]:
    """The pieces of every boot of one board, and which anchors are believed."""
    boots = agreed(boots)
    trusted = {(boot.boot, anchor.seq) for boot in boots for anchor in boot.trusted}
    clock = {piece.where: piece for piece in pieces(boots)}
    owns: dict[tuple[int, int], _Own] = {}
    for life in lives(boots):
        found = [[*_of_boot(boot, clock, trusted)] for boot in life]
        owns |= {(own.boot, own.stretch): own for own in _agreeing(life, found)}
    trusted |= {(own.boot, a.seq) for own in owns.values() for a in own.anchors.values()}
    return [
        owns[where[:2]].piece(piece) if where[:2] in owns else piece
        for where, piece in clock.items()
    ], trusted


def _agreeing(life: Sequence[Boot], found: Sequence[Sequence[_Own]]) -> Iterator[_Own]:
    """Of each boot the stretches that agree, if those of other boots do; as in boot_order.py, what
    was recorded between them has room."""
    kept: list[tuple[list[_Own], Span]] = []
    before = 0
    for boot, owns in zip(life, found, strict=True):
        spans = [own.span(boot, before) for own in owns]
        good = sorted({*range(len(owns))} - outside(spans))
        if good:
            span = min(spans[i][0] for i in good), max(spans[i][1] for i in good)
            kept.append(([owns[i] for i in good], span))
        before += boot.since(boot.last)
    wrong = outside([span for _, span in kept])
    for i, (good_ones, _) in enumerate(kept):
        yield from () if i in wrong else good_ones


def _of_boot(boot: Boot, clock: dict[Where, Piece], trusted: Believed) -> Iterator[_Own]:
    """Its own clocks that contradict nothing better; where there is better, they are believed
    and add nothing to it."""
    fitting: dict[int, dict[int, Anchor]] = {}
    for where, anchor in anchors_of(boot):
        if anchor.quality <= RTC and is_possible(anchor) and not contradicts(clock[where], anchor):
            if clock[where].kind == ANCHORED:
                trusted.add((boot.boot, anchor.seq))
            else:
                fitting.setdefault(where[1], {})[where[2]] = anchor
    for i, found in fitting.items():
        chosen = {anchor.seq for anchor in believed([*found.values()])}
        anchors = {n: anchor for n, anchor in found.items() if anchor.seq in chosen}
        yield _Own(boot.boot, i, anchors, boot.stretches[i].first, boot.stretches[i].last)
