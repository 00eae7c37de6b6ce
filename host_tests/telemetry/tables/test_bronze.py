"""The manifest of a harvest folder, its division into tasks, and bronze: each line is read once,
from any number of harvest folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.manifest import Line, locked
from slotmq_tools.telemetry import bronze, decode, manifest, optimize
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import BRONZE, QUARANTINE

from . import campaign
from .rows import HERE, Made


def line(number: int = 1, size: int = 2048, harvested: float = 17.5) -> Line:
    return Line(f"bundles/{number}.smq", size, "", 512, harvested, "a test")


def harvest(folder: Path, *lines: Line) -> Path:
    with locked(folder) as there:
        there.append(*lines)
    return folder


def test_tasks_are_whole_segments_and_of_one_size(tmp_path: Path) -> None:
    harvest(tmp_path, line(size=5120), line(), line())
    tasks = list(manifest.parts(manifest.read(tmp_path), 2100))
    spans = [[(p.bundle.line, p.start, p.end) for p in task] for task in tasks]
    assert spans == [
        [(0, 0, 2048)], [(0, 2048, 4096)], [(0, 4096, 5120)], [(1, 0, 2048)], [(2, 0, 2048)],
    ]  # fmt: skip


def test_a_missing_bundle_is_a_bad_frame(tmp_path: Path) -> None:
    harvest(tmp_path, line())
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
    one = harvest(tmp_path / "one", *some(1))
    ingest(one, lake)
    other = shutil.copytree(one, tmp_path / "other")
    harvest(one, *some(3)[1:])
    assert ingest(one, lake) == (1, 3)
    for count in (0, 3):
        harvest(other, *some(count, of=99))
        with pytest.raises(ToolError, match="begins like a harvest folder"):
            ingest(other, lake)
    assert rows(lake) == [0, 3]  # bundles that are missing


def some(count: int, of: int = 17) -> list[Line]:
    return [line(number, harvested=of + number) for number in range(count)]


def test_files_that_are_put_together_change_no_table(tmp_path: Path) -> None:
    lived, lake = campaign.run(tmp_path / "harvest", [214]), Lake(tmp_path / "tables")
    made, after = Made(lived, lake), Made(campaign.Campaign(tmp_path / "late"), lake)
    lake.made()
    with locked(lived.folder) as lines:
        all_lines = lines.lines()
    (tmp_path / "late").mkdir()
    (tmp_path / "late/bundles").symlink_to(lived.folder / "bundles")
    for each in all_lines:
        harvest(tmp_path / "late", each)
        after.ingest()
    before = made.sorted()
    count = len(lake.files(BRONZE))
    gone = optimize.compact(HERE, lake)
    assert gone > 4 and len(lake.files(BRONZE)) < count
    assert made.sorted() == before
    assert after.ingest() == (0, 0)
    assert optimize.compact(HERE, lake) == 0
