"""Each test is in one lane. Failed tests are rerun alone; two that pass then fail no run."""

from pathlib import Path

import pytest

from slotmq_dev import lanes
from slotmq_dev.lanes import Call, Outcome

ROOT = Path(__file__).parents[3]
TESTS = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range({unsteady}))
def test_unsteady(number, request):
    seen = pathlib.Path(__file__).with_name(f"seen-{{number}}")
    first = not seen.exists()
    seen.touch()
    assert not first
    assert "PYTEST_XDIST_WORKER" not in os.environ

def test_steady():
    assert not pathlib.Path(__file__).with_name("steady").exists(), "ran twice"
    pathlib.Path(__file__).with_name("steady").touch()

{more}
"""
BROKEN = "def test_broken():\n    assert False"


def ran(folder: Path, unsteady: int, more: str = "", *workers: str) -> Outcome:
    (folder / "pytest.ini").write_text("[pytest]\n")
    file = folder / "test_them.py"
    file.write_text(TESTS.format(unsteady=unsteady, more=more))
    options = ("--rootdir", str(folder), "-c", str(folder / "pytest.ini"))
    return lanes.run([Call("them", (*options, str(file)), workers)], folder / "cache")


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def test_nothing_failed(tmp_path: Path) -> None:
    assert ran(tmp_path, 0) == Outcome(True, [])


def test_a_test_that_passes_in_the_rerun_is_unsteady(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = ran(tmp_path, 1, "", "-n", "2")
    assert outcome == Outcome(True, ["test_them.py::test_unsteady[0]"])
    assert lanes.report(outcome)
    assert "  test_them.py::test_unsteady[0]\n" in capsys.readouterr().out


def test_a_test_that_fails_twice_has_failed(tmp_path: Path) -> None:
    outcome = ran(tmp_path, 1, BROKEN)
    assert outcome == Outcome(False, ["test_them.py::test_unsteady[0]"])
    assert not lanes.report(outcome)


def test_a_file_with_a_syntax_error_fails_the_run(tmp_path: Path) -> None:
    assert not ran(tmp_path, 0, "1 +").ok


@pytest.mark.parametrize(
    ("earlier", "now", "passes"), [(0, 2, True), (0, 3, False), (2, 1, False)]
)
def test_two_unsteady_tests_do_not_fail_a_run(earlier: int, now: int, passes: bool) -> None:
    outcome = Outcome(True, ["a test"] * now)
    assert lanes.report(outcome, ["a test"] * earlier) is passes


def test_many_failures_are_not_rerun(tmp_path: Path) -> None:
    assert ran(tmp_path, lanes.MOST_RERUN + 1) == Outcome(False, [])


def test_each_test_is_in_one_lane() -> None:
    folders = [name for names in lanes.SIDE_BY_SIDE.values() for name in names]
    files = [
        path for name in ("host_tests", "telemetry") for path in (ROOT / name).rglob("test_*.py")
    ]
    found = {"/".join(path.relative_to(ROOT).parts[:2]) for path in files}
    assert sorted([*folders, "host_tests/board"]) == sorted(found)  # and Spark in telemetry/tests


def test_a_lane_has_its_calls() -> None:
    assert [call.name for call in lanes.calls(("broker", "spark"), "x")] == ["core", "spark"]
    boards, timed = lanes.calls(("board",), "not nightly")
    assert (boards.name, timed.name) == ("board", "timed")
    assert boards.options[:2] == ("-m", "not nightly")
