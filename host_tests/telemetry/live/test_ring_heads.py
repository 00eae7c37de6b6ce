"""What a head says of a ring may be anybody's: the live source asks the board."""

from dataclasses import replace
from typing import Any

from host_tests.telemetry.harvest.recording import Recorder
from slotmq_tools.harvest.network import Head
from slotmq_tools.telemetry.ring_index import RingIndex

from .test_ring import Ring, started


def told(board: Recorder) -> Head:
    state: dict[str, Any] = board.state()
    return Head(**state)


def test_a_head_of_anybody_makes_no_gap_of_what_the_ring_has() -> None:
    """It says that the ring begins with its newest segment."""
    board = started(30)
    Ring.board = board
    ring, index = Ring(), RingIndex()
    index.update(ring, told(board))
    start = index.end
    for _ in range(200):
        board.message("t", b"a" * 40)
    index.update(ring, replace(told(board), first=told(board).segment))
    assert index.gaps(start, index.end) == []
    assert index.pieces(start, index.end)[0].first == start.seq
