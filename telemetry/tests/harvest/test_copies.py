"""`slotmq harvest --from`: segment files that were copied by hand, for example from an SD card."""

import os
from pathlib import Path
from typing import Any

import pytest

from telemetry.tests.conftest import A, B, Lab, identities, recorder

from .recording import Recorder


def copy(one: Recorder, there: Path, *numbers: int, shorter: int = 0) -> Path:
    """These segments as somebody copies them, or all; the last without so many bytes."""
    there.mkdir(parents=True, exist_ok=True)
    for number in numbers or one.segments:
        path = there / f"{number:08x}.seg"
        path.write_bytes(one.segments[number])
    path.write_bytes(path.read_bytes()[: path.stat().st_size - shorter])
    return path


def test_all_segments_come_once_and_the_copies_stay(lab: Lab) -> None:
    one, other = recorder(A, 300), recorder(B, 200)
    copy(one, lab.card / "kitchen" / "record")
    for path in copy(other, lab.card / "B").parent.iterdir():
        path.rename(path.with_suffix(".SEG"))  # as FAT has it
    (lab.card / "B" / "ring").write_bytes(b"the board's own")
    (lab.card / "B" / "._00000000.seg").write_bytes(b"of macOS")
    before = {path: path.read_bytes() for path in lab.card.rglob("*") if path.is_file()}
    said = lab.copied().output
    assert f"{len(one.segments) + len(other.segments)} segments" in said
    assert said.count("\n") == 1
    assert lab.identities() == identities(one, other)
    assert lab.lines()[0]["source"] == f"file:{lab.card}"
    assert lab.copied().output.endswith("nothing new\n") and len(lab.lines()) == 1
    assert before == {path: path.read_bytes() for path in lab.card.rglob("*") if path.is_file()}


def behind(lab: Lab, one: Recorder, way: str) -> str:
    """What the board has beyond the copies comes, over the network or by cable."""
    lab.copied()
    one.start()
    if way == "cable":
        lab.written(one)
        said = lab.cable("--delete").output
        assert [path.name for path in lab.flash.iterdir()] == [f"{one.newest:08x}.seg"]
    else:
        lab.attach(one)
        said = lab.harvest().output
    assert lab.identities() == identities(one)
    return said


WAYS = pytest.mark.parametrize("way", ["network", "cable"])


@WAYS
@pytest.mark.parametrize("shorter", [0, 9], ids=["", "in the midst of a record"])
def test_of_a_copy_that_may_grow_the_board_gives_the_rest(
    lab: Lab, way: str, shorter: int
) -> None:
    one = recorder(messages=300)
    copy(one, lab.card, shorter=shorter)
    assert "at byte" not in lab.copied().output
    assert len(lab.identities()) == len(identities(one)) - (shorter > 0)
    ((*key, grown),) = lab.lines()[0]["growing"]
    assert key == [A, 1, one.newest] and len(one.segments[one.newest]) - grown < 30
    one.message("room/1", b"one more")
    behind(lab, one, way)


@WAYS
def test_a_power_cut_s_torn_tail_comes_from_the_board(lab: Lab, way: str) -> None:
    """Or somebody has copied it while the board was writing: nobody can tell. The first segment
    of the next start tells nothing: `cp -n` leaves a copy from before."""
    one = recorder(messages=10)
    one.tear()
    torn = one.segments[0]
    one.start()
    copy(one, lab.card)
    said = behind(lab, one, way)
    assert "segment 0: torn" in said and f"byte {len(torn) - 6}" in said
    assert dict(lab.segments())[A, 1, 0].startswith(torn)


@pytest.mark.parametrize("shorter", [500, 505])  # the one or the other in the midst of a record
def test_a_copy_of_an_unfinished_segment_is_not_sealed(lab: Lab, shorter: int) -> None:
    """Copied while the broker went on: the next one begins with a later record, or is not there.
    A longer copy completes it."""
    one = recorder(messages=900)
    assert one.newest > 4
    copy(one, lab.card)
    copy(one, lab.card, 1, shorter=shorter)
    (lab.card / "00000004.seg").unlink()
    lab.copied()
    assert [number for _, _, number, _ in lab.lines()[0]["growing"]] == [1, 3, one.newest]
    copy(one, lab.card)
    assert ": 3 segments" in lab.copied().output
    assert lab.identities() == identities(one)


