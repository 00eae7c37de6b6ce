"""Bundles that were changed or removed on this disk: a harvest names them and fetches their
segments again, as far as boards still have them.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from .conftest import A, Attach, B, Folder, identities, recorder
from .test_usb import flash, written
from .test_usb import harvest as by_cable

__all__ = ["by_cable", "flash"]  # fixtures
Harvest = Callable[..., Result]


def shortened(bundle: Path) -> None:
    bundle.write_bytes(b"hello")


def changed(bundle: Path, at: int = 0) -> None:
    data = bundle.read_bytes()
    bundle.write_bytes(data[:at] + b"hello" + data[at + 5 :])


DAMAGES = pytest.mark.parametrize("damage", [shortened, Path.unlink])


def sound(folder: Folder, bundle: Path) -> Folder:
    """The folder without the lines of a bundle that is lost."""
    of = "from bundles where path = ?"
    folder.change(
        f"delete from segments where line in (select line {of})", f"bundles/{bundle.name}"
    )
    folder.change(f"delete {of}", f"bundles/{bundle.name}")
    return folder


@DAMAGES
def test_a_damaged_bundle_is_fetched_again_though_nothing_is_new(
    attach: Attach, harvest: Harvest, folder: Folder, damage: Callable[[Path], None]
) -> None:
    one = recorder(messages=30)
    attach(one)
    harvest()
    (bundle,) = (folder.path / "bundles").iterdir()
    before = bundle.read_bytes()
    damage(bundle)
    harvest()
    assert bundle.read_bytes() == before
    assert harvest().output.endswith("\nnothing new\n")
    assert folder.identities() == identities(one)


@pytest.mark.parametrize("at", [0, 200], ids=["header", "record"])
def test_a_growing_segment_is_fetched_whole_if_its_beginning_was_changed(
    attach: Attach, harvest: Harvest, folder: Folder, at: int
) -> None:
    one = recorder(messages=30)
    boards = attach(one)
    harvest()
    (bundle,) = (folder.path / "bundles").iterdir()
    changed(bundle, at)
    one.message("room/1", b"one more")
    boards.published()
    harvest()
    assert sound(folder, bundle).identities() == identities(one)


def test_segments_of_a_missing_bundle_are_fetched_again(
    attach: Attach, harvest: Harvest, folder: Folder
) -> None:
    one, other = recorder(A, 300), recorder(B, 20)
    boards = attach(one, other)
    harvest()
    (bundle,) = (folder.path / "bundles").iterdir()
    bundle.unlink()
    count = len(one.segments) + len(other.segments)
    del one.segments[0]
    one.message("room/1", b"more")
    boards.published()
    for _ in range(2):  # what is lost stays lost
        said = harvest(status=1).output
        assert f"{bundle}: it is missing; {count - 1} of its {count} segments are in" in said
    assert sound(folder, bundle).identities() == identities(one, other)


def test_a_missing_bundle_of_an_emptied_board_is_fetched_again(
    attach: Attach, harvest: Harvest, folder: Folder
) -> None:
    """Its starts are counted on, and older segments have the numbers that are lost."""
    one = recorder(messages=1)
    boards = attach(one)

    def harvested_after(starts: int) -> None:
        for _ in range(starts):
            one.start()
        boards.published()
        harvest()

    harvested_after(3)
    before = identities(one)
    one.segments.clear()
    one.newest = -1
    harvested_after(3)
    bundle = folder.path / folder.lines()[-1]["path"]
    harvested_after(2)
    bundle.unlink()
    harvest()
    assert sound(folder, bundle).identities() == before | identities(one)


def test_a_missing_bundle_is_fetched_again_by_cable(
    flash: Path, by_cable: Harvest, folder: Folder
) -> None:
    one = recorder(messages=300)
    written(one, flash)
    by_cable()
    (bundle,) = (folder.path / "bundles").iterdir()
    bundle.unlink()
    count = len(one.segments)
    assert f"{count} segments" in by_cable("--delete").output
    assert folder.identities() == identities(one)
    assert [path.name for path in flash.iterdir()] == [f"{one.newest:08x}.seg"]


def test_delete_leaves_segments_of_a_damaged_bundle_on_the_board(
    flash: Path, by_cable: Harvest, folder: Folder
) -> None:
    one = recorder(messages=300)
    written(one, flash)
    by_cable()
    first = folder.path / folder.lines()[0]["path"]
    count = len(one.segments)
    one.start()
    for number in range(400):
        one.message("room/1", b"%d" % number)
    written(one, flash)
    by_cable()
    changed(first)
    said = by_cable("--delete", status=1).output
    assert f"{first}: it was changed" in said and "SHA-256" in said
    assert f"the board still has {count}" in said
    assert "nothing new" in said
    stay = [f"{number:08x}.seg" for number in [*range(count), one.newest]]
    assert sorted(path.name for path in flash.iterdir()) == stay
    first.unlink()
    by_cable("--delete")
    assert [path.name for path in flash.iterdir()] == stay[-1:]
