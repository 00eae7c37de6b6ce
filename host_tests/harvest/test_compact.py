"""The folder: its lines stay what they were, and small bundles become large ones."""

import fcntl
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_tools.cli import main
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.compact import compact
from slotmq_tools.harvest.manifest import Manifest, locked
from slotmq_tools.harvest.store import Store
from slotmq_tools.telemetry import manifest

from .conftest import A, B, Folder, identities, recorder
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


def test_many_bundles_become_few_and_doubles_go(folder: Folder) -> None:
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


def test_a_reader_of_the_lines_meets_each_segment_once(folder: Folder) -> None:
    one, other = recorder(A, 200), recorder(B, 200)
    kept(folder, one)
    kept(folder, other)
    size = (len(one.segments) + len(other.segments)) * 4096
    assert compacted(folder, size, 2 * size) == (2, 1)
    lines = manifest.read(folder.path)
    assert [line.line for line in lines] == [0, 1, 2]
    read = [part for parts in manifest.parts(lines) for part in parts]
    assert [(part.bundle.line, part.start, part.end) for part in read] == [(2, 0, size)]


def test_more_than_one_bundle_holds_goes_into_equal_shares(folder: Folder) -> None:
    for number in range(12):
        kept(folder, recorder(f"{number:016x}", 20))
    assert compacted(folder, 4 * 4096, 8 * 4096) == (12, 2)
    assert [line["size"] for line in folder.lines()[12:]] == [6 * 4096, 6 * 4096]


def test_too_little_stays_as_it_is(folder: Folder) -> None:
    kept(folder, recorder(A, 20))
    kept(folder, recorder(B, 20))
    before = folder.lines()
    result = CliRunner().invoke(main, ["harvest", str(folder.path), "--compact"])
    assert result.exit_code == 0 and "until there are 8 MB" in result.output
    assert folder.lines() == before


def test_a_damaged_bundle_is_not_compacted(folder: Folder) -> None:
    kept(folder, recorder(A, 300))
    bundle = folder.path / folder.lines()[0]["path"]
    bundle.write_bytes(b"!" + bundle.read_bytes()[1:])
    with pytest.raises(ToolError, match="SHA-256 differs"):
        compacted(folder, 1 << 20, 1 << 21)
    assert bundle.exists()


def test_a_line_that_a_crash_cut_is_none_and_gives_way(folder: Folder) -> None:
    kept(folder, recorder(A, 20))
    path = folder.path / "MANIFEST.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"path":"bundles/half')
    assert len(Manifest(folder.path).lines) == 1
    kept(folder, recorder(B, 20))
    assert path.read_bytes().startswith(whole)
    assert [json.loads(line)["segments"][0][0] for line in path.read_text().splitlines()] == [A, B]


def test_two_harvests_at_once_and_a_manifest_of_something_else(folder: Folder) -> None:
    folder.path.mkdir()
    with (folder.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = CliRunner().invoke(main, ["harvest", str(folder.path), "--compact"])
        assert result.exit_code == 1 and "another harvest is at work" in result.output
    (folder.path / "MANIFEST.jsonl").write_text("hello\n")
    result = CliRunner().invoke(main, ["harvest", str(folder.path), "--compact"])
    assert result.exit_code == 1 and "MANIFEST.jsonl:1: this is no line" in result.output


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["harvest", str(tmp_path / "file" / "x"), "--compact"])
    assert result.exit_code == 1 and result.output.count("\n") == 1
