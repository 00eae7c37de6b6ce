"""Boots whose anchors contradict the order of their numbers: the better kind is believed."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.telemetry.clock import Boot
from slotmq_tools.telemetry.order import Span, agreed, disordered

from .test_clock import DAY, HARVESTER, NOW, NTP, TOLD, anchor, boot


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


def test_nor_across_boots_of_which_nothing_is_known() -> None:
    days = boot(2, 3 * DAY, None)
    assert trusted(said(1, 0, NTP), days, said(3, 3, TOLD)) == [1]
    assert trusted(said(1, 0, NTP), days, said(3, 4, TOLD)) == [1, 3]


def test_of_two_alike_neither_is_believed() -> None:
    assert trusted(said(1, 0, TOLD), said(2, 9, TOLD), said(3, 4, TOLD)) == [1]
    assert trusted(said(1, 5, NTP), said(2, 0, NTP)) == []


def test_what_is_worse_is_asked_where_the_better_is_not_believed() -> None:
    """Of a boot that has both; the harvester's clock was years ahead."""
    one = anchor(1, 0, NOW + 2 * DAY, TOLD)
    both = boot(2, DAY, None, one, anchor(3, 1000, NOW + 900 * DAY, HARVESTER))
    found = agreed([said(1, 0, NTP), both, said(3, 4, NTP)])
    assert [a.seq for a in found[1].trusted] == [1]


@given(st.lists(st.none() | st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=8))
def test_the_disordered_are_those_of_some_pair(drawn: list[tuple[int, int] | None]) -> None:
    spans: list[Span] = [one and (one[0], one[0] + one[1]) for one in drawn]
    pairs = [
        (i, k)
        for i, one in enumerate(spans)
        for k, other in enumerate(spans)
        if i < k and one and other and one[1] > other[0]
    ]
    assert disordered(spans) == {i for pair in pairs for i in pair}
