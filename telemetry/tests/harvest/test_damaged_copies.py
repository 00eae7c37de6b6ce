"""Segments that are damaged in a copy or on the board: the harvest fetches once what the board
has, and deletes nothing on the board that the folder lacks.
"""

import pytest

from telemetry.tests.conftest import A, Lab, identities, recorder

from .recording import Recorder
from .test_copies import copy

NEXT = 1  # behind the damaged one
WAYS = pytest.mark.parametrize("way", ["network", "cable"])


def ring() -> Recorder:
    made = recorder(messages=300)
    assert made.newest == NEXT
    return made


def rotten(segment: bytes, at: int) -> bytes:
    """With one bit that is wrong."""
    return segment[:at] + bytes([segment[at] ^ 4]) + segment[at + 1 :]


def fetched(lab: Lab, one: Recorder, way: str) -> str:
    """One harvest from the board, with `--delete` over the cable; what it says."""
    if way == "network":
        lab.attach(one)
        return lab.harvest().output
    lab.written(one)
    said = lab.cable("--delete").output
    assert [path.name for path in lab.flash.iterdir()] == [f"{one.newest:08x}.seg"]
    return said


@WAYS
@pytest.mark.parametrize("number", [0, NEXT])
def test_a_segment_damaged_only_in_its_copy_is_fetched(lab: Lab, way: str, number: int) -> None:
    one = ring()
    copy(one, lab.card)
    path = copy(one, lab.card, number)
    path.write_bytes(rotten(one.segments[number], 700))
    assert f"segment {number}: damaged at byte 6" in lab.copied().output
    assert lab.identities() < identities(one)
    assert "at byte" not in fetched(lab, one, way)
    assert lab.identities() == identities(one)
    assert "nothing new" in lab.copied().output


@WAYS
def test_a_segment_damaged_on_the_board_is_fetched_once_unchanged(lab: Lab, way: str) -> None:
    one = ring()
    one.segments[0] = rotten(one.segments[0], 700)
    copy(one, lab.card)
    lab.copied()
    said = fetched(lab, one, way)
    assert "segment 0: damaged" in said and "byte 681" in said
    again = fetched(lab, one, way)
    assert "nothing new" in again and "at byte" not in again
    assert dict(lab.segments())[A, 1, 0].startswith(one.segments[0])
    assert lab.identities() == identities(one)


@WAYS
def test_a_copy_better_than_the_boards_stays(lab: Lab, way: str) -> None:
    one = ring()
    one.segments[0] = rotten(one.segments[0], 2000)
    copy(one, lab.card)
    lab.copied()
    better = lab.identities()
    one.segments[0] = rotten(one.segments[0], 700)
    fetched(lab, one, way)
    assert "nothing new" in fetched(lab, one, way)
    assert lab.identities() == better > identities(one)


def test_different_bytes_after_the_damage_stay_on_the_board(lab: Lab) -> None:
    one = ring()
    lab.kept(rotten(one.segments[0], 700))
    one.segments[0] = rotten(one.segments[0], 701)
    lab.written(one)
    stays = "00000000.seg: stays on the board: its bundle lacks a part of it"
    for _ in range(2):
        said = lab.cable("--delete", status=1).output
        assert stays in said and "at byte" not in said  # it is not fetched again
    assert len(list(lab.flash.iterdir())) == len(one.segments)


def test_a_changed_bundle_is_named_and_not_its_segment(lab: Lab) -> None:
    one = ring()
    lab.kept(one.segments[0])
    bundle = lab.path / lab.lines()[0]["path"]
    bundle.write_bytes(rotten(bundle.read_bytes(), 700))
    lab.written(one)
    said = lab.cable("--delete", status=1).output
    assert f"{bundle}: it was changed" in said
    assert "still has 1" in said and "its bundle lacks" not in said
    assert len(list(lab.flash.iterdir())) == len(one.segments)
