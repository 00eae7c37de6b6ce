"""Whatever a board answers, each command ends soon, with printable lines and a status code."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slotmq_telemetry.season import writer
from slotmq_tools.cli import main
from slotmq_tools.deploy import backup, backup_folder, repl

from .fake_repl import probe

# A board that anybody may have programmed: it speaks the raw REPL at a TCP port
Answer = Callable[[str], tuple[bytes, bytes]]  # of code: what it prints, and its error
ENTERED = b"raw REPL; CTRL-B to exit\r\n>"
FOREVER = b"forever"  # instead of an output: it never ends


@contextmanager
def hostile(answer: Answer) -> Iterator[str]:
    """The device of such a board."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answer), daemon=True)
        thread.start()
        try:
            yield f"socket://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def _serve(server: socket.socket, answer: Answer) -> None:
    while True:
        with suppress(ConnectionError):
            try:
                line, _ = server.accept()
            except OSError:
                return
            with line:
                _talk(line, answer)


def _talk(line: socket.socket, answer: Answer) -> None:
    code, is_entered = b"", False
    while received := line.recv(1):
        if received == b"\x01":
            line.sendall(ENTERED)
            code, is_entered = b"", True
        elif received == b"\x04":
            if code.strip():
                _answer(line, *answer(code.decode()))
            elif is_entered:
                line.sendall(b"OK\r\nMPY: soft reboot\r\n" + ENTERED)
            code = b""
        elif received == b"\x05":  # raw paste: no
            line.recv(2)
            line.sendall(b"R\x00")
        elif received not in b"\r\x02\x03":
            code += received


def _answer(line: socket.socket, out: bytes, error: bytes) -> None:
    line.sendall(b"OK")
    while out == FOREVER:
        line.sendall(b"x" * 999)
    line.sendall(out + b"\x04" + error + b"\x04>")


ANSWERS: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "no text": (b"\xff\xfe\n\x00\n", b""),
    "a number": (b"7\n", b""),
    "many digits": (b"9" * 5000 + b"\n", b""),
    "nested": (b"(" * 5000 + b")" * 5000 + b"\n", b""),
    "open": (b"(" * 5000 + b"\n", b""),
    "no keys": (b"{[]: 1}\n{{}}\n", b""),
    "lists as names": (b"([], 'a')\n1\n", b""),
    "numbers as names": (b"(1, 2)\n('/a', 'b')\n2\n", b""),
    "None": (b"None\n", b""),
    "NUL": (b"('/a\\x00', 'aa')\n1\n", b""),
    "surrogate": (b"('/\\ud800', 'aa')\n1\n", b""),
    "long name": (b"('/" + b"a" * 5000 + b"', 'aa')\n1\n", b""),
    "no name": (b"('', 'aa')\n('/', 'aa')\n2\n", b""),
    "large region": (b"(1000000, 1000000)\n", b""),
    "no region": (b"(-1, -1)\n", b""),
    "odd region": (b"(2.5, 'x')\n", b""),
    "probe": (b"('micropython', ([],), 'x', 0, [], {}, None)\n", b""),
    "probe of zeros": (b"('micropython', (1, 25, 0), 0, '', 0, 0, [], 0, [(0, 0, 0)])\n", b""),
    "probe of much": (b"('micropython', (1, 25, 0), 0, '', 9, 9, [], -9, [(9, 9, 99999)])\n", b""),
    "segment": (b"('/record/a.seg', 1 << 60, 3)\n", b""),
    "segments": (b"('/record/a.seg', 99, b'SLMR')\n('a.seg', 9, '')\n", b""),
    "base64": (b"====\n\xc3\xbc\n", b""),
    "an error of blanks": (b"", b" \n\n"),
    "an error of escapes": (b"", b"Traceback\n\x1b[2J\x1b]0;title\x07OSError: \xff\n"),
    "an error of another kind": (b"", b"OSError\n"),
    "without end": (FOREVER, b""),
}


def commands(folder: Path) -> dict[str, list[str]]:
    (folder / "rules").write_text("topic #\n")
    return {
        "backup": ["backup", str(folder / "saved")],
        "harvest": ["harvest", str(folder / "field")],
        "passwd": ["passwd", "users", "--list"],
        "acl": ["acl", str(folder / "rules")],
        "deploy": ["deploy", "--board", "RPI_PICO_W", "--ppp", "--anonymous"],
    }


