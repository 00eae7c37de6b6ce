"""`slotmq harvest --compact` removes superseded copies of segments, from large bundles, too."""

import hashlib
from dataclasses import replace

import pytest
from click.testing import CliRunner

from slotmq_tools.cli import main
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.manifest import locked
from slotmq_tools.harvest.store import Store

from .conftest import A, B, Folder, identities, recorder
from .recording import Recorder
from .test_compact import compacted, kept


def used(folder: Folder) -> int:
    """Bytes of all bundles, whether a line has them or not."""
    return sum(path.stat().st_size for path in (folder.path / "bundles").iterdir())


def test_the_fullest_copy_of_a_segment_stays(
    folder: Folder,
) -> None:
    """And where it lies: who had read that line has nothing to read once more."""
    one = recorder(A, 10)
    for number in range(5):
        one.message("room/1", b"%d" % number)
        kept(folder, one)
    last = folder.lines()[-1]
    result = CliRunner().invoke(main, ["harvest", str(folder.path), "--compact"])
    assert result.exit_code == 0 and "removed: 4, written: 0" in result.output
    assert [line["segments"] for line in folder.lines()[:-1]] == [[]] * 4
    assert folder.lines()[-1] == last and used(folder) == one.size
    assert folder.identities() == identities(one)


def grown(folder: Folder, one: Recorder, harvests: int, starts: bool) -> None:
    """So many harvests, each of what is new; the board is started between."""
    for _ in range(harvests):
        one.message("room/1", b"more")
        with locked(folder.path) as lines:
            store = Store(lines)
            for number in list(one.segments)[-2:]:
                store.keep(one.segments[number], growing=number == one.newest)
            store.bundle("a test")
        if starts:
            one.start()


def test_large_bundles_with_many_superseded_segments_are_rewritten(folder: Folder) -> None:
    """As of a computer, two of whose segments are 8 MB."""
    one = recorder(A, 10)
    grown(folder, one, 5, starts=True)
    del one.segments[one.newest]
    size = one.size
    assert used(folder) == 9 * size
    assert compacted(folder, 2 * size, 3 * size) == (4, 1)
    assert used(folder) == 5 * size and folder.identities() == identities(one)
    assert compacted(folder, 2 * size, 3 * size) == (0, 0)


def test_small_bundles_are_rewritten_if_half_is_superseded(folder: Folder) -> None:
    """Of what each harvest brings, two segments go on growing and one is the last of its board."""
    one, other = recorder(A, 10), recorder(B, 10)
    others = [recorder(f"{number:016x}", 10) for number in range(4)]
    for number, each in enumerate(others):
        assert compacted(folder, 1 << 20, 1 << 21) == (0, 0)
        assert len(folder.lines()) == number
        one.message("room/1", b"more")
        other.message("room/1", b"more")
        kept(folder, one, other, each)
    assert compacted(folder, 1 << 20, 1 << 21) == (4, 1)
    assert folder.identities() == identities(one, other, *others)
    assert used(folder) == 6 * one.size


@pytest.mark.parametrize("is_there", [True, False], ids=["damaged", "missing"])
def test_a_lost_copy_supersedes_nothing(folder: Folder, is_there: bool) -> None:
    """Once everything is somewhere else, the bundle that was lost goes."""
    one, other = recorder(A, 10), recorder(B, 700)
    kept(folder, one)
    one.message("room/1", b"more")
    kept(folder, one, other)
    before = folder.lines()
    bundle = folder.path / before[1]["path"]
    whole = bundle.read_bytes()
    bundle.write_bytes(whole[:-1] + b"!")
    if not is_there:
        bundle.unlink()
    assert compacted(folder, 4 * one.size, 1 << 21) == (0, 0)
    assert folder.lines() == before
    bundle.unlink(missing_ok=True)
    one.message("room/1", b"more")
    kept(folder, one, other)
    assert compacted(folder, 4 * one.size, 1 << 21)[0] >= 1
    assert folder.identities() == identities(one, other) and not bundle.exists()


def test_a_lost_bundle_does_not_prevent_compacting_the_others(
    folder: Folder,
) -> None:
    one, other = recorder(A, 10), recorder(B, 10)
    kept(folder, other)
    lost = folder.path / folder.lines()[0]["path"]
    for _ in range(4):
        one.message("room/1", b"more")
        kept(folder, one)
    lost.unlink()
    with pytest.raises(ToolError, match=lost.name):
        compacted(folder, 4 * one.size, 1 << 21)
    assert used(folder) == one.size
    assert [bool(line["segments"]) for line in folder.lines()] == [True, *[False] * 3, True]


def test_a_damaged_bundle_stays_while_what_would_replace_it_is_damaged_too(
    folder: Folder,
) -> None:
    one, other = recorder(A, 700), recorder(B, 700)
    kept(folder, one)
    kept(folder, other)
    with locked(folder.path) as manifest:
        lines = manifest.filled(manifest.lines())
        both = b"".join((folder.path / line.path).read_bytes() for line in lines)
        rotten = folder.path / "bundles" / "both.smq"
        rotten.write_bytes(both[:300] + b"?" + both[301:])  # seen only where it is read
        second = replace(
            lines[0],
            path="bundles/both.smq",
            size=len(both),
            sha256=hashlib.sha256(both).hexdigest(),
            segments=[each for line in lines for each in line.segments],
        )
        manifest.replace(lines[1:], [second], "a test")
    first = folder.path / lines[0].path
    first.write_bytes(first.read_bytes()[:-1])  # seen at once
    before = folder.lines()
    assert compacted(folder, 2 * one.size, 1 << 21) == (0, 0)
    assert first.exists() and folder.lines() == before
