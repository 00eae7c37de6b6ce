"""CPython and MicroPython of both word sizes give the same for the same random input.

Each script in host_tests/broker/twins calls the inner loops, which are viper on MicroPython
and slices on CPython, or the whole broker, and prints each result. The lines of the three
runs must be equal; the first difference is shown with the lines before it.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from slotmq_tools import micropython
from slotmq_tools.pack import mpy

TWINS = Path(__file__).parent / "twins"
SUPPORT = TWINS.parent / "unit/support"
HEAP_KB = 32768  # on 64 bits `table` needs an address above all columns
TIMEOUT_S = 60
SEEDS = (1, 2, 3)
# The steps of each script
SCRIPTS = {
    "frames.py": 600,
    "texts.py": 1500,
    "stores.py": 1000,
    "queues.py": 1500,
    "properties.py": 900,
    "whole.py": 1500,
}


def run(command: list[str], environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    return done.stdout.splitlines()


def on_cpython(script: str, *args: str) -> list[str]:
    path = os.pathsep.join([str(SUPPORT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return run([sys.executable, str(TWINS / script), *args], {**os.environ, "PYTHONPATH": path})


def on_micropython(bits: int, script: str, *args: str) -> list[str]:
    imports = mpy.build_for(micropython.find(bits), packed=False)
    command = micropython.command(bits, HEAP_KB, TWINS / script, args)
    return run(command, micropython.environment(imports, SUPPORT, mpy.tools()))


def difference(wanted: list[str], found: list[str]) -> Iterator[str]:
    """The first line that differs, behind the three before it."""
    for at, (one, other) in enumerate(zip_longest(wanted, found, fillvalue="the end")):
        if one != other:
            yield from wanted[max(0, at - 3) : at]
            yield f"line {at}: CPython {one}, MicroPython {other}"
            return


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_same_on_every_runtime(script: str, seed: int) -> None:
    args = (str(seed), str(SCRIPTS[script]))
    wanted = on_cpython(script, *args)
    assert len(wanted) >= SCRIPTS[script]
    assert not [line for line in wanted if line.startswith("broken")]
    for bits in (32, 64):
        found = on_micropython(bits, script, *args)
        differs = "\n".join(difference(wanted, found))
        assert not differs, f"{script} {' '.join(args)}, {bits} bits:\n{differs}"


@pytest.mark.parametrize("seed", SEEDS)
def test_properties_by_the_fast_path(seed: int) -> None:
    """What fast/properties_cpython.py does with them is what the handlers do."""
    wanted = on_cpython("properties.py", str(seed), "900")
    found = on_cpython("properties.py", str(seed), "900", "quick")
    assert len(wanted) > 900
    assert not "\n".join(difference(wanted, found))


def test_storms_of_retained_messages() -> None:
    """What one call puts into a buffer on CPython, compared with packets made in the script."""
    for seed in SEEDS:
        lines = on_cpython("storms.py", str(seed), "1500")
        assert len(lines) == 1500
        assert not [line for line in lines if line.startswith("broken")]


def test_a_difference_is_found() -> None:
    wanted = ["a", "b", "c", "d", "e"]
    assert list(difference(wanted, wanted)) == []
    *before, other = difference(wanted, ["a", "b", "c", "d", "x"])
    assert before == ["b", "c", "d"]
    assert "line 4" in other and "CPython e" in other and "MicroPython x" in other
    assert "MicroPython the end" in list(difference(wanted, wanted[:4]))[-1]


def test_the_checks_of_the_stores_hold() -> None:
    """The script compares results with what it knows; equal lines could be equally wrong."""
    for seed in SEEDS:
        lines = on_cpython("stores.py", str(seed), "1000")
        assert any(line.startswith("route right") for line in lines)
        assert not [line for line in lines if line.endswith("False") and line[:4] in RIGHT]
        assert not [line for line in lines if line.startswith("a topic")]


RIGHT = ("kept", "rout", "reme")
