"""The manifest of a harvest folder, its division into tasks, and bronze: each line is read once,
by one process at a time, from one harvest folder."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import (
    bronze,
    bronze_files,
    build,
    harvest_source,
    live,
    manifest,
)
from slotmq_tools.telemetry.bronze_files import BAD, GOOD
from slotmq_tools.telemetry.lake import Lake

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
    [batch] = harvest_source.frames_of(tmp_path, part)
    [row] = batch.to_pylist()
    assert (row["file"], row["line"]) == ("bundles/1.smq", 0)
    assert row["reason"].startswith("unreadable bundle: ")


def test_the_process_that_holds_a_lock_is_named(tmp_path: Path, decoded: list[list[str]]) -> None:
    lake, one = Lake(tmp_path / "tables").made(), folder(tmp_path / "one", *bundles(3))
    (lake.folder / "quarantine/batch=lines-00000000-00000003").mkdir(parents=True)
    told = re.escape(f"{lake.folder}: process {os.getpid()} on {platform.node()} is writing ")
    with Lake(lake.folder).locked("bronze"), pytest.raises(ToolError, match=f"^{told}bronze$"):
        bronze.ingest(ANY, one, lake)
    assert len(lake.batches("quarantine")) == 1  # it may be the other one's, and is needed
    with lake.locked("live"):  # which has batches of its own
        bronze.ingest(ANY, one, lake)
    assert len(decoded) == 1
    for name, make in (("silver", build.build_silver), ("gold", build.build_gold)):
        (lake.folder / "silver").mkdir(exist_ok=True)
        with lake.locked(name), pytest.raises(ToolError, match=f"^{told}{name}$"):
            make(ANY, lake)
    with lake.locked("live"), pytest.raises(ToolError, match=f"^{told}live$"):
        live.run(ANY, lake, {}, None)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stands for Spark's tasks; the bundles that each run was given."""
    found: list[list[str]] = []

    def decode(_spark: object, _folder: Path, bundles: list[Any], target: Path) -> None:
        found.append([bundle.path for bundle in bundles])
        for kind in (GOOD, BAD):
            (target / kind).mkdir(parents=True)

    monkeypatch.setattr(bronze_files, "decode", decode)
    return found


def bundles(count: int, of: int = 17) -> list[dict[str, object]]:
    return [{**LINE, "path": f"bundles/{n}.smq", "harvested": of + n} for n in range(count)]


def folder(path: Path, *lines: object) -> Path:
    path.mkdir(exist_ok=True)
    return harvest(path, *lines)


@pytest.mark.parametrize("lines", [1, 2, 3, 9])
def test_another_harvest_folder_is_refused(
    tmp_path: Path, decoded: list[list[str]], lines: int
) -> None:
    lake = Lake(tmp_path / "tables").made()
    bronze.ingest(ANY, folder(tmp_path / "one", *bundles(3)), lake)
    with pytest.raises(ToolError, match="another harvest folder"):
        bronze.ingest(ANY, folder(tmp_path / "other", *bundles(lines, of=99)), lake)
    assert len(decoded) == 1 and len(lake.batches()) == 1


def test_a_folder_that_was_moved_compacted_and_filled_is_the_same(
    tmp_path: Path, decoded: list[list[str]]
) -> None:
    lake = Lake(tmp_path / "tables").made()
    bronze.ingest(ANY, folder(tmp_path / "one", *bundles(3)), lake)
    empty = [{**line, "path": "", "size": 0} for line in bundles(3)]
    moved = folder(tmp_path / "moved", *empty, {**LINE, "path": "bundles/large.smq"})
    assert bronze.ingest(ANY, moved, lake) == bronze.Taken(3, 4)
    assert bronze.ingest(ANY, moved, lake) == bronze.Taken(4, 4)
    assert decoded[1:] == [["bundles/large.smq"]]


def test_tables_without_a_hash_refuse_a_folder_with_fewer_lines(
    tmp_path: Path, decoded: list[list[str]]
) -> None:
    lake = Lake(tmp_path / "tables").made()
    (lake.folder / "bronze/batch=lines-00000000-00000003").mkdir(parents=True)
    with pytest.raises(ToolError, match="another harvest folder"):
        bronze.ingest(ANY, folder(tmp_path / "one", *bundles(2)), lake)
    assert decoded == []
    assert bronze.ingest(ANY, folder(tmp_path / "two", *bundles(4)), lake).first == 3


def test_a_batch_of_a_killed_run_is_removed_from_quarantine(
    tmp_path: Path, decoded: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "tables").made()
    with monkeypatch.context() as patch:
        patch.setattr(Lake, "add_batch", killed_before_bronze)
        with pytest.raises(KeyboardInterrupt):
            bronze.ingest(ANY, folder(tmp_path / "one", *bundles(3)), lake)
    assert lake.batches("quarantine") == ["lines-00000000-00000003"]
    (lake.folder / "quarantine/batch=live-x-0").mkdir()  # another process is at it
    bronze.ingest(ANY, folder(tmp_path / "one", *bundles(5)), lake)
    assert lake.batches() == ["lines-00000000-00000005"]
    assert lake.batches("quarantine") == ["lines-00000000-00000005", "live-x-0"]


def killed_before_bronze(lake: Lake, table: str, batch: str, written: Path) -> None:
    if table == "bronze":
        raise KeyboardInterrupt
    (lake.folder / table).mkdir()
    written.replace(lake.folder / table / f"batch={batch}")
