"""Which anchors bound a board's boots, and times that are taken as they stand: "own", "suspect".

The better kind of anchor first. One that lies before what better ones of the boots in front of
its own allow, or after what those behind it and the harvest do, is not believed. Where boots
contradict each other by anchors of one kind, nobody knows which are wrong (unless clocks.toml says
so): none of them bounds the others. Their times count in their own stretch alone, as "suspect".

So do those of a board's own clock (RTC), which may have been wrong by months.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .anchors import MS, NTP, RTC, Anchor, believed, is_possible
from .bounds import ANCHORED, OWN, SUSPECT, Piece, tightened
from .clock import Boot, lives, pieces, span

Where = tuple[int, int, int]  # a piece: boot, stretch and anchors that have passed
Believed = set[tuple[int, int]]  # boots and numbers of anchors
Span = tuple[int, int]  # when something begins at the latest and ends at the earliest


def clocks(boots: Sequence[Boot]) -> tuple[list[Piece], Believed]:
    """The pieces of every boot of one board, and which anchors are believed."""
    boots = agreed(boots)
    trusted = {(boot.boot, anchor.seq) for boot in boots for anchor in boot.trusted}
    clock = {piece.where: piece for piece in pieces(boots)}
    of_stretch: dict[tuple[int, int], list[Piece]] = defaultdict(list)
    for piece in clock.values():
        of_stretch[piece.boot, piece.stretch].append(piece)
    for boot in boots:
        alone: dict[int, dict[int, Anchor]] = {}  # by stretch, and by how many were before
        for where, anchor in _anchors_of(boot):
            if is_possible(anchor) and not _contradicts(clock[where], anchor):
                if clock[where].kind != ANCHORED:
                    alone.setdefault(where[1], {})[where[2]] = anchor
                elif anchor.quality == RTC:
                    trusted.add((boot.boot, anchor.seq))  # it adds nothing
        for stretch, told in alone.items():
            fitting = {anchor.seq for anchor in believed([*told.values()])}
            told = {n: anchor for n, anchor in told.items() if anchor.seq in fitting}
            is_own = all(anchor.quality == RTC for anchor in told.values())
            trusted |= {(boot.boot, seq) for seq in fitting if is_own}
            there = _as_told(of_stretch[boot.boot, stretch], told, OWN if is_own else SUSPECT)
            clock |= {piece.where: piece for piece in there}
    return [*clock.values()], trusted


def _as_told(there: Sequence[Piece], told: dict[int, Anchor], kind: str) -> Iterator[Piece]:
    """Pieces that go by these anchors of their own stretch alone."""
    places, bounds = [*told], tightened([*told.values()])
    for piece in there:
        count = bisect_right(places, piece.passed)
        around = (bounds[count - 1 : count], bounds[count : count + 1])
        before, after = (side[0].later(piece.wraps) if side else None for side in around)
        yield replace(piece, before=before, after=after, kind=kind)


def agreed(boots: Sequence[Boot]) -> list[Boot]:
    """The boots of a board, with the anchors that their clocks do not go by."""
    return [boot for life in lives(boots) for boot in _of_life(life)]


def _of_life(boots: Sequence[Boot]) -> list[Boot]:
    kinds = {a.quality for boot in boots for a in boot.anchors if RTC < a.quality <= NTP}
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
            for where, anchor in _anchors_of(boot)
            if anchor.quality == quality and not (clock and _contradicts(clock[where], anchor))
        }
        more.append(replace(boot, unfit=boot.unfit - fit) if fit else boot)
    there = {i: one for i, one in enumerate(_spans(more)) if one and more[i] is not boots[i]}
    wrong = {[*there][i] for i in against([*there.values()])}
    return [boots[i] if i in wrong else new for i, new in enumerate(more)]


def _spans(boots: Sequence[Boot]) -> Iterator[Span | None]:
    """Theirs, without what all boots in front have recorded at least: so that two agree only if
    those between them, of which no time may be known, have room."""
    before = 0
    for boot in boots:
        behind = before + boot.since(boot.last)
        known = span(boot)
        yield known and (known[0] - before, known[1] - behind)
        before = behind


def against(spans: Sequence[Span]) -> set[int]:
    """Those that leave another one no room: begin before one in front of them has ended, or end
    after one behind them has begun."""
    found: set[int] = set()
    reached = -math.inf
    for i, (begun, ended) in enumerate(spans):
        found |= {i} if begun < reached else set()
        reached = max(reached, ended)
    reached = math.inf
    for i, (begun, ended) in reversed([*enumerate(spans)]):
        found |= {i} if ended > reached else set()
        reached = min(reached, begun)
    return found


def _anchors_of(boot: Boot) -> Iterator[tuple[Where, Anchor]]:
    """Its anchors, and which piece of its clock each is in."""
    passed = 0
    for i, stretch in enumerate(boot.stretches):
        for anchor in stretch.anchors:
            passed += 1
            yield (boot.boot, i, passed), anchor


def _contradicts(piece: Piece, anchor: Anchor) -> bool:
    """It is outside of the bounds that are known without it."""
    low, high = piece.bounds(anchor.uptime)
    now = anchor.uptime * MS
    return (low is not None and anchor.high + now < low) or (
        high is not None and anchor.low + now > high
    )
