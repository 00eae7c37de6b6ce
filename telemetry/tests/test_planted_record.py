"""The recorder's unit tests find what is wrong with it: each planted fault, by the test named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from host_tests.sim.planted import LIB, plant
from host_tests.sim.planted.faults import Planted

from .faults_record import FAULTS as OF_RECORDS
from .faults_record_remote import FAULTS as OF_REQUESTS

FAULTS = OF_RECORDS + OF_REQUESTS
UNIT = Path(__file__).parents[2] / "host_tests/broker/unit"
TIMEOUT_S = 120


def run(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Unit tests of the recorder on CPython, with the broker of that folder."""
    path = os.pathsep.join((str(folder), str(UNIT / "support"), os.environ.get("PYTHONPATH", "")))
    return subprocess.run(
        [sys.executable, "-m", "unittest", *tests],
        cwd=UNIT / "recorder",
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_without_a_fault_they_pass() -> None:
    tests = sorted({planted.test for planted in FAULTS})
    ran = run(LIB.parent, *tests)
    assert ran.returncode == 0, ran.stderr
    assert f"Ran {len(tests)} tests" in ran.stderr


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.fault.name)
def test_it_is_found(planted: Planted, tmp_path: Path) -> None:
    plant(planted.fault, tmp_path)
    ran = run(tmp_path, planted.test)
    assert ran.returncode, f"{planted.test} does not see it"
    assert "Ran 1 test" in ran.stderr
    assert "SyntaxError" not in ran.stderr
