"""Silver and gold of seasons of every kind equal the truth, however they came; and bronze and
quarantine have every frame."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest

from slotmq_tools.harvest.manifest import locked
from slotmq_tools.telemetry import manifest, optimize
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import BRONZE, GOLD, QUARANTINE, SILVER

from . import campaign
from .campaign import Campaign
from .rows import HERE, Made, plain

SEASONS = range(80, 92)  # which have all that is to be shown
TABLES = [*SILVER, *GOLD]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("seasons")
    lived = campaign.run(folder / "harvest", SEASONS)
    found = Made(lived, Lake(folder / "tables"))
    found.ingest()
    return found


@pytest.mark.parametrize("table", TABLES)
def test_the_table_equals_the_truth(made: Made, table: str) -> None:
    assert made.campaign.all(table), "the seasons must have some"
    assert made.wrong(table) == []


def test_the_seasons_have_what_is_to_be_shown(made: Made) -> None:
    rows = {table: made.campaign.all(table) for table in TABLES}
    messages = rows["messages"]
    assert {row["clock"] for row in messages} == {
        "anchored", "between", "own", "suspect", "unknown",
    }  # fmt: skip
    kinds = {"number", "json", "cbor", "text", "bytes", "empty"}
    assert {row["kind"] for row in messages} == kinds
    assert any(row["copies"] > 1 for row in messages)
    assert any(row["uptime_ms"] >= 2**30 for row in messages)
    assert {row["believed"] for row in rows["anchors"]} == {True, False}
    assert any(row["boots"] > 10_000 for row in rows["losses"])
    assert {reason for row in rows["losses"] for reason in row["reasons"]} == {
        "overwritten", "ring full", "write failed", "quarantined", "unexplained",
    }  # fmt: skip
    assert {row["field"] for row in rows["readings"]} >= {"", "t", "n"}
    assert {row["finding"] for row in rows["audit"]} == {"twice", "lost", "order broken"}
    assert {row["restarted"] for row in rows["silences"]} == {True, False}
    assert {row["flapping"] for row in rows["sessions"]} == {True, False}
    assert any(row["keep_alive_deaths"] for row in rows["sessions"])
    assert any(row["files"] for row in rows["gaps"])
    assert any(row["drift_r2"] is not None for row in rows["sensors"])
    assert len({sentence for row in rows["boards"] for sentence in row["advice"]}) == 7


def test_the_true_time_is_within_the_error_unless_clocks_are_wrong(made: Made) -> None:
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
    names = ("line", "offset", "reason", "file")
    found = made.lake.rows(QUARANTINE).select(names).to_pylist()
    right = [
        (bad.line, bad.offset, bad.reason, bad.file)
        for truth in made.campaign.truths
        for bad in truth.harvest.bad
    ]
    assert Counter(tuple(row.values()) for row in found) == Counter(right)
    assert len({reason for _, _, reason, _ in right}) >= 6


def test_bronze_has_every_good_frame_as_often_as_it_was_harvested(made: Made) -> None:
    names = ("line", "offset", "board", "boot", "seq")
    found = made.lake.rows(BRONZE).select(names).to_pylist()
    right = [
        (taken.line, taken.offset, taken.entry.board, taken.entry.boot, taken.entry.seq)
        for truth in made.campaign.truths
        for taken in truth.harvest.taken
    ]
    assert Counter(tuple(row.values()) for row in found) == Counter(right)


def test_a_second_run_does_nothing(made: Made) -> None:
    before = {table.name: made.lake.files(table) for table in (BRONZE, *GOLD.values())}
    assert made.ingest() == (0, 0)
    assert before == {table.name: made.lake.files(table) for table in (BRONZE, *GOLD.values())}


def test_other_programs_read_the_same(made: Made) -> None:
    table = made.lake.need(SILVER["messages"])
    right = len(made.campaign.all("messages"))
    messages = table.to_pyarrow_dataset()
    with duckdb.connect() as duck:
        duck.register("messages", messages)
        assert duck.execute("select count(*) from messages").fetchall() == [(right,)]
    assert len(table.to_pandas()) == right


CUTS = 4


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_and_any_cutting_make_the_same_tables(tmp_path: Path, seed: int) -> None:
    """Bundles that come late, between others, and bundles that were compacted meanwhile."""
    random = Random(seed)
    lived = campaign.run(tmp_path / "harvest", range(seed * 10, seed * 10 + 5))
    whole = Made(lived, Lake(tmp_path / "whole"))
    whole.ingest()
    with locked(lived.folder) as manifest:
        lines = manifest.lines()
    random.shuffle(lines)
    late = Campaign(tmp_path / "late", lived.seasons)
    late.folder.mkdir()
    (late.folder / "bundles").symlink_to(lived.folder / "bundles")
    cut = Made(late, Lake(tmp_path / "cut"))
    cuts = [0, *sorted(random.sample(range(1, len(lines)), CUTS)), len(lines)]
    counts = []
    for first, last in pairwise(cuts):
        with locked(late.folder) as manifest:
            manifest.append(*lines[first:last])
        counts.append(cut.ingest())
        if random.random() < 0.5:
            optimize.compact(HERE, cut.lake)
    assert {table: sorted_rows(cut, table) for table in TABLES} == {
        table: sorted_rows(whole, table) for table in TABLES
    }
    boards = len(whole.rows("boards"))
    assert any(0 < silver < boards for silver, _ in counts), "only what has something new"


def sorted_rows(made: Made, table: str) -> list[str]:
    return sorted(repr(row) for row in made.rows(table))


def test_only_boards_that_people_say_something_of_are_made_anew(tmp_path: Path) -> None:
    lived = campaign.run(tmp_path / "harvest", [33, 34])
    one = Made(lived, Lake(tmp_path / "tables"))
    one.ingest()
    before = {*one.lake.files(GOLD["boards"])}
    board = next(row["board"] for row in one.rows("anchors"))
    (tmp_path / "tables/boards.toml").write_text(f'[{board}]\nname = "x"')
    assert one.ingest() == (0, 1)
    assert len({*one.lake.files(GOLD["boards"])} - before) == 1
    assert [row["board"] for row in one.rows("boards") if row["name"] == "x"] == [board]
    (tmp_path / "tables/clocks.toml").write_text(f"[{board}]\n123456 = 5")
    assert one.ingest() == (1, 1)


WITHOUT_SPARK = """
import sys
from slotmq_tools.cli import main
main(["telemetry", "ingest", *sys.argv[1:]], standalone_mode=False)
assert not {"pyspark", "matplotlib"} & sys.modules.keys()
"""


def test_nothing_new_takes_a_moment_and_no_spark(made: Made) -> None:
    words = [str(made.campaign.folder), str(made.lake.folder)]
    command = [sys.executable, "-c", WITHOUT_SPARK, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    there = sum(bool(line.path) for line in manifest.read(made.campaign.folder))
    assert ran.stdout.splitlines() == [
        f"bronze: 0 new bundles, {there} in total",
        "silver: 0 boards with something new",
        "gold: 0 boards with something new",
    ]


def test_what_executors_run_needs_neither_click_nor_an_mqtt_client() -> None:
    ask = (
        "import sys; from slotmq_tools.telemetry import bronze, build, engine;"
        "print(*{'click', 'paho', 'pyspark', 'matplotlib', 'serial'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_times_are_in_utc(made: Made) -> None:
    table = made.lake.rows(SILVER["messages"])
    assert table.schema.field("wall").type == pa.timestamp("us", "UTC")
    assert plain(table)[0].keys() >= {"wall_us"}
