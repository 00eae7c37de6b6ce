"""Segments longer than their header says, as a faulty recorder wrote them: the bundle has what
fits, the excess is reported, and the segment stays on the board.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from slotmq_tools.harvest.manifest import locked
from slotmq_tools.harvest.segments import NotASegment
from slotmq_tools.harvest.store import Store
from slotmq_tools.telemetry import decode, manifest

from .conftest import A, Attach, Folder, identities, recorder
from .recording import Recorder, record, records
from .test_usb import flash, written
from .test_usb import harvest as by_cable

__all__ = ["by_cable", "flash"]  # fixtures
LENGTH = 60


def with_a_long_one(behind: int) -> tuple[Recorder, bytes]:
    """A ring whose segment 1 has so many records too many, the first of them perhaps across the
    size; -> it, and what of that segment fits."""
    one = recorder(messages=600)
    fits = one.segments[1]
    fits += record(2, 0, 900, 0, 0xFFFF, 0, b"x" * (one.size - len(fits) - 30))
    for number in range(behind):
        fits += record(2, 0, 901 + number, 0, 0xFFFF, 0, bytes(LENGTH - 20))
    one.segments[1] = fits
    assert one.newest > 2
    return one, fits[: one.size]


def all_but_what_is_behind(folder: Folder, one: Recorder, fits: bytes) -> bool:
    """And every other segment of the bundle is where it ought to be."""
    there = dict(folder.segments())
    assert there[A, 1, 1] == fits
    lost = {(A, 1, seq) for seq, _ in records(one.segments[1])[len(records(fits)) :]}
    return bool(lost) and folder.identities() == identities(one) - lost


def test_the_excess_is_reported_and_other_segments_are_whole(
    attach: Attach, harvest: Callable[..., Result], folder: Folder
) -> None:
    one, fits = with_a_long_one(behind=3)
    attach(one)
    said = harvest(status=1).output
    length = len(one.segments[1])
    assert f"segment 1: it has {length} " in said and f"says {one.size}" in said
    assert "last 3 records" in said
    assert "torn" not in said
    assert all_but_what_is_behind(folder, one, fits)
    assert "nothing new" in harvest().output


def test_the_pipeline_names_the_record_that_is_cut(
    attach: Attach, harvest: Callable[..., Result], folder: Folder
) -> None:
    one, fits = with_a_long_one(behind=3)
    attach(one)
    harvest(status=1)
    (parts,) = manifest.parts(manifest.read(folder.path))
    rows = [
        row
        for part in parts
        for batch in decode.frames_of(folder.path, part)
        for row in batch.to_pylist()
    ]
    assert [row["segment"] for row in rows if row["reason"]] == [1]
    assert {row["reason"] for row in rows if row["reason"]} == {"torn record"}
    assert all_but_what_is_behind(folder, one, fits)
    good = {(row["board"], row["boot"], row["seq"]) for row in rows if not row["reason"]}
    assert good == folder.identities()


def test_a_newest_segment_that_is_too_long(
    attach: Attach, harvest: Callable[..., Result], folder: Folder
) -> None:
    one, fits = with_a_long_one(behind=2)
    for number in range(2, one.newest + 1):
        del one.segments[number]
    one.newest = 1
    attach(one)
    for _ in range(2):
        assert "last 2 records" in harvest(status=1).output
    assert len(folder.lines()) == 1
    assert folder.identities() == identities(one) - {(A, 1, 901), (A, 1, 902)}
    assert len(fits) == one.size


def test_excess_bytes_without_records_are_reported(
    attach: Attach, harvest: Callable[..., Result], folder: Folder
) -> None:
    one, _ = with_a_long_one(behind=0)
    one.segments[1] = one.segments[1].ljust(one.size + 24, b"\x11")
    attach(one)
    assert "last 24 bytes" in harvest(status=1).output
    assert folder.identities() == identities(one)


def test_delete_leaves_a_long_segment_on_the_board(
    flash: Path, by_cable: Callable[..., Result], folder: Folder
) -> None:
    one, fits = with_a_long_one(behind=3)
    written(one, flash)
    original = one.segments[1]
    for _ in range(2):
        said = by_cable("--delete", status=1).output
        assert "00000001.seg: stays" in said
    assert all_but_what_is_behind(folder, one, fits)
    assert [path.name for path in sorted(flash.iterdir())] == [
        "00000001.seg",
        f"{one.newest:08x}.seg",
    ]
    assert (flash / "00000001.seg").read_bytes() == original


def test_a_long_segment_in_partial_is_cut_too(folder: Folder) -> None:
    one, fits = with_a_long_one(behind=3)
    with locked(folder.path) as lines:
        store = Store(lines)
        for number, segment in one.segments.items():
            store.keep(segment, growing=number == one.newest)
        (found,) = (folder.path / "partial").glob("*-00000001.seg")
        found.write_bytes(one.segments[1])
        store.bundle("a test")
    assert all_but_what_is_behind(folder, one, fits)


def test_a_size_of_zero_is_refused(folder: Folder) -> None:
    nothing = recorder(messages=1, size=0).segments
    with locked(folder.path) as lines, pytest.raises(NotASegment, match="bad segment size"):
        Store(lines).keep(nothing[0], growing=False)
