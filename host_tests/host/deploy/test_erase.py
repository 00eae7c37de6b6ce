"""Whatever can fail on this computer fails before anything on the board has changed, an erase
too; and what ran there goes on."""

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from host_tests.host.deploy.fake_repl import BOARD, HEADLINE, FakeRepl, order, probe
from slotmq_tools import passwd
from slotmq_tools.deploy import board_files, commands, repl, steps
from slotmq_tools.errors import ToolError

SAID = [HEADLINE, "wifi home: up, 192.168.1.7"]
AGAIN = board_files.Network("station", "home", None)
JOURNAL = {"/slotmq.db": b"what was promised", "/mine.txt": b"the user's"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of one file."""
    monkeypatch.setattr(board_files, "code", lambda *_: {"/lib/slotmq/core.mpy": b"new" * 3000})


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
        erased(board, network=board_files.Network("station", "home", None))
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
    assert board.files.keys() == {
        "/lib/slotmq/core.mpy",
        "/slotmq.conf",
        "/network.json",
    }


@pytest.mark.usefixtures("tried")
class TestWhatIsNotSaid:
    """The advice that `--erase` makes room opens no broker that was closed."""

    @pytest.fixture(autouse=True)
    def closed(self, board: FakeRepl, tmp_path: Path) -> dict[str, bytes]:
        """Files of a broker that lets in only who it knows, by pins of its own."""
        passwd.put(tmp_path / "users", "alice", "sesame", passwd.ITERATIONS)
        found = {
            "/slotmq.conf": b"listener 1999\nallow_anonymous false\nscram_file /users\n",
            "/network.json": b'{"board": "RPI_PICO_W", "link": "station", "ssid": "home",'
            b' "password": "its own", "hostname": "shed", "pins": [2, 3], "spi": 1}',
            "/users": (tmp_path / "users").read_bytes(),
            "/app.py": b"def start(broker):\n    pass\n",
        }
        board.files |= found
        return found

    def test_it_stays_and_that_is_told(self, board: FakeRepl, closed: dict[str, bytes]) -> None:
        said = erased(board, network=AGAIN)
        assert "2 files removed" in said
        assert board.files == closed | {"/lib/slotmq/core.mpy": b"new" * 3000}
        (kept,) = [line for line in said if line.startswith("kept")]
        assert all(name in kept for name in ("slotmq.conf", "/users", "app.py", "shed"))
        assert not any("anybody" in line for line in said)

    def test_the_password_is_not_asked_for_where_it_stays(
        self, board: FakeRepl, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("SLOTMQ_WIFI_PASSWORD", raising=False)
        monkeypatch.setattr(repl, "Repl", lambda _: nullcontext(board))
        words = ["--board", BOARD, "--port", "x", "--wifi-ssid", "home", "--erase"]
        told = CliRunner().invoke(commands.deploy, words)
        assert told.exit_code == 0, told.output
        assert b"its own" in board.files["/network.json"]
        told = CliRunner().invoke(commands.deploy, [*words, "--no-config"])
        assert "no password was given" in str(told.exception)
        assert b"its own" in board.files["/network.json"]

    def test_nor_is_it_lost_where_that_is_cut_off(
        self, board: FakeRepl, closed: dict[str, bytes]
    ) -> None:
        whole = dict(board.files)
        for steps_left in range(8):
            board.files, board.steps_left = dict(whole), steps_left
            with suppress(ToolError):
                erased(board, network=AGAIN)
            assert closed.items() <= board.files.items(), steps_left

    def test_what_could_not_be_used_is_found_before_anything_goes(self, board: FakeRepl) -> None:
        del board.files["/users"]
        before = dict(board.files)
        with pytest.raises(ToolError, match="the board has no /users"):
            erased(board, network=AGAIN)
        assert board.files == before

    def test_what_stays_makes_no_room(self, board: FakeRepl) -> None:
        board.probe = probe(flash=0)
        board.files["/app.py"] += b"#" * 40960
        before = dict(board.files)
        with pytest.raises(ToolError, match="and 0 are free: that is all it has"):
            erased(board, network=AGAIN)
        assert board.files == before

    def test_another_configuration_leaves_the_rest(self, board: FakeRepl, tmp_path: Path) -> None:
        (tmp_path / "mine.conf").write_bytes(b"listener 1883\nallow_anonymous true\n")
        erased(board, network=AGAIN, conf=tmp_path / "mine.conf")
        assert b"1999" not in board.files["/slotmq.conf"] and "/users" not in board.files
        assert b'"pins": [2, 3]' in board.files["/network.json"]

    def test_without_configuration_nothing_stays(self, board: FakeRepl) -> None:
        erased(board, no_conf=True)
        assert board.files.keys() == {
            "/lib/slotmq/core.mpy",
            "/slotmq.conf",
            "/network.json",
        }
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
    network = board_files.Network("station", "home", "a secret", name)
    with pytest.raises(ToolError, match="--hostname takes 1 to 32 letters"):
        erased(board, network=network)
    assert board.files == JOURNAL
    board_files.Network("station", "home", "a secret", "x" * 32).check()


def test_a_topic_that_tells_no_time_is_refused(board: FakeRepl) -> None:
    network = board_files.Network("station", "home", "a secret", time="$SYS/time")
    with pytest.raises(ToolError, match=r"takes a server, or '\$SLOTMQ/time'"):
        erased(board, network=network)
