"""A board's own clock, which may be wrong by months: it changes no other boot's time, and times
that rest on it are marked "own". Clocks that contradict others as good as they are "suspect".
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.telemetry.anchors import MS, Anchor
from slotmq_tools.telemetry.bounds import ANCHORED, BETWEEN, OWN, SUSPECT, UNKNOWN, Piece
from slotmq_tools.telemetry.clock import Boot, Stretch
from slotmq_tools.telemetry.own_clock import clocks

from .test_clock import DAY, NOW, NTP, RTC, TOLD, anchor
from .test_tick_wraps import HOUR, PERIOD

LATE = NOW + 100 * DAY  # the harvest


def began(boot: int, day: float, quality: int = RTC, harvested: int = LATE) -> Boot:
    """A boot that lasted for a day, and began on this one by its own clock."""
    error = 60_000 if quality == RTC else 10
    said = anchor(1, 0, NOW + int(day * DAY), quality, error, harvested)
    return Boot(boot, (Stretch(0, DAY, harvested, (said,)),))


def silent(boot: int) -> Boot:
    return Boot(boot, (Stretch(0, DAY // 2, LATE),))


def behind_a_hole(boot: int, *, at: int = 5 * DAY, said: Anchor | None = None) -> Stretch:
    return Stretch(at, at + DAY, NOW + 3 * PERIOD + 7 * DAY, (said,) if said else ())


def piece(boots: list[Boot], boot: int, stretch: int = 0) -> Piece:
    """That of the stretch's end."""
    return [p for p in clocks(boots)[0] if (p.boot, p.stretch) == (boot, stretch)][-1]


def wall(boots: list[Boot], boot: int, uptime: int = 0, stretch: int = 0) -> tuple[float, float]:
    """Its bounds, as days."""
    low, high = piece(boots, boot, stretch).at(uptime) or (0, 0)
    return (low / MS - NOW) / DAY, (high / MS - NOW) / DAY


def believed(boots: list[Boot]) -> list[int]:
    return sorted({boot for boot, _ in clocks(boots)[1]})


def test_without_better_clocks_the_own_clock_counts_as_own() -> None:
    for boots in ([began(1, 0)], [began(1, 0), began(2, 3), began(3, 4)]):
        assert {p.kind for p in clocks(boots)[0]} == {OWN}
        assert believed(boots) == [boot.boot for boot in boots]
        low, high = wall(boots, 1)
        assert low < 0 < high < low + 0.002


def test_an_own_clock_against_better_neighbours_is_not_believed() -> None:
    for day in (-298, 0.5, 4.5, 30):
        boots = [began(6, 0, NTP), began(7, day), began(8, 4, NTP)]
        assert believed(boots) == [6, 8]
        assert [piece(boots, boot).kind for boot in (6, 7, 8)] == [ANCHORED, BETWEEN, ANCHORED]
        low, high = wall(boots, 7)
        assert 0.99 < low < 2 < high < 3.01
    assert believed([began(6, 0, NTP), began(7, 2), began(8, 4, NTP)]) == [6, 7, 8]


def test_an_own_clock_after_its_harvest_is_not_believed() -> None:
    assert believed([began(1, 101)]) == []
    behind = Boot(2, (Stretch(0, DAY, NOW + 10 * DAY),))
    assert believed([began(1, 9.5), behind]) == []
    assert believed([began(1, 7), behind]) == [1]


def test_a_saved_clock_that_is_days_late_is_marked_own() -> None:
    """Nobody can see it: it stood still while the board was off."""
    boots = [began(1, 0), began(2, 1.01), began(3, 6, NTP)]
    assert [piece(boots, boot).kind for boot in (1, 2, 3)] == [OWN, OWN, ANCHORED]


def test_a_stretch_behind_a_hole_is_not_bounded_by_the_next_boots_own_clock() -> None:
    """Three wraps are in the hole; the next boot's clock is behind by weeks, or right."""
    known = anchor(3, 1000, NOW + 1000)
    for day in (50, 8, 20):
        boots = [
            Boot(6, (Stretch(0, DAY, NOW + DAY, (known,)), behind_a_hole(6))),
            began(7, day),
        ]
        low, high = wall(boots, 6, 5 * DAY, stretch=1)
        assert piece(boots, 6, 1).kind == BETWEEN
        assert low < 5 + 3 * PERIOD / DAY < high


def test_a_stretch_before_a_hole_is_not_bounded_by_the_boot_befores_own_clock() -> None:
    told = Anchor(900, 5 * DAY, NTP, NOW + 3 * PERIOD + 5 * DAY, 10, LATE, 1)
    for ahead in (0, 20, 37, 50):
        boots = [
            began(5, -2 + ahead),
            Boot(6, (Stretch(0, DAY, LATE), behind_a_hole(6, said=told))),
        ]
        assert [piece(boots, 6, i).kind for i in (0, 1)] == [UNKNOWN, ANCHORED]


def test_a_boot_without_any_clock_is_not_bounded_by_one() -> None:
    for back in (0, 2, 2.9):
        boots = [began(1, 0, NTP), silent(2), began(3, 5 - back)]
        low, high = wall(boots, 2)
        assert piece(boots, 2).kind == BETWEEN
        assert low < 4 < high
        assert high > 99 - 0.51
    assert piece([began(1, 0), silent(2), began(3, 5, NTP)], 2).kind == UNKNOWN


