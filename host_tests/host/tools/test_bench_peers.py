"""Brokers that the user names, the page that is written, and the load generator in C."""

import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from slotmq_dev.bench import brokers, page, results, tables, windows
from slotmq_dev.bench.__main__ import main
from slotmq_dev.bench.results import Cell, Results
from slotmq_tools.errors import ToolError

LISTENS = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])));"
    "time.sleep(60)"
)


def row(ours: float, theirs: float) -> results.Row:
    return {
        name: Cell([{"cpu_us": cost}])
        for name, cost in (("slotmq-micropython32", ours), ("mosquitto", theirs))
    }


def test_a_named_broker_is_started_on_the_port() -> None:
    other = brokers.named(f'other={sys.executable} -c "{LISTENS}" {{port}}')
    with brokers.running(other) as running:
        assert running.broker.name == "other"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("other", "is not NAME=COMMAND"),
        ("=x {port}", "is not NAME=COMMAND"),
        ("other=sh -p 1883", "with {port} in the command"),
        ("other=sh 'x {port}", "No closing quotation"),
        ("mosquitto=sh {port}", "a name of the benchmark's own"),
        ("other=no-such-broker -p {port}", "no program 'no-such-broker'"),
    ],
)
def test_a_wrong_peer_is_refused(text: str, why: str) -> None:
    with pytest.raises(ToolError, match=r"other|=x|mosquitto") as refused:
        brokers.named(text)
    assert why in str(refused.value)
    told = CliRunner().invoke(main, ["--peer", text])
    assert told.exit_code == 2
    assert "Invalid value for --peer" in told.output


def test_a_peer_that_ends_at_once_is_a_failure_with_its_last_line() -> None:
    other = brokers.named("other=sh -c 'echo bad option {port} >&2; exit 3'")
    with pytest.raises(ToolError, match="ended at the start with status 3: bad option"), \
            brokers.running(other):  # fmt: skip
        pass


def test_results_are_kept(tmp_path: Path) -> None:
    found: Results = {"qos0": row(1, 4), "qos1": {"aedes": Cell([], "it hung up")}}
    file = tmp_path / "build" / "kept"
    assert results.load(file) == {}
    results.save(found, file)
    assert results.load(file) == found
    file.write_text("[]")
    with pytest.raises(ValueError, match="no results"):
        results.load(file)


LINES = 46


def test_the_page_is_one_screen_with_a_picture(tmp_path: Path) -> None:
    found: Results = {"qos0": row(1, 4), "qos0-v5": row(3, 4), "connect": row(90, 45)}
    found["window-1-5"] = {
        "slotmq-cpython": Cell([{"wall_ms": 30}, {"wall_ms": 40}, {"wall_ms": 20}]),
        "mosquitto": Cell([{"wall_ms": 12.5}]),
    }
    (tmp_path / "measurements.md").write_text(
        f"# Before\n{page._BEGINS}old figures\n{page._ENDS}# After\n"
    )
    page.write(
        tmp_path / "performance.md",
        found,
        tables.all_tables(found),
        command="bench",
        versions={"mosquitto": "2.0"},
        rounds="9",
        failures=[("qos1", "aedes", "it hung up")],
    )
    short = (tmp_path / "performance.md").read_text()
    assert "| QoS 0 | 0.25 | 0.75 | - | - |" in short
    assert "| connect, subscribe, leave | 2.00 |  | - |  |" in short
    assert "aedes failed at qos1: it hung up." in short
    assert "| CPython | - | 30.0 | - | - | - | - | - | - |" in short
    assert "| mosquitto | - | 12.5 |" in short and "Medians of 3 rounds" in short
    assert len(short.splitlines()) <= LINES
    picture = ElementTree.fromstring((tmp_path / "performance.svg").read_text())
    assert picture.tag.endswith("svg")
    long = (tmp_path / "measurements.md").read_text()
    assert long.startswith("# Before\n") and long.endswith("# After\n")
    assert "old figures" not in long and "| qos0 | 1.00 (0.25) | 4.00 (1.00) |" in long


def test_the_page_in_the_repository_is_one_screen() -> None:
    file = Path(__file__).parents[3] / "docs/performance.md"
    assert len(file.read_text().splitlines()) <= LINES


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("qos", [1, 2])
def test_windows_are_delivered(qos: int) -> None:
    ours = next(each for each in brokers.BROKERS if each.name == "slotmq-cpython")
    with brokers.running(ours) as running:
        generator = windows.Generator(windows.Windows(qos, pairs=2), running.address)
        count = generator.run(0.05)
        generator.close()
    assert count > 0 and count % 200 == 0
