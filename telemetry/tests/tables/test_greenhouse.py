"""The greenhouse of the demo: tables and report name the faults that it has, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from slotmq_telemetry import report
from slotmq_telemetry.schemas import GOLD
from slotmq_telemetry.season import greenhouse

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
