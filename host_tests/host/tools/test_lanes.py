"""Each test file is in one lane."""

from pathlib import Path

from slotmq_dev import lanes

ROOT = Path(__file__).parents[3]


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
