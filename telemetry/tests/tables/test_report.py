"""The report: what it says of cuts, gaps, counters and boards; any text; damaged tables."""

from __future__ import annotations

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import Result
from deltalake import write_deltalake
from pyarrow import fs

from slotmq_telemetry import names
from slotmq_telemetry.lake import Lake, write
from slotmq_telemetry.names import Named
from slotmq_telemetry.report_series import HOUR, merged, runs, step_for
from slotmq_telemetry.schemas import GOLD
from slotmq_telemetry.season.board import MESSAGE, NTP, Board, Make
from slotmq_telemetry.season.harvest import Harvest
from slotmq_tools import page
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import cli

from .rows import tables_of

Row = dict[str, Any]
TOPICS = ["price/$x_$/eur", "$a$/b$c", "x$\\foo$y", "_hidden", "<script>", "plain"]
COUNTS = {"boots": 1, "messages": 5, "lost": 0, "without_time": 0, "most_connected": 0,
          "refusals": 0, "advice": [], "tags": []}  # fmt: skip


def gold(folder: Path, **tables: list[Row]) -> Path:
    """Tables of gold with these rows; what is not named is empty or null. All boards are there."""
    lake = Lake(folder)
    there = sorted({row["board"] for rows in tables.values() for row in rows})
    tables.setdefault("boards", [COUNTS | {"board": board, "name": board} for board in there])
    for name, table in GOLD.items():
        rows = pa.Table.from_pylist(tables.get(name, []), table.schema)
        boards = sorted({*rows["board"].to_pylist()})
        files = [
            write(folder, table, rows.filter(pc.equal(rows["board"], board)), "part", board)
            for board in boards
        ]
        lake.commit(table, files)
    return folder


def report(tables: Path, *options: str) -> Result:
    words = ["telemetry", "report", str(tables), str(tables / "page.html"), *options]
    return cli(*words)


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
    measured = [{"board": "b", "topic": topic, "field": "$v_$", **numbers} for topic in TOPICS]
    tables = gold(tmp_path, traffic=sent, readings=measured)
    done = report(tables)
    assert done.exit_code == 0, done.output
    page = (tables / "page.html").read_text("utf-8")
    escaped = [topic.replace("<", "&lt;").replace(">", "&gt;") for topic in TOPICS]
    assert charts(page).keys() == {*(f"{topic} $v_$" for topic in escaped), "messages in 1 h"}
    assert all(f"<td>{topic}</td>" in page for topic in escaped)
    assert len(re.findall("<script>", page)) == 2  # of the page


def test_values_that_no_axis_can_show_are_left_out(tmp_path: Path) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    inf, nan = float("inf"), float("nan")
    means = [("fine", 0, 21.0), ("huge", 0, 1.7e308), ("huge", 1, -1.7e308), ("far", 0, inf),
             ("none", 0, nan), ("none", 1, 5.0)]  # fmt: skip
    measured = [
        {"board": "b", "topic": topic, "field": "", "start": start + timedelta(hours=hour),
         "count": 2, "min": mean, "mean": mean, "max": mean} for topic, hour, mean in means
    ]  # fmt: skip
    wrong = {"board": "b", "topic": "far", "field": "", "count": 2, "counter": False,
             "drifts": True, "flat": False, "same": 1}  # fmt: skip
    sensors = [wrong | {"drift_per_day": slope} for slope in (inf, nan, -1.7e308)]
    tables = gold(tmp_path, readings=measured, sensors=sensors)
    done = report(tables)
    assert done.exit_code == 0, done.output
    page = (tables / "page.html").read_text("utf-8")
    assert charts(page).keys() == {"fine", "none"}
    assert [row["mean"] for row in values(charts(page)["none"])] == [5.0]
    assert "<td>-1.7e+308</td>" in page and "falls steadily, by 1.7e+308 a day" in page


def test_arrow_reads_tables_without_python(tmp_path: Path) -> None:
    """Its threads end after Python has; one that calls Python then aborts the process."""
    lake = Lake(tmp_path)
    lake.commit(GOLD["boards"], ())
    assert not isinstance(lake.dataset(GOLD["boards"]).filesystem.base_fs, fs.PyFileSystem)


