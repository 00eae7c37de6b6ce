"""Silver of seasons of every kind equals the truth; and bronze, quarantine and sources."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slotmq_tools.telemetry import bridges, bronze, build, manifest, silver
from slotmq_tools.telemetry.harvest_source import NAME
from slotmq_tools.telemetry.lake import Lake

from . import campaign
from .made import Made


@pytest.mark.parametrize("table", build.SILVER)
def test_the_table_equals_the_truth(made: Made, table: str) -> None:
    assert made.campaign.all(table), "the seasons must have some"
    assert made.wrong(table) == []


def test_the_seasons_have_what_is_to_be_shown(made: Made) -> None:
    messages = made.campaign.all("messages")
    assert {row["clock"] for row in messages} == {"anchored", "between", "own", "unknown"}
    assert {row["kind"] for row in messages} == {
        "number", "json", "cbor", "text", "bytes", "empty",
    }  # fmt: skip
    assert any(row["possible_duplicate"] for row in messages)
    assert any(row["copies"] > 1 for row in messages)
    assert any(row["origin_board"] for row in messages)
    assert any(row["uptime_ms"] >= 2**30 for row in messages)
    assert {row["believed"] for row in made.campaign.all("anchors")} == {True, False}
    behind = [
        truth.wall(key)
        for truth in made.campaign.truths
        for key in truth.entries
        if truth.clocks.hidden(key)
    ]
    assert {wall[2] for wall in behind if wall} >= {"anchored", "between"}
    assert None in behind
    losses = made.campaign.all("losses")
    assert any(row["boots"] > 10_000 for row in losses)
    reasons = {reason for row in losses for reason in row["reasons"]}
    assert reasons == {
        "overwritten", "ring full", "write failed", "quarantined", "unexplained",
    }  # fmt: skip


def test_the_true_time_is_within_the_error_unless_clocks_are_wrong(
    made: Made,
) -> None:
    looked_at = not_promised = 0
    for truth in made.campaign.truths:
        for key, at in truth.true_times():
            wall = truth.wall(key)
            if wall is not None and truth.is_promised(key):
                looked_at += 1
                assert abs(wall[0] - at * 1000) <= wall[1]
            elif wall is not None:
                not_promised += 1
    assert looked_at > 200
    assert 20 < not_promised < looked_at


def test_quarantine_has_every_bad_frame_with_its_place_and_reason(made: Made) -> None:
    found = bronze.quarantine(made.spark, made.lake).select("line", "offset", "reason", "file")
    right = [
        (bad.line, bad.offset, bad.reason, bad.file)
        for truth in made.campaign.truths
        for bad in truth.harvest.bad
    ]
    assert Counter(tuple(row) for row in found.collect()) == Counter(right)
    assert len({reason for _, _, reason, _ in right}) >= 6


def test_no_join_forces_a_broadcast(made: Made) -> None:
    """A year on the air makes a row of `solved` for each segment, a bridge one a message: what
    Spark, by the size of the files, does not hand to everybody, nobody else does."""
    frames, bad = bronze.read(made.spark, made.lake), bronze.quarantine(made.spark, made.lake)
    records = silver.ordered(frames)
    timed = silver.timed(records, silver.solved(silver.facts(records, bad)))
    found = bridges.resolved(
        silver.messages(timed), records, bridges.bridged(records), bridges.shared(records)
    )
    name = "spark.sql.autoBroadcastJoinThreshold"
    before = made.spark.conf.get(name) or ""
    made.spark.conf.set(name, -1)
    try:
        plan = found._jdf.queryExecution().executedPlan().toString()
    finally:
        made.spark.conf.set(name, before)
    assert plan.count("SortMergeJoin") >= 6
    assert "Broadcast" not in plan


def test_bronze_has_every_good_frame_as_often_as_it_was_harvested(made: Made) -> None:
    found = bronze.read(made.spark, made.lake).select("line", "offset", "board", "boot", "seq")
    right = [
        (taken.line, taken.offset, taken.entry.board, taken.entry.boot, taken.entry.seq)
        for truth in made.campaign.truths
        for taken in truth.harvest.taken
    ]
    assert Counter(tuple(row) for row in found.collect()) == Counter(right)


def test_the_format_has_the_rows_of_bronze_and_of_quarantine(made: Made) -> None:
    frames = made.spark.read.format(NAME).option("path", str(made.campaign.folder)).load()
    good, bad = frames.where("reason is null"), frames.where("reason is not null")
    written = bronze.read(made.spark, made.lake)
    assert written.exceptAll(good.select(written.columns)).count() == 0
    assert (
        written.count()
        == good.count()
        == sum(len(truth.harvest.taken) for truth in made.campaign.truths)
    )
    assert bronze.quarantine(made.spark, made.lake).exceptAll(bad).count() == 0


def test_a_second_run_adds_nothing(made: Made) -> None:
    before = made.lake.batches()
    taken = bronze.ingest(made.spark, made.campaign.folder, made.lake)
    assert taken.first == taken.last == made.campaign.lines
    assert made.lake.batches() == before


def test_a_stream_gives_the_rows_of_a_batch(made: Made, tmp_path: Path) -> None:
    """In triggers of a few bundles, and on from where it was."""
    frames = made.spark.readStream.format(NAME).option("path", str(made.campaign.folder))
    for triggers in (1, 0):
        query = (
            frames.option("maxBundlesPerTrigger", made.campaign.lines // 2 + 1)
            .load()
            .where("reason is null")
            .select("line", "offset")
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .format("parquet")
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        assert len(query.recentProgress) >= triggers
    found = made.spark.read.parquet(str(tmp_path / "out"))
    right = bronze.read(made.spark, made.lake).select("line", "offset")
    assert found.count() == right.count() == found.join(right, ["line", "offset"]).count()


def test_what_comes_later_is_added(spark: SparkSession, tmp_path: Path) -> None:
    """Harvested in two visits, the second of which was begun before the first was taken."""
    lived = campaign.run(tmp_path / "harvest", range(100, 103))
    lines = (lived.folder / manifest.NAME).read_text().splitlines(keepends=True)
    lake = Lake(tmp_path / "tables").made()
    for count in (len(lines) // 2, len(lines)):
        (lived.folder / manifest.NAME).write_text("".join(lines[:count]) + '{"path": "bun')
        bronze.ingest(spark, lived.folder, lake)
    build.build_silver(spark, lake)
    made = Made(spark, lived, lake)
    assert [made.wrong(table) for table in build.SILVER] == [[], [], [], []]
    assert len(lake.batches()) == 2
