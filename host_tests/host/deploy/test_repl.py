"""deploy's Repl: answers mixed with a log, boards that reset or stay silent, Ctrl-C, ports."""

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
    """In place of mpremote's: gives prepared answers, and records what it was asked."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.calls: list[str] = []
        self.serial = self
        self.interrupt = ""
        self.silent = 0  # how many of the next calls get no answer
        self.content = b""

    def close(self) -> None:
        self.calls.append("closed")

    def exec(self, code: str) -> None:
        self.calls.append(code)
        self._may_be_silent()

    def _may_be_silent(self) -> None:
        if self.silent:
            self.silent -= 1
            raise TransportError("timeout waiting for first EOF reception")

    def write(self, data: bytes) -> None:
        self.calls.append(repr(data))

    def enter_raw_repl(self, soft_reset: bool) -> None:
        self.calls.append(f"raw REPL, {soft_reset=}")
        if self.interrupt == "enter":
            raise KeyboardInterrupt

    def exec_raw(self, code: str, timeout: int) -> tuple[bytes, bytes]:
        if self.interrupt == "exec":
            raise KeyboardInterrupt
        self._may_be_silent()
        return self.answers.pop(0).encode(), b""

    def exec_raw_no_follow(self, code: str) -> None:
        self.calls.append(code)

    def fs_readfile(self, path: str) -> bytes:
        self._may_be_silent()
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


def test_a_log_around_an_answer_is_ignored(line: repl.Repl, transport: Transport) -> None:
    transport.answers = [f"{LOG}\r\n('micropython', 7)\r\n{LOG}\r\n"]
    assert line.value("") == ("micropython", 7)
    transport.answers = [f"('/a', 'aa')\r\n{LOG}\r\n('/b', 'bb')\r\n2\r\n"]
    assert line.hashes() == {"/a": "aa", "/b": "bb"}


def test_a_log_inside_an_answer_is_an_error(line: repl.Repl, transport: Transport) -> None:
    transport.answers = [f"('microp{LOG}\r\nython', 7)\r\n"]
    with pytest.raises(ToolError, match=r"/dev/board: .*try again"):
        line.value("")
    with pytest.raises(ToolError, match=r"/dev/board: .*try again"):
        line.read("/a")


def test_a_damaged_list_of_files_is_requested_again(line: repl.Repl, transport: Transport) -> None:
    """A file that is missing in it would be missing in a backup."""
    broken = f"('/a', 'aa')\r\n('/b{LOG}\r\n', 'bb')\r\n2\r\n"
    transport.answers = [broken, "('/a', 'aa')\r\n('/b', 'bb')\r\n2\r\n"]
    assert line.hashes() == {"/a": "aa", "/b": "bb"}
    transport.answers = [broken] * 3
    with pytest.raises(ToolError, match="try again"):
        line.sizes()


def test_commands_that_change_nothing_are_repeated_after_a_reset(
    line: repl.Repl, transport: Transport
) -> None:
    """The watchdog may reset the board, if Ctrl-C came before the program could stop it."""
    transport.calls.clear()
    transport.content, transport.answers = b"kept", ["('/a', 'aa')\r\n1\r\n", "7\r\n"]
    for answer, ask in (
        (b"kept", lambda: line.read("/network.json")),
        ({"/a": "aa"}, line.hashes),
        (7, lambda: line.value("")),
    ):
        transport.silent = 2
        assert ask() == answer
        assert transport.calls == ["closed", "raw REPL, soft_reset=True"] * 2
        transport.calls.clear()
    transport.silent = 3
    with pytest.raises(ToolError, match=r"/network\.json: "):
        line.read("/network.json")
    transport.silent = 1
    with pytest.raises(ToolError, match=r"/dev/board: .*timeout"):
        line.run("changes = True")


def test_micropython_lists_files(tmp_path: Path, line: repl.Repl, transport: Transport) -> None:
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


def test_a_reset_after_ctrl_c_during_a_command_reaches_the_board(
    line: repl.Repl, transport: Transport
) -> None:
    transport.interrupt = "exec"
    with pytest.raises(KeyboardInterrupt):
        line.run("while True: pass")
    transport.calls.clear()
    line.reset()
    assert transport.calls == ["raw REPL, soft_reset=False", "import machine; machine.reset()"]


def test_ctrl_c_while_the_program_is_stopped_restarts_it(transport: Any) -> None:
    transport.interrupt = "enter"
    with pytest.raises(KeyboardInterrupt):
        repl.Repl("/dev/board")
    assert transport.calls[-1] == repr(b"\r\x03\x02\x04")


def test_after_a_lost_answer_the_file_is_sent_from_its_beginning(
    line: repl.Repl, transport: Transport
) -> None:
    transport.silent = 1
    transport.calls.clear()
    line.write("/a", b"content")
    first, *reopened, opened, written, renamed = transport.calls
    assert "open('/a.new', 'wb')" in first and opened == first
    assert reopened == ["closed", "raw REPL, soft_reset=True"]
    assert "w(d(" in written and "os.rename('/a.new', '/a')" in renamed


def test_a_silent_board_is_an_error(line: repl.Repl, transport: Transport) -> None:
    transport.silent = 3
    with pytest.raises(ToolError, match=r"/a: .*\(timeout"):
        line.write("/a", b"content")


def test_the_only_usb_board_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Port:
        def __init__(self, device: str, vid: int | None) -> None:
            self.device, self.vid = device, vid

    ports = [Port("/dev/ttyS0", None)]
    monkeypatch.setattr("serial.tools.list_ports.comports", lambda: ports)
    with pytest.raises(ToolError, match="--port"):
        repl.find(None)
    ports.append(Port("/dev/ttyACM0", 1))
    assert repl.find(None) == "/dev/ttyACM0"
    ports.append(Port("/dev/ttyACM1", 1))
    with pytest.raises(ToolError, match="--port /dev/ttyACM0"):
        repl.find(None)
    assert repl.find("/dev/mine") == "/dev/mine"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("[Errno 13] Permission denied: x", "dialout"),
        ("device or resource busy", "other program"),
        ("No such file", "plugged in"),
    ],
)
def test_a_port_that_cannot_be_opened(
    error: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(error)

    monkeypatch.setattr(repl, "SerialTransport", fails)
    monkeypatch.setattr("serial.serial_for_url", fails)
    for opened in (repl.Repl, repl.Listener):
        with pytest.raises(ToolError, match=advice):
            opened("/dev/ttyACM0")
