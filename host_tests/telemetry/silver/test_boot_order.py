"""Boots whose anchors contradict their order: the better kind of anchor is believed; of one kind,
none that contradicts another one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.telemetry.anchors import believed
from slotmq_tools.telemetry.boot_order import against, agreed
from slotmq_tools.telemetry.clock import Boot, Stretch

from .test_clock import DAY, HARVESTER, NOW, NTP, TOLD, anchor, boot
from .test_tick_wraps import PERIOD


def said(number: int, day: int, quality: int) -> Boot:
    """A boot of a day; it began on this one, as somebody says."""
    return boot(number, DAY, None, anchor(1, 0, NOW + day * DAY, quality))


def trusted(*boots: Boot) -> list[int]:
    return [boot.boot for boot in agreed(boots) if boot.trusted]


def test_boots_in_their_order_are_all_believed() -> None:
    kinds = (NTP, HARVESTER, TOLD)
    for some in permutations(kinds):
        boots = [said(i, 2 * i, kind) for i, kind in enumerate(some)]
        assert trusted(*boots) == [0, 1, 2]


def test_a_message_is_not_believed_against_ntp_or_a_harvester_on_either_side() -> None:
    for better in (NTP, HARVESTER):
        assert trusted(said(1, 0, better), said(2, -5, TOLD), said(3, 4, better)) == [1, 3]
        assert trusted(said(1, 0, better), said(2, 7, TOLD), said(3, 4, better)) == [1, 3]
        assert trusted(said(1, 0, better), said(2, 2, TOLD), said(3, 4, better)) == [1, 2, 3]


def test_nor_across_boots_without_anchors() -> None:
    days = boot(2, 3 * DAY, None)
    assert trusted(said(1, 0, NTP), days, said(3, 3, TOLD)) == [1]
    assert trusted(said(1, 0, NTP), days, said(3, 4, TOLD)) == [1, 3]


def test_clocks_that_leave_no_room_for_the_boots_between_contradict_each_other() -> None:
    """Three months are recorded between them, and the second says that it is two hours later."""
    between = [boot(i, 30 * DAY, None) for i in (2, 3, 4)]
    for quality in (NTP, HARVESTER, TOLD):
        for day, right in ((2, []), (90, []), (91, [1, 5])):
            assert trusted(said(1, 0, quality), *between, said(5, day, quality)) == right
        three = [said(0, -2, quality), said(1, 0, quality), *between, said(5, 2, quality)]
        assert trusted(*three) == []


def test_a_worse_anchor_of_a_boot_with_a_better_one_counts_too() -> None:
    """Behind a hole nobody else says what time it is: of two phones one is wrong."""
    ahead = replace(anchor(900, DAY, NOW + DAY + 3 * PERIOD, TOLD), stretch=1)
    for later, right in ((5, []), (50, [900])):
        first = Boot(1, (
            Stretch(0, 1000, None, (anchor(1, 0, NOW, NTP),)), Stretch(DAY, DAY, None, (ahead,)),
        ))  # fmt: skip
        found = agreed([first, said(2, later, TOLD)])
        assert [a.seq for a in found[0].trusted] == [1, *right]
        assert bool(found[1].trusted) == bool(right)


def test_of_two_equal_contradicting_boots_neither_is_believed() -> None:
    assert trusted(said(1, 0, TOLD), said(2, 9, TOLD), said(3, 4, TOLD)) == [1]
    assert trusted(said(1, 5, NTP), said(2, 0, NTP)) == []


def test_a_worse_anchor_counts_if_the_better_one_is_not_believed() -> None:
    """Of a boot that has both; the harvester's clock was years ahead."""
    one = anchor(1, 0, NOW + 2 * DAY, TOLD)
    both = boot(2, DAY, None, one, anchor(3, 1000, NOW + 900 * DAY, HARVESTER))
    found = agreed([said(1, 0, NTP), both, said(3, 4, NTP)])
    assert [a.seq for a in found[1].trusted] == [1]


def test_of_one_kind_all_that_a_wrong_clock_contradicts_bound_nothing() -> None:
    """A phone that is behind by most of a year comes by last, first, or between. Nobody knows
    which are wrong, and those are "suspect"."""
    for quality in (TOLD, HARVESTER, NTP):
        right = [said(i, 2 * i, quality) for i in range(1, 101)]
        assert trusted(*right) == [*range(1, 101)]
        for wrong in (said(101, -300, quality), said(0, 300, quality)):
            assert trusted(*sorted([*right, wrong], key=lambda one: one.boot)) == []
        between = [*right[:49], said(50, 150, quality), *right[50:]]
        assert trusted(*between) == [*range(1, 50), 100]


def test_repeated_anchors_of_a_boot_count_once() -> None:
    """One message of a phone that is 40 days ahead, told anew in each of five segments, against
    one that is right."""
    hour = 3_600_000
    wrong = [
        anchor(1 + 100 * i, at, NOW + 40 * DAY + at, TOLD, 500 + at // 10_000)
        for i, at in enumerate(range(0, hour, hour // 5))
    ]
    right = boot(2, hour, None, anchor(1, 0, NOW + 2 * hour, TOLD, 500))
    for several in (wrong, wrong[:1]):
        assert trusted(boot(1, hour, None, *several), right) == []
        assert trusted(said(0, -2, TOLD), boot(1, hour, None, *several), right) == [0]


def test_kinds_that_the_format_does_not_know_are_not_believed() -> None:
    for kind in (0, 5, 9, 255):
        assert trusted(said(1, 0, NTP), said(2, 9, kind), said(3, 4, TOLD)) == [1, 3]
        both = boot(1, DAY, None, anchor(1, 0, NOW + 9 * DAY, kind), anchor(2, 5, NOW, TOLD))
        assert [a.seq for a in agreed([both])[0].trusted] == [2]
        assert believed([anchor(1, 0, NOW, kind)]) == []


SPANS = st.tuples(st.integers(0, 30), st.integers(-6, 6))


@given(st.lists(SPANS, max_size=8))
def test_against_are_those_that_contradict_another_one(drawn: list[tuple[int, int]]) -> None:
    spans = [(begun, begun + lasts) for begun, lasts in drawn]
    pairs = combinations(range(len(spans)), 2)
    assert against(spans) == {i for a, b in pairs if spans[a][1] > spans[b][0] for i in (a, b)}
