"""The work of silver's clocks and losses grows linearly, counted in function calls. A year of
recording makes 157,000 segments, with an anchor in each.
"""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from slotmq_telemetry import silver
from slotmq_telemetry.harvest.segments import LOSS
from slotmq_telemetry.schemas import BRONZE

from .test_clock import BOARD, HARVESTER, NTP, RTC, TOLD, boot

FEW, MANY = 400, 1600
HOUR = 1 / 24
Rows = list[dict[str, Any]]


def calls(frames: Rows) -> int:
    """How many functions written in Python, and generators, were entered or gone on with."""
    rows, count = pa.Table.from_pylist(frames, BRONZE.schema), 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        silver.of_board(BOARD, rows, [])
    finally:
        sys.setprofile(None)
    return count


def mixed(count: int) -> Rows:
    """Anchors of every kind in one stretch, some of which contradict others."""
    random = Random(1)
    return boot(1, (0, count * HOUR, *(
        (random.choice((1, 2, 4)), i * HOUR + random.randint(-900, 900) / 86_400_000, i * HOUR,
         random.randrange(2000)) for i in range(count)
    )))  # fmt: skip


def boots(count: int, kinds: tuple[int, ...]) -> Rows:
    """Each with one anchor."""
    return [row for i in range(count)
            for row in boot(i, (0, HOUR / 60, (kinds[i % len(kinds)], i * HOUR)))]  # fmt: skip


def stretches(count: int, kinds: tuple[int, ...]) -> Rows:
    """A boot whose every second stretch has an anchor."""
    return boot(1, *(
        (i * HOUR, HOUR / 2, *([(kinds[i % len(kinds)], i * HOUR)] if i % 2 else ()))
        for i in range(count)
    ))  # fmt: skip


def overwritten(count: int) -> Rows:
    """A ring that was overwritten or full all the time, and harvested now and then."""
    rows = [row for i in range(count // 2) for row in boot(1, (i * HOUR, HOUR / 2))]
    for i, row in enumerate(rows):
        size, kind = ((50, 1), (0xFFFFFFFF, 2))[i % 2]
        told = {"payload": LOSS.pack(1, 25 * i, size, i), "type": 5, "flags": kind}
        row |= {"seq": 100 * i, "offset": 100 * i, **told}
    return rows


WORK: dict[str, Any] = {
    "mixed": mixed,
    "losses": overwritten,
    **{f"{made.__name__} {kinds}": lambda count, made=made, kinds=kinds: made(count, kinds)
       for made in (boots, stretches) for kinds in ((RTC,), (NTP,), (RTC, TOLD, HARVESTER, NTP))},
}  # fmt: skip


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_work_is_linear(work: Any) -> None:
    """Four times the data make less than five times the calls; squared they were sixteen."""
    assert calls(work(MANY)) < 5 * calls(work(FEW))


def test_boots_far_apart_are_one_loss() -> None:
    """A ring that was formatted begins with a random boot: up to 2**28 lie between."""
    near, far = (calls([*boot(5, (0, 1)), *boot(last, (0, 1))]) for last in (2**15, 2**28))
    assert abs(near - far) < 50  # the collector calls functions, too