def test_tables_that_are_missing_or_of_another_version_are_one_line(tmp_path: Path) -> None:
    tables = gold(tmp_path)
    shutil.rmtree(tables / "gold/audit")
    assert refused(tables, "has no gold/audit")
    shutil.rmtree(tables / "gold/traffic")
    rows = pa.table({"board": ["b"], "topic": ["t"], "messages": [1]})
    write_deltalake(str(tables / "gold/traffic"), rows)
    assert refused(tables, "no column 'start'")


def charts(page: str) -> dict[str, Any]:
    """The specifications on a page, by title."""
    figure = r'<figure[^>]*>(?:<h3>(.*?)</h3>)?\s*<div class="chart"><script[^>]*>(.*?)</script>'
    return {title: json.loads(spec) for title, spec in re.findall(figure, page, re.DOTALL)}


def values(spec: Any) -> list[Row]:
    """The rows of a chart."""
    rows: list[Row] = spec["data"]["values"]
    return rows


def span(spec: Any) -> float:
    """Seconds that the axis of time shows."""
    told = {each["name"]: each.get("value") for each in spec["params"]}
    return float(told["until"] - told["since"]) / 1000


START = datetime(2026, 3, 1, tzinfo=UTC)
A, B = "286f000000000001", "286f000000000002"


def section(page: str, title: str) -> str:
    """The HTML of one."""
    return page.partition(f"<h2>{title}</h2>")[2].partition("<h2>")[0]


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
    assert span(charts(page)[""]) < 130 and 3600 <= span(charts(page)["t"]) < 4000
    gaps = section(page, "When the boards recorded")
    assert "<td>off or restarted</td>" in gaps and "<td>20 s</td>" in gaps
    assert "0 lost" not in page and "No record is known to be lost." in page
    assert "began anew 1 time: up to record_flush_interval (10 s" in page
    assert charts(page).keys() == {"", "t", "messages in 1 h"}  # a counter is not measured
    assert "steadily" not in page and "stood still" not in page


def test_a_short_recording_has_short_steps(tmp_path: Path) -> None:
    at, random = int(START.timestamp() * 1000), Random(1)
    board, harvest = (
        Board(bytes.fromhex(A), Make(4096), 0, random),
        Harvest(tmp_path, 4096, random),
    )
    board.start(at)
    board.tell(at, NTP, at, 5, is_false=False)
    for second in range(60):
        board.put(at + 1000 * second, MESSAGE, 0, b"%d" % (second * 5 % 9), "c", "t")
    board.finish()
    harvest.bundle(board.copies(), at + HOUR)
    harvest.save()
    lake = tables_of(harvest.folder, tmp_path)
    assert report(Path(lake.folder)).exit_code == 0
    found = charts((tmp_path / "tables/page.html").read_text("utf-8"))
    assert found.keys() == {"", "t", "messages in 1 s"}
    assert [row["mean"] for row in values(found["t"])] == [i * 5 % 9 for i in range(60)]


def test_a_board_has_one_colour_in_all_charts(tmp_path: Path) -> None:
    measured = [
        {"board": board, "topic": topic, "field": "", "start": START, "count": 1,
         **dict.fromkeys(("min", "mean", "max"), 1.0)}
        for topic, boards in {"both": (A, B), "a": (A,), "b": (B,)}.items() for board in boards
    ]  # fmt: skip
    assert report(gold(tmp_path, readings=measured)).exit_code == 0
    colours: dict[str, set[str]] = {A: set(), B: set()}
    for spec in charts((tmp_path / "page.html").read_text("utf-8")).values():
        scale = spec["layer"][0]["encoding"]["color"]["scale"]
        for board, colour in zip(scale["domain"], scale["range"], strict=True):
            colours[board].add(colour)
    assert [len(some) for some in colours.values()] == [1, 1] and colours[A] != colours[B]


