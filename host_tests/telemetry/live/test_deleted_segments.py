"""The live source on a ring with missing numbers, as `--delete` may leave it: it reads all
segments, with few requests.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from host_tests.telemetry.harvest.recording import Recorder

from .driver import (
    BOARD,
    DRIVERS,
    Driver,
    Ring,
    goes_on,
    identities,
    recorder,
    said,
    written,
)

MANY = 300  # numbers that are missing, far more than a head may be wrong by


def skipped(board: Recorder, numbers: int = MANY) -> None:
    """So many segments were written and deleted since."""
    board.newest += numbers
    board.start()


def with_a_hole(numbers: int = MANY) -> Recorder:
    """Its first segment is not number 0, so that a head may tell of too many, too."""
    board = recorder(200, newest=499, size=512)
    skipped(board, numbers)
    goes_on(board, 200)
    return board


@DRIVERS
@pytest.mark.parametrize("numbers", [63, 64, MANY])
def test_unread_segments_below_a_hole_are_read(numbers: int, again: bool) -> None:
    board = recorder(20)
    driver = Driver()
    first = driver.plan({})
    before = written(board)
    goes_on(board, 300)
    skipped(board, numbers)
    driver = Driver() if again else driver
    assert identities(driver.rows(first, driver.plan(first))) == written(board) - before


def test_a_new_driver_reads_all_and_requests_missing_numbers_once(read: list[int]) -> None:
    board = with_a_hole()
    driver = Driver()
    first = driver.plan({})
    assert identities(driver.rows({}, first)) == written(board)
    for _ in range(3):
        before = written(board)
        goes_on(board, 50)
        board.start()
        read.clear()
        second = driver.plan(first)
        assert len(read) < 20
        assert identities(driver.rows(first, second)) == written(board) - before
        first = second


def test_an_emptied_ring_may_use_the_numbers_of_a_hole() -> None:
    """The board was emptied, and its segments have the numbers of the hole by now."""
    board = with_a_hole()
    driver = Driver()
    first = driver.plan({})
    board.segments.clear()
    board.newest = 499
    board.start()
    goes_on(board, 200)
    assert 502 < board.newest < 500 + MANY
    rows = driver.rows(first, driver.plan(first))
    assert identities([row for row in rows if not row["reason"]]) == written(board)


@pytest.mark.parametrize("first", [-400, MANY], ids=["too low", "too high"])
def test_a_wrong_first_segment_loses_nothing_below_a_hole_that_is_known(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = with_a_hole()
    driver = Driver()
    planned = driver.plan({})
    goes_on(board, 1)
    said(monkeypatch, first=first)
    driver.plan(planned)
    assert identities(driver.rows({}, planned)) >= written(board) - {(2, board.next - 1)}


@pytest.mark.parametrize("missing", [5, 63])
def test_segments_below_a_hole_are_read_though_the_oldest_was_overwritten(
    missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head still tells of it. There are two holes, which are not counted together."""
    board = with_a_hole(missing)
    skipped(board, missing)
    said(monkeypatch, first=-1)
    driver = Driver()
    assert identities(driver.rows({}, driver.plan({}))) == written(board)


def test_a_low_first_segment_does_not_change_the_oldest_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = recorder(400, newest=499, size=512)
    driver = Driver()
    driver.plan({})
    lost = [board.segments.pop(number) for number in sorted(board.segments)[:3]]
    goes_on(board, 1)
    said(monkeypatch, first=-400)
    planned = driver.plan({})
    assert len(lost) == 3 and planned[BOARD][2:] == [1, min(seq for _, seq in written(board))]


def test_a_high_first_segment_does_not_cause_all_requests_again(
    monkeypatch: pytest.MonkeyPatch, read: list[int]
) -> None:
    board = recorder(2000, newest=499, size=512)
    driver = Driver()
    first = driver.plan({})
    assert len(board.segments) > 100
    for number in sorted(board.segments)[:3]:
        del board.segments[number]
    goes_on(board, 1)
    read.clear()
    with monkeypatch.context() as patch:
        said(patch, first=board.newest - min(board.segments))
        assert identities(driver.rows(first, driver.plan(first))) == {(1, board.next - 1)}
        assert driver.plan({})[BOARD][2:] == [1, min(seq for _, seq in written(board))]
    assert len(read) < 20


def test_a_head_below_a_hole_does_not_change_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = with_a_hole()
    driver = Driver()
    first = driver.plan({})
    said(monkeypatch, segment=min(board.segments) - board.newest)
    assert driver.plan(first) == first
    assert identities(driver.rows({}, first)) == written(board)


@pytest.mark.parametrize(
    ("segment", "boot", "long_as"), [(0, 1, 10), (0, 1, 0), (1, 3, 2), (2, 3, 10), (2, 11, 2)]
)
def test_segments_of_old_boots_do_not_count_as_a_new_ring(
    segment: int, boot: int, long_as: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three stayed when the others were deleted, and a driver that begins has a head of them."""
    board = recorder(20)
    for number in range(10):
        board.start()
        goes_on(board, number)
    first = Driver().plan({})
    for number in range(3, 10):
        del board.segments[number]
    length = len(board.segments[long_as])
    head = replace(Ring().heads()[BOARD], segment=segment, boot=boot, length=length)
    with monkeypatch.context() as patch:
        patch.setattr(Ring, "heads", lambda _: {BOARD: head})
        assert Driver().plan(first) == first
    goes_on(board, 1)
    rows = Driver().rows(first, Driver().plan(first))
    assert identities(rows) == {(11, board.next - 1)}
