"""The report: what it says of cuts, gaps, counters and boards; any text; damaged tables."""

from __future__ import annotations

import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from slotmq_tools.cli import main
from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry import names, report_charts
from slotmq_tools.telemetry.lake import Lake, write
from slotmq_tools.telemetry.names import Named
from slotmq_tools.telemetry.schemas import GOLD

Row = dict[str, Any]
TOPICS = ["price/$x_$/eur", "$a$/b$c", "x$\\foo$y", "_hidden", "<script>", "plain"]


def gold(folder: Path, **tables: list[Row]) -> Path:
    """Tables of gold with these rows; what is not named is empty or null."""
    lake = Lake(folder)
    for name, table in GOLD.items():
        rows = pa.Table.from_pylist(tables.get(name, []), table.schema)
        boards = sorted({*rows["board"].to_pylist()})
        files = [
            write(folder, table, rows.filter(pc.equal(rows["board"], board)), "part", board)
            for board in boards
        ]
        lake.commit(table, files)
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
    sent = [
        {"board": "b", "topic": topic, "start": start, "messages": 3, "bytes": 9}
        for topic in TOPICS
    ]
    numbers: Row = {"start": start, "count": 2, "min": 1.0, "mean": 2.0, "max": 3.0}
    measured = [{"board": "b", "topic": topic, "field": "$v_$", **numbers} for topic in TOPICS[:4]]
    tables = gold(tmp_path, traffic=sent, readings=measured)
    done = report(tables)
    assert done.exit_code == 0, done.output
    page = (tables / "page.html").read_text("utf-8")
    pictures = "".join(part.partition("</svg>")[0] for part in page.split("<svg")[1:])
    for topic in TOPICS:
        escaped = topic.replace("<", "&lt;").replace(">", "&gt;")
        assert f">b {escaped}</text>" in pictures
    assert "<script" not in page


