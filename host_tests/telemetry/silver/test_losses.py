"""Losses: which records are missing, and the reasons."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from slotmq_tools.harvest.segments import LOSS, TORN
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


def lost(*bad: tuple[int, int, int | None, str]) -> list[tuple[int, int, int | None, list[str]]]:
    """Where boot 1 has the numbers 0 to 20 without 5 to 8, and its GAP record says that 25 to 30
    were overwritten; with what is in quarantine."""
    frame = {"board": "aa", "boot": 1, "segment": 4, "ticks": 9, "type": 3, "flags": 1, "crc": 1,
             "payload": b"", "line": 0, "offset": 32}  # fmt: skip
    frames = [frame | {"seq": seq} for seq in range(20) if not 5 <= seq <= 8]
    frames.append(frame | {"seq": 20, "type": 5, "payload": LOSS.pack(1, 25, 6, 5)})
    names = ("boot", "first_seq", "last_seq", "reason")
    rows = [dict(zip(names, each, strict=True)) for each in bad]
    found = silver.of_board("aa", pa.Table.from_pylist(frames, BRONZE.schema), rows)["losses"]
    return [(row["boot"], row["first_seq"], row["last_seq"], row["reasons"])
            for row in found.to_pylist()]  # fmt: skip


def test_damage_explains_the_hole_in_which_it_begins() -> None:
    unexplained, overwritten = (1, 5, 8, ["unexplained"]), (1, 21, 30, ["overwritten"])
    assert lost() == [unexplained, overwritten]
    assert lost((1, 3, None, "bad CRC")) == [unexplained, overwritten], "another copy has it"
    assert lost((1, 5, None, TORN)) == [(1, 5, 8, ["quarantined"]), overwritten]
    assert lost((1, 7, 7, "QoS 3")) == [(1, 5, 8, ["quarantined"]), overwritten]
    both = (1, 21, 30, ["overwritten", "quarantined"])
    assert lost((1, 21, None, TORN)) == [unexplained, both]


def test_damage_at_the_end_of_a_boot_is_a_loss_unless_a_power_cut_tore_it() -> None:
    assert lost((1, 31, None, TORN))[1:] == [(1, 21, 30, ["overwritten"])]
    ends = (1, 21, None, ["overwritten", "quarantined"])
    assert lost((1, 31, None, "bad CRC"))[1:] == [ends]
    assert lost((1, 31, 40, "bad header CRC"))[1:] == [(1, 21, 40, ends[3])]


def test_a_boot_with_only_damaged_segments_is_a_loss_of_its_own() -> None:
    assert lost((3, 0, None, TORN))[2:] == [
        (3, 0, None, ["quarantined"]), (2, 0, None, ["unexplained"]),
    ]  # fmt: skip


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
