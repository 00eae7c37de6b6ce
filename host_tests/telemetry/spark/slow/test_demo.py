"""`slotmq telemetry demo`: what its brokers recorded is in the tables and on the page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from slotmq_tools.telemetry import demo
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import GOLD, SILVER

from .cluster import environment

pytestmark = pytest.mark.timeout(900)


def test_what_is_published_arrives_in_the_tables(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "slotmq_tools.cli", "telemetry", "demo", str(folder)]
    env = environment(tmp_path) | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    lake = Lake(folder / "tables")
    messages = lake.need(SILVER["messages"]).to_pyarrow_dataset()
    with duckdb.connect() as duck:
        duck.register("messages", messages)
        asked = "from messages where starts_with(topic, 'demo/')"
        found = duck.execute(f"select topic, count(*), min(qos) {asked} group by 1").fetchall()
        of_demo = {name for (name,) in duck.execute(f"select distinct board {asked}").fetchall()}
    assert {topic: (count, qos) for topic, count, qos in found} == {
        f"demo/site-{number}/{name}": (2 * demo.ROUNDS, qos)
        for number in range(demo.BOARDS)
        for qos, name in enumerate(("thermometer", "weather", "meter"))
    }
    boards = lake.rows(GOLD["boards"]).to_pylist()
    boots = {board["board"]: board["boots"] for board in boards}
    assert len(of_demo) == demo.BOARDS
    assert {boots[name] for name in of_demo} == {2}
    assert len(boots) == demo.BOARDS + 3  # and the greenhouse's
    page = (folder / "report.html").read_text("utf-8")
    assert page.count('<div class="chart">') > 8
    assert all(board["name"] in page and board["board"] not in page for board in boards)
