"""Spark's tasks make the tables that this process makes; and the format `slotmq`.

A run that fails prints its first seed; the environment variable SEASONS_FROM repeats that run.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slotmq_telemetry import views
from slotmq_telemetry.engine import Engine
from slotmq_telemetry.harvest_source import NAME
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import ALL, BRONZE, GOLD, QUARANTINE, SILVER
from telemetry.tests.tables import campaign
from telemetry.tests.tables.rows import Made

COUNT = 8


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Seasons that were compacted after bronze had read them."""
    first = int(os.environ.get("SEASONS_FROM", secrets.randbelow(2**40)))
    print(f"SEASONS_FROM={first}")
    folder, engine = tmp_path_factory.mktemp("seasons"), Engine(lambda: spark, always=True)
    found = Made(campaign.run(folder / "harvest", range(first, first + COUNT)),
                 Lake(folder / "tables"))  # fmt: skip
    here = Made(found.campaign, Lake(folder / "here"))
    found.ingest(engine)
    here.ingest()
    found.campaign.compact()
    found.ingest(engine)
    here.ingest()
    return found


def test_silver_and_gold_are_what_this_process_makes(made: Made) -> None:
    here = Made(made.campaign, Lake(made.campaign.folder.parent / "here"))
    found, right = made.sorted(), here.sorted()
    for table in (*SILVER.values(), *GOLD.values()):
        assert found[table.name] == right[table.name], table.name


def test_spark_reads_the_files_of_a_table(spark: SparkSession, made: Made) -> None:
    table = SILVER["messages"]
    files = made.lake.need(table).file_uris()
    base = str(made.lake.folder / table.name)
    found = spark.read.option("basePath", base).parquet(*files)
    right = {(row["board"], row["boot"], row["seq"]) for row in made.campaign.all("messages")}
    rows = found.select("board", "boot", "seq").collect()
    assert {tuple(row) for row in rows} == right and len(rows) == len(right)


def test_spark_reads_the_views_of_all_tables(spark: SparkSession, made: Made) -> None:
    for statement in views.statements(made.lake, "spark", by_delta=False):
        spark.sql(statement.removesuffix(";"))
    for table in ALL:
        name, rows = table.name.replace("/", "_"), made.lake.rows(table)
        view = spark.table(name)
        assert sorted(view.columns) == sorted(table.schema.names)
        assert view.count() == rows.num_rows, name
        assert {row.board for row in view.select("board").distinct().collect()} == {
            *rows.column("board").to_pylist()
        }


def test_the_format_has_the_frames_of_a_folder_as_a_batch_and_as_a_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    """And on from where it was."""
    lived = campaign.run(tmp_path / "harvest", [214])
    made = Made(lived, Lake(tmp_path / "tables"))
    made.ingest()
    names = ["line", "offset", "board", "reason"]
    both = [made.lake.rows(table) for table in (BRONZE, QUARANTINE)]
    right = sorted((line, offset) for table in both
                   for line, offset in zip(*(table[n].to_pylist() for n in names[:2]),
                                           strict=True))  # fmt: skip
    frames = spark.read.format(NAME).option("path", str(lived.folder)).load()
    assert frames.where("reason is null").count() == both[0].num_rows
    assert sorted((row.line, row.offset) for row in frames.select(names).collect()) == right
    stream = spark.readStream.format(NAME).option("path", str(lived.folder))
    for triggers in (1, 0):
        query = (
            stream.load()
            .select("line", "offset")
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .format("parquet")
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        assert len(query.recentProgress) >= triggers
    found = spark.read.parquet(str(tmp_path / "out"))
    assert sorted((row.line, row.offset) for row in found.collect()) == right
