"""The work of silver's clocks and losses grows linearly, counted in function calls. A year of
recording makes 157,000 segments, with an anchor in each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random

import pytest

from slotmq_tools.telemetry.anchors import Anchor, believed
from slotmq_tools.telemetry.clock import Boot, Stretch
from slotmq_tools.telemetry.losses import Hole, Told, losses
from slotmq_tools.telemetry.own_clock import clocks

NOW = 1_780_000_000_000
HOUR = 3_600_000
FEW, MANY = 400, 1600


def calls(work: Callable[[], object]) -> int:
    """How many functions written in Python, and generators, were entered or gone on with."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def is_linear(work: Callable[[int], Callable[[], object]]) -> bool:
    """Four times the data make less than five times the calls; squared they were sixteen."""
    return calls(work(MANY)) < 5 * calls(work(FEW))


def rising(count: int) -> list[Anchor]:
    """One an hour, each with a little more error than the one before."""
    return [Anchor(i, i * HOUR, 4, NOW + i * HOUR, 50 + i, None) for i in range(count)]


def mixed(count: int) -> list[Anchor]:
    """Of every kind, and some contradict others."""
    random = Random(1)
    return [
        Anchor(i, i * HOUR, random.choice((1, 2, 4)), NOW + i * HOUR + random.randint(-900, 900),
               random.randrange(2000), None)
        for i in range(count)
    ]  # fmt: skip


def holed(count: int) -> list[Anchor]:
    """Each behind a hole, in which the ticks have begun anew unseen."""
    period = 2**30
    return [
        Anchor(i, i * HOUR, 4, NOW + i * (HOUR + period), 50 + i, None, i) for i in range(count)
    ]


@pytest.mark.parametrize("anchors", [rising, mixed, holed])
def test_believing_anchors_is_linear(anchors: Callable[[int], list[Anchor]]) -> None:
    assert is_linear(lambda count: lambda: believed(anchors(count)))


KINDS = [(1,), (4,), (1, 2, 3, 4)]  # anchors of a board's own clock, of NTP, of all


def said(count: int, i: int, kinds: tuple[int, ...], stretch: int = 0) -> Anchor:
    return Anchor(10 * i, stretch * HOUR, kinds[i % len(kinds)], NOW - (count - i) * HOUR, 60_000,
                  NOW, stretch)  # fmt: skip


@pytest.mark.parametrize("kinds", KINDS)
def test_solving_boots_is_linear(kinds: tuple[int, ...]) -> None:
    """Each with one anchor."""
    assert is_linear(lambda count: lambda: clocks([
        Boot(i, (Stretch(0, 60_000, NOW, (said(count, i, kinds),)),)) for i in range(count)
    ]))  # fmt: skip


@pytest.mark.parametrize("kinds", KINDS)
def test_solving_stretches_is_linear(kinds: tuple[int, ...]) -> None:
    """A boot whose every second stretch has an anchor."""
    assert is_linear(lambda count: lambda: clocks([Boot(1, tuple(
        Stretch(i * HOUR, i * HOUR + HOUR // 2, NOW, (said(count, i, kinds, i),) if i % 2 else ())
        for i in range(count)
    ))]))  # fmt: skip


def test_explaining_holes_is_linear() -> None:
    """Of a ring that was overwritten all the time and harvested now and then."""

    def some(count: int) -> Callable[[], object]:
        told = [Told(1, 50 * i, 50, "overwritten", i) for i in range(count)]
        told += [Told(1, 50 * i, 0xFFFFFFFF, "ring full", 0xFFFFFFFF) for i in range(count)]
        holes = [Hole(1, 200 * i + 50, 200 * i + 149) for i in range(count // 4)]
        return lambda: losses(holes, {1: 50 * count}, told)

    assert is_linear(some)


def test_boots_far_apart_are_one_loss() -> None:
    """A ring that was formatted begins with a random boot: up to 2**28 lie between."""

    def apart(distance: int) -> Callable[[], object]:
        return lambda: losses([], {5: 10, 5 + distance: 3}, [])

    assert calls(apart(2**28)) == calls(apart(100))
