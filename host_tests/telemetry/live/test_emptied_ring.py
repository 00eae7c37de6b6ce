"""The live source on a ring that was emptied by hand, which continues its boots and restarts its
segment numbers; and on one whose newest segment cannot be read.
"""

from __future__ import annotations

import pytest

from .driver import (
    BOARD,
    DRIVERS,
    Driver,
    Ring,
    goes_on,
    good,
    identities,
    numbers,
    recorder,
    written,
)

CUTS = pytest.mark.parametrize("length", [0, 9])


@pytest.mark.parametrize("messages", [0, 5, 20, 300])
def test_an_emptied_ring_is_read_from_its_beginning(messages: int) -> None:
    """Its newest segment may have the number that the newest had before, or a later one."""
    board = recorder(20)
    driver = Driver()
    first = driver.plan({})
    board.segments.clear()
    board.newest = -1
    board.start()
    goes_on(board, messages)
    second = driver.plan(first)
    rows = driver.rows(first, second)
    assert [row["reason"] for row in rows if row["reason"]] == ["overwritten"]
    goes_on(board, 150)
    rows += driver.rows(second, driver.plan(second))
    assert good(rows) == numbers(board)
    assert len(rows) == 1 + len(numbers(board))


@CUTS
@DRIVERS
def test_an_unreadable_newest_segment_does_not_count_as_a_new_ring(
    length: int, again: bool
) -> None:
    """It is the only one of the last start."""
    board = recorder(300)
    board.start()
    goes_on(board, 5)
    driver = Driver()
    first = driver.plan({})
    board.segments[board.newest] = board.segments[board.newest][:length]
    driver = Driver() if again else driver
    second = driver.plan(first)
    assert second == first
    board.start()
    rows = driver.rows(second, driver.plan(second))
    assert identities(rows) == {(3, 0)}


@CUTS
def test_an_old_head_before_an_unreadable_segment_does_not_count_as_a_new_ring(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as the board told it then."""
    board = recorder(300)
    heads = Ring().heads()
    board.start()
    first = Driver().plan({})
    board.segments[board.newest] = board.segments[board.newest][:length]
    monkeypatch.setattr(Ring, "heads", lambda _: heads)
    assert Driver().plan(first) == first


@CUTS
@DRIVERS
def test_a_segment_that_has_just_begun_does_not_change_the_plan(length: int, again: bool) -> None:
    board = recorder(200)
    driver = Driver()
    planned = driver.plan({})
    board._segment()
    whole = board.segments[board.newest]
    board.segments[board.newest] = whole[:length]
    driver = Driver() if again else driver
    assert identities(driver.rows({}, planned)) == written(board)
    assert driver.plan({}) == planned
    board.segments[board.newest] = whole
    before = numbers(board)
    board.message("room/1", b"goes on")
    assert good(driver.rows(planned, driver.plan(planned))) == numbers(board) - before


def test_an_unreadable_ring_has_nothing_new() -> None:
    board = recorder(20)
    first = Driver().plan({})
    whole, board.segments[0] = board.segments[0], b""
    driver = Driver()
    assert driver.plan({}) == {} and driver.plan(first) == first
    board.segments[0] = whole
    board.message("room/1", b"goes on")
    assert driver.plan(first) == {BOARD: [1, first[BOARD][1] + 1]}
