"""`slotmq telemetry demo`: tables and a page of the last ten days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from click.testing import CliRunner

from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import GOLD
from slotmq_tools.cli import main


def test_the_demo_makes_tables_and_a_page_of_the_last_ten_days(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = CliRunner().invoke(main, ["telemetry", "demo", str(folder)])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == f"report: {folder}/report.html"
    boards = Lake(folder / "tables").rows(GOLD["boards"]).to_pylist()
    assert {row["site"] for row in boards} == {"greenhouse", "outside"}
    day = timedelta(days=1)
    assert all(10 * day < datetime.now(UTC) - row["first"] < 11 * day for row in boards)
    page = (folder / "report.html").read_text("utf-8")
    assert page.count('<div class="chart">') > 5 and all(row["name"] in page for row in boards)
    again = CliRunner().invoke(main, ["telemetry", "demo", str(folder)])
    assert again.exit_code == 1 and again.output == f"Error: {folder} is not empty\n"
