"""`slotmq harvest --from`: segment files that were copied by hand, for example from an SD card."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from slotmq_tools.cli import main

from .conftest import A, Attach, B, Folder, identities, recorder
from .recording import Recorder
from .test_usb import flash
from .test_usb import harvest as by_cable

__all__ = ["by_cable", "flash"]  # fixtures
Harvest = Callable[..., Result]


@pytest.fixture
def card(tmp_path: Path) -> Path:
    """Where the copies are."""
    return tmp_path / "card"


@pytest.fixture
def copied(folder: Folder, card: Path) -> Harvest:
    def run(*options: str, status: int = 0) -> Result:
        command = ["harvest", str(folder.path), "--from", str(card), *options]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == status, result.output
        return result

    return run


def copy(one: Recorder, there: Path, *numbers: int, shorter: int = 0) -> Path:
    """These segments as somebody copies them, or all; the last without so many bytes."""
    there.mkdir(parents=True, exist_ok=True)
    for number in numbers or one.segments:
        path = there / f"{number:08x}.seg"
        path.write_bytes(one.segments[number])
    path.write_bytes(path.read_bytes()[: path.stat().st_size - shorter])
    return path


def test_all_segments_come_once_and_the_copies_stay(
    card: Path, copied: Harvest, folder: Folder
) -> None:
    one, other = recorder(A, 300), recorder(B, 200)
    copy(one, card / "kitchen" / "record")
    for path in copy(other, card / "B").parent.iterdir():
        path.rename(path.with_suffix(".SEG"))  # as FAT has it
    (card / "B" / "ring").write_bytes(b"the board's own")
    (card / "B" / "._00000000.seg").write_bytes(b"of macOS")
    before = {path: path.read_bytes() for path in card.rglob("*") if path.is_file()}
    said = copied().output
    assert f"{len(one.segments) + len(other.segments)} segments" in said
    assert said.count("\n") == 2  # the bar, and what came
    assert folder.identities() == identities(one, other)
    assert folder.lines()[0]["source"] == f"file:{card}"
    assert copied().output.endswith("nothing new\n") and len(folder.lines()) == 1
    assert before == {path: path.read_bytes() for path in card.rglob("*") if path.is_file()}


def test_the_newest_may_have_grown_and_the_network_gets_the_rest(
    card: Path, copied: Harvest, attach: Attach, harvest: Harvest, folder: Folder
) -> None:
    one = recorder(messages=300)
    copy(one, card, shorter=9)  # in the midst of a record
    assert "torn" not in copied().output
    assert len(folder.identities()) == len(identities(one)) - 1
    length = len(one.segments[one.newest])
    one.message("room/1", b"one more")
    one.start()
    boards = attach(one)
    harvest()
    assert folder.identities() == identities(one)
    assert {offset > length - 200 for _, number, offset in boards.requests if offset} == {True}


def test_the_newest_may_have_grown_and_the_cable_gets_the_rest(
    card: Path, copied: Harvest, flash: Path, by_cable: Harvest, folder: Folder
) -> None:
    one = recorder(messages=300)
    copy(one, card)
    copied()
    assert folder.lines()[0]["growing"] == [[A, 1, one.newest, len(one.segments[one.newest])]]
    one.message("room/1", b"one more")
    one.start()
    copy(one, flash)
    assert ": 2 segments" in by_cable("--delete").output
    assert folder.identities() == identities(one)
    assert [path.name for path in flash.iterdir()] == [f"{one.newest:08x}.seg"]


def test_the_longer_copy_wins(card: Path, copied: Harvest, folder: Folder) -> None:
    one = recorder(messages=30)
    copy(one, card / "3", shorter=1)
    copy(one, card / "1", shorter=100)
    copied()
    assert len(folder.identities()) == len(identities(one)) - 1
    copy(one, card / "3", shorter=200)
    assert "nothing new" in copied().output
    copy(one, card / "2")
    assert "1 segments, 38 records" in copied().output
    assert folder.identities() == identities(one)
    assert "nothing new" in copied().output


@pytest.mark.parametrize("shorter", [500, 505])  # the one or the other in the midst of a record
def test_a_copy_of_an_unfinished_segment_is_not_sealed(
    shorter: int, card: Path, copied: Harvest, attach: Attach, harvest: Harvest, folder: Folder
) -> None:
    """Copied while the broker went on: the next one begins with a later record."""
    one = recorder(messages=600)
    assert one.newest > 2
    copy(one, card)
    copy(one, card, 1, shorter=shorter)
    copied()
    assert [number for _, _, number, _ in folder.lines()[0]["growing"]] == [1, one.newest]
    attach(one)
    harvest()
    assert folder.identities() == identities(one)


def test_a_copy_without_the_next_segment_is_not_sealed(
    card: Path, copied: Harvest, folder: Folder
) -> None:
    one = recorder(messages=600)
    copy(one, card, 0, 2, 3)
    copied()
    assert [number for _, _, number, _ in folder.lines()[0]["growing"]] == [0, 3]


def test_a_longer_copy_completes_a_sealed_segment(
    card: Path, copied: Harvest, folder: Folder
) -> None:
    """The rest came on another day, and the first copy was not copied over."""
    one = recorder(messages=30)
    copy(one, card, shorter=100)
    one.start()
    copy(one, card, 1)
    copied()
    copy(one, card)
    assert ": 1 segments" in copied().output
    assert folder.identities() == identities(one)


def test_damage_is_reported_and_the_records_before_it_are_stored(
    card: Path, copied: Harvest, folder: Folder
) -> None:
    one = recorder(messages=600)
    for number in (1, one.newest):
        data = one.segments[number]
        one.segments[number] = data[:200] + bytes([data[200] ^ 1]) + data[201:]
    copy(one, card)
    said = copied().output
    assert "segment 1: torn" in said
    assert f"segment {one.newest}: torn" in said
    assert folder.identities() == identities(one)
    there = dict(folder.segments())
    assert there[A, 1, 1].startswith(one.segments[1])  # with what is behind, for quarantine


def test_a_power_cut_s_torn_tail_comes_from_the_board(
    card: Path, copied: Harvest, attach: Attach, harvest: Harvest, folder: Folder
) -> None:
    """Or somebody has copied it while the board was writing: nobody can tell."""
    one = recorder(messages=10)
    one.tear()
    torn = one.segments[0]
    one.start()
    copy(one, card)
    assert "torn" not in copied().output
    attach(one)
    said = harvest().output
    assert "segment 0: torn" in said and f"byte {len(torn) - 6}" in said
    assert folder.segments()[-1][1].startswith(torn)


@pytest.mark.parametrize("way", ["network", "cable"])
def test_a_copy_before_a_segment_of_a_later_boot_is_not_sealed(
    way: str, card: Path, copied: Harvest, attach: Attach, harvest: Harvest, flash: Path,
    by_cable: Harvest, folder: Folder,
) -> None:  # fmt: skip
    """`cp -n` leaves what was copied when the board was still writing it."""
    one = recorder(messages=20)
    copy(one, card)
    for _ in range(30):
        one.message("room/1", b"later")
    one.start()
    assert one.newest == 1
    copy(one, card, 1)
    copied()
    assert [number for _, _, number, _ in folder.lines()[0]["growing"]] == [0, 1]
    if way == "network":
        attach(one)
        harvest()
    else:
        copy(one, flash)
        by_cable("--delete")
        assert [path.name for path in flash.iterdir()] == ["00000001.seg"]
    assert folder.identities() == identities(one)


def test_a_copy_longer_than_its_size_is_reported(
    card: Path, copied: Harvest, folder: Folder
) -> None:
    one = recorder(messages=300)
    whole = identities(one)
    one.segments[1] = one.segments[1].ljust(one.size + 24, b"\x11")
    copy(one, card)
    assert "the rest is not in the bundle" in copied(status=1).output
    assert folder.identities() == whole
    assert "nothing new" in copied().output


def test_what_is_no_segment_or_cannot_be_read_is_named(
    card: Path, copied: Harvest, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(messages=600)
    copy(one, card)
    (card / "00000001.seg").write_bytes(b"something else, of at least 32 bytes")
    (card / "00000002.seg").write_bytes(b"")
    said = copied().output
    assert f"{card}/00000001.seg: not a segment" in said
    assert f"{card}/00000002.seg: cut header" in said
    assert {number for _, _, number in dict(folder.segments())} == set(one.segments) - {1, 2}
    read = Path.read_bytes

    def worn_out(path: Path) -> bytes:
        if path == card / "00000000.seg":
            raise OSError(5, "Input/output error")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", worn_out)
    assert f"{card}/00000000.seg: Input/output error" in copied(status=1).output


def test_a_folder_that_cannot_be_read_is_named(
    card: Path, copied: Harvest, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = recorder(A, 20), recorder(B, 20)
    copy(one, card / "A")
    copy(other, card / "B")
    look = os.scandir

    def refused(path: str | Path = ".") -> Any:
        if Path(path) == card / "B":
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert f"{card}/B: Permission denied\n" in copied(status=1).output
    assert folder.identities() == identities(one)


def test_a_folder_without_segments_is_an_error(
    card: Path, copied: Harvest, folder: Folder
) -> None:
    assert f"Directory '{card}' does not exist" in copied(status=2).output
    assert not folder.path.exists()
    card.mkdir()
    said = copied(status=1).output.splitlines()[-1]
    assert said.startswith(f"Error: {card} has no recordings")
    (card / "x.seg").write_bytes(b"")
    assert "x.seg: cut header" in copied(status=1).output


def test_options_that_contradict_from(card: Path, copied: Harvest, folder: Folder) -> None:
    card.mkdir()
    for options, complaint in (
        (["--broker", "x"], "--broker or --from, not both"),
        (["--port", "x"], "--port or --from, not both"),
        (["--set-time"], "--set-time needs --broker"),
        (["--board", A], "--board needs --broker"),
        (["--delete"], "--delete needs --port"),
        (["--location", "/sd"], "--location needs --port"),
    ):
        assert complaint in copied(*options, status=2).output
    assert not folder.path.exists()


def test_copies_are_compacted(card: Path, copied: Harvest, folder: Folder) -> None:
    one = recorder(messages=30)
    for _ in range(3):
        one.message("room/1", b"one more")
        copy(one, card)
        copied()
    said = copied("--compact").output
    assert "removed: 2" in said and "written: 0" in said
    assert folder.identities() == identities(one)
