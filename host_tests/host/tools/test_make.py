"""The Makefile: its variables, errors in their values, and its help."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Variables of the make that runs the tests
OTHERS = ("MAKEFLAGS", "MFLAGS", "PORT", "CONF", "RUNTIME", "BOARD", "UNSTEADY")


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *words],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in OTHERS},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], '--runtime "cpython" --board "HOST"'),
        (["PORT=1884"], '--runtime "cpython" --board "HOST" -p "1884"'),
        (["CONF=my own.conf"], '--runtime "cpython" --board "HOST" -c "my own.conf"'),
        (["RUNTIME=micropython", "BOARD=X"], '--runtime "micropython" --board "X"'),
    ],
)
def test_run_passes_its_variables_on(words: list[str], options: str) -> None:
    printed = make("-n", "run", *words).stdout.replace("\\\n", " ")
    assert f"slotmq run {options}" in " ".join(printed.split())


def test_an_error_of_the_command_is_an_error_of_make() -> None:
    done = make("run", "CONF=none such")
    assert done.returncode != 0
    assert "slotmq: none such: " in done.stderr


def test_help_has_every_target_and_variable() -> None:
    told = make("help").stdout
    for word in ("make run", "PORT=", "CONF=", "RUNTIME=", "BOARD=", "make test", "make clients"):
        assert word in told
    text = (ROOT / "Makefile").read_text()
    targets = text.partition(".PHONY: ")[2].partition("\n")[0].split()
    assert all(f"make {target}" in told for target in targets), told
