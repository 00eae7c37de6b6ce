"""The folder of tables: commits by rename, versions, and what readers outside of Spark see."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slotmq_tools.telemetry.lake import Lake


def test_a_version_replaces_the_previous_one_at_once(tmp_path: Path) -> None:
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


def test_a_batch_in_quarantine_alone_is_rewritten_and_one_in_bronze_stays(
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


def test_a_file_system_without_locks_refuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", refused)
    lake = Lake(tmp_path / "tables").made()
    with lake.locked("bronze"):
        assert not lake.has("bronze")


def test_other_readers_see_only_what_is_committed(tmp_path: Path) -> None:
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
