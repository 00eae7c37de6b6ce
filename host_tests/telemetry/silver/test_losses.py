"""Losses: which records are missing, and the reasons."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.harvest.segments import LOSS
from slotmq_tools.telemetry import silver
from slotmq_tools.telemetry.losses import NO_SEGMENT, TO_THE_END, Hole, Loss, Told, losses
from slotmq_tools.telemetry.schemas import BRONZE


def told(boot: int, first: int, count: int, segment: int = NO_SEGMENT) -> Told:
    return Told(boot, first, count, "overwritten", segment)


def test_a_hole_without_gap_record_is_unexplained() -> None:
    assert losses([Hole(1, 5, 8)], {1: 20}, []) == [Loss(Hole(1, 5, 8), ["unexplained"], [])]


def test_a_hole_names_the_lost_segments() -> None:
    [loss] = losses([Hole(1, 0, 99)], {1: 200}, [told(1, 0, 40, 7), told(1, 40, 60, 8)])
    assert (loss.reasons, loss.segments) == (["overwritten"], [7, 8])


def test_what_was_harvested_before_it_was_overwritten_is_no_loss() -> None:
    assert losses([], {1: 200}, [told(1, 0, 40, 7)]) == []


def test_a_gap_record_names_losses_after_the_last_record() -> None:
    [loss] = losses([], {1: 9}, [told(1, 12, 3), told(1, 20, 5)])
    assert loss.hole == Hole(1, 10, 24)


def test_a_boot_known_from_gap_records_is_lost_from_its_first_number() -> None:
    found = losses([], {2: 5}, [told(1, 3, 4, 9)])
    assert found == [Loss(Hole(1, 0, 6), ["overwritten"], [9])]


def test_a_ring_that_was_full_loses_to_the_end_or_until_there_are_records_again() -> None:
    full = Told(1, 10, TO_THE_END, "ring full", NO_SEGMENT)
    assert losses([], {1: 9}, [full]) == [Loss(Hole(1, 10, None), ["ring full"], [])]
    assert losses([Hole(1, 10, 30)], {1: 99}, [full]) == [Loss(Hole(1, 10, 30), ["ring full"], [])]
    both = [full, told(1, 10, 5)]
    assert [loss.hole for loss in losses([], {1: 9}, both)] == [Hole(1, 10, None)]
    assert [loss.hole for loss in losses([], {1: 9}, both[::-1])] == [Hole(1, 10, None)]


def test_a_hole_after_a_damaged_segment_is_explained_by_quarantine() -> None:
    hole = Hole(1, 5, 8)
    assert losses([hole], {1: 20}, [], {(1, 5)}) == [Loss(hole, ["quarantined"], [])]
    assert losses([hole], {1: 20}, [told(1, 7, 1, 3)], {(1, 5)}) == [
        Loss(hole, ["overwritten", "quarantined"], [3])
    ]
    assert losses([], {1: 20}, [told(1, 30, 1)], {(1, 21)}) == [
        Loss(Hole(1, 21, 30), ["overwritten", "quarantined"], [])
    ]


def test_damage_alone_makes_no_hole_behind_the_last_record() -> None:
    """The last record of a boot is torn as often as a board loses its power."""
    assert losses([], {1: 20}, [], {(1, 21)}) == []


@pytest.mark.parametrize(
    ("segment", "reasons"), [(3, ["overwritten"]), (4, ["overwritten", "quarantined"])]
)
def test_numbers_behind_the_last_record_are_lost_by_damage_there(
    segment: int, reasons: list[str]
) -> None:
    """That of an earlier segment has nothing to do with them."""
    frame = {"board": "aa", "boot": 1, "segment": 4, "ticks": 9, "type": 3, "flags": 1, "crc": 1,
             "payload": b"", "line": 0, "offset": 32}  # fmt: skip
    frames = [frame | {"seq": seq} for seq in range(20)]
    frames.append(frame | {"seq": 20, "type": 5, "payload": LOSS.pack(1, 25, 6, 5)})
    torn = {"board": "aa", "boot": 1, "segment": segment, "seq": None}
    found = silver.of_board("aa", pa.Table.from_pylist(frames, BRONZE.schema), [torn])
    [loss] = found["losses"].to_pylist()
    assert (loss["first_seq"], loss["last_seq"], loss["reasons"]) == (21, 30, reasons)


def test_a_boot_with_only_damaged_segments_is_a_loss_of_its_own() -> None:
    assert losses([], {1: 5, 5: 5}, [], {(3, 0)}) == [
        Loss(Hole(3, 0, None), ["quarantined"], []),
        Loss(Hole(2, 0, None), ["unexplained"], []),
        Loss(Hole(4, 0, None), ["unexplained"], []),
    ]
    assert losses([], {}, [], {(7, 0)}) == [Loss(Hole(7, 0, None), ["quarantined"], [])]


def test_a_boot_without_any_trace_is_lost_without_a_number() -> None:
    assert losses([], {1: 5, 3: 5}, []) == [Loss(Hole(2, 0, None), ["unexplained"], [])]
    assert losses([], {}, []) == []


def test_consecutive_boots_without_any_trace_are_one_loss() -> None:
    far = 5 + 2**28
    assert losses([], {1: 5, 5: 5, far: 5}, [told(3, 0, 4, 9), told(6, 0, 0)]) == [
        Loss(Hole(3, 0, 3), ["overwritten"], [9]),
        Loss(Hole(2, 0, None, 1), ["unexplained"], []),
        Loss(Hole(4, 0, None, 1), ["unexplained"], []),
        Loss(Hole(6, 0, None, 2**28 - 1), ["unexplained"], []),
    ]


@given(st.lists(st.integers(0, 60), unique=True), st.lists(st.tuples(*[st.integers(0, 9)] * 3)))
def test_explanations_equal_those_of_all_pairs(
    numbers: list[int], drawn: list[tuple[int, int, int]]
) -> None:
    """Numbers that are there, and losses that are told in every order and overlap."""
    every = [
        Told(1, 7 * first, TO_THE_END if count == 9 else 4 * count, "told", segment)
        for first, count, segment in drawn
    ]
    there = sorted(numbers)
    holes = [Hole(1, a + 1, b - 1) for a, b in pairwise([-1, *there]) if b - a > 1]
    found = losses(holes, {1: there[-1]} if there else {}, every)
    assert {loss.hole for loss in found} >= set(holes)
    for loss in found:
        end = loss.hole.last if loss.hole.last is not None else TO_THE_END
        assert loss.segments == sorted({
            one.segment
            for one in every
            if max(one.first, loss.hole.first) < min(one.first + one.count, end + 1)
        })  # fmt: skip
