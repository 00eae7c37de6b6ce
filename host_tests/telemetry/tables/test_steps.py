"""What `ingest` says of its steps."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from slotmq_tools.telemetry import steps
from slotmq_tools.telemetry.engine import Engine, Work
from slotmq_tools.telemetry.lake import File


def written(work: Work) -> Iterable[File]:
    """A task that writes rows of a table."""
    yield File(work["table"], "", 1, work["rows"])


def test_a_step_says_how_far_it_is_and_what_it_did(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "EVERY_S", 0)
    engine = Engine(lambda: pytest.fail("a session of Spark"))
    counts = (("bronze", 1200), ("quarantine", 3), ("bronze", 34))
    with steps.step("bronze", engine) as told:
        engine.run(written, [{"table": table, "rows": rows} for table, rows in counts], 1)
        told.text = "3 new bundles"
    out, err = capsys.readouterr()
    assert out.startswith("bronze: 3 new bundles, 1,234 records, 3 in quarantine in 0.")
    assert err.splitlines() == ["bronze: 33 %", "bronze: 67 %"]
    with steps.step("gold", engine) as told:
        engine.run(written, [{"table": f"gold/{i}", "rows": 2} for i in range(2)], 1)
        told.text = "1 board"
    assert capsys.readouterr().out.startswith("gold: 1 board, 4 rows in 0.")


def test_a_step_that_fails_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Engine(lambda: pytest.fail("a session of Spark"))
    with pytest.raises(OSError, match="full"), steps.step("gold", engine):
        raise OSError("full")
    assert capsys.readouterr().out == ""


def test_a_terminal_shows_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    engine = Engine(lambda: pytest.fail("a session of Spark"))
    with steps.step("gold", engine) as told:
        engine.run(written, [{"table": "gold/x", "rows": 0}], 1)
        told.text = "done"
    out, err = capsys.readouterr()
    assert out == "gold: done\n" and "100 %" in err and "\n" not in err
    assert err.endswith("\r\x1b[K")
