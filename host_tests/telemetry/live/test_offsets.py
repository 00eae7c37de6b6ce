"""Offsets and plans of the live source, also after a kill: what was overwritten, or replaced by a
new ring, is named.
"""

from __future__ import annotations

import time
from typing import cast

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from host_tests.telemetry.harvest.recording import Recorder
from slotmq_tools.deploy.mqtt_client import Login
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest import network
from slotmq_tools.telemetry import ring_fetch
from slotmq_tools.telemetry.ring_fetch import Away
from slotmq_tools.telemetry.ring_index import UNKNOWN, Gap, Position, Renewed, RingIndex, lost

from .driver import BOARD, Driver, Ring, good, numbers, recorder


def test_a_repeated_first_batch_names_what_was_overwritten() -> None:
    board = recorder(400)
    before = numbers(board)
    end = Driver().plan({})
    board.keeps = 2
    for number in range(900):
        board.message("room/1", b"%d" % number)
    work = Driver().works({}, end)
    assert [each.gaps for each in work] == [[Gap(1, 0, len(before))]]
    assert good(Driver().rows({}, end)) == set()


def test_batches_follow_each_other_without_overlap() -> None:
    board = recorder(200)
    driver = Driver()
    first = driver.plan({}, ReadMaxRows(50))
    assert first == {BOARD: [1, 50, 1, 0]}
    second = driver.plan(first, ReadMaxRows(50))
    assert second == {BOARD: [1, 100]}
    found = driver.rows({}, first) + driver.rows(first, second)
    assert [row["seq"] for row in found] == list(range(100))
    last = driver.plan(second)
    assert driver.plan(last) == last and driver.works(last, last) == []
    assert last == {BOARD: [1, len(numbers(board))]}


def test_a_board_with_nothing_new_is_not_in_the_plan() -> None:
    board = recorder(20)
    first = Driver().plan({})
    other = Recorder("00000000000000bb")
    other.start()
    Ring.boards = (board, other)
    second = Driver().plan(first)
    assert second == {**first, other.name: [1, 1, 1, 0]}
    assert [work.board for work in Driver().works(first, second)] == [other.name]


@pytest.mark.parametrize("boot", [3, 5_000_000])
@pytest.mark.parametrize("again", [True, False], ids=["another driver", "the same"])
def test_a_ring_that_was_made_anew_is_read_from_its_beginning(boot: int, again: bool) -> None:
    recorder(300, boot=4710)
    driver = Driver()
    first = driver.plan({})
    fresh = recorder(100, boot=boot)
    driver = Driver() if again else driver
    second = driver.plan(first)
    rows = driver.rows(first, second)
    assert good(rows) == numbers(fresh)
    told = [(row["boot"], row["seq"], row["reason"]) for row in rows if row["reason"]]
    assert told == [
        (4711, first[BOARD][1], "overwritten"),
        (boot + 1, None, f"made anew: boot {boot + 1} follows boot 4711"),
    ]
    assert driver.plan(second) == second
    fresh.message("room/1", b"goes on")
    assert good(driver.rows(second, driver.plan(second))) == {max(numbers(fresh))}


def test_a_ring_that_was_made_anew_and_is_longer_already_is_read_from_its_beginning() -> None:
    recorder(100, boot=4710)
    driver = Driver()
    first = driver.plan({})
    fresh = recorder(900, boot=5_000_000)
    assert good(driver.rows(first, driver.plan(first))) == numbers(fresh)


def test_what_a_new_ring_has_overwritten_is_named_too() -> None:
    recorder(30, boot=4710)
    first = Driver().plan({})
    fresh = recorder(900, boot=2, keeps=2)
    second = Driver().plan(first)
    (work,) = Driver().works(first, second)
    assert work.gaps[1:] == [Renewed(4711, 3), Gap(3, 0, min(numbers(fresh)))]


@pytest.mark.parametrize("boot", [3, 5_000_000])
def test_a_planned_batch_of_a_replaced_ring_is_a_gap(boot: int) -> None:
    before = numbers(recorder(300, boot=4710))
    end = Driver().plan({})
    recorder(100, boot=boot)
    (work,) = Driver().works({}, end)
    assert (work.pieces, work.gaps) == ([], [Gap(4711, 0, len(before))])


def test_boots_far_apart_are_one_row() -> None:
    found = lost(Position(4, 9), Position(5_000_000, 7))
    assert found == [Gap(4, 9, UNKNOWN), Renewed(4, 5_000_000), Gap(5_000_000, 0, 7)]
    assert len(lost(Position(4, 9), Position(8, 7))) == 5


def test_an_update_that_fails_half_way_changes_nothing() -> None:
    board = recorder(400)
    index, ring = RingIndex(), cast(network.Ring, Ring())
    index.update(ring, ring.heads()[BOARD])
    before = index.pieces(Position(1, 0), index.end)
    for number in range(400):
        board.message("room/1", b"%d" % number)
    Ring.silent = frozenset({board.newest - 1})
    with pytest.raises(ToolError):
        index.update(ring, ring.heads()[BOARD])
    assert index.pieces(Position(1, 0), index.end) == before
    assert index.gaps(Position(1, 0), index.end) == []
    Ring.silent = frozenset()
    index.update(ring, ring.heads()[BOARD])
    assert index.end == Position(1, max(numbers(board)) + 1)


def test_a_planned_batch_waits_for_its_board() -> None:
    board = recorder(30)
    end = Driver().plan({})
    (work,) = Driver().works({}, end)
    Ring.boards = ()
    with pytest.raises(Away, match="nobody is there"):
        list(ring_fetch.frames(work, Login()))
    with pytest.raises(Away, match="nobody is there"):
        Driver().works({}, end)
    Ring.boards = (Recorder("00000000000000bb"),)
    Ring.boards[0].start()
    with pytest.raises(Away, match=f"board {BOARD} is not behind"):
        Driver().works({}, end)
    Ring.boards = (board,)
    assert good(Driver().rows({}, end)) == numbers(board)


def test_a_broker_must_answer_at_the_start_but_not_at_a_restart() -> None:
    with pytest.raises(ToolError, match="nobody is there"):
        Driver().plan({})
    assert Driver(waits="true").plan({BOARD: [1, 5]}) == {BOARD: [1, 5]}


@pytest.mark.parametrize("before", [True, False], ids=["in front of it", "behind it"])
def test_a_silent_board_delays_no_other_board(
    before: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    board, other = recorder(20), Recorder("00000000000000bb", newest=50)
    other.start()
    Ring.boards, Ring.silent = (other, board) if before else (board, other), frozenset({51})
    driver = Driver()
    for _ in range(2):
        assert set(driver.plan({})) == {BOARD}
    assert capsys.readouterr().err.startswith("no answer; ")
    Ring.silent = frozenset()
    assert set(driver.plan({})) == {BOARD}
    later = time.monotonic() + 121
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert set(driver.plan({})) == {BOARD, other.name}


def test_at_the_start_one_board_must_answer() -> None:
    board = recorder(20)
    Ring.silent = frozenset(board.segments)
    with pytest.raises(ToolError, match="no answer"):
        Driver().plan({})
