"""The manifest of a harvest folder, its division into tasks, and bronze: each line is read once,
from any number of harvest folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import bronze, decode, manifest
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import BRONZE, QUARANTINE

from . import campaign
from .rows import HERE

LINE = {"path": "bundles/1.smq", "size": 2048, "segment_size": 512, "harvested": 17.5}


def harvest(folder: Path, *lines: object, tail: str = "\n") -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / manifest.NAME).write_text(text + tail)
    return folder


def test_a_manifest_line_without_newline_is_ignored(tmp_path: Path) -> None:
    harvest(tmp_path, LINE, '{"path": "bun', tail="")
    assert [b.path for b in manifest.read(tmp_path)] == ["bundles/1.smq"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2: not a manifest line"),
        ("[" * 3000, "line 2: not a manifest line"),
        ("[]", "line 2: not a manifest line"),
        ({**LINE, "size": None}, "line 2: not a manifest line"),
        ({**LINE, "segment_size": 0}, "line 2: invalid sizes"),
        ({**LINE, "path": "../x"}, "line 2: ../x lies outside the folder"),
        ({**LINE, "path": "/etc/x"}, "line 2: /etc/x lies outside the folder"),
    ],
)
def test_a_wrong_manifest_line_is_named(tmp_path: Path, line: object, words: str) -> None:
    harvest(tmp_path, LINE, line)
    with pytest.raises(ToolError, match=words):
        manifest.read(tmp_path)


def test_tasks_are_whole_segments_and_of_one_size(tmp_path: Path) -> None:
    harvest(tmp_path, {**LINE, "size": 5120}, LINE, LINE)
    tasks = list(manifest.parts(manifest.read(tmp_path), 2100))
    spans = [[(p.bundle.line, p.start, p.end) for p in task] for task in tasks]
    assert spans == [
        [(0, 0, 2048)], [(0, 2048, 4096)], [(0, 4096, 5120)], [(1, 0, 2048)], [(2, 0, 2048)],
    ]  # fmt: skip


def test_a_missing_bundle_is_a_bad_frame(tmp_path: Path) -> None:
    harvest(tmp_path, LINE)
    [[part]] = manifest.parts(manifest.read(tmp_path))
    [batch] = decode.frames_of(tmp_path, part)
    [row] = batch.to_pylist()
    assert (row["file"], row["line"]) == ("bundles/1.smq", 0)
    assert row["reason"].startswith("unreadable bundle: ")


def ingest(harvest: Path, lake: Lake) -> tuple[int, int]:
    """The lines that were read."""
    taken = bronze.ingest(HERE, harvest, lake)
    return taken.first, taken.last


def rows(lake: Lake) -> list[int]:
    return [lake.rows(table).num_rows for table in (BRONZE, QUARANTINE)]


def test_several_harvest_folders_fill_the_same_tables(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    counts = []
    for seed in (214, 229):
        lived = campaign.run(tmp_path / f"{seed}", [seed])
        assert ingest(lived.folder, lake) == (0, lived.lines)
        assert ingest(lived.folder, lake) == (lived.lines, lived.lines)
        counts.append(len(lived.seasons[0].harvest.taken))
    assert rows(lake)[0] == sum(counts)


def test_a_folder_that_was_moved_compacted_and_filled_is_the_same(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    lived = campaign.run(tmp_path / "one", [214])
    before = lived.lines
    assert ingest(lived.folder, lake) == (0, before)
    lived.compact()
    assert lived.lines == before + 1
    moved = lived.folder.rename(tmp_path / "moved")
    assert ingest(moved, lake) == (before, before + 1)
    assert ingest(moved, lake) == (before + 1, before + 1)


def test_a_copy_of_a_folder_that_went_another_way_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    one = folder(tmp_path / "one", *bundles(1))
    ingest(one, lake)
    other = shutil.copytree(one, tmp_path / "other")
    folder(one, *bundles(3))
    assert ingest(one, lake) == (1, 3)
    for lines in (bundles(2), [*bundles(1), *bundles(4, of=99)]):
        with pytest.raises(ToolError, match="begins like a harvest folder"):
            ingest(folder(other, *lines), lake)
    assert rows(lake) == [0, 3]  # bundles that are missing


def bundles(count: int, of: int = 17) -> list[dict[str, object]]:
    return [{**LINE, "path": f"bundles/{n}.smq", "harvested": of + n} for n in range(count)]


def folder(path: Path, *lines: object) -> Path:
    path.mkdir(exist_ok=True)
    return harvest(path, *lines)
