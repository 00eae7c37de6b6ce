"""Which anchors to trust if, by their anchors, the boots of a board are not in numeric order.

The better kind first, as in a boot. An anchor that lies before what better ones of the boots in
front of its own allow, or after what those behind it and the harvest do, is not gone by. Where
boots contradict each other by anchors of the same kind, nobody knows which are wrong, and none of
them bounds the others: own_clock.py takes their times as they stand, as "suspect".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .anchors import MS, NTP, RTC, Anchor
from .bounds import Piece
from .clock import Boot, lives, pieces, span

Span = tuple[int, int]  # when something begins at the latest and ends at the earliest


def against(spans: Sequence[Span]) -> set[int]:
    """Those that leave another one no room: begin before one in front of them has ended, or end
    after one behind them has begun."""
    found: set[int] = set()
    reached: int | None = None
    for i, (begun, ended) in enumerate(spans):
        found |= {i} if reached is not None and begun < reached else set()
        reached = ended if reached is None else max(reached, ended)
    reached = None
    for i, (begun, ended) in reversed([*enumerate(spans)]):
        found |= {i} if reached is not None and ended > reached else set()
        reached = begun if reached is None else min(reached, begun)
    return found


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
            for where, anchor in anchors_of(boot)
            if anchor.quality == quality and not (clock and contradicts(clock[where], anchor))
        }
        more.append(replace(boot, unfit=boot.unfit - fit) if fit else boot)
    there = {i: one for i, one in enumerate(_spans(more)) if one and more[i] is not boots[i]}
    places = [*there]
    wrong = {places[i] for i in against([*there.values()])}
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
