"""Segments that are damaged in a copy or on the board: the harvest fetches once what the board
has, and deletes nothing on the board that the folder lacks.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from .conftest import A, Attach, Folder, identities, recorder
from .recording import Recorder
from .test_copies import card, copied, copy
from .test_usb import flash, kept, written
from .test_usb import harvest as by_cable

__all__ = ["by_cable", "card", "copied", "flash"]  # fixtures
Harvest = Callable[..., Result]
NEXT = 1  # behind the damaged one
WAYS = pytest.mark.parametrize("way", ["network", "cable"])


@pytest.fixture
def one() -> Recorder:
    made = recorder(messages=300)
    assert made.newest == NEXT
    return made


def rotten(segment: bytes, at: int) -> bytes:
    """With one bit that is wrong."""
    return segment[:at] + bytes([segment[at] ^ 4]) + segment[at + 1 :]


@pytest.fixture
def fetched(
    attach: Attach, harvest: Harvest, by_cable: Harvest, flash: Path, one: Recorder
) -> Callable[[str], str]:
    """One harvest from the board, with `--delete` over the cable; what it says."""

    def run(way: str) -> str:
        if way == "network":
            attach(one)
            return harvest().output
        written(one, flash)
        said = by_cable("--delete").output
        assert [path.name for path in flash.iterdir()] == [f"{one.newest:08x}.seg"]
        return said

    return run


@WAYS
def test_a_segment_damaged_only_in_its_copy_is_fetched_from_the_board(
    way: str, one: Recorder, card: Path, copied: Harvest, folder: Folder,
    fetched: Callable[[str], str],
) -> None:  # fmt: skip
    path = copy(one, card, 0)
    path.write_bytes(rotten(one.segments[0], 700))
    copy(one, card, NEXT)
    said = copied().output
    assert "segment 0: torn" in said and "byte 681" in said
    assert folder.identities() < identities(one)
    assert "torn" not in fetched(way)
    assert folder.identities() == identities(one)
    assert "nothing new" in copied().output


@WAYS
def test_a_newest_segment_damaged_only_in_its_copy_is_fetched_from_the_board(
    way: str, one: Recorder, card: Path, copied: Harvest, folder: Folder,
    fetched: Callable[[str], str],
) -> None:  # fmt: skip
    path = copy(one, card)
    path.write_bytes(rotten(one.segments[NEXT], 700))
    assert "segment 1: torn" in copied().output
    assert folder.identities() < identities(one)
    assert "torn" not in fetched(way)
    assert folder.identities() == identities(one)


@WAYS
def test_a_segment_damaged_on_the_board_is_fetched_once_and_stored_unchanged(
    way: str, one: Recorder, card: Path, copied: Harvest, folder: Folder,
    fetched: Callable[[str], str],
) -> None:  # fmt: skip
    one.segments[0] = rotten(one.segments[0], 700)
    copy(one, card)
    copied()
    said = fetched(way)
    assert "segment 0: torn" in said and "byte 681" in said
    again = fetched(way)
    assert "nothing new" in again and "torn" not in again
    assert dict(folder.segments())[A, 1, 0].startswith(one.segments[0])
    assert folder.identities() == identities(one)


@WAYS
def test_a_copy_better_than_the_boards_stays(
    way: str, one: Recorder, card: Path, copied: Harvest, folder: Folder,
    fetched: Callable[[str], str],
) -> None:  # fmt: skip
    one.segments[0] = rotten(one.segments[0], 2000)
    copy(one, card)
    copied()
    better = folder.identities()
    one.segments[0] = rotten(one.segments[0], 700)
    fetched(way)
    assert "nothing new" in fetched(way)
    assert folder.identities() == better > identities(one)


def test_different_bytes_after_the_damage_stay_on_the_board(
    one: Recorder, flash: Path, by_cable: Harvest, folder: Folder
) -> None:
    kept(folder, rotten(one.segments[0], 700))
    one.segments[0] = rotten(one.segments[0], 701)
    written(one, flash)
    stays = "00000000.seg: stays on the board: its bundle lacks a part of it"
    for _ in range(2):
        said = by_cable("--delete", status=1).output
        assert stays in said and "torn" not in said  # it is not fetched again
    assert len(list(flash.iterdir())) == len(one.segments)


def test_a_changed_bundle_is_named_and_not_its_segment(
    one: Recorder, flash: Path, by_cable: Harvest, folder: Folder
) -> None:
    kept(folder, one.segments[0])
    bundle = folder.path / folder.lines()[0]["path"]
    bundle.write_bytes(rotten(bundle.read_bytes(), 700))
    written(one, flash)
    said = by_cable("--delete", status=1).output
    assert f"{bundle}: it was changed" in said
    assert "still has 1" in said and "its bundle lacks" not in said
    assert len(list(flash.iterdir())) == len(one.segments)