def test_values_that_no_axis_can_show_are_left_out(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    inf, nan = float("inf"), float("nan")
    means = [("fine", 0, 21.0), ("huge", 0, 1.7e308), ("huge", 1, -1.7e308), ("far", 0, inf),
             ("none", 0, nan), ("none", 1, 5.0)]  # fmt: skip
    measured = [
        {"board": "b", "topic": topic, "field": "", "start": start + timedelta(hours=hour),
         "count": 2, "min": mean, "mean": mean, "max": mean} for topic, hour, mean in means
    ]  # fmt: skip
    wrong = {
        "board": "b",
        "topic": "far",
        "field": "",
        "count": 2,
        "counter": False,
        "drifts": True,
        "flat": False,
        "same": 1,
    }
    sensors = [wrong | {"drift_per_day": slope} for slope in (inf, nan, -1.7e308)]
    tables = gold(tmp_path, readings=measured, sensors=sensors)
    done = report(tables)
    assert done.exit_code == 0, done.output
    page = (tables / "page.html").read_text("utf-8")
    pictures = "".join(part.partition("</svg>")[0] for part in page.split("<svg")[1:])
    shown = {topic for topic, _, _ in means if f">b {topic}</text>" in pictures}
    assert shown == {"fine", "none"}
    assert "<td>-1.7e+308</td>" in page


def test_a_missing_table_is_one_line(tmp_path: Path) -> None:
    tables = gold(tmp_path)
    shutil.rmtree(tables / "gold/audit")
    assert refused(tables, "has no gold/audit")


def test_tables_of_another_version_are_one_line(tmp_path: Path) -> None:
    tables = gold(tmp_path)
    shutil.rmtree(tables / "gold/traffic")
    rows = pa.table({"board": ["b"], "topic": ["t"], "messages": [1]})
    write_deltalake(str(tables / "gold/traffic"), rows)
    assert refused(tables, "no column 'bytes'")


START = datetime(2026, 3, 1, tzinfo=UTC)
A, B = "286f000000000001", "286f000000000002"


def section(page: str, title: str) -> str:
    """The HTML of one."""
    return page.partition(f"<h2>{title}</h2>")[2].partition("<h2>")[0]


def years(picture: str) -> set[str]:
    """That an axis names."""
    return {str(year) for year in range(2000, 2100) if f">{year}</text>" in picture}


def minutes(count: float) -> datetime:
    return START + timedelta(minutes=count)


def test_a_short_recording_with_a_power_cut(tmp_path: Path) -> None:
    """Some minutes are no years on an axis, and 20 s without power are a gap."""
    boots = [
        {"board": A, "boot": 1, "first": START, "last": minutes(1), "records": 20},
        {"board": A, "boot": 2, "first": minutes(1) + timedelta(seconds=20), "last": minutes(2),
         "records": 23},
        {"board": A, "boot": 3, "records": 2},
    ]  # fmt: skip
    sent = [{"board": A, "topic": "t", "start": START, "messages": 43, "bytes": 99}]
    number = {"board": A, "topic": "t", "start": START, "min": 1.0, "mean": 2.0, "max": 3.0}
    measured = [number | {"field": field, "count": 9} for field in ("n", "")]
    same = {"board": A, "topic": "t", "drift_per_day": 9.0, "drift_r2": 1.0, "count": 9, "same": 1}
    sensors = [
        same | {"field": "n", "counter": True, "flat": True, "drifts": False},
        same | {"field": "", "counter": False, "flat": False, "drifts": False},
    ]
    tables = gold(tmp_path, boots=boots, traffic=sent, readings=measured, sensors=sensors)
    assert report(tables).exit_code == 0
    page = (tables / "page.html").read_text("utf-8")
    assert not years(page)
    gaps = section(page, "Gaps")
    assert "<td>off</td>" in gaps and "<td>20</td>" in gaps and "begun anew 1" not in gaps
    assert "began anew 1 times" in gaps and "record_flush_interval" in gaps
    assert f">{A} t n</text>" not in page and f">{A} t</text>" in page
    assert "None." in section(page, "Sensors that drift or stand still")


def test_lines_end_where_values_are_missing() -> None:
    hours = [0, 1, 2, 30, 31, 32, 34]
    rows = [{"start": START + timedelta(hours=hour), "mean": float(hour)} for hour in hours]
    times, means = report_charts.broken(reversed(rows), "mean")
    assert [time for time, mean in zip(times, means, strict=True) if mean != mean] == [
        START + timedelta(hours=3)
    ]
    days = [{"start": START + timedelta(days=day), "mean": 1.0} for day in range(5)]
    assert report_charts.broken(days, "mean")[1] == [1.0] * 5
    assert report_charts.broken([], "mean") == [[], []]


def test_boards_are_called_as_gold_says(tmp_path: Path) -> None:
    counts = {"boots": 1, "messages": 5, "lost": 0, "without_time": 0, "most_connected": 0,
              "refusals": 0, "advice": [], "tags": []}  # fmt: skip
    plain = gold(tmp_path / "plain", boards=[{"board": b, "name": b, **counts} for b in (A, B)])
    assert report(plain).exit_code == 0
    assert "site" not in section((plain / "page.html").read_text("utf-8"), "Boards")
    called = [
        {"board": A, **counts, "name": "greenhouse", "site": "farm", "tags": ["wet", "hot"]},
        {"board": B, "name": B, **counts},
    ]
    gaps = [{"board": A, "boot": 1, "boots": 1, "lost": 4, "reasons": ["overwritten"]}]
    tables = gold(tmp_path / "called", boards=called, gaps=gaps)
    assert report(tables).exit_code == 0
    page = (tables / "page.html").read_text("utf-8")
    shown = section(page, "Boards")
    assert "<td>greenhouse</td><td>farm</td><td>wet, hot</td>" in shown
    assert f"<td>{B}</td>" in shown and "<td>greenhouse</td>" in section(page, "Gaps")
    assert A not in page


WRONG = [
    ("[x]", "[x]: a board's id has 16 hex digits"),
    (f"[{A}]\nnames = 1", "has `name`, `site` and `tags`"),
    (f"[{A}]\ntags = [1]", "`tags` is a list of texts"),
    (f'[{A}]\nname = "x"\n[{B}]\nname = "x"', "two boards are called 'x'"),
    ("[", "boards.toml cannot be read"),
]


@pytest.mark.parametrize(("text", "complaint"), WRONG, ids=[text for _, text in WRONG])
def test_a_wrong_boards_toml_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "boards.toml").write_text(text)
    with pytest.raises(ToolError, match=re.escape(complaint)):
        names.read(tmp_path)


def test_boards_toml_names_some_of_the_boards(tmp_path: Path) -> None:
    assert names.read(tmp_path) == {}
    (tmp_path / "boards.toml").write_text(f'[{A}]\nname = "x"\ntags = ["y"]\n[{B}]\nsite = "z"\n')
    assert names.read(tmp_path) == {A: Named("x", None, ("y",)), B: Named(B, "z")}
