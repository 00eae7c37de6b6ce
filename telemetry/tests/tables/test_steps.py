"""What `ingest` says of its steps."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from slotmq_telemetry.command import step
from slotmq_telemetry.engine import Engine, Work
from slotmq_telemetry.lake import File


def written(work: Work) -> Iterable[File]:
    """A task that writes rows of a table."""
    yield File(work["table"], "", 1, work["rows"])


COUNTS = {
    "1,234 records, 3 in quarantine": (("bronze", 1200), ("quarantine", 3), ("bronze", 34)),
    "1 message": (("silver/messages", 1), ("silver/events", 2)),
    "4 rows": (("gold/boots", 2), ("gold/boards", 2)),
}


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("said", COUNTS)
def test_a_step_says_how_far_it_is_and_what_it_did(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, said: str, terminal: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    engine = Engine(lambda: pytest.fail("a session of Spark"))
    work: list[Work] = [{"table": table, "rows": rows} for table, rows in COUNTS[said]]

    def worked() -> str:
        engine.run(written, work, 1)
        return "done"

    step("name", engine, worked)
    out, err = capsys.readouterr()
    assert out.startswith(f"name: done, {said} in 0.") and out.count("\n") == 1
    assert ("name" in err and "%" in err) is terminal
    step("name", engine, lambda: "nothing")
    assert capsys.readouterr().out == "name: nothing\n"


def test_a_step_that_fails_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    engine = Engine(lambda: pytest.fail("a session of Spark"))
    with pytest.raises(ZeroDivisionError):
        step("gold", engine, lambda: str(1 / 0))
    assert capsys.readouterr() == ("", "")
