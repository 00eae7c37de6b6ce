"""The work of silver's clocks and losses grows linearly, counted in function calls. A year of
recording makes 157,000 segments, with an anchor in each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Any

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


def anchors(kind: str, count: int) -> list[Anchor]:
    """One an hour: each with a little more error than the one before, of every kind so that some
    contradict others, or each behind a hole in which the ticks have begun anew unseen."""
    random, period = Random(1), 2**30 if kind == "holed" else 0
    return [
        Anchor(i, i * HOUR, random.choice((1, 2, 4)), NOW + i * HOUR + random.randint(-900, 900),
               random.randrange(2000), None)
        if kind == "mixed" else
        Anchor(i, i * HOUR, 4, NOW + i * (HOUR + period), 50 + i, None, i if period else 0)
        for i in range(count)
    ]  # fmt: skip


def said(count: int, i: int, kinds: tuple[int, ...], stretch: int = 0) -> Anchor:
    return Anchor(10 * i, stretch * HOUR, kinds[i % len(kinds)], NOW - (count - i) * HOUR, 60_000,
                  NOW, stretch)  # fmt: skip


def boots(kinds: tuple[int, ...], count: int) -> list[Boot]:
    """Each with one anchor."""
    return [Boot(i, (Stretch(0, 60_000, NOW, (said(count, i, kinds),)),)) for i in range(count)]


def stretches(kinds: tuple[int, ...], count: int) -> list[Boot]:
    """A boot whose every second stretch has an anchor."""
    return [Boot(1, tuple(
        Stretch(i * HOUR, i * HOUR + HOUR // 2, NOW, (said(count, i, kinds, i),) if i % 2 else ())
        for i in range(count)
    ))]  # fmt: skip


def overwritten(count: int) -> object:
    """The losses of a ring that was overwritten all the time and harvested now and then."""
    told = [Told(1, 50 * i, 50, "overwritten", i) for i in range(count)]
    told += [Told(1, 50 * i, 0xFFFFFFFF, "ring full", 0xFFFFFFFF) for i in range(count)]
    holes = [Hole(1, 200 * i + 50, 200 * i + 149) for i in range(count // 4)]
    return lambda: losses(holes, {1: 50 * count}, told)


KINDS = (1,), (4,), (1, 2, 3, 4)  # anchors of a board's own clock, of NTP, of all
WORK: dict[str, Any] = {
    **{kind: lambda count, kind=kind: lambda: believed(anchors(kind, count))
       for kind in ("rising", "mixed", "holed")},
    **{f"{made.__name__} {kinds}": lambda count, made=made, kinds=kinds: (
        lambda: clocks(made(kinds, count))) for made in (boots, stretches) for kinds in KINDS},
    "losses": overwritten,
}  # fmt: skip


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_work_is_linear(work: Any) -> None:
    """Four times the data make less than five times the calls; squared they were sixteen."""
    assert calls(work(MANY)) < 5 * calls(work(FEW))


def test_boots_far_apart_are_one_loss() -> None:
    """A ring that was formatted begins with a random boot: up to 2**28 lie between."""
    near, far = (calls(lambda boot=b: losses([], {5: 10, boot: 3}, [])) for b in (105, 2**28))  # type: ignore[misc]
    assert near == far
