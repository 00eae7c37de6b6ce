"""slotmq.conf: which one a board gets, which ones are refused, its password_file and acl_file."""

import json
import os
from pathlib import Path

import pytest

from host_tests.host.deploy.fake_repl import BOARD, HOME_AGAIN, FakeRepl, deployed
from slotmq_tools import boards, passwd
from slotmq_tools.deploy import configuration, heap_estimate
from slotmq_tools.deploy.network import Network
from slotmq_tools.errors import ToolError

pytestmark = pytest.mark.usefixtures("tested", "one_module")
CONF = "listener 1883\nallow_anonymous false\n"
OPEN = "--anonymous: every client"  # a warning
RULES = b"user alice\ntopic readwrite home/#\npattern read inbox/%u\n"
SECRET = "ThisIsNoPasswordOfAnybody"
BY_TOPIC = Network("station", "home", "a secret", time="$SLOTMQ/time")


@pytest.fixture
def board() -> FakeRepl:
    return FakeRepl()


def users(file: Path) -> bytes:
    """Write a password_file with one user."""
    file.parent.mkdir(exist_ok=True)
    passwd.put(file, "alice", "sesame", passwd.ITERATIONS)
    return file.read_bytes()


def conf(folder: Path, *lines: str) -> Path:
    file = folder / "mine.conf"
    file.write_text(CONF + "".join(f"{line}\n" for line in lines))
    return file


