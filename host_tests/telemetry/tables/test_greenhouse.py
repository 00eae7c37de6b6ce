"""The farm of the demo: the tables and the report name the faults that it has, and no others."""

from __future__ import annotations

from pathlib import Path

from slotmq_tools.telemetry import bronze, build, report
from slotmq_tools.telemetry.lake import Lake
from slotmq_tools.telemetry.schemas import GOLD
from slotmq_tools.telemetry.season import greenhouse

from .rows import HERE


def test_the_faults_of_the_farm_are_named(tmp_path: Path) -> None:
    harvest = greenhouse.grow(tmp_path / "harvest")
    lake = Lake(tmp_path / "tables").made()
    (lake.folder / "boards.toml").write_text(greenhouse.TOML)
    bronze.ingest(HERE, harvest.folder, lake)
    build.build_silver(HERE, lake)
    build.build_gold(HERE, lake)
    rows = {name: lake.rows(table).to_pylist() for name, table in GOLD.items()}
    names = {row["board"]: row["name"] for row in rows["boards"]}
    assert {*names.values()} == {*greenhouse.NAMES}

    def found(table: str, flag: str) -> set[tuple[str, ...]]:
        return {(names[row["board"]], row.get("topic") or row["client"])
                for row in rows[table] if row[flag]}  # fmt: skip

    assert found("sensors", "flat") == {("greenhouse", "soil/2")}
    assert found("sensors", "drifts") == {("tunnel", "soil/1"), ("gate", "gate/battery")}
    assert found("sessions", "flapping") == {("greenhouse", "air")}
    (drift,) = (r["drift_per_day"] for r in rows["sensors"] if names[r["board"]] == "tunnel"
                and r["topic"] == "soil/1")  # fmt: skip
    assert abs(drift - greenhouse.DRIFT) < 0.1
    assert {(names[row["board"]], *row["reasons"]) for row in rows["gaps"]} == {
        ("gate", "overwritten")
    }
    assert {names[row["board"]] for row in rows["silences"]} == {"tunnel"}
    assert all(row["without_time"] == 0 for row in rows["boards"])
    report.write(lake, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<td>greenhouse</td><td>soil/2</td>" in page and "<td>off</td>" in page
    assert not any(name in page for name in names)
