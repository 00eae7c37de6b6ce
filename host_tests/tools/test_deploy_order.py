"""Whatever can fail on this computer fails before anything on the board has changed, an erase
too; and what ran there goes on."""

from pathlib import Path
from typing import Any

import pytest

from host_tests.tools.fake_repl import HEADLINE, FakeRepl, order, probe
from slotmq_tools.deploy import payload, steps
from slotmq_tools.errors import ToolError

SAID = [HEADLINE, "wifi home: up, 192.168.1.7"]
JOURNAL = {"/slotmq.db": b"what was promised", "/mine.txt": b"the user's"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of one file."""
    monkeypatch.setattr(payload, "code", lambda *_: {"/lib/slotmq/core.mpy": b"new" * 3000})


@pytest.fixture
def board() -> FakeRepl:
    made = FakeRepl(SAID)
    made.files = dict(JOURNAL)
    return made


def erased(board: Any, **changes: Any) -> list[str]:
    said: list[str] = []
    steps.deploy(order(**changes), board, said.append, True)
    return said


def application(folder: Path, text: str) -> Path:
    file = folder / "app.py"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "No such file"),
        ("def start(broker:\n", "SyntaxError"),
        ("def begin(broker):\n    pass\n", "has no start"),
    ],
)
def test_an_application_that_cannot_be_used_costs_no_journal(
    text: str | None, complaint: str, board: FakeRepl, tmp_path: Path
) -> None:
    file = tmp_path / "nosuch.py" if text is None else application(tmp_path, text)
    with pytest.raises(ToolError, match=complaint):
        erased(board, app=file)
    assert board.files == JOURNAL
    assert board.resets == 1


def test_a_password_that_nobody_knows_costs_no_journal(board: FakeRepl) -> None:
    with pytest.raises(ToolError, match="password of home is not known"):
        erased(board, network=payload.Network("station", "home", None))
    assert board.files == JOURNAL


def test_flash_that_is_too_small_even_then_costs_no_journal(board: FakeRepl) -> None:
    board.probe = probe(flash=0)
    board.files["/large.bin"] = bytes(8192)
    before = dict(board.files)
    with pytest.raises(ToolError, match="and 8,192 are free: that is all it has"):
        erased(board)
    assert board.files == before


@pytest.mark.usefixtures("tried")
def test_what_goes_makes_room(board: FakeRepl) -> None:
    board.probe = probe(flash=0)
    board.files["/large.bin"] = bytes(40960)
    said = erased(board)
    assert "3 files removed" in said
    assert board.files.keys() == {"/lib/slotmq/core.mpy", "/slotmq.conf", "/network.json"}


@pytest.mark.usefixtures("tried")
def test_nothing_of_what_goes_is_kept(board: FakeRepl) -> None:
    board.files["/slotmq.conf"] = b"listener 1999\n"
    board.files["/network.json"] = b'{"ssid": "home", "password": "old", "hostname": "shed"}'
    erased(board)
    assert b"1999" not in board.files["/slotmq.conf"]
    assert b"shed" not in board.files["/network.json"]


@pytest.mark.parametrize("step", ["hashes", "sizes"])
def test_ctrl_c_before_anything_has_changed_lets_the_board_go_on(
    step: str, board: FakeRepl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    board.probe = probe(flash=0)
    monkeypatch.setattr(board, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        steps.deploy(order(), board, print)  # type: ignore[arg-type]
    assert board.files == JOURNAL
    assert board.resets == 1


def test_ctrl_c_while_it_is_written_says_what_to_do(
    board: FakeRepl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_path: str, _content: bytes) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(board, "write", interrupted)
    with pytest.raises(ToolError, match=r"cut off: .*deploy again"):
        steps.deploy(order(), board, print)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [b"[]", b"5", b'"x"', b"null", b"{", b"\xff"])
@pytest.mark.usefixtures("tried")
def test_a_network_json_that_is_none_is_written_anew(text: bytes, board: FakeRepl) -> None:
    board.files["/network.json"] = text
    steps.deploy(order(), board, print)  # type: ignore[arg-type]
    assert b'"password": "a secret"' in board.files["/network.json"]


@pytest.mark.usefixtures("tried")
def test_nor_is_a_host_name_that_is_no_text_kept(board: FakeRepl) -> None:
    board.files["/network.json"] = b'{"hostname": ["shed"], "time": 7, "led": 2}'
    steps.deploy(order(), board, print)  # type: ignore[arg-type]
    text = board.files["/network.json"]
    assert b"shed" not in text and b"time" not in text and b'"led": 2' in text


@pytest.mark.parametrize("name", ["x" * 33, "two words", "schön"])
def test_a_host_name_that_no_board_takes_is_refused(name: str, board: FakeRepl) -> None:
    network = payload.Network("station", "home", "a secret", name)
    with pytest.raises(ToolError, match="--hostname takes 1 to 32 letters"):
        erased(board, network=network)
    assert board.files == JOURNAL
    payload.Network("station", "home", "a secret", "x" * 32).check()


def test_a_topic_that_tells_no_time_is_refused(board: FakeRepl) -> None:
    network = payload.Network("station", "home", "a secret", time="$SYS/time")
    with pytest.raises(ToolError, match=r"takes a server, or '\$SLOTMQ/time'"):
        erased(board, network=network)
