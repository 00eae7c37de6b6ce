"""What is missing, and what is known of why."""

from __future__ import annotations

from slotmq_tools.telemetry.losses import NO_SEGMENT, TO_THE_END, Hole, Loss, Told, losses


def told(boot: int, first: int, count: int, segment: int = NO_SEGMENT) -> Told:
    return Told(boot, first, count, "overwritten", segment)


def test_a_hole_of_which_nobody_tells_is_unexplained() -> None:
    assert losses([Hole(1, 5, 8)], {1: 20}, []) == [Loss(Hole(1, 5, 8), ["unexplained"], [])]


def test_a_hole_names_the_segments_that_went() -> None:
    [loss] = losses([Hole(1, 0, 99)], {1: 200}, [told(1, 0, 40, 7), told(1, 40, 60, 8)])
    assert (loss.reasons, loss.segments) == (["overwritten"], [7, 8])


def test_what_was_harvested_before_it_was_overwritten_is_no_loss() -> None:
    assert losses([], {1: 200}, [told(1, 0, 40, 7)]) == []


def test_numbers_behind_the_last_record_are_lost_as_far_as_is_told() -> None:
    [loss] = losses([], {1: 9}, [told(1, 12, 3), told(1, 20, 5)])
    assert loss.hole == Hole(1, 10, 24)


def test_a_boot_that_is_only_told_of_is_lost_from_its_first_number() -> None:
    found = losses([], {2: 5}, [told(1, 3, 4, 9)])
    assert found == [Loss(Hole(1, 0, 6), ["overwritten"], [9])]


def test_a_ring_that_was_full_loses_to_the_end_or_until_there_are_records_again() -> None:
    full = Told(1, 10, TO_THE_END, "ring full", NO_SEGMENT)
    assert losses([], {1: 9}, [full]) == [Loss(Hole(1, 10, None), ["ring full"], [])]
    assert losses([Hole(1, 10, 30)], {1: 99}, [full]) == [Loss(Hole(1, 10, 30), ["ring full"], [])]
    both = [full, told(1, 10, 5)]
    assert [loss.hole for loss in losses([], {1: 9}, both)] == [Hole(1, 10, None)]
    assert [loss.hole for loss in losses([], {1: 9}, both[::-1])] == [Hole(1, 10, None)]


def test_a_boot_that_nobody_tells_of_is_lost_without_a_number() -> None:
    assert losses([], {1: 5, 3: 5}, []) == [Loss(Hole(2, 0, None), ["unexplained"], [])]
    assert losses([], {}, []) == []