def test_own_clocks_that_contradict_each_other_are_both_suspect_and_others_are_not() -> None:
    boots = [began(1, 0), began(2, 9), began(3, 5), began(4, 20)]
    assert believed(boots) == [1, 4]
    assert [piece(boots, boot).kind for boot in (1, 2, 3, 4)] == [OWN, SUSPECT, SUSPECT, OWN]
    assert wall(boots, 2)[0] < 9 < wall(boots, 2)[1]
    far = [began(1, 9), began(10_002, 0)]
    assert believed(far) == [1, 10_002]


def test_own_clocks_that_leave_no_room_for_the_boots_between_are_both_suspect() -> None:
    between = [Boot(i, (Stretch(0, 30 * DAY, LATE),)) for i in (2, 3)]
    for day, right in ((2, []), (60.9, []), (61.1, [1, 4])):
        assert believed([began(1, 0), *between, began(4, day)]) == right


def test_beside_a_better_anchor_an_own_clock_adds_nothing() -> None:
    """Without it, the bounds at the end of the day were the same."""
    told = anchor(3, 1000, NOW + 1000, TOLD, 5000)
    for wrong, seqs in ((0, [1, 3]), (HOUR, [3]), (-HOUR, [3])):
        own = anchor(1, 0, NOW + wrong, RTC, 1000)
        boot = Boot(1, (Stretch(0, DAY, LATE, (own, told)),))
        assert sorted(seq for _, seq in clocks([boot])[1]) == seqs
        low, high = piece([boot], 1).at(1000) or (0, 0)
        assert high - low == 2 * (told.high - told.offset)
        assert piece([boot], 1).kind == ANCHORED


def test_an_own_clock_says_nothing_across_a_hole() -> None:
    said = anchor(1, 0, NOW, RTC, 60_000)
    boot = Boot(1, (Stretch(0, DAY, LATE, (said,)), behind_a_hole(1)))
    assert [piece([boot], 1, i).kind for i in (0, 1)] == [OWN, UNKNOWN]


def test_an_own_clock_after_a_later_anchor_of_its_boot_is_not_believed() -> None:
    """Nobody knows how long before a hole it was, yet it was before what lies behind it."""
    told = Anchor(900, 10 * HOUR, NTP, NOW, 10, LATE, 1)
    for day, kind in ((30, UNKNOWN), (0.1, UNKNOWN), (-20, OWN)):
        for quality in (RTC, TOLD):
            said = anchor(1, 0, NOW + int(day * DAY), quality, 60_000, LATE)
            stretches = Stretch(0, HOUR, LATE, (said,)), Stretch(9 * HOUR, DAY, LATE, (told,))
            boots = [Boot(1, stretches)]
            if quality == RTC:
                assert [piece(boots, 1, i).kind for i in (0, 1)] == [kind, ANCHORED]
                assert (1, 1) in clocks(boots)[1] or kind == UNKNOWN
            assert ((1, 1) in clocks(boots)[1]) == (day == -20 and quality == RTC)
            assert piece(boots, 1).at(0) is None or kind == OWN


def test_an_own_clock_is_not_believed_if_a_better_one_is_after_its_harvest() -> None:
    """A phone was five days ahead; what lies across the hole from it has no time."""
    told = anchor(1, 0, NOW + 5 * DAY, TOLD, 10, LATE)
    for wall in (1.1, -20, 4):
        said = Anchor(900, DAY, RTC, NOW + int(wall * DAY), 60_000, NOW + 2 * DAY, 1)
        fetched = Stretch(DAY, DAY + HOUR, NOW + 2 * DAY, (said,))
        boots = [Boot(1, (Stretch(0, HOUR, LATE, (told,)), fetched))]
        assert [piece(boots, 1, i).kind for i in (0, 1)] == [ANCHORED, UNKNOWN]
        assert (1, 900) not in clocks(boots)[1]


def test_boots_that_contradict_each_other_have_their_times_as_they_stand() -> None:
    """A phone that is months behind comes by last; the boot before it has nobody's time."""
    boots = [*(began(i, 2 * i, TOLD) for i in (1, 2, 3)), silent(4), began(5, -300, TOLD)]
    assert believed(boots) == []
    assert [piece(boots, i).kind for i in range(1, 6)] == [
        SUSPECT, SUSPECT, SUSPECT, UNKNOWN, SUSPECT,
    ]  # fmt: skip
    for boot, day in ((1, 2), (2, 4), (5, -300)):
        low, high = wall(boots, boot)
        assert low < day < high < low + 0.001
    kinds = [piece([*boots, began(6, 20, NTP)], i).kind for i in range(1, 7)]
    assert kinds == [SUSPECT, SUSPECT, SUSPECT, UNKNOWN, SUSPECT, ANCHORED]
    known = [began(0, 0, NTP), *boots]  # against which the phone is wrong, and nobody else
    assert [piece(known, i).kind for i in range(6)] == [*[ANCHORED] * 4, BETWEEN, BETWEEN]


@given(
    st.lists(st.sampled_from((RTC, NTP, None)), min_size=1, max_size=6),
    st.lists(st.floats(-60, 60), min_size=6, max_size=6),
)
def test_own_clocks_never_change_better_times(kinds: list[int | None], wrong: list[float]) -> None:
    boots, without = [], []
    for i, kind in enumerate(kinds):
        day = 2 * i + (wrong[i] if kind == RTC else 0)
        boots.append(silent(i) if kind is None else began(i, day, kind))
        without.append(Boot(i, (Stretch(0, boots[-1].last, LATE),)) if kind == RTC else boots[-1])
    known = {p.boot: p.at(0) for p in clocks(without)[0] if p.passed == 0}
    for one in clocks(boots)[0]:
        if one.kind not in (OWN, SUSPECT):
            assert one.at(0) == known[one.boot]
