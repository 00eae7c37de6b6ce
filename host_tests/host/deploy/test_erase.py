"""`slotmq deploy --erase`: what is removed, what stays, and that nothing is removed before all
checks have passed."""

from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from host_tests.host.deploy.fake_repl import BOARD, HOME_AGAIN, FakeRepl, deployed, probe
from slotmq_tools import passwd
from slotmq_tools.deploy import backup, commands, repl
from slotmq_tools.errors import ToolError

pytestmark = pytest.mark.usefixtures("one_module")
DEPLOYED = {"/lib/slotmq/core.mpy", "/slotmq.conf", "/network.json"}


@pytest.fixture
def board() -> FakeRepl:
    board = FakeRepl()
    board.files = {"/slotmq.db": b"a journal", "/mine.txt": b"the user's"}
    return board


def test_all_checks_precede_it(
    board: FakeRepl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tested: list[object]
) -> None:
    """Those of the flash journal too, which is erased first."""
    erased: list[str] = []

    def erase(_repl: FakeRepl, name: str, _stays: object) -> str:
        erased.append(name)
        return ""

    monkeypatch.setattr(backup, "erase", erase)
    conf = tmp_path / "slotmq.conf"
    conf.write_text("max_qos 7\n")
    with pytest.raises(ToolError, match="max_qos"):
        deployed(board, erase=True, conf=conf)
    assert erased == board.written == []
    deployed(board, erase=True)
    assert erased == [BOARD]
    assert board.written


def test_an_unknown_password_removes_nothing(board: FakeRepl) -> None:
    before = dict(board.files)
    with pytest.raises(ToolError, match=r"home .*--wifi-password-file"):
        deployed(board, erase=True, network=HOME_AGAIN)
    assert board.files == before


def test_flash_that_is_too_small_even_when_empty_removes_nothing(board: FakeRepl) -> None:
    board.probe = probe(flash=0)
    board.files["/large.bin"] = bytes(8192)
    before = dict(board.files)
    with pytest.raises(ToolError, match=r"8,192 are free: (?!.*--erase)"):
        deployed(board, erase=True)
    assert board.files == before


@pytest.mark.usefixtures("tested")
def test_removed_files_free_their_space(board: FakeRepl) -> None:
    board.probe = probe(flash=0)
    board.files["/large.bin"] = bytes(40960)
    lines = deployed(board, erase=True)
    assert "3 files removed" in lines
    assert board.files.keys() == DEPLOYED


@pytest.mark.usefixtures("tested")
class TestWhatStays:
    """An erase to free space must not open a broker that requires a login."""

    @pytest.fixture(autouse=True)
    def closed(self, board: FakeRepl, tmp_path: Path) -> dict[str, bytes]:
        """Files of a broker that lets in known users only, and of a network with its own pins."""
        passwd.put(tmp_path / "users", "alice", "sesame", passwd.ITERATIONS)
        found = {
            "/slotmq.conf": b"listener 1999\nallow_anonymous false\npassword_file /users\n",
            "/network.json": b'{"board": "RPI_PICO_W", "link": "station", "ssid": "home",'
            b' "password": "its own", "hostname": "shed", "pins": [2, 3], "spi": 1}',
            "/users": (tmp_path / "users").read_bytes(),
            "/app.py": b"def start(broker):\n    pass\n",
        }
        board.files |= found
        return found

    def test_configuration_users_network_and_application_stay(
        self, board: FakeRepl, closed: dict[str, bytes], one_module: bytes
    ) -> None:
        lines = deployed(board, erase=True, network=HOME_AGAIN)
        assert "2 files removed" in lines
        assert board.files == closed | {"/lib/slotmq/core.mpy": one_module}
        (kept,) = [line for line in lines if line.startswith("kept")]
        assert all(name in kept for name in ("slotmq.conf", "/users", "app.py", "shed"))
        assert not any("no configuration" in line for line in lines)

    def test_the_command_prompts_for_a_password_only_if_it_is_removed(
        self, board: FakeRepl, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("SLOTMQ_WIFI_PASSWORD", raising=False)
        monkeypatch.setattr(repl, "Repl", lambda _: nullcontext(board))
        words = ["--board", BOARD, "--port", "x", "--wifi-ssid", "home", "--erase"]
        done = CliRunner().invoke(commands.deploy, words)
        assert done.exit_code == 0, done.output
        assert b"its own" in board.files["/network.json"]
        done = CliRunner().invoke(commands.deploy, [*words, "--no-config"])
        assert "$SLOTMQ_WIFI_PASSWORD" in str(done.exception)
        assert b"its own" in board.files["/network.json"]

    def test_they_stay_if_it_is_interrupted(
        self, board: FakeRepl, closed: dict[str, bytes]
    ) -> None:
        before = dict(board.files)
        for steps_left in range(8):
            board.files, board.steps_left = dict(before), steps_left
            with suppress(ToolError):
                deployed(board, erase=True, network=HOME_AGAIN)
            assert closed.items() <= board.files.items(), steps_left

    def test_an_unusable_configuration_removes_nothing(self, board: FakeRepl) -> None:
        del board.files["/users"]
        before = dict(board.files)
        with pytest.raises(ToolError, match="/users"):
            deployed(board, erase=True, network=HOME_AGAIN)
        assert board.files == before

    def test_they_free_no_space(self, board: FakeRepl) -> None:
        board.probe = probe(flash=0)
        board.files["/app.py"] += b"#" * 40960
        before = dict(board.files)
        with pytest.raises(ToolError, match="and 0 are free"):
            deployed(board, erase=True, network=HOME_AGAIN)
        assert board.files == before

    def test_a_new_configuration_removes_the_users_of_the_old_one(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        conf = tmp_path / "mine.conf"
        conf.write_bytes(b"listener 1883\nallow_anonymous true\n")
        deployed(board, erase=True, network=HOME_AGAIN, conf=conf)
        assert board.files["/slotmq.conf"] == conf.read_bytes()
        assert "/users" not in board.files
        assert b'"pins": [2, 3]' in board.files["/network.json"]

    def test_with_no_config_nothing_stays(self, board: FakeRepl) -> None:
        deployed(board, erase=True, no_conf=True)
        assert board.files.keys() == DEPLOYED
        assert b"1999" not in board.files["/slotmq.conf"]
        assert b"shed" not in board.files["/network.json"]
