"""`slotmq telemetry demo`: what its brokers recorded is in the tables and on the page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from slotmq_tools.telemetry import demo

from .cluster import environment

pytestmark = pytest.mark.timeout(900)


def test_what_is_published_arrives_in_the_tables(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "slotmq_tools.cli", "telemetry", "demo", str(folder)]
    env = environment(tmp_path) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    rows = f"read_parquet('{folder}/tables/silver/messages/**/*.parquet', hive_partitioning=true)"
    with duckdb.connect() as duck:
        asked = f"from {rows} where starts_with(topic, 'demo/')"
        found = duck.execute(f"select topic, count(*), min(qos) {asked} group by 1").fetchall()
        of_demo = {name for (name,) in duck.execute(f"select distinct board {asked}").fetchall()}
    assert {topic: (count, qos) for topic, count, qos in found} == {
        f"demo/site-{number}/{name}": (2 * demo.ROUNDS, qos)
        for number in range(demo.BOARDS)
        for qos, name in enumerate(("thermometer", "weather", "meter"))
    }
    boards = pq.read_table(folder / "tables/gold/boards").to_pylist()
    boots = {board["board"]: board["boots"] for board in boards}
    assert len(of_demo) == demo.BOARDS
    assert {boots[name] for name in of_demo} == {2}
    assert len(boots) > demo.BOARDS  # and the season's
    assert pq.read_table(folder / "tables/quarantine").num_rows > 0
    assert "<svg" in (folder / "report.html").read_text()
