"""Gold of the fixed seasons equals what follows from the true rows of silver."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

from slotmq_tools.telemetry import build

from .gold_truth import GOLD
from .made import Made
from .tables import plain


@pytest.mark.parametrize("table", build.GOLD)
def test_the_table_equals_the_truth(made: Made, table: str) -> None:
    assert made.wrong(table) == []


def test_the_seasons_have_what_is_to_be_shown(made: Made) -> None:
    assert GOLD.keys() == build.GOLD.keys()
    rows = {table: made.campaign.all(table) for table in GOLD}
    assert {row["field"] for row in rows["readings"]} >= {"", "t", "n"}
    assert {row["finding"] for row in rows["audit"]} == {"twice", "lost", "order broken"}
    assert {row["restarted"] for row in rows["silences"]} == {True, False}
    assert {row["flapping"] for row in rows["sessions"]} == {True, False}
    assert any(row["keep_alive_deaths"] for row in rows["sessions"])
    assert any(row["files"] for row in rows["gaps"])
    assert any(row["drift_r2"] is not None for row in rows["sensors"])
    assert len({sentence for row in rows["boards"] for sentence in row["advice"]}) == 7


def test_readers_outside_of_spark_see_the_same(made: Made) -> None:
    files = f"{made.lake.folder}/silver/messages/**/*.parquet"
    ask = f"select count(*), count(distinct board) from read_parquet('{files}')"
    counted = duckdb.connect().execute(ask)
    boards = {row["board"] for row in made.campaign.all("messages")}
    assert counted.fetchall() == [(len(made.campaign.all("messages")), len(boards))]
    frame = pd.read_parquet(made.lake.folder / "gold/boards")
    assert set(frame["board"]) == {row["board"] for row in plain(made.gold("boards"))}
