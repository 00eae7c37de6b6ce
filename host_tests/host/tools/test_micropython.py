"""Which MicroPython is used, and that its heap is like a board's."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from slotmq_tools import micropython
from slotmq_tools.errors import ToolError
from slotmq_tools.micropython import MicroPython

# Prints the bytes that id() and poll.modify() allocate: 0 if addresses are small integers.
ADDRESSES = """\
import gc, select, socket
poller = select.poll()
listener = socket.socket()
poller.register(listener, select.POLLIN)
cost_of_id = cost_of_modify = before = 0
before = gc.mem_alloc()
id(listener)
cost_of_id = gc.mem_alloc() - before
before = gc.mem_alloc()
poller.modify(listener, select.POLLIN)
cost_of_modify = gc.mem_alloc() - before
print(cost_of_id, cost_of_modify)
"""


@pytest.fixture(autouse=True)
def nothing_found_yet() -> Iterator[None]:
    micropython.find.cache_clear()
    yield
    micropython.find.cache_clear()


def program(path: Path, answer: str) -> str:
    """A script that answers the probe like a MicroPython."""
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("bits", [32, 64])
def test_the_program_found_has_the_word_size(bits: int) -> None:
    found = micropython.find(bits)
    assert found.bits == bits
    assert found.version >= micropython.OLDEST


def test_a_program_named_by_the_environment_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = program(tmp_path / "mine", "32 1 27 3 1798")
    monkeypatch.setenv("SLOTMQ_MICROPYTHON", named)
    found = micropython.find(32)
    assert found == MicroPython((named,), 32, (1, 27, 3), 1798)
    assert str(found) == "MicroPython 1.27.3 (32-bit)"
    assert found.arch == "x86"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ("64 1 27 0 2822", "32-bit MicroPython 1.25 .* not MicroPython 1.27.0"),
        ("32 1 24 1 1798", "32-bit MicroPython 1.25 .* not MicroPython 1.24.1"),
        ("hello", "SLOTMQ_MICROPYTHON .*mine"),
    ],
)
def test_a_named_program_that_does_not_fit_is_refused(
    answer: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTMQ_MICROPYTHON", program(tmp_path / "mine", answer))
    with pytest.raises(ToolError, match=complaint):
        micropython.find(32)


@pytest.mark.parametrize(
    ("answer", "taken"),
    [("32 1 25 0 1798", True), ("32 1 24 0 1798", False), ("64 1 26 0 2822", False)],
)
def test_a_program_on_the_path_is_used_if_it_fits(
    answer: str, taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = program(tmp_path / "micropython", answer)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert (micropython.find(32).start == (on_path,)) == taken


@pytest.mark.parametrize("heap_kb", [112, 160, 65536])
def test_addresses_are_small_integers_as_on_a_board(heap_kb: int, tmp_path: Path) -> None:
    script = tmp_path / "addresses.py"
    script.write_text(ADDRESSES)
    command = micropython.command(32, heap_kb, script)
    printed = subprocess.check_output(command, env=micropython.environment(), text=True)
    assert printed.split() == ["0", "0"]


def test_command_and_environment(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, probe_me\nprint(sys.argv[1:], probe_me.__file__)\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "probe_me.py").touch()
    command = micropython.command(32, 64, script, ["-p", "1884"])
    environment = micropython.environment(folder)
    printed = subprocess.check_output(command, env=environment, text=True)
    assert printed.strip() == f"['-p', '1884'] {folder}/probe_me.py"
