"""Boots of any length with right and wrong clocks: no two times contradict what was recorded
between them, and right clocks alone are all believed.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from slotmq_tools.telemetry.anchors import DRIFT_PPM, MS
from slotmq_tools.telemetry.bounds import SUSPECT, UNKNOWN
from slotmq_tools.telemetry.clock import Boot
from slotmq_tools.telemetry.own_clock import clocks

from .test_clock import DAY, NOW, NTP, RTC, TOLD, anchor, boot

LATE = NOW + 900 * DAY
LIVED = st.tuples(
    st.sampled_from((20, 1)),  # days from the start of one boot to that of the next
    st.sampled_from((TOLD, None, RTC, TOLD, None, RTC, NTP)),
    st.sampled_from((9, 0, -9, 25)),  # days by which its clock is wrong
)
Lived = tuple[int, int | None, int]


def lived(boots: list[Lived], *, right: bool = False) -> list[Boot]:
    """Each lasts for as long as it could, but an hour."""
    begun, made = NOW, []
    for number, (days, kind, wrong) in enumerate(boots):
        said = begun + (0 if right else wrong * DAY)
        told = () if kind is None else (anchor(1, 0, said, kind, 10, LATE),)
        made.append(boot(number, days * DAY - 3_600_000, LATE, *told))
        begun += days * DAY
    return made


def ends(boots: list[Boot]) -> list[tuple[int, int] | None]:
    """When each began at the latest and ended at the earliest, if that is told."""
    found = []
    for one, piece in zip(boots, (p for p in clocks(boots)[0] if p.passed == 0), strict=True):
        first, last = piece.at(0), piece.at(one.last)
        is_told = first and last and piece.kind not in (UNKNOWN, SUSPECT)
        found.append((first[1], last[0]) if first and last and is_told else None)
    return found


@settings(max_examples=400)
@given(st.lists(LIVED, max_size=8))
def test_times_leave_room_for_what_was_recorded_between(drawn: list[Lived]) -> None:
    boots = lived(drawn)
    reached: int | None = None
    for one, told in zip(boots, ends(boots), strict=True):
        if told is not None:
            assert reached is None or reached <= told[0]
            reached = max(told[1], reached or 0)
        elif reached is not None:
            reached += one.last * (MS - DRIFT_PPM)


@given(st.lists(LIVED, max_size=8))
def test_right_clocks_are_all_believed(drawn: list[Lived]) -> None:
    boots = lived(drawn, right=True)
    assert {boot for boot, _ in clocks(boots)[1]} == {one.boot for one in boots if one.anchors}
