"""DuckDB, Polars and pandas read the tables; Spark does in ../spark/test_tables.py."""

from __future__ import annotations

from importlib import util
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from slotmq_telemetry.schemas import ALL
from telemetry.tests.conftest import cli

from .rows import greenhouse_tables

Means = dict[tuple[str, str], Any]
MEANS = (
    "select board, topic, avg(number) from silver_messages where number is not null group by 1, 2"
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(greenhouse_tables(tmp_path_factory.mktemp("it's")).folder)


@pytest.fixture(scope="module")
def right(tables: Path) -> Means:
    """The mean of each topic of a board, by Arrow."""
    rows = DeltaTable(str(tables / "silver/messages")).to_pyarrow_table()
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows.select(["board", "topic", "number"]).to_pylist():
        if row["number"] is not None:
            found.setdefault((row["board"], row["topic"]), []).append(row["number"])
    return {key: pytest.approx(sum(some) / len(some)) for key, some in found.items()}


def means(rows: list[Any]) -> Means:
    return {(board, topic): mean for board, topic, mean in rows}


def views(tables: Path, *options: str) -> str:
    done = cli("telemetry", "sql", tables, *options)
    assert done.exit_code == 0, done.output
    return done.output


def test_duckdb_reads_the_views_of_all_tables(tables: Path, right: Means) -> None:
    with duckdb.connect() as duck:
        duck.execute(views(tables))
        assert means(duck.execute(MEANS).fetchall()) == right
        for table in ALL:
            shown = duck.execute(f"select * from {table.name.replace('/', '_')} limit 0")
            assert [name for name, *_ in shown.description] == table.schema.names
        kinds = duck.execute("select typeof(board) from silver_messages limit 1").fetchall()
        assert kinds == [("VARCHAR",)]


def test_duckdb_reads_delta_with_its_extension(tables: Path, right: Means) -> None:
    """The extension of the same version, from PyPI."""
    spec = util.find_spec("duckdb_extension_delta")
    assert spec is not None and spec.origin is not None
    (file,) = Path(spec.origin).parent.glob(f"extensions/v{duckdb.__version__}/*.duckdb_extension")
    with duckdb.connect() as duck:
        duck.execute(f"load '{file}'")
        duck.execute(views(tables, "--delta"))
        assert means(duck.execute(MEANS).fetchall()) == right


def test_polars_reads_delta(tables: Path, right: Means) -> None:
    rows = pl.scan_delta(str(tables / "silver/messages")).drop_nulls("number")
    found = rows.group_by("board", "topic").agg(pl.col("number").mean()).collect().rows()
    assert means(found) == right


def test_pandas_reads_delta(tables: Path, right: Means) -> None:
    frame = DeltaTable(str(tables / "silver/messages")).to_pandas()
    found = frame.dropna(subset=["number"]).groupby(["board", "topic"])["number"].mean()
    assert found.to_dict() == right
    assert str(frame["wall"].dtype) == "datetime64[us, UTC]"