def test_lines_end_where_values_are_missing() -> None:
    def cut(hours: list[int], *dark: tuple[int, int]) -> list[tuple[int, bool]]:
        rows = [{"board": A, "start": hour * HOUR} for hour in reversed(hours)]
        spans = {A: [(a * HOUR, b * HOUR) for a, b in dark]}
        return [(row["run"], row["alone"]) for row in runs(rows, HOUR, spans)]

    assert cut([0, 1, 2, 30, 31]) == [(1, False)] * 3 + [(2, False)] * 2
    assert cut([0, 1, 2, 3, 9, 30]) == [(1, False)] * 4 + [(2, True), (3, True)]
    assert cut([0, 24, 48, 72]) == [(1, False)] * 4  # once a day is usual there
    assert cut([0, 72, 144]) == [(1, True), (2, True), (3, True)]  # more than two days never is
    assert cut([0, 1, 3, 4], (1, 4)) == [(1, False)] * 2 + [(2, False)] * 2  # the power was off
    assert cut([0, 1, 2, 3], (1, 2)) == [(1, False)] * 4  # it was on in each of these hours
    assert cut([]) == []


def test_steps_fit_what_there_is() -> None:
    days = [step_for(days * 24 * HOUR) / HOUR for days in (0.001, 1, 10, 30, 365)]
    assert days == [1 / 3600, 1 / 12, 1, 6, 7 * 24]
    hours = [{"board": A, "start": hour * HOUR, "count": hour + 1, "mean": float(hour),
              "min": -1.0 * hour, "max": 9.0 + hour} for hour in range(3)]  # fmt: skip
    assert merged(hours, 2 * HOUR) == [
        {"board": A, "start": 0, "count": 3, "mean": pytest.approx(2 / 3), "min": -1.0,
         "max": 10.0},
        {"board": A, "start": 2 * HOUR, "count": 3, "mean": 2.0, "min": -2.0, "max": 11.0},
    ]  # fmt: skip


def test_boards_are_called_as_gold_says(tmp_path: Path) -> None:
    plain = gold(tmp_path / "plain", boards=[{"board": b, "name": b, **COUNTS} for b in (A, B)])
    assert report(plain).exit_code == 0
    assert "site" not in section((plain / "page.html").read_text("utf-8"), "Boards")
    assert "Sites" not in (plain / "page.html").read_text("utf-8")
    called = [
        {"board": A, **COUNTS, "name": "greenhouse", "site": "farm", "tags": ["wet", "hot"]},
        {"board": B, "name": B, **COUNTS},
    ]
    gaps = [{"board": A, "boot": 1, "boots": 1, "lost": 4, "reasons": ["overwritten"],
             "files": [f"{number}.seg" for number in range(9)]}]  # fmt: skip
    tables = gold(tmp_path / "called", boards=called, gaps=gaps)
    assert report(tables).exit_code == 0
    page = (tables / "page.html").read_text("utf-8")
    shown = section(page, "Boards")
    assert "<td>greenhouse</td><td>farm</td><td>wet, hot</td>" in shown
    assert f"<td>{B}</td>" in shown and "<td>greenhouse</td>" in section(
        page, "When the boards recorded"
    )
    assert A not in page and "greenhouse lost 4 records (overwritten)." in page
    assert ">all of farm</option>" in page and "<td>farm</td><td>1</td>" in section(page, "Sites")
    one = report(tables, "--board", "greenhouse")
    page = (tables / "page.html").read_text("utf-8")
    assert one.exit_code == 0 and B not in page and "greenhouse" in page
    assert report(tables, "--site", "farm").exit_code == 0
    assert (tables / "page.html").read_text("utf-8") == page
    for words, what in ((["--site", "x"], "of site 'x'"), (["--board", "x"], "'x'")):
        assert "Error: " in (wrong := report(tables, *words)).output and what in wrong.output


