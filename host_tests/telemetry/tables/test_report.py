"""The report: topics with any text, damaged tables, tables of another version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql.pandas.types import to_arrow_schema

from slotmq_tools.cli import main
from slotmq_tools.telemetry.build import GOLD

Row = dict[str, Any]
TOPICS = ["price/$x_$/eur", "$a$/b$c", "x$\\foo$y", "_hidden", "<script>", "plain"]


def gold(folder: Path, **tables: list[Row]) -> Path:
    """Tables of gold with these rows; what is not named is empty or null."""
    for name, schema in GOLD.items():
        path = folder / "gold" / name
        path.mkdir(parents=True)
        found = pa.Table.from_pylist(tables.get(name, []), to_arrow_schema(schema, timezone="UTC"))
        pq.write_table(found, path / "part.parquet")
    return folder


def report(tables: Path) -> Result:
    words = ["telemetry", "report", str(tables), str(tables / "page.html")]
    return CliRunner().invoke(main, words)


def refused(tables: Path, complaint: str) -> bool:
    """One line, and no page."""
    done = report(tables)
    assert (done.exit_code, len(done.output.splitlines())) == (1, 1), done.output
    assert not [path for path in tables.iterdir() if "page" in path.name]
    return done.output.startswith("Error: ") and complaint in done.output


def test_a_topic_may_have_any_text(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    sent = [{"topic": topic, "start": start, "messages": 3, "bytes": 9} for topic in TOPICS]
    numbers: Row = {"start": start, "count": 2, "min": 1.0, "mean": 2.0, "max": 3.0}
    measured = [{"topic": topic, "field": "$v_$", **numbers} for topic in TOPICS[:4]]
    tables = gold(tmp_path, traffic=sent, readings=measured)
    done = report(tables)
    assert done.exit_code == 0, done.output
    page = (tables / "page.html").read_text("utf-8")
    pictures = "".join(part.partition("</svg>")[0] for part in page.split("<svg")[1:])
    for topic in TOPICS:
        escaped = topic.replace("<", "&lt;").replace(">", "&gt;")
        assert f">{escaped}</text>" in pictures
    assert "<script" not in page


def test_values_that_no_axis_can_show_are_left_out(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    inf, nan = float("inf"), float("nan")
    means = [("fine", 0, 21.0), ("huge", 0, 1.7e308), ("huge", 1, -1.7e308), ("far", 0, inf),
             ("none", 0, nan), ("none", 1, 5.0)]  # fmt: skip
    measured = [
        {"topic": topic, "field": "", "start": start + timedelta(hours=hour), "count": 2,
         "min": mean, "mean": mean, "max": mean} for topic, hour, mean in means
    ]  # fmt: skip
    wrong = {"topic": "far", "field": "", "count": 2, "drifts": True, "flat": False, "same": 1}
    sensors = [wrong | {"drift_per_day": slope} for slope in (inf, nan, -1.7e308)]
    tables = gold(tmp_path, readings=measured, sensors=sensors)
    done = report(tables)
    assert done.exit_code == 0, done.output
    page = (tables / "page.html").read_text("utf-8")
    pictures = "".join(part.partition("</svg>")[0] for part in page.split("<svg")[1:])
    shown = {topic for topic, _, _ in means if f">{topic}</text>" in pictures}
    assert shown == {"fine", "none"}
    assert "<td>-1.7e+308</td>" in page


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"what is this?\n" * 9])
def test_a_damaged_table_is_one_line(tmp_path: Path, damage: bytes) -> None:
    tables = gold(tmp_path)
    (tables / "gold/boards/part.parquet").write_bytes(damage)
    assert refused(tables, "gold/boards cannot be read: ")


def test_a_missing_table_is_one_line(tmp_path: Path) -> None:
    tables = gold(tmp_path)
    (tables / "gold/audit/part.parquet").unlink()
    (tables / "gold/audit").rmdir()
    assert refused(tables, "gold/audit")


def test_tables_of_another_version_are_one_line(tmp_path: Path) -> None:
    tables = gold(tmp_path)
    other = pa.table({"topic": ["t"], "messages": [1]})
    pq.write_table(other, tables / "gold/traffic/part.parquet")
    assert refused(tables, "no column 'bytes'")
