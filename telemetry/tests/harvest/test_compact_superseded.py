"""`slotmq harvest --compact` removes superseded copies of segments, from large bundles, too."""

import pytest
from click.testing import CliRunner

from slotmq_telemetry.harvest.manifest import locked
from slotmq_telemetry.harvest.store import Store
from slotmq_tools.cli import main
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import A, B, Folder, identities, recorder

from .recording import Recorder
from .test_compact import compacted, kept


def used(folder: Folder) -> int:
    """Bytes of all bundles, whether a line has them or not."""
    return sum(path.stat().st_size for path in (folder.path / "bundles").iterdir())


def test_the_fullest_copy_of_a_segment_stays(folder: Folder) -> None:
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


def test_a_lost_copy_supersedes_nothing(folder: Folder) -> None:
    """Once everything is somewhere else, the line of the bundle that was lost goes."""
    one, other = recorder(A, 10), recorder(B, 700)
    kept(folder, one)
    one.message("room/1", b"more")
    kept(folder, one, other)
    before = folder.lines()
    (folder.path / before[1]["path"]).unlink()
    assert compacted(folder, 4 * one.size, 1 << 21) == (0, 0)
    assert folder.lines() == before
    one.message("room/1", b"more")
    kept(folder, one, other)
    assert compacted(folder, 4 * one.size, 1 << 21)[0] >= 1
    assert folder.identities() == identities(one, other)


def test_what_supersedes_was_read(folder: Folder) -> None:
    one, other = recorder(A, 10), recorder(B, 700)
    kept(folder, one)
    one.message("room/1", b"more")
    kept(folder, one, other)
    large = folder.path / folder.lines()[1]["path"]
    large.write_bytes(large.read_bytes()[:-1] + b"!")
    with pytest.raises(ToolError, match=f"{large.name}: it was changed after the harvest"):
        compacted(folder, 2 * one.size, 1 << 21)
    assert len([*(folder.path / "bundles").iterdir()]) == 2
