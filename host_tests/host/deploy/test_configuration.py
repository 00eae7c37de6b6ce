"""Which slotmq.conf a board gets, what is checked of it here, and what goes with it."""

import errno
import json
import os
from pathlib import Path

import pytest

from host_tests.host.deploy.fake_repl import BOARD, HEADLINE, FakeRepl, deployed
from slotmq_tools import boards, passwd
from slotmq_tools.deploy import board_files, configuration, heap_estimate
from slotmq_tools.errors import ToolError

pytestmark = pytest.mark.usefixtures("tried", "small")
SAID = [HEADLINE, "wifi home: up, 192.168.1.7"]
CONF = "listener 1883\nallow_anonymous false\n"
SECRET = "ThisIsNoPasswordOfAnybody"
BY_TOPIC = board_files.Network("station", "home", "a secret", time="$SLOTMQ/time")
AGAIN = board_files.Network("station", "home", None)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of one file."""
    monkeypatch.setattr(board_files, "code", lambda *_: {"/lib/slotmq/core.mpy": b"new"})


@pytest.fixture
def board() -> FakeRepl:
    return FakeRepl(SAID)


def users(file: Path) -> bytes:
    """Somebody may come in."""
    file.parent.mkdir(exist_ok=True)
    passwd.put(file, "alice", "sesame", passwd.ITERATIONS)
    return file.read_bytes()


def conf(folder: Path, *lines: str) -> Path:
    file = folder / "mine.conf"
    file.write_text(CONF + "".join(f"{line}\n" for line in lines))
    return file


class TestWithoutOne:
    def test_a_board_that_has_none_lets_anybody_in_and_that_is_said(self, board: FakeRepl) -> None:
        said = deployed(board)
        assert any("anybody on the network may come in" in line for line in said)
        assert b"allow_anonymous true" in board.files["/slotmq.conf"]

    def test_the_boards_own_stays_with_host_name_and_time_and_that_is_said(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        first = board_files.Network("station", "home", "a secret", "shed", "pool.ntp.org")
        deployed(board, conf=conf(tmp_path, "persistence true"), network=first)
        before = dict(board.files)
        said = deployed(board, network=AGAIN)
        assert board.files == before
        (told,) = [line for line in said if line.startswith("kept")]
        assert all(word in told for word in ("slotmq.conf", "shed", "pool.ntp.org"))
        assert not any("anybody" in line for line in said)

    def test_it_may_be_given_up(self, board: FakeRepl, tmp_path: Path) -> None:
        first = board_files.Network("station", "home", "a secret", "shed", "pool.ntp.org")
        deployed(board, conf=conf(tmp_path), network=first)
        bare = board_files.Network("station", "home", None, "", "")
        said = deployed(board, network=bare, no_conf=True)
        assert b"allow_anonymous true" in board.files["/slotmq.conf"]
        assert json.loads(board.files["/network.json"]).keys() == {
            *("board", "link", "ssid", "password")
        }
        assert any("anybody" in line for line in said)

    def test_what_the_board_has_is_checked_as_one_that_is_brought(self, board: FakeRepl) -> None:
        board.files["/slotmq.conf"] = b"listener 1883\nmax_qos 7\n"
        with pytest.raises(
            ToolError, match=r"/slotmq\.conf of the board:2: max_qos.*-c FILE brings"
        ):
            deployed(board)
        assert board.written == []


class TestOneMoreForTheBoardItself:
    def test_it_has_a_session_too(self, board: FakeRepl, tmp_path: Path) -> None:
        """With as many sessions as connections the board would have gone to safe mode."""
        file = conf(tmp_path, "limit connections 4", "limit sessions 4", "remote_admin true")
        deployed(board, conf=file, network=BY_TOPIC)
        text = board.files["/slotmq.conf"]
        assert text.endswith(b"\nlimit connections 5\nlimit sessions 5\n")
        made = configuration.make(configuration.Source("x", text), BOARD)
        assert (made.limits.connections, made.limits.sessions) == (5, 5)

    def test_it_is_not_one_more_with_each_deploy_and_goes_with_another_time(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        deployed(board, conf=conf(tmp_path, "remote_admin true"), network=BY_TOPIC)
        first = board.files["/slotmq.conf"]
        deployed(board, network=AGAIN)
        assert board.files["/slotmq.conf"] == first
        deployed(board, network=board_files.Network("station", "home", None, time="pool.ntp.org"))
        assert board.files["/slotmq.conf"] == conf(tmp_path, "remote_admin true").read_bytes()

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_what_was_written_behind_it_stays(
        self, end: bytes, board: FakeRepl, tmp_path: Path
    ) -> None:
        file = conf(tmp_path, "remote_admin true")
        deployed(board, conf=file, network=BY_TOPIC)
        behind = b"max_qos 1\nlimit route_entries 64\n"
        board.files["/slotmq.conf"] = (board.files["/slotmq.conf"] + behind).replace(b"\n", end)
        for _ in range(2):
            deployed(board, network=AGAIN)
            assert board.files["/slotmq.conf"].startswith(
                (file.read_bytes() + behind).replace(b"\n", end)
            )
            assert board.files["/slotmq.conf"].count(b"limit connections") == 1
        deployed(board, network=board_files.Network("station", "home", None, time=""))
        assert board.files["/slotmq.conf"] == (file.read_bytes() + behind).replace(b"\n", end)

    def test_who_closes_the_open_broker_of_a_first_deploy_is_not_told_that_it_is_open(
        self, board: FakeRepl
    ) -> None:
        deployed(board, network=BY_TOPIC)
        board.files["/slotmq.conf"] += b"allow_anonymous false\n"
        said = deployed(board, network=AGAIN)
        assert b"allow_anonymous false" in board.files["/slotmq.conf"]
        assert any(line.startswith("kept") and "slotmq.conf" in line for line in said)
        assert not any("anybody" in line for line in said)

    def test_a_backup_that_is_edited_and_deployed_has_it_once(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        deployed(board, conf=conf(tmp_path, "remote_admin true"), network=BY_TOPIC)
        first = board.files["/slotmq.conf"]
        for _ in range(3):
            (tmp_path / "saved.conf").write_bytes(board.files["/slotmq.conf"])
            deployed(board, conf=tmp_path / "saved.conf", network=AGAIN)
            assert board.files["/slotmq.conf"] == first

    def test_those_that_came_with_earlier_rounds_go_and_no_two_lines_become_one(self) -> None:
        marker = b"\n# One more, for the program on the board itself\nlimit connections %d\n"
        text = b"listener 1883" + marker % 5 + b"limit sessions 5\n" + marker % 6 + b"max_qos 1"
        assert configuration.kept(text).text == b"listener 1883\nmax_qos 1"
        assert configuration.kept(b"listener 1883" + marker % 5).text == b"listener 1883"
        lines = b"limit sessions 9\nlimit route_entries 64\n"
        assert configuration.kept(marker % 5 + lines).text == lines

    def test_a_board_that_cannot_have_it_is_told_before_anything_is_written(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        most = ("connections", "sessions", "route_entries")
        file = conf(tmp_path, *(f"limit {name} 1023" for name in most))
        with pytest.raises(ToolError, match="limit: expected a number from 1 to 1023"):
            deployed(board, conf=file, network=BY_TOPIC)
        assert board.written == []

    def test_its_tables_are_counted(self) -> None:
        source = configuration.Source()
        without = configuration.make(source, BOARD)
        with_it = configuration.make(source, BOARD, one_more=True)
        needs = [heap_estimate.needed(boards.load(BOARD), each)[0] for each in (without, with_it)]
        assert needs[1] > needs[0] + without.limits.tx_bytes

    def test_without_remote_admin_it_is_of_no_use_and_that_is_said(self, board: FakeRepl) -> None:
        said = deployed(board, network=BY_TOPIC)
        assert any("sets no clock without `remote_admin true`" in line for line in said)


class TestALogFile:
    @pytest.mark.parametrize(
        "name",
        ["/slotmq.platform.log", "/flash/slotmq.platform.log", "folder/slotmq.platform.log"],
    )
    def test_it_is_the_boards_and_is_not_opened_here(
        self, name: str, board: FakeRepl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        file = conf(tmp_path, f"log_dest file {name}", "log_dest stderr")
        deployed(board, conf=file)
        assert board.files["/slotmq.conf"] == file.read_bytes()
        assert os.listdir(tmp_path) == ["mine.conf"]  # noqa: PTH208
        assert not Path("/slotmq.platform.log").exists()
        _, settings = configuration.read(configuration.given(file), BOARD)
        assert settings.log_dest == (f"file {name}", "stderr")

    def test_one_without_a_name_is_refused(self, board: FakeRepl, tmp_path: Path) -> None:
        with pytest.raises(ToolError, match="log_dest: expected"):
            deployed(board, conf=conf(tmp_path, "log_dest file"))


class TestUsers:
    def test_they_lie_beside_the_configuration_and_go_with_it(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        content = users(tmp_path / "secrets/users")
        said = deployed(board, conf=conf(tmp_path, "scram_file secrets/users"))
        assert board.files["/secrets/users"] == content
        assert not any("alice" in line for line in said)

    def test_those_of_the_board_stay(self, board: FakeRepl, tmp_path: Path) -> None:
        content = users(tmp_path / "users")
        file = conf(tmp_path, "scram_file /users")
        deployed(board, conf=file)
        (tmp_path / "users").unlink()
        for again in ({"conf": file}, {}):
            said = deployed(board, **again)
            assert board.files["/users"] == content
            assert any("/users" in line for line in said if line.startswith("kept"))

    def test_where_there_are_none_nothing_is_written(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        with pytest.raises(
            ToolError,
            match=r"scram_file users: neither is .*/users there, nor has the board /users",
        ):
            deployed(board, conf=conf(tmp_path, "scram_file users"))
        board.files["/slotmq.conf"] = conf(tmp_path, "scram_file users").read_bytes()
        with pytest.raises(ToolError, match="scram_file users: the board has no /users"):
            deployed(board)
        assert board.written == []

    def test_a_file_that_is_none_is_refused_and_not_shown(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        content = users(tmp_path / "users")
        (tmp_path / "users").write_bytes(content + f"bob:{SECRET}\n".encode())
        with pytest.raises(
            ToolError, match=rf"{tmp_path}/users:2: expected a new name"
        ) as refused:
            deployed(board, conf=conf(tmp_path, "scram_file users"))
        assert SECRET not in str(refused.value)
        assert board.written == []

    def test_nor_is_there_a_traceback_for_one_that_cannot_be_read(
        self, board: FakeRepl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        users(tmp_path / "users")
        file = conf(tmp_path, "scram_file users")
        read_bytes = Path.read_bytes

        def read(path: Path) -> bytes:
            if path.name == "users":
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return read_bytes(path)

        monkeypatch.setattr(Path, "read_bytes", read)
        with pytest.raises(ToolError, match=r"users: Permission denied$"):
            deployed(board, conf=file)

    @pytest.mark.parametrize(
        "name", ["../users", "main.py", "/lib/slotmq/users", "network.json", "slotmq.py"]
    )
    def test_a_name_of_something_else_is_refused(
        self, name: str, board: FakeRepl, tmp_path: Path
    ) -> None:
        with pytest.raises(ToolError, match="expected a name that no file of ours has"):
            deployed(board, conf=conf(tmp_path, f"scram_file {name}"))


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ("limit subscriptions 60", "route_entries: at least subscriptions"),
        ("record room/#/x", "record: expected a topic filter"),
        ("record #\nrecord_segment_size 1030", "expected a multiple of 256"),
        ("record #\nrecord_budget 2048", "at least two times record_segment_size"),
    ],
)
def test_what_only_a_start_finds_is_found_here(
    lines: str, complaint: str, board: FakeRepl, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=complaint):
        deployed(board, conf=conf(tmp_path, lines))
    assert board.written == []


@pytest.mark.parametrize("text", ["", "listener 1883 127.0.0.1\n", "listener 1883 ::1\n"])
def test_a_broker_that_only_the_board_would_reach_is_refused(
    text: str, board: FakeRepl, tmp_path: Path
) -> None:
    file = tmp_path / "mine.conf"
    file.write_text(text)
    with pytest.raises(ToolError, match=r"no listener for the network: .*`listener 1883`"):
        deployed(board, conf=file)


class TestMoreThanSockets:
    def test_it_is_said(self, board: FakeRepl, tmp_path: Path) -> None:
        more = conf(
            tmp_path, "limit connections 6", "limit sessions 8", "limit message_bytes 4096"
        )
        said = deployed(board, conf=more)
        assert any("limit connections 6: stock firmware has sockets for 4" in it for it in said)

    @pytest.mark.parametrize("time", ["", "$SLOTMQ/time"])
    def test_the_presets_are_there(self, time: str, board: FakeRepl, tmp_path: Path) -> None:
        network = board_files.Network("station", "home", "a secret", time=time)
        said = deployed(board, conf=conf(tmp_path), network=network)
        assert not any("sockets" in line for line in said)