def run(words: list[str], device: str) -> Result:
    return CliRunner().invoke(main, [*words, "--port", device])


def ended_well(done: Result) -> None:
    assert done.exit_code in (0, 1) and isinstance(done.exception, SystemExit | None), repr(
        done.exception
    )
    assert all(line.isprintable() for line in done.output.splitlines()), done.output
    assert (done.exit_code == 1) == done.output.splitlines()[-1].startswith("Error: "), done.output


@pytest.mark.parametrize("command", ["backup", "harvest", "passwd", "acl", "deploy"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_each_command_ends_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, command: str
) -> None:
    monkeypatch.setattr(repl, "_MOST", 50_000)
    monkeypatch.setattr(repl, "_REOPEN_S", 0)
    with hostile(lambda _code: ANSWERS[answer]) as device:
        ended_well(run(commands(tmp_path)[command], device))


HEADER = writer.header(bytes(8), 1, 0, 0, 4096)
RIGHT = {  # what a right board answers first, by a word of the code
    "walk": b"('/slotmq.conf', 'aa')\n('/network.json', 'bb')\n2\n",
    ".seg": f"('/record/a.seg', 9000, {HEADER!r})\n".encode(),
    "drivers": f"{probe()}\n".encode(),
}


@pytest.mark.parametrize("command", ["backup", "harvest", "passwd", "acl", "deploy"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_each_command_ends_in_a_line_later_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, command: str
) -> None:
    monkeypatch.setattr(repl, "_MOST", 50_000)
    monkeypatch.setattr(repl, "_REOPEN_S", 0)

    def answered(code: str) -> tuple[bytes, bytes]:
        right = next((out for word, out in RIGHT.items() if word in code), None)
        return (b"", b"") if "line.split" in code else (right, b"") if right else ANSWERS[answer]

    with hostile(answered) as device:
        ended_well(run(commands(tmp_path)[command], device))


FILES = {
    "list": "/list",
    "escapes": "/\x1b[2J\r.txt",
    "blanks": "/a\nb",
    "bidi": "/\u202egnp.exe",
    "new": "/slotmq-backup.new.txt",
    "region": f"/{backup.REGION}",
}


def having(path: str, content: bytes) -> Callable[[str], tuple[bytes, bytes]]:
    """A board with one file."""
    pieces = iter([content])

    def answer(code: str) -> tuple[bytes, bytes]:
        if "walk" in code:
            return f"({path!r}, 'aa')\n1\n".encode(), b""
        if "print(repr(r(" in code:
            return repr(next(pieces, b"")).encode() + b"\n", b""
        return (b"None\n" if "region" in code else b""), b""

    return answer


@pytest.mark.parametrize("path", FILES.values(), ids=FILES)
def test_what_is_said_to_be_saved_can_be_restored(tmp_path: Path, path: str) -> None:
    words = commands(tmp_path)["backup"]
    with hostile(having(path, b"of the board")) as device:
        done = run(words, device)
    ended_well(done)
    assert done.exit_code == 0, done.output
    assert backup_folder.contents(tmp_path / "saved") == {path: b"of the board"}
    with hostile(lambda _code: (b"", b"")) as device:
        again = run([*words, "--restore"], device)
    ended_well(again)
    assert again.exit_code == 0, again.output


def test_logs_and_lists_of_users_show_escapes(tmp_path: Path) -> None:
    printed = iter([b"hello \x1b[2J\x07 \xff\r\n" + b"y" * 200_000 + b"\x1b"])

    class Line:
        in_waiting = 300_000

        def read(self, _size: int) -> bytes:
            return next(printed, b"")

    found = [*repl.read_lines(Line, lambda: None, 0.2)]
    assert found[0] == "hello \\x1b[2J\\x07 \ufffd"
    assert len(found) == 2 and found[1].endswith("y\\x1b")
    (tmp_path / "users").write_bytes("J\u00fcrgen\x1b[2J:x\n".encode())
    done = CliRunner().invoke(main, ["passwd", str(tmp_path / "users"), "--list"])
    assert all(line.isprintable() for line in done.output.splitlines()), done.output
