"""Bundles that were changed or removed on this disk: a harvest names them and fetches their
segments again, as far as boards still have them.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from telemetry.tests.conftest import A, B, Lab, identities, recorder


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
