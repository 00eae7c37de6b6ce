"""The unit tests on 32-bit MicroPython, from the same files as on CPython.

Their imports are compiled to .mpy as for a board. The heap is larger than a board's, since it
also contains the compiled tests, and buffers of the fakes that grow among small objects: four
times what any file needed, since the collector finds roots on the C stack, and so what stays in
use differs from run to run.
"""

import subprocess
from pathlib import Path

import pytest

from slotmq_tools import micropython
from slotmq_tools.pack import mpy

HERE = Path(__file__).parent
UNIT = HERE / "unit"
RUNNER = UNIT / "support/run_micropython.py"
SHIMS = HERE.parent / "support/shims"
PORTS = HERE.parent / "support/ports"
HEAP_KB = 24576
TIMEOUT_S = 300


def run(folder: Path, *files: Path, runner: Path = RUNNER) -> tuple[int, str]:
    """The exit status and the output of the test files on MicroPython."""
    imports = mpy.build_for(micropython.find(32), packed=False)
    command = micropython.command(32, HEAP_KB, runner, files)
    environment = micropython.environment(imports, SHIMS, PORTS, mpy.tools())
    done = subprocess.run(
        command,
        env={**environment, "SLOTMQ_SCRATCH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        cwd=folder,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("file", sorted(UNIT.rglob("test_*.py")), ids=lambda file: file.name)
def test_file(file: Path, tmp_path: Path) -> None:
    status, output = run(tmp_path, file)
    assert status == 0, output
    assert output.splitlines()[-1].endswith(" passed, 0 failed"), output


# Each text is a test file that fails; the runner must report that.
BAD = {
    "assertion": "def test_it(self): self.assertEqual(1, 2)",
    "error": "def test_it(self): nothing",
    "exit": "def test_it(self): raise SystemExit(0)",
    "wrong exception": "def test_it(self):\n  with self.assertRaises(ValueError): [][0]",
    "no exception": "def test_it(self):\n  with self.assertRaises(ValueError): pass",
    "subtest": "def test_it(self):\n  with self.subTest(n=1): self.fail('one')",
    "set-up": "def setUp(self): self.fail()\n def test_it(self): pass",
    "tear-down": "def tearDown(self): self.fail()\n def test_it(self): pass",
    "no tests": "pass",
    "unknown assertion": "def test_it(self): self.assertVague(1)",
    "import": "pass\nimport nothing_of_that_name",
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_the_runner_reports_failures(body: str, tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text(
        f"import unittest\nclass TestBad(unittest.TestCase):\n {body}\n"
    )
    runner = tmp_path / "run.py"  # a script's own folder is the first it imports from
    runner.write_bytes(RUNNER.read_bytes())
    status, output = run(tmp_path, Path("test_bad.py"), runner=runner)
    assert status == 1, output
    assert " passed, 0 failed" not in output


def test_the_runner_counts_tests(tmp_path: Path) -> None:
    (tmp_path / "test_good.py").write_text(
        "import unittest\nclass TestGood(unittest.TestCase):\n"
        " def test_a(self):\n  self.assertRaises(IndexError, lambda: [][0])\n"
        " def test_b(self):\n  with self.subTest(n=1): self.assertIn(1, [1])\n"
        "class TestBetter(TestGood):\n pass\n"
    )
    runner = tmp_path / "run.py"
    runner.write_bytes(RUNNER.read_bytes())
    assert run(tmp_path, Path("test_good.py"), runner=runner) == (0, "4 passed, 0 failed\n")
