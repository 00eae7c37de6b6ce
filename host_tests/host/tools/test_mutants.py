"""dev/mutants.py: each kind of fault, and a score of tests that find nothing."""

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_dev import mutants

FAULTS = """
if a < b:                       | if not a < b:
a < b                           | a <= b
a + b                           | a - b
a and b                         | a or b
return 0                        | return 1
a.n = 1                         | nothing
a.n += 1                        | nothing
a.f()                           | nothing
"""


@pytest.mark.parametrize("row", FAULTS.strip().splitlines())
def test_each_kind_of_fault(row, monkeypatch, tmp_path: Path):
    before, after = (cell.strip() for cell in row.split("|"))
    body = before + " pass" if before.endswith(":") else before
    (tmp_path / "x.py").write_text(f"def f(a, b):\n    {body}\n")
    monkeypatch.setattr(mutants, "LIB", tmp_path)

    faults = [mutants.mutant(site) for site in mutants.sites("x.py")]

    [text] = [text for text, what in faults if what.endswith(f": {before} -> {after}")]
    ast.parse(text)
    assert after == "nothing" or after in text


def test_the_score_of_tests_that_find_nothing(tmp_path: Path):
    (tmp_path / "test_nothing.py").write_text("def test(): pass\n")

    arguments = ["tables/epoch.py", "--tests", str(tmp_path), "--count", "1", "--least", "50"]
    result = CliRunner().invoke(mutants.main, arguments)

    assert "survived: tables/epoch.py:" in result.output
    assert "0 %: 0 of 1" in result.output
    assert result.exit_code == 1