def test_the_longer_copy_wins(lab: Lab) -> None:
    one = recorder(messages=30)
    copy(one, lab.card / "3", shorter=1)
    copy(one, lab.card / "1", shorter=100)
    lab.copied()
    assert len(lab.identities()) == len(identities(one)) - 1
    copy(one, lab.card / "3", shorter=200)
    assert "nothing new" in lab.copied().output
    copy(one, lab.card / "2")
    assert "1 segment, 38 records" in lab.copied().output
    assert lab.identities() == identities(one)
    assert "nothing new" in lab.copied().output
    assert "removed: 1, written: 0" in lab.copied("--compact").output
    assert lab.identities() == identities(one)


def test_damage_is_reported_and_the_records_before_it_are_stored(lab: Lab) -> None:
    one = recorder(messages=600)
    for number in (1, one.newest):
        data = one.segments[number]
        one.segments[number] = data[:200] + bytes([data[200] ^ 1]) + data[201:]
    copy(one, lab.card)
    said = lab.copied().output
    assert "segment 1: damaged" in said
    assert f"segment {one.newest}: damaged" in said
    assert lab.identities() == identities(one)
    there = dict(lab.segments())
    assert there[A, 1, 1].startswith(one.segments[1])  # with what is behind, for quarantine


@pytest.mark.parametrize("way", ["network", "copies"])
def test_a_segment_longer_than_its_header_says_is_named(lab: Lab, way: str) -> None:
    """As a faulty recorder wrote it: the bundle has what fits."""
    one = recorder(messages=600)
    whole = identities(one)
    one.segments[1] = one.segments[1].ljust(one.size, b"\xff") + b"\x11" * 24
    copy(one, lab.card)
    if way == "network":
        lab.attach(one)
    fetched = lab.harvest if way == "network" else lab.copied
    told = f"segment 1: it has more than the {one.size} bytes that its header says"
    assert told in fetched(status=1).output
    assert lab.identities() == whole
    assert "nothing new" in fetched().output


def test_what_is_no_segment_or_cannot_be_read_is_named(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(messages=600)
    copy(one, lab.card)
    (lab.card / "00000001.seg").write_bytes(b"something else, of at least 32 bytes")
    (lab.card / "00000002.seg").write_bytes(b"")
    said = lab.copied().output
    assert f"{lab.card}/00000001.seg: not a segment" in said
    assert f"{lab.card}/00000002.seg: cut header" in said
    assert {number for _, _, number in dict(lab.segments())} == set(one.segments) - {1, 2}
    read = Path.read_bytes

    def worn_out(path: Path) -> bytes:
        if path == lab.card / "00000000.seg":
            raise OSError(5, "Input/output error")
        return read(path)

    lab.patch.setattr(Path, "read_bytes", worn_out)
    assert f"{lab.card}/00000000.seg: Input/output error" in lab.copied(status=1).output


def test_a_folder_that_cannot_be_read_is_named(lab: Lab) -> None:
    one, other = recorder(A, 20), recorder(B, 20)
    copy(one, lab.card / "A")
    copy(other, lab.card / "B")
    look = os.scandir

    def refused(path: str | Path = ".") -> Any:
        if Path(path) == lab.card / "B":
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    lab.patch.setattr(os, "scandir", refused)
    assert f"{lab.card}/B: Permission denied\n" in lab.copied(status=1).output
    assert lab.identities() == identities(one)


def test_a_folder_without_segments_is_an_error(lab: Lab) -> None:
    assert f"Directory '{lab.card}' does not exist" in lab.copied(status=2).output
    assert not lab.path.exists()
    lab.card.mkdir()
    said = lab.copied(status=1).output.splitlines()[-1]
    assert said.startswith(f"Error: {lab.card} has no recordings")
    (lab.card / "x.seg").write_bytes(b"")
    assert "x.seg: cut header" in lab.copied(status=1).output