class TestWithoutAFile:
    def test_the_boards_own_is_kept_with_host_name_and_time(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        first = Network("station", "home", "a secret", "shed", "pool.ntp.org")
        deployed(board, conf=conf(tmp_path, "persistence true"), network=first)
        before = dict(board.files)
        lines = deployed(board, network=HOME_AGAIN)
        assert board.files == before
        (kept,) = [line for line in lines if line.startswith("kept")]
        assert all(word in kept for word in ("slotmq.conf", "shed", "pool.ntp.org"))
        assert not any(OPEN in line for line in lines)

    def test_no_config_and_empty_options_remove_them(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        first = Network("station", "home", "a secret", "shed", "pool.ntp.org")
        deployed(board, conf=conf(tmp_path), network=first)
        lines = deployed(board, network=Network("station", "home", None, "", ""), no_conf=True)
        assert b"allow_anonymous true" in board.files["/slotmq.conf"]
        entries = json.loads(board.files["/network.json"])
        assert entries.keys() == {"board", "link", "ssid", "password"}
        assert any(OPEN in line for line in lines)

    def test_the_boards_own_is_checked_too(self, board: FakeRepl) -> None:
        board.files["/slotmq.conf"] = b"listener 1883\nmax_qos 7\n"
        with pytest.raises(ToolError, match=r"/slotmq\.conf .*board:2: max_qos.*-c FILE"):
            deployed(board)
        assert board.written == []


class TestOneMoreConnection:
    """With --time '$SLOTMQ/time' the program on the board is one more client."""

    def test_it_gets_a_session_too(self, board: FakeRepl, tmp_path: Path) -> None:
        """The broker does not start with fewer sessions than connections."""
        file = conf(tmp_path, "limit connections 4", "limit sessions 4", "remote_admin true")
        deployed(board, conf=file, network=BY_TOPIC)
        text = board.files["/slotmq.conf"]
        assert text.endswith(b"\nlimit connections 5\nlimit sessions 5\n")
        made = configuration.make(configuration.Source("x", text), BOARD)
        assert (made.limits.connections, made.limits.sessions) == (5, 5)

    def test_it_is_added_once_and_removed_with_another_time_source(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        deployed(board, conf=conf(tmp_path, "remote_admin true"), network=BY_TOPIC)
        first = board.files["/slotmq.conf"]
        deployed(board, network=HOME_AGAIN)
        assert board.files["/slotmq.conf"] == first
        deployed(board, network=Network("station", "home", None, time="pool.ntp.org"))
        assert board.files["/slotmq.conf"] == conf(tmp_path, "remote_admin true").read_bytes()

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_lines_after_it_stay(self, end: bytes, board: FakeRepl, tmp_path: Path) -> None:
        file = conf(tmp_path, "remote_admin true")
        deployed(board, conf=file, network=BY_TOPIC)
        after = b"max_qos 1\nlimit route_entries 64\n"
        board.files["/slotmq.conf"] = (board.files["/slotmq.conf"] + after).replace(b"\n", end)
        users_lines = (file.read_bytes() + after).replace(b"\n", end)
        for _ in range(2):
            deployed(board, network=HOME_AGAIN)
            assert board.files["/slotmq.conf"].startswith(users_lines)
            assert board.files["/slotmq.conf"].count(b"limit connections") == 1
        deployed(board, network=Network("station", "home", None, time=""))
        assert board.files["/slotmq.conf"] == users_lines

    def test_a_default_that_was_edited_is_no_default(self, board: FakeRepl) -> None:
        deployed(board, network=BY_TOPIC)
        board.files["/slotmq.conf"] += b"allow_anonymous false\n"
        lines = deployed(board, network=HOME_AGAIN)
        assert b"allow_anonymous false" in board.files["/slotmq.conf"]
        assert any(line.startswith("kept") and "slotmq.conf" in line for line in lines)
        assert not any(OPEN in line for line in lines)

    def test_a_file_from_a_backup_gets_it_once(self, board: FakeRepl, tmp_path: Path) -> None:
        deployed(board, conf=conf(tmp_path, "remote_admin true"), network=BY_TOPIC)
        first = board.files["/slotmq.conf"]
        for _ in range(3):
            (tmp_path / "saved.conf").write_bytes(board.files["/slotmq.conf"])
            deployed(board, conf=tmp_path / "saved.conf", network=HOME_AGAIN)
            assert board.files["/slotmq.conf"] == first

    def test_repeated_ones_are_removed_and_no_lines_are_joined(self) -> None:
        marker = b"\n# One more, for the program on the board itself\nlimit connections %d\n"
        text = b"listener 1883" + marker % 5 + b"limit sessions 5\n" + marker % 6 + b"max_qos 1"
        assert configuration.from_board(text).text == b"listener 1883\nmax_qos 1"
        assert configuration.from_board(b"listener 1883" + marker % 5).text == b"listener 1883"
        lines = b"limit sessions 9\nlimit route_entries 64\n"
        assert configuration.from_board(marker % 5 + lines).text == lines

    def test_it_is_refused_at_the_highest_limit(self, board: FakeRepl, tmp_path: Path) -> None:
        most = ("connections", "sessions", "route_entries")
        file = conf(tmp_path, *(f"limit {name} 1023" for name in most))
        with pytest.raises(ToolError, match="from 1 to 1023"):
            deployed(board, conf=file, network=BY_TOPIC)
        assert board.written == []

    def test_its_tables_are_part_of_the_estimate(self) -> None:
        source = configuration.Source()
        without = configuration.make(source, BOARD)
        with_it = configuration.make(source, BOARD, one_more=True)
        needs = [heap_estimate.needed(boards.load(BOARD), each)[0] for each in (without, with_it)]
        assert needs[1] > needs[0] + without.limits.tx_bytes

    def test_without_remote_admin_there_is_a_warning(self, board: FakeRepl) -> None:
        lines = deployed(board, network=BY_TOPIC)
        assert any("`remote_admin true`" in line for line in lines)


class TestWhatItSays:
    def test_every_error_at_once(self, board: FakeRepl, tmp_path: Path) -> None:
        file = conf(tmp_path, "max_qos 3", "cafile ca.crt", "persistance true")
        with pytest.raises(ToolError) as caught:
            deployed(board, conf=file)
        lines = str(caught.value).splitlines()
        places = [f"{file}:{line}: {key}" for line, key in enumerate(KEYS, 3)]
        assert [": ".join(line.split(": ")[:2]) for line in lines[:-1]] == places
        assert lines[2].endswith("did you mean persistence?")
        assert "/slotmq.conf" not in board.files

    def test_a_line_without_effect_is_named(self, board: FakeRepl, tmp_path: Path) -> None:
        file = conf(tmp_path, "user mosquitto")
        said = deployed(board, conf=file)
        assert any(line.startswith(f"{file}:3: user has no effect: ") for line in said)
        assert board.files["/slotmq.conf"] == file.read_bytes()

    def test_it_must_be_one_file(self, board: FakeRepl, tmp_path: Path) -> None:
        with pytest.raises(ToolError, match=":3: include_dir: expected no include_dir"):
            deployed(board, conf=conf(tmp_path, f"include_dir {tmp_path}"))


KEYS = ("max_qos", "cafile", "persistance")


class TestLogFile:
    @pytest.mark.parametrize("name", ["/slotmq.log", "/flash/slotmq.log", "folder/slotmq.log"])
    def test_it_is_not_opened_on_this_computer(
        self, name: str, board: FakeRepl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        file = conf(tmp_path, f"log_dest file {name}", "log_dest stderr")
        deployed(board, conf=file)
        assert board.files["/slotmq.conf"] == file.read_bytes()
        assert os.listdir(tmp_path) == ["mine.conf"]  # noqa: PTH208
        assert not Path("/slotmq.log").exists()
        _, settings, _ = configuration.read(configuration.from_file(file), BOARD)
        assert settings.log_dest == (f"file {name}", "stderr")

    def test_without_a_name_it_is_refused(self, board: FakeRepl, tmp_path: Path) -> None:
        with pytest.raises(ToolError, match="log_dest: expected"):
            deployed(board, conf=conf(tmp_path, "log_dest file"))


class TestScramFile:
    def test_it_is_copied_and_not_shown(self, board: FakeRepl, tmp_path: Path) -> None:
        content = users(tmp_path / "secrets/users")
        lines = deployed(board, conf=conf(tmp_path, "password_file secrets/users"))
        assert board.files["/secrets/users"] == content
        assert not any("alice" in line for line in lines)

    def test_without_a_file_here_the_boards_own_is_kept(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        content = users(tmp_path / "users")
        file = conf(tmp_path, "password_file /users")
        deployed(board, conf=file)
        (tmp_path / "users").unlink()
        for again in ({"conf": file}, {}):
            lines = deployed(board, **again)  # type: ignore[arg-type]
            assert board.files["/users"] == content
            assert any("/users" in line for line in lines if line.startswith("kept"))

    def test_a_missing_one_is_refused(self, board: FakeRepl, tmp_path: Path) -> None:
        file = conf(tmp_path, "password_file users")
        with pytest.raises(ToolError, match=rf"password_file users: {tmp_path}/users .* /users:"):
            deployed(board, conf=file)
        board.files["/slotmq.conf"] = file.read_bytes()
        with pytest.raises(ToolError, match=r"password_file users: (?!.*tmp).* /users:"):
            deployed(board)
        assert board.written == []

    def test_a_wrong_one_is_refused_and_not_shown(self, board: FakeRepl, tmp_path: Path) -> None:
        content = users(tmp_path / "users")
        (tmp_path / "users").write_bytes(content + f"bob:{SECRET}\n".encode())
        with pytest.raises(ToolError, match=rf"{tmp_path}/users:3: ") as refused:
            deployed(board, conf=conf(tmp_path, "password_file users"))
        assert SECRET not in str(refused.value)
        assert board.written == []

    def test_a_login_of_more_than_10_s_is_warned_of(self, board: FakeRepl, tmp_path: Path) -> None:
        file = conf(tmp_path, "password_file users")
        for iterations in (10_000, 10_001):
            passwd.put(tmp_path / "users", f"u{iterations}", SECRET, iterations)
            lines = deployed(board, conf=file)
            warned = [line for line in lines if "iterations: a first login takes" in line]
            assert [f"user u{iterations}: " in line for line in warned] == [True] * (
                iterations % 2
            )

    @pytest.mark.parametrize(
        "name", ["../users", "main.py", "/lib/slotmq/users", "network.json", "slotmq.py"]
    )
    def test_a_name_that_slotmq_uses_is_refused(
        self, name: str, board: FakeRepl, tmp_path: Path
    ) -> None:
        with pytest.raises(ToolError, match=f"password_file {name}: "):
            deployed(board, conf=conf(tmp_path, f"password_file {name}"))
        assert board.written == []


class TestAclFile:
    def test_it_is_copied_beside_the_users(self, board: FakeRepl, tmp_path: Path) -> None:
        content = users(tmp_path / "users")
        (tmp_path / "access").mkdir()
        (tmp_path / "access/rules").write_bytes(RULES)
        deployed(board, conf=conf(tmp_path, "acl_file access/rules", "password_file users"))
        assert (board.files["/access/rules"], board.files["/users"]) == (RULES, content)

    def test_without_a_file_here_the_boards_own_is_kept(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        users(tmp_path / "users")
        (tmp_path / "rules").write_bytes(RULES)
        file = conf(tmp_path, "password_file users", "acl_file rules")
        deployed(board, conf=file)
        before = dict(board.files)
        for name in ("rules", "users"):
            (tmp_path / name).unlink()
        for again in ({"conf": file}, {}, {"conf": file, "erase": True}):
            lines = deployed(board, **again)
            assert board.files == before
            (kept,) = [line for line in lines if line.startswith("kept")]
            assert "/users, /rules" in kept

    def test_one_that_is_nowhere_is_refused(self, board: FakeRepl, tmp_path: Path) -> None:
        file = conf(tmp_path, "acl_file rules")
        with pytest.raises(ToolError, match=rf"acl_file rules: {tmp_path}/rules .* no /rules: "):
            deployed(board, conf=file)
        board.files["/slotmq.conf"] = file.read_bytes()
        with pytest.raises(ToolError, match=r"acl_file rules: the board has no /rules: "):
            deployed(board)
        assert board.written == []

    def test_all_wrong_lines_are_named(self, board: FakeRepl, tmp_path: Path) -> None:
        rules = tmp_path / "rules"
        rules.write_bytes(RULES + b"topic sometimes a\n\nuser\npattern read a/#/b\ntopic read cu")
        with pytest.raises(ToolError) as refused:
            deployed(board, conf=conf(tmp_path, "acl_file rules"))
        lines = str(refused.value).splitlines()
        assert [line.split(": ")[0] for line in lines] == [f"{rules}:{n}" for n in (4, 6, 7, 8)]
        assert board.written == []

    @pytest.mark.parametrize(
        ("rules", "limit"),
        [
            (b"topic read a\n" * 25, "acl_rules 25"),
            (b"topic read %s\n" % (b"a" * 64) * 11, "acl_bytes 704"),
            (b"".join(b"user u%d\ntopic read a\n" % n for n in range(17)), "users 17"),
        ],
    )
    def test_the_boards_limits_count(
        self, rules: bytes, limit: str, board: FakeRepl, tmp_path: Path
    ) -> None:
        (tmp_path / "rules").write_bytes(rules)
        with pytest.raises(ToolError, match=rf"{tmp_path}/rules: it takes limit {limit}, not "):
            deployed(board, conf=conf(tmp_path, "acl_file rules"))
        assert board.written == []
        deployed(board, conf=conf(tmp_path, "acl_file rules", f"limit {limit}"))
        assert board.files["/rules"] == rules

    def test_the_boards_own_is_checked_with_the_new_limits(
        self, board: FakeRepl, tmp_path: Path
    ) -> None:
        (tmp_path / "rules").write_bytes(RULES)
        deployed(board, conf=conf(tmp_path, "acl_file rules"))
        (tmp_path / "rules").unlink()
        board.written.clear()
        with pytest.raises(ToolError, match=r"^/rules of the board: it takes limit acl_rules 2, "):
            deployed(board, conf=conf(tmp_path, "acl_file rules", "limit acl_rules 1"))
        assert board.written == []

    @pytest.mark.parametrize("name", ["../rules", "slotmq.conf", "/lib/slotmq/rules"])
    def test_a_name_that_slotmq_uses_is_refused(
        self, name: str, board: FakeRepl, tmp_path: Path
    ) -> None:
        with pytest.raises(ToolError, match=f"acl_file {name}: "):
            deployed(board, conf=conf(tmp_path, f"acl_file {name}"))
        assert board.written == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("max_qos 7", r"mine\.conf:3: max_qos: "),
        ("limit subscriptions 60", "route_entries: at least subscriptions"),
        ("record room/#/x", "record: expected a topic filter"),
        ("record #\nrecord_segment_size 1030", "record_segment_size: .* 256"),
        ("record #\nrecord_budget 2048", "record_budget: .* record_segment_size"),
    ],
)
def test_a_configuration_with_which_the_board_would_not_start_is_refused(
    line: str, complaint: str, board: FakeRepl, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=complaint):
        deployed(board, conf=conf(tmp_path, line))
    assert board.written == []


@pytest.mark.parametrize("text", ["", "listener 1883 127.0.0.1\n", "listener 1883 ::1\n"])
def test_one_without_a_listener_for_the_network_is_refused(
    text: str, board: FakeRepl, tmp_path: Path
) -> None:
    file = tmp_path / "mine.conf"
    file.write_text(text)
    with pytest.raises(ToolError, match="`listener 1883`"):
        deployed(board, conf=file)


class TestMoreConnectionsThanSockets:
    def test_there_is_a_warning(self, board: FakeRepl, tmp_path: Path) -> None:
        more = conf(
            tmp_path, "limit connections 6", "limit sessions 8", "limit message_bytes 4096"
        )
        lines = deployed(board, conf=more)
        assert any("limit connections 6: " in line and "for 4 " in line for line in lines)

    @pytest.mark.parametrize("time", ["", "$SLOTMQ/time"])
    def test_the_preset_gives_none(self, time: str, board: FakeRepl, tmp_path: Path) -> None:
        network = Network("station", "home", "a secret", time=time)
        lines = deployed(board, conf=conf(tmp_path), network=network)
        assert not any("sockets" in line for line in lines)
