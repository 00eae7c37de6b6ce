"""`log_dest syslog`, on CPython."""

import syslog
from types import SimpleNamespace
from typing import Any

import pytest

from slotmq.app import log_dests
from slotmq.config.settings import Settings
from slotmq.platform import log

TYPES = 127


def opened(**settings: Any) -> None:
    """Open the log of a broker with these settings."""
    log_dests.start(SimpleNamespace(settings=Settings(**settings)), False)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the system's log gets."""
    found: list[object] = []
    monkeypatch.setattr(syslog, "openlog", lambda *options: found.append(options))
    monkeypatch.setattr(syslog, "syslog", lambda *line: found.append(line))
    monkeypatch.setattr(syslog, "closelog", lambda: found.append("closed"))
    return found


@pytest.mark.parametrize(
    ("facility", "expected"),
    [(None, syslog.LOG_DAEMON), (0, syslog.LOG_LOCAL0), (5, syslog.LOG_LOCAL5)],
)
def test_each_line_has_its_priority(
    facility: int | None, expected: int, lines: list[object]
) -> None:
    more = {} if facility is None else {"log_facility": facility}
    opened(log_dest=("syslog",), log_type=TYPES, **more)
    for bit in (1, 2, 4, 8, 16, 32, 64):
        log.write(bit, f"line {bit}")
    log.write(0, "printed")
    log_dests.close()
    log.write(1, "after the end")
    err, warning, notice = syslog.LOG_ERR, syslog.LOG_WARNING, syslog.LOG_NOTICE
    assert lines == [
        ("slotmq", syslog.LOG_PID, expected),
        *((err, "line 1"), (warning, "line 2"), (notice, "line 4"), (syslog.LOG_INFO, "line 8")),
        *((notice, "line 16"), (notice, "line 32"), (syslog.LOG_DEBUG, "line 64")),
        (notice, "printed"),
        "closed",
    ]


def test_log_type_decides_here_too(lines: list[object]) -> None:
    opened(log_dest=("syslog",), log_type=1)
    log.write(1, "one")
    log.write(2, "two")
    log_dests.close()
    assert lines[1:] == [(syslog.LOG_ERR, "one"), "closed"]
