"""Wall time from anchors: which are believed, the size of the error, boots without anchors."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.telemetry.anchors import HARVEST_SLACK_MS, MS, ROUNDED, Anchor, believed
from slotmq_tools.telemetry.bounds import ANCHORED, BETWEEN, UNKNOWN, Piece, tightened
from slotmq_tools.telemetry.clock import Boot, Stretch, pieces

NOW = 1_780_000_000_000
RTC, TOLD, HARVESTER, NTP = 1, 2, 3, 4
DAY = 86_400_000


def anchor(
    seq: int,
    uptime: int,
    wall: int,
    quality: int = NTP,
    error: int = 10,
    harvested: int | None = None,
) -> Anchor:
    return Anchor(seq, uptime, quality, wall, error, harvested)


def boot(number: int, last: int, harvested: int | None, *anchors: Anchor) -> Boot:
    return Boot(number, (Stretch(0, last, harvested, anchors),))


def piece(boots: list[Boot], number: int, passed: int = 0) -> Piece:
    [found] = [p for p in pieces(boots) if (p.boot, p.passed) == (number, passed)]
    return found


def test_an_error_is_the_anchors_and_grows_with_the_distance_unless_another_is_near() -> None:
    far = 10_000_000  # 100 ppm of which are a second
    one, other = anchor(3, 0, NOW), anchor(9, far, NOW + far + 400)
    for anchors, uptime, wall, error in (
        ([one], 0, NOW, 10 * MS + ROUNDED),
        ([one], far, NOW + far, 1010 * MS + ROUNDED),
        ([one, other], far // 2, NOW + far // 2 + 200, 310 * MS + ROUNDED),
    ):
        found = piece([boot(1, far, None, *anchors)], 1, 1)
        low, high = found.at(uptime) or (0, 0)
        assert found.kind == ANCHORED
        assert ((low + high) // 2, (high - low) // 2) == (wall * MS, error)


def test_clocks_that_were_never_set_are_not_believed() -> None:
    for wall in (0, 946_684_800_000, 1_609_459_200_000):
        assert believed([anchor(1, 0, wall, RTC)]) == []


def test_only_ntp_may_be_later_than_the_harvest() -> None:
    late = NOW + HARVEST_SLACK_MS + 100
    assert believed([anchor(1, 0, late, TOLD, harvested=NOW)]) == []
    assert len(believed([anchor(1, 0, late, NTP, harvested=NOW)])) == 1
    assert len(believed([anchor(1, 0, NOW, TOLD, harvested=NOW)])) == 1


def test_a_boot_without_anchor_lies_between_its_neighbours() -> None:
    boots = [
        boot(1, 1000, None, anchor(1, 1000, NOW)),
        boot(2, 4000, None),
        boot(3, 1000, None, anchor(1, 0, NOW + 60_000)),
    ]
    found = piece(boots, 2)
    low, high = found.at(0) or (0, 0)
    assert found.kind == BETWEEN
    assert low == (NOW - 10) * MS - ROUNDED
    assert high == (NOW + 60_010) * MS + ROUNDED - 4000 * (MS - 100)


def test_the_last_boot_ends_before_its_harvest() -> None:
    boots = [boot(1, 1000, None, anchor(1, 1000, NOW)), boot(2, 4000, NOW + 9000)]
    _, high = piece(boots, 2).at(4000) or (0, 0)
    assert high == (NOW + 9000 + HARVEST_SLACK_MS) * MS


def test_without_anything_before_it_the_time_is_unknown() -> None:
    boots = [boot(1, 1000, NOW), boot(2, 1000, NOW, anchor(1, 0, NOW))]
    assert piece(boots, 1).kind == UNKNOWN
    assert piece(boots, 1).at(0) is None


def test_a_new_ring_with_random_boots_has_no_time_from_neighbours() -> None:
    """It goes on with a random boot, which may be higher or lower than those before."""
    far = 2**27
    boots = [
        boot(1, 1000, NOW, anchor(1, 1000, NOW)),
        boot(far, 4000, NOW + DAY),
        boot(far + 1, 1000, NOW + DAY, anchor(1, 0, NOW + 60_000)),
        boot(2 * far, 1000, NOW + DAY),
        boot(2 * far + 1, 1000, NOW + DAY, anchor(1, 0, NOW + 90_000)),
    ]
    assert [piece(boots, number).kind for number in (far, 2 * far)] == [UNKNOWN, UNKNOWN]
    near = [boots[0], replace(boots[1], boot=2), *boots[2:]]
    assert piece([*near[:2], replace(near[2], boot=3)], 2).kind == BETWEEN


def test_neighbours_that_leave_no_time_between_give_none() -> None:
    boots = [
        boot(1, 0, None, anchor(1, 0, NOW)),
        boot(2, DAY, None),
        boot(3, 0, None, anchor(1, 0, NOW + 1000)),
    ]
    assert piece(boots, 2).at(0) is None


@given(
    st.lists(
        st.tuples(
            st.integers(0, 10**7), st.integers(-2500, 2500), st.sampled_from((1, 2, 4)),
            st.sampled_from((5, 40, 900)),
        )
    )
)  # fmt: skip
def test_the_believed_are_those_that_agree_with_all_that_are_better(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    anchors = [
        anchor(i, uptime, NOW + uptime + off, quality, error)
        for i, (uptime, off, quality, error) in enumerate(sorted(drawn))
    ]
    chosen: list[Anchor] = []
    for one in sorted(anchors, key=lambda a: (-a.quality, a.error_ms, a.seq)):
        if all(
            abs(one.offset - other.offset)
            <= (one.error_ms + other.error_ms) * MS + 2 * ROUNDED
            + 100 * abs(one.uptime - other.uptime)
            for other in chosen
        ):  # fmt: skip
            chosen.append(one)
    assert {a.seq for a in believed(anchors)} == {a.seq for a in chosen}


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(-40, 40), st.sampled_from((5, 40)))))
def test_tightened_bounds_equal_those_of_all_pairs(drawn: list[tuple[int, int, int]]) -> None:
    anchors = believed(
        [
            anchor(i, uptime, NOW + uptime + off, error=error)
            for i, (uptime, off, error) in enumerate(sorted(drawn))
        ]
    )
    for here, bound in zip(anchors, tightened(anchors), strict=True):
        apart = [abs(other.uptime - here.uptime) * 100 for other in anchors]
        pairs = list(zip(anchors, apart, strict=True))
        assert bound.low == max(other.low - far for other, far in pairs)
        assert bound.high == min(other.high + far for other, far in pairs)
        assert bound.low <= bound.high
