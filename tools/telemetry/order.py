"""Whether the boots of one board's life are in the order of their numbers, by their anchors.

The better kind first, as in a boot. An anchor that lies before what better ones of the boots in
front of its own allow, or after what those behind it and the harvest do, is not gone by. Where
boots contradict each other by anchors of the same kind, nobody knows which is wrong: neither is
gone by. A board's own clock is left to own.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .believing import MS, RTC, Anchor
from .bounds import Piece
from .clock import Boot, lives, pieces, span

Span = tuple[int, int] | None  # when something begins at the latest and ends at the earliest


def agreed(boots: Sequence[Boot]) -> list[Boot]:
    """The boots of a board, with the anchors that their clocks do not go by."""
    return [boot for life in lives(boots) for boot in _of_life(life)]


def _of_life(boots: Sequence[Boot]) -> list[Boot]:
    kinds = {a.quality for boot in boots for a in boot.anchors if a.quality > RTC}
    found = [replace(boot, unfit=frozenset(a.seq for a in boot.anchors)) for boot in boots]
    for quality in sorted(kinds, reverse=True):
        found = _with(found, quality)
    return found


def _with(boots: list[Boot], quality: int) -> list[Boot]:
    """The same, where the clocks go by the anchors of one more kind."""
    clock = {p.where: p for p in pieces(boots)} if any(b.trusted for b in boots) else {}
    more = []
    for boot in boots:
        fit = {
            anchor.seq
            for where, anchor in anchors_of(boot)
            if anchor.quality == quality and not (clock and contradicts(clock[where], anchor))
        }
        more.append(replace(boot, unfit=boot.unfit - fit) if fit else boot)
    both = [*zip(boots, more, strict=True)]
    wrong = disordered([None if old.trusted else span(new) for old, new in both])
    return [old if i in wrong else new for i, (old, new) in enumerate(both)]


def anchors_of(boot: Boot) -> Iterator[tuple[tuple[int, int, int], Anchor]]:
    """Its anchors, and which piece of its clock each is in."""
    passed = 0
    for i, stretch in enumerate(boot.stretches):
        for anchor in stretch.anchors:
            passed += 1
            yield (boot.boot, i, passed), anchor


def contradicts(piece: Piece, anchor: Anchor) -> bool:
    """It is outside of the bounds that are known without it."""
    low, high = piece.bounds(anchor.uptime)
    now = anchor.uptime * MS
    return (low is not None and anchor.high + now < low) or (
        high is not None and anchor.low + now > high
    )


def disordered(spans: Sequence[Span]) -> set[int]:
    """Those that begin before one in front of them has ended, and those it is that have not."""
    wrong: set[int] = set()
    ended: int | None = None
    for i, one in enumerate(spans):
        if one is not None:
            if ended is not None and one[0] < ended:
                wrong.add(i)
            ended = one[1] if ended is None else max(ended, one[1])
    begun: int | None = None
    for i, one in reversed([*enumerate(spans)]):
        if one is not None:
            if begun is not None and one[1] > begun:
                wrong.add(i)
            begun = one[0] if begun is None else min(begun, one[0])
    return wrong
