"""examples/field.ipynb: from a harvest to a chart in ten cells."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slotmq_telemetry.season import greenhouse

FILE = Path(__file__).parents[3] / "examples/field.ipynb"
NOTEBOOK = json.loads(FILE.read_text("utf-8"))


def shell(command: str) -> None:
    """What `!` does in a cell."""
    words = [sys.executable, "-m", "slotmq_tools.cli", *command.split()[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run(cell: str, names: dict[str, Any]) -> Any:
    """-> what the cell shows: its last expression."""
    source = re.sub(r"^( *)!(.*)$", r'\1shell(f"\2")', cell, flags=re.MULTILINE)
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.nightly
def test_each_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"shell": shell}
    cells = ["".join(c["source"]) for c in NOTEBOOK["cells"] if c["cell_type"] == "code"]
    boards, hours, sensors, gaps, chart = filter(
        lambda shown: shown is not None, [run(cell, names) for cell in cells]
    )
    assert {*boards["name"]} == {*greenhouse.NAMES}
    assert hours.loc[("beds", "air", "temperature")].between(14, 27).all()
    assert {*zip(sensors["name"], sensors["topic"], strict=True)} == {
        ("beds", "soil/2"), ("tunnel", "soil/1"), ("door", "battery"),
    }  # fmt: skip
    assert gaps["name"].to_list() == ["door"]
    rows = next(iter(chart.to_dict()["datasets"].values()))
    assert {(row["name"], row["run"]) for row in rows} == {
        ("beds", 0), ("tunnel", 0), ("tunnel", 1),
    }  # fmt: skip
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_it_has_ten_cells_and_no_output() -> None:
    assert len(NOTEBOOK["cells"]) == 10
    assert not any(cell.get("outputs") for cell in NOTEBOOK["cells"])
