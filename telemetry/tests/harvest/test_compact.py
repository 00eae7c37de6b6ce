"""`slotmq harvest --compact` and the manifest: lines stay, small bundles are merged, and segments
that later ones supersede go."""

import fcntl
from pathlib import Path

import pytest

from slotmq_telemetry import manifest
from slotmq_telemetry.harvest.compact import compact
from slotmq_telemetry.harvest.manifest import locked
from slotmq_telemetry.harvest.store import Store
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import A, B, Folder, cli, identities, lines_of, recorder

from .recording import Recorder


def kept(folder: Folder, *recorders: Recorder) -> None:
    """Harvests everything that they have now as one bundle."""
    with locked(folder.path) as manifest:
        store = Store(manifest)
        for one in recorders:
            for number, segment in one.segments.items():
                store.keep(segment, growing=number == one.newest)
        store.bundle("a test")


def compacted(folder: Folder, least: int, most: int) -> tuple[int, int]:
    with locked(folder.path) as manifest:
        return compact(manifest, lambda _percent: None, least, most)


def test_small_bundles_are_merged_without_duplicates(folder: Folder) -> None:
    one, other = recorder(A, 20), recorder(B, 300)
    kept(folder, one, other)
    one.message("room/1", b"more")
    kept(folder, one)
    one.start()
    kept(folder, one)
    before = folder.identities()
    size = 4096
    count = len(one.segments) + len(other.segments)
    least, most = count * size, 2 * count * size
    assert compacted(folder, least, most) == (3, 1)
    assert folder.identities() == before == identities(one, other)
    lines = folder.lines()
    assert [line["segments"] for line in lines[:3]] == [[], [], []]
    assert len(folder.segments()) == count
    assert all(least <= line["size"] <= most for line in lines[3:])
    there = {f"bundles/{path.name}" for path in (folder.path / "bundles").iterdir()}
    assert there == {line["path"] for line in lines[3:]}
    assert compacted(folder, least, most) == (0, 0)
    read = [part for parts in manifest.parts(lines_of(folder.path)) for part in parts]
    assert [(part.line, part.start, part.end) for part in read] == [(3, 0, count * size)]
    for number in range(12):
        kept(folder, recorder(f"{number:016x}", 20))
    assert compacted(folder, 4 * size, 8 * size) == (12, 2), "in equal shares"
    assert [line["size"] for line in folder.lines()[-2:]] == [6 * size, 6 * size]


def test_a_record_is_never_later_than_its_line_nor_much_earlier(folder: Folder) -> None:
    """Nor is it by what `--compact` makes of it a week after the harvests."""
    boards = [recorder(f"{number:016x}", 20) for number in (3, 1, 2, 0)]
    for one in boards:
        kept(folder, one)
    folder.change("update bundles set harvested = 1000 + line")
    assert compacted(folder, 4 * 4096, 2 * 4096) == (4, 2)
    assert [line["harvested"] for line in folder.lines()] == [1000, 1001, 1002, 1003, 1001, 1003]
    there = [[segment[0] for segment in line["segments"]] for line in folder.lines()[4:]]
    assert there == [[f"{number:016x}" for number in pair] for pair in ((1, 3), (0, 2))]


def test_bundles_that_a_killed_run_left_go_with_the_next(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = recorder(A, 200), recorder(B, 200)
    kept(folder, one)
    kept(folder, other)
    size = (len(one.segments) + len(other.segments)) * 4096
    (folder.path / "bundles" / "notes.smq").write_text("somebody's own")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            compacted(folder, size, 2 * size)
    assert len(list((folder.path / "bundles").iterdir())) == 4
    compacted(folder, size, 2 * size)
    (line,) = (line for line in folder.lines() if line["path"])
    left = {f"bundles/{path.name}" for path in (folder.path / "bundles").iterdir()}
    assert left == {line["path"], "bundles/notes.smq"}


def killed(*_: object, **_options: object) -> None:
    raise KeyboardInterrupt


def test_too_little_stays_as_it_is(folder: Folder) -> None:
    kept(folder, recorder(A, 20))
    kept(folder, recorder(B, 20))
    before = folder.lines()
    result = cli("harvest", folder.path, "--compact")
    assert result.exit_code == 0 and "8 MB" in result.output
    assert folder.lines() == before


def test_a_damaged_bundle_is_not_compacted(folder: Folder) -> None:
    kept(folder, recorder(A, 300))
    bundle = folder.path / folder.lines()[0]["path"]
    bundle.write_bytes(b"!" + bundle.read_bytes()[1:])
    with pytest.raises(ToolError, match="SHA-256 differs"):
        compacted(folder, 1 << 20, 1 << 21)
    assert bundle.exists()


def test_two_harvests_at_once_and_a_manifest_of_something_else(folder: Folder) -> None:
    folder.path.mkdir()
    with (folder.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = cli("harvest", folder.path, "--compact")
        assert result.exit_code == 1 and "another harvest is running" in result.output
    (folder.path / "MANIFEST.sqlite").write_text("hello, this is no database\n" * 100)
    result = cli("harvest", folder.path, "--compact")
    assert result.exit_code == 1 and result.output.count("\n") == 1
    assert "MANIFEST.sqlite: file is not a database" in result.output


@pytest.mark.parametrize("path", ["typo", "file/x"])
def test_a_missing_folder_is_not_created(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("")
    result = cli("harvest", tmp_path / path, "--compact")
    assert result.exit_code == 1 and result.output.startswith(f"Error: {tmp_path}/{path} is not ")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


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
    result = cli("harvest", folder.path, "--compact")
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
