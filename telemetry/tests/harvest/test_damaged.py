"""Bundles that were changed or removed on this disk, segments that are damaged in a copy or on the
board, and numbers that are missing in a ring: a harvest names what is wrong and fetches once what
boards still have, with few requests. It deletes nothing on the board that the folder lacks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from telemetry.tests.conftest import A, B, Lab, identities, recorder

from .recording import Recorder
from .test_compact import kept
from .test_copies import copy


def shortened(bundle: Path) -> None:
    bundle.write_bytes(b"hello")


def changed(bundle: Path, at: int = 0) -> None:
    data = bundle.read_bytes()
    bundle.write_bytes(data[:at] + b"hello" + data[at + 5 :])


DAMAGES = pytest.mark.parametrize("damage", [shortened, Path.unlink])


def sound(lab: Lab, bundle: Path) -> Lab:
    """The folder without the lines of a bundle that is lost."""
    of = f"from bundles where path = 'bundles/{bundle.name}'"
    lab.change(f"delete from segments where line in (select line {of})")
    lab.change(f"delete {of}")
    return lab


@DAMAGES
def test_a_damaged_bundle_is_fetched_again_though_nothing_is_new(
    lab: Lab, damage: Callable[[Path], None]
) -> None:
    one = recorder(messages=30)
    lab.attach(one)
    lab.harvest()
    (bundle,) = (lab.path / "bundles").iterdir()
    before = bundle.read_bytes()
    damage(bundle)
    lab.harvest()
    assert bundle.read_bytes() == before
    assert lab.harvest().output == "nothing new\n"
    assert lab.identities() == identities(one)


@pytest.mark.parametrize("at", [0, 200], ids=["header", "record"])
def test_a_growing_segment_is_fetched_whole_if_it_was_changed(lab: Lab, at: int) -> None:
    one = recorder(messages=30)
    boards = lab.attach(one)
    lab.harvest()
    (bundle,) = (lab.path / "bundles").iterdir()
    changed(bundle, at)
    one.message("room/1", b"one more")
    boards.published()
    lab.harvest()
    assert sound(lab, bundle).identities() == identities(one)


def test_segments_of_a_missing_bundle_are_fetched_again(lab: Lab) -> None:
    one, other = recorder(A, 300), recorder(B, 20)
    boards = lab.attach(one, other)
    lab.harvest()
    (bundle,) = (lab.path / "bundles").iterdir()
    bundle.unlink()
    count = len(one.segments) + len(other.segments)
    del one.segments[0]
    one.message("room/1", b"more")
    boards.published()
    for _ in range(2):  # what is lost stays lost
        said = lab.harvest(status=1).output
        assert f"{bundle}: it is missing; {count - 1} of its {count} segments are in" in said
    assert sound(lab, bundle).identities() == identities(one, other)


def test_a_missing_bundle_of_an_emptied_board_is_fetched_again(lab: Lab) -> None:
    """Its starts are counted on, and older segments have the numbers that are lost."""
    one = recorder(messages=1)
    boards = lab.attach(one)

    def harvested_after(starts: int) -> None:
        for _ in range(starts):
            one.start()
        boards.published()
        lab.harvest()

    harvested_after(3)
    before = identities(one)
    one.segments.clear()
    one.newest = -1
    harvested_after(3)
    bundle = lab.path / lab.lines()[-1]["path"]
    harvested_after(2)
    bundle.unlink()
    lab.harvest()
    assert sound(lab, bundle).identities() == before | identities(one)


def test_a_missing_bundle_is_fetched_again_by_cable(lab: Lab) -> None:
    one = recorder(messages=300)
    lab.written(one)
    lab.cable()
    (bundle,) = (lab.path / "bundles").iterdir()
    bundle.unlink()
    count = len(one.segments)
    assert f"{count} segments" in lab.cable("--delete").output
    assert lab.identities() == identities(one)
    assert [path.name for path in lab.flash.iterdir()] == [f"{one.newest:08x}.seg"]


def test_delete_leaves_segments_of_a_damaged_bundle_on_the_board(lab: Lab) -> None:
    one = recorder(messages=300)
    lab.written(one)
    lab.cable()
    first = lab.path / lab.lines()[0]["path"]
    count = len(one.segments)
    one.start()
    for number in range(400):
        one.message("room/1", b"%d" % number)
    lab.written(one)
    lab.cable()
    changed(first)
    said = lab.cable("--delete", status=1).output
    assert f"{first}: it was changed" in said and "SHA-256" in said
    assert f"the board still has {count}" in said
    assert "nothing new" in said
    stay = [f"{number:08x}.seg" for number in [*range(count), one.newest]]
    assert sorted(path.name for path in lab.flash.iterdir()) == stay
    first.unlink()
    lab.cable("--delete")
    assert [path.name for path in lab.flash.iterdir()] == stay[-1:]


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
