"""The live source under wrong, old or forged heads: it reads nothing twice, and no existing record
counts as lost.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from host_tests.telemetry.harvest.recording import Recorder, head
from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import ring_source
from slotmq_tools.telemetry.ring_fetch import Away

from .driver import BOARD, Driver, Ring, identities, recorder, said, written


def four_starts() -> Recorder:
    board = recorder(20)
    for _ in range(3):
        board.start()
        for number in range(20):
            board.message("room/1", b"%d" % number)
    return board


WRONG = [
    {"boot": -3}, {"boot": 5000}, {"segment": -2}, {"segment": -2, "boot": -2}, {"segment": 3},
    {"length": -90}, {"first": 50, "segment": 50},
]  # fmt: skip


@pytest.mark.parametrize("more", WRONG, ids=str)
@pytest.mark.parametrize("again", [True, False], ids=["another driver", "the same"])
def test_a_wrong_head_plans_nothing_again(
    more: dict[str, int], again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = four_starts()
    driver = Driver()
    first = driver.plan({})
    board.message("room/1", b"a batch of its own")
    first = driver.plan(first)
    driver = Driver() if again else driver
    with monkeypatch.context() as patch:
        said(patch, **more)
        assert driver.plan(first) == first
    before = written(board)
    board.message("room/1", b"goes on")
    rows = driver.rows(first, driver.plan(first))
    assert identities(rows) == written(board) - before


@pytest.mark.parametrize("more", WRONG[:-1], ids=str)
def test_under_a_wrong_head_a_batch_is_planned_again_unchanged(
    more: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    board = four_starts()
    planned = Driver().plan({})
    said(monkeypatch, **more)
    assert identities(Driver().rows({}, planned)) == written(board)


def test_a_batch_waits_while_the_head_names_nothing_that_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = four_starts()
    planned = Driver().plan({})
    with monkeypatch.context() as patch:
        said(patch, first=50, segment=50)
        with pytest.raises(Away, match=f"board {BOARD}: its head"):
            Driver().works({}, planned)
    assert identities(Driver().rows({}, planned)) == written(board)


def test_a_batch_waits_while_the_end_of_its_boot_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The head tells of less, and one between cannot be found just now."""
    board = recorder(700)
    planned = Driver().plan({})
    assert board.newest >= 3
    away = board.segments.pop(board.newest - 1)
    with monkeypatch.context() as patch:
        said(patch, segment=-2)
        with pytest.raises(Away, match=f"board {BOARD}"):
            Driver().works({}, planned)
    board.segments[board.newest - 1] = away
    assert identities(Driver().rows({}, planned)) == written(board)


def test_a_head_of_a_million_segments_is_reported_and_delays_no_other_board(
    monkeypatch: pytest.MonkeyPatch, read: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    board, other = recorder(20), Recorder("00000000000000bb")
    other.start()
    Ring.boards = (other, board)
    heads = Ring().heads()
    heads[other.name] = replace(heads[other.name], segment=(1 << 20) - 1)
    monkeypatch.setattr(Ring, "heads", lambda _: heads)
    driver = Driver()
    for _ in range(2):
        assert set(driver.plan({})) == {BOARD}
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"board {other.name}: wrong head") and "1048512 to 1048575" in line
    assert len(read) < 80


def test_a_head_that_begins_a_million_segments_too_early_costs_few_requests(
    monkeypatch: pytest.MonkeyPatch, read: list[int]
) -> None:
    board = recorder(300, newest=(1 << 20) - 10)
    said(monkeypatch, first=-1_000_000)
    driver = Driver()
    first = driver.plan({})
    assert identities(driver.rows({}, first)) == written(board)
    board.message("room/1", b"goes on")
    assert len(driver.rows(first, driver.plan(first))) == 1
    assert len(read) < 150


class Endless(dict[int, bytes]):
    """Of a client that has any segment that somebody asks for."""

    def __contains__(self, _number: object) -> bool:
        return True

    def __missing__(self, number: int) -> bytes:
        return head(bytes.fromhex("00000000000000bb"), 1, number, 0)


def test_a_forged_board_with_endless_segments_delays_no_other_board(
    read: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    board, other = recorder(20), Recorder("00000000000000bb", segments=Endless())
    other.start()
    Ring.boards = (other, board)
    assert set(Driver().plan({})) == {BOARD}
    assert "0 to 64;" in capsys.readouterr().err
    assert len(read) < 80


def test_a_board_silent_at_one_broker_is_read_through_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = recorder(20)

    class Behind(Ring):
        def __init__(self, address: tuple[str, int], _login: object) -> None:
            super().__init__()
            self.is_silent = address[1] == 1884

        def read(self, board: str, segment: int, begin: int, end: int | None) -> bytes:
            if self.is_silent:
                raise ToolError("no answer")
            return super().read(board, segment, begin, end)

    monkeypatch.setattr(ring_source, "Ring", Behind)
    driver = Driver(brokers="127.0.0.1:1884, 127.0.0.1:1883")
    driver.plan({})
    board.message("room/1", b"goes on")
    assert driver.plan({}) == {BOARD: [1, board.next, 1, 0]}
