"""`slotmq sim --spark` without Spark: options, runs, table."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_telemetry import simulations
from slotmq_tools import cli
from slotmq_tools.errors import ToolError
from slotmq_tools.scenario import batch
from slotmq_tools.scenario.batch import Row, Work

CROWD = """
duration = "1 min"
board = "RPI_PICO_W"
[[clients]]
name = "sensor"
count = 6
sleeps = true
publish = [{ topic = "home/{n}", every = "10 s", qos = 1 }]
[[clients]]
name = "reader"
subscribe = ["home/#"]
"""


def runs(work: Work, seeds: range) -> list[Row]:
    return list(
        batch.run(work, [(seed, point) for seed in seeds for point in range(len(work.grid))])
    )


def test_a_grid_is_every_combination() -> None:
    assert batch.grid(["connections=1,4", "queued=8"]) == (
        {"connections": 1, "queued": 8},
        {"connections": 4, "queued": 8},
    )
    assert batch.grid([]) == ({},)
    assert batch.seeds("3..5") == range(3, 6)


@pytest.mark.parametrize("text", ["5..3", "7", "a..b", "-1..3"])
def test_invalid_seeds(text: str) -> None:
    with pytest.raises(ToolError, match=r"A\.\.B"):
        batch.seeds(text)


@pytest.mark.parametrize("text", ["connections", "connections=", "colour=3", "queued=1,x"])
def test_an_invalid_grid(text: str) -> None:
    with pytest.raises(ToolError, match="LIMIT=N,N"):
        batch.grid([text])


def test_the_table_shows_that_more_connections_deliver_more() -> None:
    work = Work(CROWD, None, batch.grid(["connections=1,4"]))
    rows = runs(work, range(1, 4))
    head, table = batch.capacity(rows, work)
    cells = [dict(zip(head, line, strict=True)) for line in table]
    assert [line["connections"] for line in cells] == ["1", "4"]
    assert [line["seeds"] for line in cells] == ["3", "3"]
    assert float(cells[0]["delivered %"]) < float(cells[1]["delivered %"])
    assert cells[0]["first full"] == "connections (3)"
    worst = min((row for row in rows if row["point"] == 0), key=lambda row: row["delivered"])
    assert cells[0]["of seed"] == str(worst["seed"])


def test_a_run_does_not_depend_on_the_others() -> None:
    work = Work(CROWD, None, batch.grid(["connections=1,4"]))
    alone = list(batch.run(work, [(2, 1)]))
    assert alone[0] == runs(work, range(1, 3))[3]


def test_a_failure_is_shown_with_its_seed_and_a_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [dict.fromkeys(batch.COLUMNS) | {"seed": 7, "point": 0, "failure": "AssertionError: x"}]
    lines = list(batch.failures(rows, Work(CROWD, None, ({},)), "crowd.toml"))
    assert lines[0] == "seed 7: AssertionError: x"
    assert lines[1].split() == ["slotmq", "sim", "crowd.toml", "--seed", "7"]


def sim(*args: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli.main, ["sim", *map(str, args)])
    return done.exit_code, done.output


def test_the_command_prints_the_table_and_ends_with_1_where_a_run_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "crowd.toml"
    file.write_text(CROWD)
    monkeypatch.setattr(simulations, "rows", lambda _master, work, seeds: runs(work, seeds))
    status, output = sim(file, "--spark", "local", "--seeds", "1..2", "--grid", "connections=3,4")
    assert status == 0 and "delivered %" in output and "no run" in output
    broken = [dict.fromkeys(batch.COLUMNS) | {"seed": 1, "point": 0, "failure": "E: x"}]
    monkeypatch.setattr(simulations, "rows", lambda *_: broken)
    status, output = sim(file, "--spark", "local", "--seeds", "1..1")
    assert status == 1 and "seed 1: E: x" in output and "1 of 1" in output


def test_errors_are_reported_before_anything_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "crowd.toml"
    file.write_text(CROWD)
    status, output = sim(file, "--spark", "local", "--seeds", "1..2", "--grid", "connections=900")
    assert status == 2 and "limits.connections" in output
    assert sim(file, "--seeds", "1..2")[0] == 2
    assert sim(file, "--spark", "local")[0] == 2
    assert sim("--spark", "local", "--seeds", "1..2")[0] == 2
    assert sim(tmp_path / "none.toml", "--spark", "local", "--seeds", "1..2")[0] == 2
