"""Times that are taken as they stand, where nothing better is known: "own" and "suspect".

Nobody vouches for a board's own clock (RTC): it may have been wrong by months all the while. So it
bounds only the stretch in which it was read, and says nothing of other stretches or boots. The
same is true of anchors of a better kind that contradict others of the same kind.
What contradicts better knowledge is not used at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .anchors import RTC, Anchor, believed, is_possible
from .boot_order import Span, against, agreed, anchors_of, contradicts
from .bounds import ANCHORED, OWN, SUSPECT, Bound, Piece, tightened
from .clock import Boot, lives, pieces

Where = tuple[int, int, int]  # a piece: boot, stretch and anchors that have passed
Believed = set[tuple[int, int]]  # boots and numbers of anchors


@dataclass(frozen=True)
class _Own:
    """What a stretch says of its own time."""

    boot: int
    stretch: int
    anchors: dict[int, Anchor]  # by their places among all of the boot
    first: int  # uptimes of the stretch, ms
    last: int

    @cached_property
    def _places(self) -> list[int]:
        return [*self.anchors]

    @cached_property
    def _bounds(self) -> list[Bound]:
        return tightened([*self.anchors.values()])

    @property
    def is_rtc(self) -> bool:
        """Nobody but the board's own clock says so."""
        return all(anchor.quality == RTC for anchor in self.anchors.values())

    def piece(self, other: Piece, kind: str) -> Piece:
        """In place of another."""
        count = bisect_right(self._places, other.passed)
        before, after = self._bounds[count - 1 : count], self._bounds[count : count + 1]
        sides = (bound[0].later(other.wraps) if bound else None for bound in (before, after))
        return replace(other, before=next(sides), after=next(sides), kind=kind)

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
    stated: dict[tuple[int, int], tuple[_Own, str]] = {}
    for life in lives(boots):
        for own, kind in _of_life(life, clock, trusted):
            stated[own.boot, own.stretch] = own, kind
            if kind == OWN:
                trusted |= {(own.boot, anchor.seq) for anchor in own.anchors.values()}
    return [
        stated[where[:2]][0].piece(piece, stated[where[:2]][1]) if where[:2] in stated else piece
        for where, piece in clock.items()
    ], trusted


def _of_life(
    life: Sequence[Boot], clock: dict[Where, Piece], trusted: Believed
) -> Iterator[tuple[_Own, str]]:
    """The stretches that say something of their own time, and the kind of clock that it is."""
    found: list[_Own] = []
    spans: list[tuple[_Own, Span]] = []
    before = 0
    for boot in life:
        here = [*_of_boot(boot, clock, trusted)]
        spans += [(own, own.span(boot, before)) for own in here if own.is_rtc]
        found += here
        before += boot.since(boot.last)
    wrong = against([span for _, span in spans])
    right = [own for i, (own, _) in enumerate(spans) if i not in wrong]
    believed_ones = {(own.boot, own.stretch) for own in right}
    for own in found:
        yield own, OWN if (own.boot, own.stretch) in believed_ones else SUSPECT


def _of_boot(boot: Boot, clock: dict[Where, Piece], trusted: Believed) -> Iterator[_Own]:
    """What contradicts nothing better, in stretches without a better clock; where there is one,
    own clocks are believed and add nothing to it."""
    fitting: dict[int, dict[int, Anchor]] = {}
    for where, anchor in anchors_of(boot):
        if is_possible(anchor) and not contradicts(clock[where], anchor):
            if clock[where].kind != ANCHORED:
                fitting.setdefault(where[1], {})[where[2]] = anchor
            elif anchor.quality == RTC:
                trusted.add((boot.boot, anchor.seq))
    for i, found in fitting.items():
        chosen = {anchor.seq for anchor in believed([*found.values()])}
        anchors = {n: anchor for n, anchor in found.items() if anchor.seq in chosen}
        yield _Own(boot.boot, i, anchors, boot.stretches[i].first, boot.stretches[i].last)
