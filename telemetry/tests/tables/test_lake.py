"""The folder of tables: transactions, what a killed writer leaves, locks, and what is deleted."""

from __future__ import annotations

import errno
import fcntl
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from slotmq_telemetry.lake import File, Lake, board_of, write
from slotmq_telemetry.optimize import vacuum
from slotmq_telemetry.schemas import QUARANTINE, Table
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import cli

from . import campaign
from .rows import Made, killed

TABLE = Table("gold/test", pa.schema([("board", pa.string()), ("seq", pa.int64())]))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "tables").made()


def written(lake: Lake, name: str, board: str | None, *numbers: int) -> File:
    rows = pa.table({"seq": pa.array(numbers, pa.int64())})
    return write(lake.folder, TABLE, rows, name, board)


def seen(lake: Lake, version: int | None = None) -> list[tuple[str | None, int]]:
    found = DeltaTable(str(lake.folder / TABLE.name), version).to_pyarrow_table().to_pylist()
    return sorted(((row["board"], row["seq"]) for row in found), key=repr)


def test_a_transaction_replaces_the_files_of_a_board(lake: Lake) -> None:
    one, other = written(lake, "1", "a", 1, 2), written(lake, "1", "b", 3)
    lake.commit(TABLE, [one, other])
    assert seen(lake) == [("a", 1), ("a", 2), ("b", 3)]
    new = written(lake, "2", "a", 4)
    assert seen(lake) == [("a", 1), ("a", 2), ("b", 3)], "not before it is committed"
    lake.commit(TABLE, [new, written(lake, "3", None, 9)], [one.path])
    assert seen(lake) == [("a", 4), ("b", 3), (None, 9)]
    assert seen(lake, 1) == [("a", 1), ("a", 2), ("b", 3)], "readers of a version go on"
    assert sorted(map(board_of, lake.files(TABLE)), key=repr) == ["a", "b", None]


def test_marks_say_what_was_done(lake: Lake) -> None:
    assert lake.marked(TABLE, "lines") is None
    lake.commit(TABLE, [], (), {"lines": 3})
    lake.commit(TABLE, [], (), {"lines": 7})
    assert (lake.marked(TABLE, "lines"), lake.marked(TABLE, "other")) == (7, None)


def test_what_no_version_names_is_deleted(lake: Lake) -> None:
    one = written(lake, "1", "a", 1)
    lake.commit(TABLE, [one])
    new, killed = written(lake, "2", "a", 4), written(lake, "3", "a", 5)
    lake.commit(TABLE, [new], [one.path])
    assert dict(vacuum(lake, [TABLE], 0.9)) == {TABLE.name: 0}
    vacuum_now = dict(vacuum(lake, [TABLE], 0))
    assert vacuum_now[TABLE.name] >= 1
    assert seen(lake) == [("a", 4)]
    assert not (lake.folder / TABLE.name / one.path).exists() and killed.path != new.path
    version = lake.need(TABLE).version()
    assert dict(vacuum(lake, [TABLE], 0)) == {TABLE.name: 0}
    assert lake.need(TABLE).version() == version, "nothing to do is no version"


def test_a_file_system_without_locks_refuses_nobody(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refused)
    with lake.locked("bronze"):
        assert lake.open(TABLE) is None


def test_a_run_that_was_killed_between_two_transactions_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever: what is missing is made, and nothing is there twice."""
    lived = campaign.run(tmp_path / "harvest", [229])
    whole = Made(lived, Lake(tmp_path / "whole"))
    whole.ingest()
    for killed_at in (1, 4, 9):
        made = Made(lived, Lake(tmp_path / f"killed-{killed_at}"))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Lake, "commit", killed(killed_at))
            made.ingest()
        made.ingest()
        assert made.sorted() == whole.sorted(), killed_at
    assert whole.lake.rows(QUARANTINE).num_rows


def test_a_damaged_table_is_one_line(lake: Lake) -> None:
    lake.commit(TABLE, [written(lake, "1", "a", 1)])
    (lake.folder / TABLE.name / "board=a/1.parquet").write_bytes(b"PAR1")
    with pytest.raises(ToolError, match="gold/test cannot be read: ") as failed:
        lake.rows(TABLE)
    assert "\n" not in str(failed.value)
    log = lake.folder / TABLE.name / "_delta_log"
    (log / "00000000000000000000.json").write_text("what")
    with pytest.raises(ToolError, match="gold/test cannot be read: "):
        Lake(lake.folder).open(TABLE)


def test_damaged_files_are_named_and_made_anew(tmp_path: Path) -> None:
    lived = campaign.run(tmp_path / "harvest", [229])
    made = Made(lived, Lake(tmp_path / "tables"))
    made.ingest()
    right = made.sorted()
    for path in (made.lake.folder / "silver").rglob("*.parquet"):
        path.write_bytes(b"")
    board = made.rows("boards")[0]["board"]
    (made.lake.folder / "boards.toml").write_text(f"[{board}]\nsite = 'x'")
    done = cli("telemetry", "build", made.lake.folder)
    *_, which, last = done.output.splitlines()
    assert (
        done.exit_code == 1
        and last == "Error: 1 board cannot be built: the next build tries again"
    )
    assert which.startswith(f"board {board}: ArrowInvalid: ")
    (made.lake.folder / "boards.toml").unlink()
    for part in ("silver", "gold"):
        shutil.rmtree(made.lake.folder / part)
    made.ingest()
    assert made.sorted() == right


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    lived = campaign.run(tmp_path / "harvest", [214])
    made = Made(lived, Lake(tmp_path / "tables"))
    made.ingest()
    for name in ("bronze", "silver", "gold"):
        with made.lake.locked(name), pytest.raises(ToolError, match=f"is writing {name}$"):
            made.ingest()
    with made.lake.locked("live"):  # which has batches of its own
        assert made.ingest() == (0, 0)
