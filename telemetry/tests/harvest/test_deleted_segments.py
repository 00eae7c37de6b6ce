"""`slotmq harvest --broker` from a ring with missing numbers, as `--delete` may leave it: all
segments are fetched, with few requests.
"""

from telemetry.tests.conftest import A, Lab, identities

from .recording import Recorder
from .test_compact import kept


def starts(count: int) -> Recorder:
    """Of each start one small segment."""
    one = Recorder(A, size=512)
    for _ in range(count):
        one.start()
    return one


def without(one: Recorder, *numbers: int) -> Recorder:
    """What the board has, or had, but for these."""
    there = {number: one.segments[number] for number in one.segments if number not in numbers}
    return Recorder(A, size=512, boot=one.boot, next=one.next, newest=one.newest, segments=there)


def test_segments_between_two_holes_are_fetched(lab: Lab) -> None:
    one = starts(111)
    kept(lab, without(one, *range(1, 111)))
    board = without(one, *range(1, 65), *range(67, 110))
    lab.attach(board)
    lab.harvest()
    assert lab.identities() == identities(board) and len(board.segments) == 4


def test_known_segments_below_a_hole_cost_few_requests(lab: Lab) -> None:
    one = starts(201)
    kept(lab, without(one, 0, 200))
    boards = lab.attach(without(one, *range(130, 200)))
    lab.harvest()
    assert len(boards.requests) < 100
    assert lab.identities() == identities(one)
