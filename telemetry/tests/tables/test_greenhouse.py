"""The greenhouse of the demo: tables and report name the faults that it has, and no others."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from slotmq_telemetry import report
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.schemas import GOLD
from slotmq_telemetry.season import greenhouse
from telemetry.tests.conftest import cli

from .rows import greenhouse_tables


def test_the_faults_of_the_greenhouse_are_named(tmp_path: Path) -> None:
    lake = greenhouse_tables(tmp_path)
    rows = {name: lake.rows(table).to_pylist() for name, table in GOLD.items()}
    names = {row["board"]: row["name"] for row in rows["boards"]}
    assert {*names.values()} == {*greenhouse.NAMES}

    def found(table: str, flag: str) -> set[tuple[str, ...]]:
        return {(names[row["board"]], row.get("topic") or row["client"])
                for row in rows[table] if row[flag]}  # fmt: skip

    assert found("sensors", "flat") == {("beds", "soil/2")}
    assert found("sensors", "drifts") == {("tunnel", "soil/1"), ("door", "battery")}
    assert found("sessions", "flapping") == {("beds", "air")}
    (drift,) = (r["drift_per_day"] for r in rows["sensors"] if names[r["board"]] == "tunnel"
                and r["topic"] == "soil/1")  # fmt: skip
    assert abs(drift - greenhouse.DRIFT) < 0.1
    assert {(names[row["board"]], *row["reasons"]) for row in rows["gaps"]} == {
        ("door", "overwritten")
    }
    assert {names[row["board"]] for row in rows["silences"]} == {"tunnel"}
    assert all(row["without_time"] == 0 for row in rows["boards"])
    report.write(lake, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    told = page.partition("<h2>What to look at</h2>")[2].partition("</ul>")[0]
    sentences = re.findall(r"<li[^>]*>(.*?)</li>", told)
    assert [sentence for sentence in SAID if not any(sentence in each for each in sentences)] == []
    assert len(sentences) == len(SAID)
    assert not any(name in page for name in names)


# What the report says of them, and no more.
SAID = (
    "door: harvest sooner, or raise record_budget: records were overwritten.",
    "door lost 276 records between 2026-05-01 08:00 UTC and 2026-05-02",
    "tunnel began anew 1 time. Up to record_flush_interval (10 s unless set otherwise) before",
    "beds: soil/2 has stood still at 41 since 2026-05-06 00:00 UTC (720 values).",
    "tunnel: soil/1 rises steadily, by 4.8 a day.",
    "door: battery falls steadily, by 0.05 a day.",
    "beds: client air connected 6 times within ten minutes and timed out 6 times.",
)


def test_the_demo_makes_tables_and_a_page_of_the_last_ten_days(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = cli("telemetry", "demo", folder)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == f"report: {folder}/report.html"
    boards = Lake(folder / "tables").rows(GOLD["boards"]).to_pylist()
    assert {row["site"] for row in boards} == {"greenhouse", "outside"}
    day = timedelta(days=1)
    assert all(10 * day < datetime.now(UTC) - row["first"] < 11 * day for row in boards)
    page = (folder / "report.html").read_text("utf-8")
    assert page.count('<div class="chart">') > 5 and all(row["name"] in page for row in boards)
    again = cli("telemetry", "demo", folder)
    assert again.exit_code == 1 and again.output == f"Error: {folder} is not empty\n"
