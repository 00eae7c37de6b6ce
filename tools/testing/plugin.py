"""The plugin of pytest: the fixtures `mqtt` and `mqtt_session`, the mark, and reports.

pytest loads it in every run, so it imports nothing of slotmq before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .mqtt import Mqtt

_MARK = (
    "mqtt(conf, users, limits, version, board, runtime, tls): the broker of the fixture `mqtt`; "
    "see docs/pytest.md"
)
_FIXTURES = ("mqtt", "mqtt_session")
_REPORTED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("slotmq")
    group.addoption(
        "--mqtt-board",
        metavar="BOARD",
        help="the fixtures' brokers have the limits of this board, such as RPI_PICO_W",
    )
    group.addoption(
        "--mqtt-runtime",
        choices=("cpython", "micropython"),
        help="the fixtures' brokers run on this Python",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)
    board = config.getoption("--mqtt-board")
    if board:
        from .. import boards

        if board not in boards.names():
            raise pytest.UsageError(
                f"--mqtt-board {board}: expected one of {', '.join(boards.names())}"
            )


@pytest.fixture
def mqtt(request: pytest.FixtureRequest) -> Iterator[Mqtt]:
    """A broker for this test: host, port, url; what passes, and faults (docs/pytest.md)."""
    with _started(request.config, _of_marks(request.node)) as one:
        yield one


@pytest.fixture(scope="session")
def mqtt_session(request: pytest.FixtureRequest) -> Iterator[Mqtt]:
    """A broker for all tests of this process; marks do not apply to it."""
    with _started(request.config, {}) as one:
        yield one


def _of_marks(node: Any) -> dict[str, Any]:
    # The closest mark comes last, and its arguments win.
    named: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers("mqtt"))):
        if mark.args:
            pytest.fail("@pytest.mark.mqtt: expected keyword arguments only", pytrace=False)
        named.update(mark.kwargs)
    return named


def _started(config: pytest.Config, named: dict[str, Any]) -> Mqtt:
    from .mqtt import Mqtt
    from .options import WrongOptions

    if named.get("tls") and config.getoption("--mqtt-runtime") == "micropython":
        named.get("runtime") or pytest.skip("tls: not with --mqtt-runtime micropython")
    for name in ("board", "runtime"):
        value = config.getoption(f"--mqtt-{name}")
        if value:
            named.setdefault(name, value)
    try:
        return Mqtt(**named)
    except WrongOptions as error:
        wrong = str(error)
    pytest.fail(f"@pytest.mark.mqtt: {wrong}", pytrace=False)  # here it has no other to name


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Attach packets and log of the test's brokers to a failure. Skip a test that needs what is
    not possible on the Python of --mqtt-runtime."""
    outcome: Any = yield
    report = outcome.get_result()
    if _is_impossible(item, call):
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = path, (line or 0) + 1, f"Skipped: {call.excinfo.value}"  # type: ignore[union-attr]
    if not report.failed or item.stash.get(_REPORTED, False):
        return
    for name in _FIXTURES:
        one = getattr(item, "funcargs", {}).get(name)
        if one is not None and hasattr(one, "report"):
            item.stash[_REPORTED] = True
            report.sections.append((f"broker of {name}", one.report(report.longreprtext)))


def _is_impossible(item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
    error = call.excinfo and call.excinfo.value  # of a unittest.TestCase, too
    if not isinstance(error, NotImplementedError) or not item.config.getoption("--mqtt-runtime"):
        return False
    from .texts import NotOnMicroPython

    return isinstance(error, NotOnMicroPython)
