"""Bad input to every command: one line, an exit code, and nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from host_tests.telemetry.recorder.test_recording import begin
from slotmq_tools.cli import main
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest import network
from slotmq_tools.telemetry import command, more_commands
from slotmq_tools.telemetry.lake import Lake

REFUSED = [
    (["bronze", "file", "tables"], "file"),
    (["bronze", "none", "tables"], "none is not a harvest folder"),
    (["ingest", "file/h", "tables"], "MANIFEST.jsonl cannot be read"),
    (["silver", "none"], "run `slotmq telemetry bronze` first"),
    (["gold", "none"], "run `slotmq telemetry silver` first"),
    (["report", "none", "page.html"], "run `slotmq telemetry gold` first"),
    (["season", "file/h"], "Not a directory"),
    (["demo", "file/h"], "Not a directory"),
    (["live", "file/t", "--broker", "127.0.0.1:1", "--once"], "Not a directory"),
    (["delta", "none", "target"], "nothing to copy"),
    (["pack", "file/x.zip"], "Not a directory"),
    (["pack", "none/x.zip"], "No such file or directory"),
]


@pytest.mark.parametrize(("words", "complaint"), REFUSED, ids=[" ".join(w) for w, _ in REFUSED])
def test_a_wrong_folder_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("no folder")
    done = CliRunner().invoke(main, ["telemetry", *words])
    last = done.output.splitlines()[-1]
    assert done.exit_code in (1, 2) and last.startswith("Error: ") and complaint in last
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_tables_of_another_harvest_are_told_before_spark_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path / "tables").made()
    lake.remember("harvest", {"lines": 0, "mark": "another"})
    (tmp_path / "MANIFEST.jsonl").write_text("")
    monkeypatch.setattr(command, "session", lambda _master: pytest.fail("a session"))
    done = CliRunner().invoke(main, ["telemetry", "bronze", str(tmp_path), str(lake.folder)])
    assert done.exit_code == 1
    assert "has the tables of another harvest folder" in done.stderr


WITHOUT_SPARK = [
    (["live", "tables", "--broker", "127.0.0.1:1", "--once"], "127.0.0.1:1"),
    (["bronze", "harvest", "tables", "--master", "nonsense"], "nonsense is not a Spark master"),
]


@pytest.mark.parametrize(("words", "complaint"), WITHOUT_SPARK, ids=["live", "master"])
def test_what_needs_no_spark_is_told_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("harvest").mkdir()
    Path("harvest/MANIFEST.jsonl").touch()
    done = CliRunner().invoke(main, ["telemetry", *words])
    (line,) = done.output.splitlines()
    assert done.exit_code == 1 and line.startswith("Error: ") and complaint in line


def test_once_is_for_boards_that_tell_of_their_rings(tmp_path: Path) -> None:
    run, (host, port) = begin(tmp_path, "cpython")
    words = ["live", str(tmp_path / "tables"), "--broker", f"{host}:{port}", "--once"]
    found = [
        CliRunner().invoke(main, ["telemetry", *words, *more]) for more in ([], ["--board", "a"])
    ]
    run.stop()
    for done, complaint in zip(found, ("announces recordings", "no board a"), strict=True):
        assert (
            done.exit_code == 1 and done.output.startswith("Error: ") and complaint in done.output
        )


def test_no_rights_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = CliRunner().invoke(main, ["telemetry", "season", str(tmp_path / "harvest")])
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == f"Error: {tmp_path}: Permission denied"


def test_a_folder_that_may_not_be_searched_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A harvest is kept away from tables; whether they are there it may not see."""
    closed, card = tmp_path / "closed", tmp_path / "card"
    card.mkdir()
    look = Path.stat

    def refused(path: Path, **options: Any) -> os.stat_result:
        if closed in path.parents:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", refused)
    done = CliRunner().invoke(main, ["harvest", str(closed / "field"), "--from", str(card)])
    assert done.exit_code == 1
    assert done.output == f"Error: {closed}/field/bronze: Permission denied\n"


class Ring:
    """Brokers: some hang, once they have let somebody in."""

    hung: frozenset[int] = frozenset()  # ports
    closed: list[int]

    def __init__(self, address: tuple[str, int], _login: object) -> None:
        self.port = address[1]

    def heads(self) -> dict[str, object]:
        if self.port in self.hung:
            raise ToolError(f"no MQTT at {self.port}")
        return {"00000000000000aa": None}

    def close(self) -> None:
        self.closed.append(self.port)


@pytest.mark.parametrize("hung", [1, 2])
def test_once_goes_on_with_a_board_of_another_broker_where_one_hangs(
    hung: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = [("127.0.0.1", 1), ("127.0.0.1", 2)]
    monkeypatch.setattr(network, "Ring", Ring)
    monkeypatch.setattr(Ring, "closed", [], raising=False)
    monkeypatch.setattr(Ring, "hung", frozenset({hung}))
    more_commands._need_one(brokers, None, ())
    assert Ring.closed == ([1, 2] if hung == 1 else [1])
    with pytest.raises(ToolError, match="there is no board cc behind these brokers"):
        more_commands._need_one(brokers, None, ("cc",))
    monkeypatch.setattr(Ring, "hung", frozenset({1, 2}))
    with pytest.raises(ToolError, match="no MQTT at 1"):
        more_commands._need_one(brokers, None, ())


def test_of_a_java_trace_the_cause_is_told() -> None:
    trace = "An error occurred.\nat x.Y\nCaused by: java.io.IOException: No space left\nat x.Z\n"
    assert command.reason(trace) == "java.io.IOException: No space left"
    assert command.reason("[TABLE_NOT_FOUND] t\nat x.Y") == "[TABLE_NOT_FOUND] t"


def test_readers_outside_of_spark_see_what_is_committed(tmp_path: Path) -> None:
    """While a batch and a version are being written, and after a writer was killed."""
    lake = Lake(tmp_path / "tables").made()

    def written(path: Path, rows: int) -> Path:
        path.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"seq": list(range(rows))}), path / "part.parquet")
        return path

    def seen() -> tuple[list[int], list[int]]:
        """By DuckDB and by pandas: rows of bronze, and of silver."""
        found = []
        for part, glob in (("bronze", "*/*.parquet"), ("silver", "messages/**/*.parquet")):
            with duckdb.connect() as duck:
                ask = f"select count(*) from read_parquet('{lake.folder}/{part}/{glob}')"
                by_duck = duck.execute(ask).fetchall()[0][0]
            found.append([by_duck, len(pd.read_parquet(lake.folder / part))])
        return found[0], found[1]

    for count in (3, 5):
        with lake.staging("batch") as batch, lake.staging("silver") as silver:
            written(batch, count)
            written(silver / "messages", count)
            if count == 5:
                assert seen() == ([3, 3], [3, 3])
            lake.add_batch("bronze", f"lines-{count}", batch)
            lake.publish("silver", silver)
    assert seen() == ([8, 8], [5, 5])
    written(lake.folder / ".staging/killed-1", 100)
    (lake.folder / "bronze/batch=lines-3/.part.parquet.half").write_bytes(b"PAR1")
    assert seen() == ([8, 8], [5, 5])
