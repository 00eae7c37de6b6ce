"""Holes in which the ticks may have wrapped unseen: when the number of wraps is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.telemetry.anchors import MS, Anchor, believed
from slotmq_tools.telemetry.bounds import ANCHORED, BETWEEN, UNKNOWN
from slotmq_tools.telemetry.clock import Boot, Stretch, pieces

from .test_clock import DAY, NOW, NTP, TOLD, anchor

HOUR = 3_600_000
PERIOD = 2**30  # ms: the ticks begin anew
DAYS = 0, 20, 60  # the first hole hides one wrap, the second three
EXACT = [(12, 0)]


def holed(harvested: int | None, *stretches: list[tuple[int, int]], quality: int = NTP) -> Boot:
    """A boot that began NOW. Each stretch has a record every hour of one day from some day on,
    by its first time, and these anchors: at which hour, and how wrong."""
    seq, seen, made = 0, 0, []
    for i, (day, anchors) in enumerate(zip(DAYS, stretches, strict=False)):
        start = day * DAY
        seen += (start - seen) % PERIOD
        own = tuple(
            Anchor(
                seq + at, seen + at * HOUR, quality, NOW + start + at * HOUR + wrong, 10, None, i
            )
            for at, wrong in anchors
        )
        made.append(Stretch(seen, seen + DAY, harvested, own))
        seq, seen = seq + 100, seen + DAY
    return Boot(1, tuple(made))


def times(boot: Boot, stretch: int, *others: Boot) -> tuple[int, int]:
    """Bounds of the first record's wall time in ms since NOW."""
    found = next(p for p in pieces([*others, boot]) if (p.boot, p.stretch) == (1, stretch))
    low, high = found.at(boot.stretches[stretch].first) or (0, 0)
    return low // MS - NOW, high // MS - NOW


def kinds(boot: Boot, stretch: int, *others: Boot) -> set[str]:
    every = pieces([*others, boot])
    return {p.kind for p in every if (p.boot, p.stretch) == (1, stretch)}


def test_anchors_on_both_sides_of_a_hole_give_the_number_of_wraps() -> None:
    boot = holed(None, EXACT, EXACT, EXACT)
    assert [anchor.seq for anchor in boot.trusted] == [12, 112, 212]
    for i, day in enumerate(DAYS):
        low, high = times(boot, i)
        assert low <= day * DAY <= high
        assert high - low < 10_000
    shown = {p.stretch: p.wraps for p in pieces([boot])}
    seen = [stretch.first + shown[i] * PERIOD for i, stretch in enumerate(boot.stretches)]
    assert seen == [day * DAY for day in DAYS]


def test_a_clock_that_fits_no_number_of_wraps_is_not_believed() -> None:
    wrong = holed(None, EXACT, [(12, 3 * DAY)], quality=TOLD)
    assert [anchor.seq for anchor in wrong.trusted] == [12]
    assert kinds(wrong, 1) == {UNKNOWN}


def test_a_clock_that_fits_several_numbers_of_wraps_is_not_believed() -> None:
    vague = anchor(9, DAY, NOW + DAY, error=13 * DAY)
    exact = anchor(1, 0, NOW)
    assert believed([exact, vague]) == [exact, vague]
    assert believed([exact, replace(vague, stretch=1)]) == [exact]


def test_a_stretch_between_two_that_agree_is_as_if_there_was_no_hole() -> None:
    """20 days in, and 22 and 23: none of them is a wrap."""
    first, second = holed(None, EXACT, EXACT).stretches
    third = replace(second, first=second.first + 3 * DAY, last=second.last + 3 * DAY, anchors=(
        Anchor(300, second.first + 3 * DAY, NTP, NOW + 23 * DAY, 10, None, 3),
    ))  # fmt: skip
    between = Stretch(second.last + HOUR, second.last + 2 * HOUR, None)
    boot = Boot(1, (first, second, between, third))
    low, high = times(boot, 2)
    assert low <= 21 * DAY + HOUR <= high
    assert high - low < 40_000
    assert kinds(boot, 2) == {ANCHORED}


def test_a_stretch_between_two_that_do_not_agree_may_be_anywhere_between() -> None:
    boot = holed(None, EXACT, [], EXACT)
    low, high = times(boot, 1)
    assert low <= 20 * DAY - PERIOD + 9000
    assert high >= 20 * DAY + 2 * PERIOD - 9000
    assert kinds(boot, 1) == {BETWEEN}


def test_the_harvest_limits_the_number_of_wraps() -> None:
    """By the ticks it is day 7.6, 20, 32.4 or later."""
    assert kinds(holed(None, EXACT, []), 1) == {UNKNOWN}
    low, high = times(holed(NOW + 34 * DAY, EXACT, []), 1)
    assert low <= 20 * DAY - PERIOD < 20 * DAY + PERIOD <= high < low + 2 * PERIOD + 600_000
    low, high = times(holed(NOW + 10 * DAY, EXACT, []), 1)
    assert low <= 20 * DAY - PERIOD <= high < low + 200_000


def test_before_the_first_anchor_the_previous_boot_limits_the_wraps() -> None:
    """The anchor is of day 20; by the ticks, the hole took 6.6 days, 19 or more."""
    boot = holed(None, [], EXACT)
    assert kinds(boot, 0) == {UNKNOWN}
    for day, error in ((-1, PERIOD), (1, 0)):
        before = Boot(0, (Stretch(0, HOUR, None, (anchor(1, 0, NOW + day * DAY),)),))
        low, high = times(boot, 0, before)
        assert low <= PERIOD - error <= PERIOD <= high < low + error + 600_000
    wrong = Boot(0, (Stretch(0, HOUR, None, (anchor(1, 0, NOW + 30 * DAY),)),))
    assert kinds(boot, 0, wrong) == {UNKNOWN}


@given(
    st.lists(
        st.tuples(
            st.integers(0, 30), st.integers(0, 10**7), st.integers(-2500, 2500),
            st.sampled_from((1, 2, 4)), st.sampled_from((5, 40, 900)),
        ), max_size=12,
    )
)  # fmt: skip
def test_the_believed_are_those_that_agree_in_their_true_order(
    drawn: list[tuple[int, int, int, int, int]],
) -> None:
    """As if every wrap was seen, though each period is a stretch of its own and none is."""
    true, shown, seen = [], [], 0
    for i, (period, ms, off, quality, error) in enumerate(sorted(drawn)):
        uptime = period * PERIOD + ms
        true.append(anchor(i, uptime, NOW + uptime + off, quality, error))
        seen += (uptime - seen) % PERIOD
        shown.append(replace(true[-1], uptime=seen, stretch=period))
    assert {a.seq for a in believed(shown)} == {a.seq for a in believed(true)}


def test_wraps_never_go_back() -> None:
    """An anchor that were true by one wrap less than the stretch before it has is false."""
    for first, second in product((0, 2), (-1, 0, 1)):
        one = anchor(1, 0, NOW)
        two = replace(anchor(2, HOUR, NOW + HOUR + first * PERIOD), stretch=1)
        three = anchor(3, DAY, NOW + DAY + (first + second) * PERIOD, TOLD)
        found = believed([one, two, replace(three, stretch=2)])
        assert [a.seq for a in found] == [1, 2, 3][: 2 + (second >= 0)]
        assert [a.wraps for a in found] == [0, first, first + second][: len(found)]
