"""`make telemetry-demo`: what brokers here have recorded is in the tables, and on the page."""

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
    ran = subprocess.run([*command, "--no-season"], env=env, capture_output=True, text=True,
                         check=False)  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    rows = f"read_parquet('{folder}/tables/silver/messages/**/*.parquet', hive_partitioning=true)"
    with duckdb.connect() as duck:
        found = duck.execute(f"select topic, count(*), min(qos) from {rows} group by 1").fetchall()
    assert {topic: (count, qos) for topic, count, qos in found} == {
        f"demo/site-{number}/{name}": (2 * demo.ROUNDS, qos)
        for number in range(demo.BOARDS)
        for qos, name in enumerate(("thermometer", "weather", "meter"))
    }
    boards = pq.read_table(folder / "tables/gold/boards").to_pylist()
    assert [board["boots"] for board in boards] == [2] * demo.BOARDS
    assert "<svg" in (folder / "report.html").read_text()