def test_a_page_goes_through_a_link_and_into_a_pipe(tmp_path: Path) -> None:
    old, link, pipe = (tmp_path / name for name in ("old", "link", "pipe"))
    link.symlink_to(old)
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_bytes)
        for each in (link, pipe):
            page.write(each, b"new")
        assert read.result(60) == old.read_bytes() == b"new"
    assert link.is_symlink() and pipe.is_fifo()


WRONG = [
    ("[x]", "[x]: a board's id has 16 hex digits"),
    (f"[{A}]\nnames = 1", "has `name`, `site` and `tags`"),
    (f"[{A}]\ntags = [1]", "`tags` is a list of texts"),
    (f'[{A}]\nname = "{B}"', f"the name '{B}' is another board's id"),
    (f'[{A}]\nname = ""', "`name` (not empty)"),
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
    (tmp_path / "boards.toml").write_text(
        f'\ufeff[{A}]\nname = "x"\ntags = ["y"]\n[{B}]\nsite = "z"\n'
    )
    assert names.read(tmp_path) == {A: Named("x", None, ("y",)), B: Named(B, "z")}


CUT = (
    "Up to record_flush_interval (10 s unless set otherwise) before each power cut are not"
    " recorded. The longest time without records: 30 s of hive 1, from 2026-03-01 00:00 UTC."
)


def test_of_many_boards_one_sentence_tells(tmp_path: Path) -> None:
    """And 2 comes before 10."""
    ids = [f"286f{number:012x}" for number in range(1, 12)]
    called = [COUNTS | {"board": board, "name": f"hive {i}", "advice": ["raise limit sessions"]}
              for i, board in enumerate(ids, 1)]  # fmt: skip
    lost = {"ring full": ids, "overwritten": [*ids[:2], ids[1]]}
    gaps = [{"board": board, "boot": 1, "boots": 1, "lost": 2, "reasons": [why]}
            for why, some in lost.items() for board in some]  # fmt: skip
    boots = [{"board": board, "boot": boot, "first": minutes(boot), "last": minutes(boot + 0.5),
              "records": 1} for board in ids for boot in range(2)]  # fmt: skip
    tables = gold(tmp_path, boards=called, gaps=gaps, boots=boots)
    assert report(tables).exit_code == 0
    page = (tables / "page.html").read_text("utf-8")
    assert re.findall(r"<li[^>]*>(.*?)</li>", section(page, "What to look at")) == [
        "11 boards (hive 1, hive 2, hive 3 and others): raise limit sessions.",
        "hive 1 lost 2 records (overwritten).",
        "hive 2 lost 4 records in 2 gaps (overwritten).",
        "11 boards (hive 1, hive 2, hive 3 and others) lost 22 records in 11 gaps (ring full).",
        "11 boards (hive 1, hive 2, hive 3 and others) began anew 11 times. " + CUT,
    ]
    names = re.findall(r"<tr[^>]*><td>(.*?)</td>", section(page, "Boards"))
    assert names == [f"hive {number}" for number in range(1, 12)]


MISSING = (
    "4 messages of QoS 1 or 2 are missing, though what was sent before and after was recorded,"
    " first at 2026-03-01 00:01 UTC."
)


def test_advice_and_the_audit_are_sentences(tmp_path: Path) -> None:
    found: Row = {"board": A, "boot": 1, "seq": 1, "client": "meter", "topic": "power"}
    happened = [("lost", 3, 1), ("twice", 1, 1), ("lost", 1, 2), ("order broken", 1, None)]
    audit = [
        found | {"finding": finding, "messages": count, "wall": at and minutes(at)}
        for finding, count, at in happened
    ]
    tables = gold(tmp_path, audit=audit, boards=[COUNTS | {"board": A, "name": "cellar"}])
    assert report(tables).exit_code == 0
    told = section((tables / "page.html").read_text("utf-8"), "QoS audit")
    prefix = "cellar: of client meter on power, "
    assert re.findall(f"<li[^>]*>{prefix}(.*?)</li>", told) == [
        MISSING,
        "the order was broken 1 time.",
        "1 message of QoS 2 came twice, first at 2026-03-01 00:01 UTC.",
    ]
