"""What the live source plans under heads that no board has said, or not lately: nothing is read
again, and nothing that the ring has is left out or called lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from host_tests.harvest.recording import Recorder
from slotmq_tools.harvest.network import Head
from slotmq_tools.telemetry.ring_reading import Away

from .test_ring import written
from .test_ring_offsets import BOARD, Driver, Ring, Row, alone, recorder

__all__ = ["alone"]  # a fixture


def four_starts() -> Recorder:
    board = recorder(20)
    for _ in range(3):
        board.start()
        for number in range(20):
            board.message("room/1", b"%d" % number)
    return board


def said(monkeypatch: pytest.MonkeyPatch, **more: int) -> None:
    """Somebody's head, whose numbers are by so much more than the board's."""
    true = Ring.heads

    def heads(ring: Ring) -> dict[str, Head]:
        return {name: told(head, more) for name, head in true(ring).items()}

    monkeypatch.setattr(Ring, "heads", heads)


def told(head: Head, more: dict[str, int]) -> Head:
    changes: dict[str, Any] = {name: getattr(head, name) + by for name, by in more.items()}
    return replace(head, **changes)


def identities(rows: list[Row]) -> set[tuple[int, int]]:
    assert all(row["reason"] is None for row in rows)
    assert len(rows) == len({(row["boot"], row["seq"]) for row in rows})
    return {(row["boot"], row["seq"]) for row in rows}


WRONG = [
    {"boot": -3}, {"boot": 5000}, {"segment": -2}, {"segment": -2, "boot": -2}, {"segment": 3},
    {"length": -90}, {"first": 50, "segment": 50},
]  # fmt: skip


@pytest.mark.parametrize("more", WRONG, ids=str)
@pytest.mark.parametrize("again", [True, False], ids=["another driver", "the same"])
def test_behind_what_was_read_nothing_is_planned(
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
def test_a_batch_that_is_planned_is_planned_again_as_it_was(
    more: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    board = four_starts()
    planned = Driver().plan({})
    said(monkeypatch, **more)
    assert identities(Driver().rows({}, planned)) == written(board)


def test_a_batch_waits_while_nothing_is_there_of_what_the_head_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = four_starts()
    planned = Driver().plan({})
    with monkeypatch.context() as patch:
        said(patch, first=50, segment=50)
        with pytest.raises(Away, match=f"board {BOARD}: its head does not tell of all"):
            Driver().works({}, planned)
    assert identities(Driver().rows({}, planned)) == written(board)


def test_a_batch_waits_while_the_end_of_its_start_is_not_found(
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
