"""The board's line from the inside: answers among which something else prints, and Ctrl-C."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from mpremote.transport import TransportError

from slotmq_tools import micropython
from slotmq_tools.deploy import listing, repl
from slotmq_tools.errors import ToolError

LOG = "I (1234) wifi:state: run -> init (0)"


class Transport:
    """In the place of mpremote's: answers, and what was sent."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.said: list[str] = []
        self.serial = self
        self.interrupt = ""
        self.silent = 0  # so many of the next steps get no answer
        self.content = b""

    def close(self) -> None:
        self.said.append("closed")

    def exec(self, code: str) -> None:
        self.said.append(code)
        self.loses()

    def loses(self) -> None:
        if self.silent:
            self.silent -= 1
            raise TransportError("timeout waiting for first EOF reception")

    def write(self, data: bytes) -> None:
        self.said.append(repr(data))

    def enter_raw_repl(self, soft_reset: bool) -> None:
        self.said.append(f"raw REPL, {soft_reset=}")
        if self.interrupt == "enter":
            raise KeyboardInterrupt

    def exec_raw(self, code: str, timeout: int) -> tuple[bytes, bytes]:
        if self.interrupt == "exec":
            raise KeyboardInterrupt
        self.loses()
        return self.answers.pop(0).encode(), b""

    def exec_raw_no_follow(self, code: str) -> None:
        self.said.append(code)

    def fs_readfile(self, path: str) -> bytes:
        self.loses()
        if self.content:
            return self.content
        raise SyntaxError(f"invalid syntax: {LOG} in {path}")


@pytest.fixture
def transport(monkeypatch: pytest.MonkeyPatch) -> Transport:
    made = Transport()
    monkeypatch.setattr(repl, "SerialTransport", lambda *_, **__: made)
    return made


@pytest.fixture
def line(transport: Transport) -> repl.Repl:
    return repl.Repl("/dev/board")


def test_a_log_that_comes_before_or_behind_an_answer_is_no_part_of_it(
    line: repl.Repl, transport: Transport
) -> None:
    transport.answers = [f"{LOG}\r\n('micropython', 7)\r\n{LOG}\r\n"]
    assert line.value("") == ("micropython", 7)
    transport.answers = [f"('/a', 'aa')\r\n{LOG}\r\n('/b', 'bb')\r\n2\r\n"]
    assert line.hashes() == {"/a": "aa", "/b": "bb"}


def test_a_log_in_the_midst_of_an_answer_is_one_line_that_says_what_to_do(
    line: repl.Repl, transport: Transport
) -> None:
    transport.answers = [f"('microp{LOG}\r\nython', 7)\r\n"]
    with pytest.raises(ToolError, match="something else prints on this line: try again"):
        line.value("")
    with pytest.raises(ToolError, match="something else prints on this line: try again"):
        line.read("/a")


def test_no_file_is_missing_for_it(line: repl.Repl, transport: Transport) -> None:
    """A file that nobody sees would be in no backup."""
    broken = f"('/a', 'aa')\r\n('/b{LOG}\r\n', 'bb')\r\n2\r\n"
    transport.answers = [broken, "('/a', 'aa')\r\n('/b', 'bb')\r\n2\r\n"]
    assert line.hashes() == {"/a": "aa", "/b": "bb"}
    transport.answers = [broken] * 3
    with pytest.raises(ToolError, match="try again"):
        line.sizes()


def test_a_board_that_starts_anew_is_asked_anew_what_changes_nothing(
    line: repl.Repl, transport: Transport
) -> None:
    """As its watchdog makes it, where what ran was stopped before it could lay it to rest."""
    transport.said.clear()
    transport.content, transport.answers = b"kept", ["('/a', 'aa')\r\n1\r\n", "7\r\n"]
    for answer, ask in (
        (b"kept", lambda: line.read("/network.json")),
        ({"/a": "aa"}, line.hashes),
        (7, lambda: line.value("")),
    ):
        transport.silent = 2
        assert ask() == answer
        assert transport.said == ["closed", "raw REPL, soft_reset=True"] * 2
        transport.said.clear()
    transport.silent = 3
    with pytest.raises(ToolError, match=r"/network\.json: cannot be read from the board"):
        line.read("/network.json")
    transport.silent = 1
    with pytest.raises(ToolError, match="the board went away"):
        line.run("it changes something")


def test_the_boards_part_of_it(tmp_path: Path, line: repl.Repl, transport: Transport) -> None:
    """What a MicroPython answers of its files."""
    (tmp_path / "lib").mkdir()
    for name in ("one", "lib/two"):
        (tmp_path / name).write_bytes(b"x" * len(name))
    (tmp_path / "look.py").write_text(listing.SIZES.replace('walk("")', f'walk("{tmp_path}")'))
    transport.answers = [ran(tmp_path)]
    sizes = {path.removeprefix(str(tmp_path)): size for path, size in line.sizes().items()}
    assert sizes.pop("/look.py")
    assert sizes == {"/one": 3, "/lib/two": 7}


def ran(folder: Path) -> str:
    return subprocess.run(
        micropython.command(32, 512, folder / "look.py"),
        capture_output=True,
        text=True,
        check=True,
        env=micropython.environment(),
    ).stdout


def test_ctrl_c_while_the_board_works_is_followed_by_a_reset_that_reaches_it(
    line: repl.Repl, transport: Transport
) -> None:
    transport.interrupt = "exec"
    with pytest.raises(KeyboardInterrupt):
        line.run("while True: pass")
    transport.said.clear()
    line.reset()
    assert transport.said == ["raw REPL, soft_reset=False", "import machine; machine.reset()"]


def test_ctrl_c_while_it_is_stopped_lets_it_go_on(transport: Any) -> None:
    transport.interrupt = "enter"
    with pytest.raises(KeyboardInterrupt):
        repl.Repl("/dev/board")
    assert transport.said[-1] == repr(b"\r\x03\x02\x04")


def test_a_board_that_stops_answering_is_stopped_again_and_gets_the_file_anew(
    line: repl.Repl, transport: Transport
) -> None:
    transport.silent = 1
    transport.said.clear()
    line.write("/a", b"content")
    first, *again, opened, written, renamed = transport.said
    assert "open('/a.new', 'wb')" in first and opened == first
    assert again == ["closed", "raw REPL, soft_reset=True"]
    assert "w(d(" in written and "os.rename('/a.new', '/a')" in renamed


def test_one_that_stays_silent_has_gone_away(line: repl.Repl, transport: Transport) -> None:
    transport.silent = 3
    with pytest.raises(ToolError, match=r"/a: the board went away while it was written \(timeout"):
        line.write("/a", b"content")
