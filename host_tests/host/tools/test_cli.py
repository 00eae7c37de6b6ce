"""The command line: which arguments the broker gets, and which options are refused."""

import os
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from slotmq_tools import cli
from slotmq_tools.errors import ToolError
from slotmq_tools.run import launcher

PID = ["--pid", str(os.getpid())]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The calls of the launcher, which starts nothing here."""
    made: list[tuple[Any, ...]] = []

    def run_here(argv: list[str], ready: Callable[[], None]) -> int:
        made.append(("cpython", argv))
        return 0

    def run_micropython(
        argv: list[str], heap_kb: int, ready: Callable[[], None], *, relay: bool
    ) -> int:
        made.append(("micropython", argv, heap_kb))
        return 3

    monkeypatch.setattr(launcher, "run_here", run_here)
    monkeypatch.setattr(launcher, "run_micropython", run_micropython)
    return made


def slotmq_command(*args: str) -> Result:
    return CliRunner().invoke(cli.main, args)


@pytest.mark.parametrize(
    ("args", "broker_argv"),
    [
        ((), ["--board", "HOST"]),
        (("run",), ["--board", "HOST"]),
        (("-p", "1884"), ["-p", "1884", "--board", "HOST"]),
        (("run", "-p1884"), ["-p", "1884", "--board", "HOST"]),
        (("-v", "-c", "my.conf"), ["-c", "my.conf", "-v", "--board", "HOST"]),
        (("--host", "::1"), ["--host", "::1", "--board", "HOST"]),
        (("--board=RPI_PICO_W",), ["--board", "RPI_PICO_W"]),
    ],
)
def test_the_arguments_of_the_broker(
    args: tuple[str, ...], broker_argv: list[str], calls: list[tuple[Any, ...]]
) -> None:
    result = slotmq_command(*args)
    assert calls == [("cpython", broker_argv + PID)]
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("args", "board", "heap_kb"),
    [
        ((), "HOST", 65536),
        (("--board", "RPI_PICO_W"), "RPI_PICO_W", 160),
        (("--board", "ESP32_GENERIC"), "ESP32_GENERIC", 112),
        (("--board", "ESP32_GENERIC_S3"), "ESP32_GENERIC_S3", 2048),
        (("--board", "RPI_PICO_W", "--heap", "200"), "RPI_PICO_W", 200),
    ],
)
def test_micropython_has_the_heap_of_the_board(
    args: tuple[str, ...], board: str, heap_kb: int, calls: list[tuple[Any, ...]]
) -> None:
    result = slotmq_command("--runtime", "micropython", *args)
    assert calls == [("micropython", ["--board", board, *PID], heap_kb)]
    assert result.exit_code == 3, "the broker's exit status"


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--heap", "160"), "--runtime micropython"),
        (("--heap", "0"), "0 is not in the range 16<=x<=262144"),
        (("--heap", "-1"), "-1 is not in the range"),
        (("--heap", "4194304"), "4194304 is not in the range"),
        (("--heap", "many"), "'many' is not a valid integer"),
        (("--board", "NO_SUCH"), "'NO_SUCH' is not one of"),
        (("-p", "0"), "0 is not in the range 1<=x<=65535"),
        (("-p", "65536"), "65536 is not in the range"),
        (("--runtime", "pypy"), "'pypy' is not one of"),
        (("serve",), "no command serve"),
    ],
)
def test_wrong_options_are_refused(
    args: tuple[str, ...], complaint: str, calls: list[tuple[Any, ...]]
) -> None:
    result = slotmq_command(*args)
    assert result.exit_code == 2
    assert complaint in result.output
    assert calls == []


def test_a_tool_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> int:
        raise ToolError("no MicroPython here")

    monkeypatch.setattr(launcher, "run_micropython", refuse)
    result = slotmq_command("--runtime", "micropython")
    assert (result.exit_code, result.output) == (1, "Error: no MicroPython here\n")


def test_version() -> None:
    assert slotmq_command("--version").output == "slotmq 0.1.0\n"
