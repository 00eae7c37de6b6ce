"""Silver of seasons of every kind is true, however they came; gold counts what silver has; bronze
and quarantine have every frame."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from slotmq_telemetry import optimize
from slotmq_telemetry.harvest.manifest import locked
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import ALL, BRONZE, GOLD, QUARANTINE, SILVER, Table
from telemetry.tests.conftest import lines_of

from . import campaign
from .campaign import Campaign
from .rows import HERE, RECORDS, Made

SEASONS = (*range(80, 92), 236)  # which have all that is to be shown
RANDOM = 30  # others in each run; a run that fails prints the first, and SEASONS_FROM repeats it


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("seasons")
    first = int(os.environ.get("SEASONS_FROM", secrets.randbelow(2**40)))
    print(f"SEASONS_FROM={first}")
    lived = campaign.run(folder / "harvest", (*SEASONS, *range(first, first + RANDOM)))
    found = Made(lived, Lake(folder / "tables"))
    found.ingest()
    return found


def test_silver_is_true(made: Made) -> None:
    assert all(made.campaign.all(table) for table in RECORDS), "the seasons must have some"
    assert sum(truth.is_honest for truth in made.campaign.truths) > 2
    assert made.wrong() == []


def test_the_seasons_have_what_is_to_be_shown(made: Made) -> None:
    rows = {table: made.rows(table) for table in (*SILVER, *GOLD)}
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
    assert all(rows.values())


ONCE = """
with every as (
    select board, boot, seq, topic, wall, wall_error_us, number, payload, 0 as other
    from silver_messages union all by name
    select board, boot, seq, topic, wall, wall_error_us, number, payload, 1 as other
    from silver_bridged
), once as (
    select * from every qualify row_number() over (
        partition by board, boot, seq order by other) = 1
), timed as (
    select *, date_trunc('hour', wall) as start from once where wall_error_us <= 3600e6
)
"""


VALUES = """count(*) as count, min(number) as min, max(number) as max,
round(avg(number), 6) as mean"""


def test_hours_of_gold_are_those_of_silver(made: Made) -> None:
    """Counted by DuckDB."""
    printed = subprocess.run(
        [sys.executable, "-m", "slotmq_tools.cli", "telemetry", "sql", str(made.lake.folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    differ = "select count(*) from ((from a except from b) union all (from b except from a))"
    with duckdb.connect() as duck:
        duck.execute(printed.stdout)
        for table, columns, where in (
            ("traffic", "count(*) as messages, sum(octet_length(payload)) as bytes", "true"),
            ("readings", VALUES, "number is not null"),
        ):  # fmt: skip
            names = "board, topic, start"
            duck.execute(f"create or replace temp table a as {ONCE} select {names}, {columns}"
                         f" from timed where {where} group by all")  # fmt: skip
            some = duck.execute("select * exclude (board, topic, start) from a").description
            told = [f"round({name}, 6)" if name == "mean" else name for name, *_ in some]
            only = "field = ''" if table == "readings" else "true"
            duck.execute(f"create or replace temp table b as select {names}, {', '.join(told)}"
                         f" from gold_{table} where {only}")  # fmt: skip
            assert duck.execute("select count(*) > 50 from a").fetchall() == [(True,)]
            assert duck.execute(differ).fetchall() == [(0,)], table


def test_bronze_and_quarantine_have_every_frame_as_it_was_with_its_place(made: Made) -> None:
    harvests = [truth.season.harvest for truth in made.campaign.truths]
    names = ("line", "offset", "board", "boot", "segment", "seq", "ticks", "type", "flags",
             "client", "topic", "payload", "crc")  # fmt: skip
    assert counted(made, BRONZE, names) == Counter(
        (t.line, t.offset, e.board, e.boot, e.segment, e.seq, e.uptime % 2**30, e.kind, e.flags,
         e.client, e.topic, e.payload, e.crc)
        for harvest in harvests for t in harvest.taken for e in [t.entry]
    )  # fmt: skip
    bad = [(b.line, b.offset, b.reason, b.file) for harvest in harvests for b in harvest.bad]
    assert counted(made, QUARANTINE, ("line", "offset", "reason", "file")) == Counter(bad)
    assert len({reason for _, _, reason, _ in bad}) >= 4


def counted(made: Made, table: Table, names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in made.lake.rows(table).select(names).to_pylist())


CUTS = 4


@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_and_any_cutting_make_the_same_tables(tmp_path: Path, seed: int) -> None:
    """Bundles that come late, between others, and bundles that were compacted meanwhile."""
    random = Random(seed)
    lived = campaign.run(tmp_path / "harvest", range(seed * 10, seed * 10 + 5))
    whole = Made(lived, Lake(tmp_path / "whole"))
    whole.ingest()
    with locked(lived.folder) as manifest:
        lines = manifest.filled(manifest.lines())
    random.shuffle(lines)
    late = Campaign(tmp_path / "late", lived.seasons)
    late.folder.mkdir()
    (late.folder / "bundles").symlink_to(lived.folder / "bundles")
    cut = Made(late, Lake(tmp_path / "cut"))
    cuts = [0, *sorted(random.sample(range(1, len(lines)), CUTS)), len(lines)]
    counts, gone = [], 0
    for first, last in pairwise(cuts):
        with locked(late.folder) as manifest:
            manifest.append(*lines[first:last])
        counts.append(cut.ingest())
        if random.random() < 0.5:
            gone += optimize.compact(HERE, cut.lake)
    assert gone + optimize.compact(HERE, cut.lake) > 3
    assert cut.ingest() == (0, 0) and optimize.compact(HERE, cut.lake) == 0
    found, right = cut.sorted(), whole.sorted()
    for table in (*SILVER.values(), *GOLD.values()):
        assert found[table.name] == right[table.name], table.name
    boards = len(whole.rows("boards"))
    assert any(0 < silver < boards for silver, _ in counts), "only what has something new"


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
assert "pyspark" not in sys.modules and "cbor2" in sys.modules
"""


def test_nothing_new_takes_a_moment_and_no_spark(made: Made) -> None:
    before = {table.name: made.lake.files(table) for table in ALL}
    words = [str(made.campaign.folder), str(made.lake.folder)]
    command = [sys.executable, "-c", WITHOUT_SPARK, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    there = sum(bool(line.path) for line in lines_of(made.campaign.folder))
    assert ran.stdout.splitlines() == [
        f"bronze: 0 new bundles, {there} in total",
        "silver: 0 boards with something new",
        "gold: 0 boards with something new",
    ]
    assert before == {table.name: made.lake.files(table) for table in ALL}


def test_what_executors_run_needs_neither_click_nor_an_mqtt_client() -> None:
    ask = (
        "import sys\n"
        "for name in 'click', 'paho', 'pyspark', 'altair', 'serial': sys.modules[name] = None\n"
        "from slotmq_telemetry import bronze, build, engine, optimize"
    )
    subprocess.run([sys.executable, "-c", ask], check=True)
