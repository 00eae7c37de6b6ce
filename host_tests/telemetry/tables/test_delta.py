"""`slotmq telemetry delta`: each batch and each version is copied once."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import delta
from slotmq_tools.telemetry.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "tables").made()


def batch(lake: Lake, name: str, numbers: range) -> None:
    for table in ("quarantine", "bronze"):
        with lake.staging("test") as written:
            written.mkdir(parents=True)
            rows = pa.table({"board": ["a"] * len(numbers), "seq": list(numbers)})
            pq.write_table(rows, written / "part.parquet")
            lake.add_batch(table, name, written)


def silver(lake: Lake, days: dict[str, range]) -> None:
    with lake.staging("silver") as written:
        for day, numbers in days.items():
            folder = written / "messages" / f"day={day}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"seq": list(numbers)}), folder / "part.parquet")
        lake.publish("silver", written)


def numbers(target: Path) -> list[int]:
    """Of the table as it is now."""
    files = DeltaTable(str(target)).file_uris()
    found = ds.dataset([file.removeprefix("file://") for file in files]).to_table()
    return sorted(found.column("seq").to_pylist())


def test_bronze_grows_by_the_batches_that_are_new(lake: Lake, tmp_path: Path) -> None:
    target = tmp_path / "delta"
    batch(lake, "lines-0-1", range(5))
    assert dict(delta.copy(lake, str(target)))["bronze"] == 5
    batch(lake, "live-x-0", range(5, 7))
    assert dict(delta.copy(lake, str(target)))["bronze"] == 2
    assert dict(delta.copy(lake, str(target)))["bronze"] == 0
    assert numbers(target / "bronze") == list(range(7))


def test_a_run_that_was_killed_between_two_batches_goes_on(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "delta"
    batch(lake, "lines-0-1", range(5))
    batch(lake, "lines-1-2", range(5, 9))
    write = delta._write

    def killed(table: str, found: object, *rest: object) -> int:
        if "lines-1" in str(found.files):  # type: ignore[attr-defined]
            raise KeyboardInterrupt
        return write(table, found, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(delta, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            list(delta.copy(lake, str(target)))
    list(delta.copy(lake, str(target)))
    assert numbers(target / "bronze") == list(range(9))


def test_silver_is_replaced_when_it_was_rebuilt(lake: Lake, tmp_path: Path) -> None:
    target = tmp_path / "delta"
    batch(lake, "lines-0-1", range(1))
    silver(lake, {"2026-11-21": range(3), "2026-11-22": range(3, 5)})
    assert dict(delta.copy(lake, str(target)))["silver/messages"] == 5
    assert dict(delta.copy(lake, str(target)))["silver/messages"] == 0
    silver(lake, {"2026-11-22": range(3, 6)})
    assert dict(delta.copy(lake, str(target)))["silver/messages"] == 3
    made = target / "silver" / "messages"
    assert numbers(made) == [3, 4, 5]
    assert DeltaTable(str(made)).version() == 1
    assert DeltaTable(str(made)).metadata().partition_columns == ["day"]


@pytest.mark.parametrize("target", ["file/t", "foo://bucket"])
def test_a_target_that_cannot_be_written_is_one_line(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    batch(lake, "lines-0-1", range(5))
    with pytest.raises(ToolError) as failed:
        list(delta.copy(lake, target))
    assert str(failed.value).startswith(f"{target}: ") and "\n" not in str(failed.value)


def test_missing_tables_or_package_are_one_line(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolError, match="no bronze"):
        list(delta.copy(lake, str(tmp_path / "delta")))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ToolError, match=r"slotmq\[delta\]"):
        list(delta.copy(lake, str(tmp_path / "delta")))
