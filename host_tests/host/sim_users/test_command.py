"""Options and output files of `slotmq sim`, and the scenarios in documents and examples."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import util
from pathlib import Path
from xml.dom import minidom

import pytest
from click.testing import CliRunner, Result

from slotmq_dev import figures
from slotmq_tools import cli
from slotmq_tools.scenario import model, picture
from slotmq_tools.scenario.outcome import simulate
from slotmq_tools.scenario.read import read

from .test_outcomes import TEN

ROOT = Path(__file__).parents[3]
SCENARIOS = sorted((ROOT / "docs" / "scenarios").glob("*.toml"))


def sim(*args: object) -> Result:
    return CliRunner().invoke(cli.main, ["sim", *map(str, args)])


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    file = tmp_path / "ten.toml"
    file.write_text(TEN)
    return file


def test_summary_tables_and_speed(ten: Path) -> None:
    done = sim(ten)
    assert done.exit_code == 0
    assert re.match("10 x sensor, 1 x reader .*HOST.* 1 min, seed 1\n\n600 ", done.stdout)
    assert re.search(r"^ deliveries +60,000 +\d+ ", done.stdout, re.MULTILINE)
    assert "simulated seconds" in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 130


def test_quiet_prints_the_summary_only(ten: Path) -> None:
    done = sim(ten, "-q")
    assert done.stderr == ""
    assert "No limit" in done.stdout
    assert "Tables" not in done.stdout


def test_json_has_the_numbers(ten: Path) -> None:
    found = json.loads(sim(ten, "--json", "--board", "RPI_PICO_W", "--seed", "4").stdout)
    assert (found["board"], found["seed"], found["duration_s"]) == ("RPI_PICO_W", 4, 60)
    assert found["due"] == found["delivered"] + found["lost"] + found["waiting"] == 600
    assert found["limits_hit"][0]["limit"] == "connections"
    assert {"name": "connections", "size": 4, "peak": 4}.items() <= found["tables"][0].items()
    assert sum(found["ram"]["rows"].values()) == found["ram"]["tables"]
    assert found["groups"][1]["name"] == "reader"


def test_a_report_is_one_page_with_curves(ten: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = sim(ten, "-q", "--out", out)
    assert done.exit_code == 0
    page = out.read_text()
    assert "600 of 600 messages" in page
    assert not re.search(r"(src|href)=.(?!#)|url\((?!#)", page), "it needs nothing else"
    (curves,) = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    minidom.parseString(curves)
    for text in ("Messages a second", "delivered", "lost", "connections", "deliveries", "0:01:00"):
        assert f">{text}</text>" in curves
    rows = re.findall(r"<tr><td>deliveries</td><td>60,000</td>", page)
    assert len(rows) == 1
    assert [file.name for file in tmp_path.iterdir() if file not in (ten, out)] == []


@pytest.mark.parametrize("duration", ["1 s", "2500 ms", "9 s", "50 s", "62 s"])
def test_each_mark_is_where_its_label_says(ten: Path, duration: str) -> None:
    """Of 50 s a quarter is 12.5 s, which is neither 0:00:12 nor 0:00:13."""
    outcome = simulate(read(ten, duration=duration), lambda percent: None)
    for axes in picture._figure(outcome).axes:
        marks = [round(mark) for mark in axes.get_xticks()]
        labels = [label.get_text() for label in axes.get_xticklabels()]
        found = [[int(part) for part in label.split(":")] for label in labels]
        assert [(h * 3600 + m * 60 + s) * 1000 for h, m, s in found] == marks
        assert len(marks) in range(1, 10)
        assert outcome.scenario.duration - marks[-1] < max(1000, marks[1] if marks[1:] else 1000)


def test_a_title_is_escaped(tmp_path: Path) -> None:
    file, out = tmp_path / "x.toml", tmp_path / "x.html"
    file.write_text('title = "<script>alert(1)</script> $x_$"\n' + TEN)
    assert sim(file, "-q", "--out", out).exit_code == 0
    assert "<h1>&lt;script&gt;alert(1)&lt;/script&gt; $x_$</h1>" in out.read_text()
    assert out.read_text().count("<script") == 1  # the page's own
    assert sim(file, "-q", "--out", out.with_suffix(".png")).exit_code == 0


def test_a_picture_is_a_png(ten: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.png"
    assert sim(ten, "-q", "--out", out).exit_code == 0
    assert out.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert len(out.read_bytes()) > 20_000


@pytest.mark.parametrize("suffix", ["html", "png"])
def test_without_matplotlib_nothing_is_simulated(
    ten: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    done = sim(ten, "--out", tmp_path / f"report.{suffix}")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: --out needs matplotlib")
    assert "pip install 'slotmq[picture]'" in done.stderr


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--out", "report.pdf"], ".html or .png"),
        (["--out", "/no/such/report.html"], "no folder /no/such"),
        (["--board", "NO_SUCH"], "'NO_SUCH'"),
        (["--seed", "-1"], "-1"),
    ],
)
def test_wrong_options(ten: Path, args: list[str], word: str) -> None:
    done = sim(ten, *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert word in done.stderr


def test_no_file(tmp_path: Path) -> None:
    assert sim().exit_code == 2
    done = sim(tmp_path / "none.toml")
    assert done.exit_code == 2
    assert "none.toml: " in done.stderr


# Examples and documents


def test_the_example_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(sim("--example").stdout)
    scenario = read(file, duration="20 min")
    outcome = simulate(scenario, lambda percent: None)
    assert outcome.total("delivered") > 900
    assert outcome.wear and outcome.wear.years and outcome.wear.years > 1


def test_the_document_shows_the_output(tmp_path: Path) -> None:
    """Its text; a change of the broker may change the figures a little."""
    page = (ROOT / "docs/test.md").read_text()
    shown = figures.get(page, "sim").strip("`\n")
    file = tmp_path / "home.toml"
    file.write_text(sim("--example").stdout)
    printed = sim(file, "-q").stdout
    texts = (re.sub(r"\d[\d,.:]*", "0", " ".join(text.split())) for text in (printed, shown))
    assert next(texts) == next(texts)
    due = [re.findall(r"of ([\d,]+) messages", text) for text in (printed, shown)]
    assert due[0] == due[1]
    lines = (text.partition("RAM")[2] for text in (printed, shown))
    ram = [[int(n.replace(",", "")) for n in re.findall("[0-9,]{5,}", line)] for line in lines]
    assert ram[0] == ram[1], "docs/test.md: the block differs from the output"


def test_the_scenario_in_the_help_is_valid(tmp_path: Path) -> None:
    text = sim("--help").output
    file = tmp_path / "help.toml"
    file.write_text(text[text.index("duration =") : text.index("The result")])
    outcome = simulate(read(file, duration="2 min"), lambda percent: None)
    assert outcome.total("due") == 12 * 12


def test_every_key_is_printed() -> None:
    printed = sim("--keys").stdout
    for title, table in model.TABLES.items():
        assert f"\n{title}: " in f"\n{printed}"
        for name in table.model_fields:
            assert re.search(rf"^  {name} +\S", printed, re.MULTILINE), name


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.name)
def test_the_scenarios_of_the_documents(file: Path) -> None:
    assert tomllib.loads(file.read_text())["title"]
    outcome = simulate(read(file, duration="70 min"), lambda percent: None)
    assert outcome.total("delivered") > 0
    assert {hit.limit for hit in outcome.hits} <= {"connections", "queued", "messages"}


def test_it_is_fast() -> None:
    """On an idle machine 2,600 simulated seconds per second; a busy one is no failure."""
    code = (
        "import sys, time; from pathlib import Path\n"
        "from slotmq_tools.scenario.read import read\n"
        "from slotmq_tools.scenario.outcome import simulate\n"
        "scenario = read(Path(sys.argv[1]))\n"
        "start = time.process_time(); simulate(scenario, lambda percent: None)\n"
        "print(scenario.duration / 1000 / (time.process_time() - start))"
    )
    (file,) = (file for file in SCENARIOS if file.name == "crowd.toml")
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) > 400
