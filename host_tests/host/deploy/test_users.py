"""Who may do what on a board: its first user, --anonymous, `slotmq passwd --port` and `acl`."""

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from host_tests.host.deploy.fake_repl import BOARD, HOME_AGAIN, FakeRepl, deployed
from slotmq.access import pbkdf2, users_file
from slotmq_tools import boards, passwd
from slotmq_tools.cli import main
from slotmq_tools.deploy import commands, configuration, mqtt_client, repl
from slotmq_tools.errors import ToolError

pytestmark = pytest.mark.usefixtures("one_module")
ALICE = mqtt_client.Login("alice", "sesame")
WIFI = ["--wifi-ssid", "home"]
Slotmq = Callable[..., Result]


@pytest.fixture
def board() -> FakeRepl:
    return FakeRepl()


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> list[mqtt_client.Login]:
    """The logins with which deploy tests a broker."""
    found: list[mqtt_client.Login] = []

    def try_out(_address: tuple[str, int], login: mqtt_client.Login) -> str:
        found.append(login)
        return "it answered"

    monkeypatch.setattr(mqtt_client, "try_out", try_out)
    return found


@pytest.fixture
def slotmq(
    board: FakeRepl, logins: list[mqtt_client.Login], monkeypatch: pytest.MonkeyPatch
) -> Slotmq:
    """Runs a command with this board on its port."""
    monkeypatch.setenv("SLOTMQ_WIFI_PASSWORD", "a secret")
    monkeypatch.delenv("SLOTMQ_PASSWORD", raising=False)
    monkeypatch.setattr(repl, "Repl", lambda _: nullcontext(board))

    def run(command: str, *words: str, typed: str = "") -> Result:
        options = ["--board", BOARD, *WIFI] if command == "deploy" else []
        return CliRunner().invoke(main, [command, "--port", "x", *options, *words], input=typed)

    return run


def names(board: FakeRepl, tmp_path: Path) -> list[str]:
    """The users that a board could read from its file."""
    (tmp_path / "read").write_bytes(board.files["/users"])
    return [row[0].decode() for row in users_file.read(str(tmp_path / "read"), 8)]


def opens(line: bytes, password: bytes) -> bool:
    """Does the password fit a line of one user? Computed by the broker's own code."""
    _, iterations, salt, stored, _ = line.strip().split(b":")
    work = pbkdf2.begin(password, users_file.decoded(salt, 8), int(iterations))
    while (key := pbkdf2.advance(work)) is None:
        pass
    proof = pbkdf2.hmac(key, b"Client Key")
    return bool(hashlib.sha256(proof).digest() == users_file.decoded(stored))


class TestTheFirstUser:
    def test_it_is_written_for_the_board_and_logs_in(
        self, board: FakeRepl, logins: list[mqtt_client.Login]
    ) -> None:
        lines = deployed(board, anonymous=False, login=ALICE)
        assert opens(board.files["/users"], b"sesame")
        assert not opens(board.files["/users"], b"sesam")
        conf = board.files["/slotmq.conf"]
        assert b"password_file users" in conf and b"allow_anonymous" not in conf
        assert logins == [ALICE]
        assert any("/users with the user alice" in line for line in lines)
        assert not any("sesame" in line for line in [*lines, repr(ALICE)])

    def test_without_one_nothing_is_written_and_it_says_what_to_do(self, board: FakeRepl) -> None:
        with pytest.raises(ToolError) as refused:
            deployed(board, anonymous=False)
        for hint in ("--user", "--password-stdin", "--anonymous"):
            assert hint in str(refused.value)
        assert board.written == []

    def test_a_second_deploy_keeps_the_users(
        self, board: FakeRepl, logins: list[mqtt_client.Login]
    ) -> None:
        deployed(board, anonymous=False, login=ALICE)
        before = dict(board.files)
        for login in (mqtt_client.Login(), mqtt_client.Login("bob", "other")):
            lines = deployed(board, network=HOME_AGAIN, login=login)
            assert board.files == before
            assert any(line.startswith("kept") and "/users" in line for line in lines)
        deployed(board, network=HOME_AGAIN, no_conf=True, anonymous=False)
        assert board.files["/users"] == before["/users"]

    def test_a_configuration_may_name_a_file_that_is_still_to_be_made(
        self, board: FakeRepl, logins: list[mqtt_client.Login], tmp_path: Path
    ) -> None:
        conf = tmp_path / "my.conf"
        conf.write_text("listener 1883\npassword_file people\n")
        deployed(board, conf=conf, login=ALICE)
        assert opens(board.files["/people"], b"sesame")
        assert board.files["/slotmq.conf"] == conf.read_bytes()

    def test_a_configuration_that_lets_nobody_in_gets_a_warning(
        self, board: FakeRepl, logins: list[mqtt_client.Login], tmp_path: Path
    ) -> None:
        conf = tmp_path / "my.conf"
        conf.write_text("listener 1883\n")
        assert any("Nobody may come in" in line for line in deployed(board, conf=conf))
        conf.write_text("listener 1883\nlistener_allow_anonymous true\n")
        assert not any("Nobody may come in" in line for line in deployed(board, conf=conf))

    @pytest.mark.parametrize("name", [name for name in boards.names() if name != "HOST"])
    def test_each_boards_default_can_have_users(self, name: str) -> None:
        made = configuration.make(configuration.with_users(name), name, login=ALICE)
        assert made.settings.mqtt_versions == (3 if made.limits.tx_bytes < 192 else 5)
        assert any("MQTT 5.0" in line for line in made.warnings) == (made.limits.tx_bytes < 192)


class TestAnonymous:
    def test_it_says_what_it_means(self, board: FakeRepl, logins: list[mqtt_client.Login]) -> None:
        lines = deployed(board, anonymous=True)
        assert any(
            "every client" in line and "read and write everything" in line for line in lines
        )
        assert b"allow_anonymous true" in board.files["/slotmq.conf"]
        assert "/users" not in board.files

    def test_a_board_with_a_configuration_keeps_it(
        self, board: FakeRepl, logins: list[mqtt_client.Login]
    ) -> None:
        deployed(board, anonymous=False, login=ALICE)
        before = dict(board.files)
        with pytest.raises(ToolError, match="--no-config"):
            deployed(board, network=HOME_AGAIN, anonymous=True)
        assert board.files == before
        deployed(board, network=HOME_AGAIN, anonymous=True, no_conf=True)
        assert b"allow_anonymous true" in board.files["/slotmq.conf"]


class TestTheCommand:
    def test_the_password_comes_from_a_pipe(
        self, slotmq: Slotmq, board: FakeRepl, logins: list[mqtt_client.Login]
    ) -> None:
        words = ["--user", "alice", "--password-stdin"]
        done = slotmq("deploy", *words, typed="sesame\n")
        assert done.exit_code == 0, done.output
        assert opens(board.files["/users"], b"sesame") and logins == [ALICE]

    def test_a_terminal_is_asked_once(
        self, slotmq: Slotmq, board: FakeRepl, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(commands, "_has_terminal", lambda: True)
        answers = iter(["sesame"])
        monkeypatch.setattr(commands, "ask_password", lambda *_, **__: next(answers))
        done = slotmq("deploy", typed="alice\n")
        assert done.exit_code == 0, done.output
        assert "Name of the first one" in done.output
        assert opens(board.files["/users"], b"sesame")
        done = slotmq("deploy")
        assert done.exit_code == 0 and "Name of the first one" not in done.output

    def test_without_a_terminal_it_is_an_error(self, slotmq: Slotmq, board: FakeRepl) -> None:
        for words in ([], ["--user", "alice"]):
            done = slotmq("deploy", *words)
            assert done.exit_code == 1 and "--password-stdin" in done.output
        assert board.written == []

    @pytest.mark.parametrize(
        "words",
        [
            ["--password-stdin"],
            ["--anonymous", "--user", "alice"],
            ["--anonymous", "-c", "slotmq.conf"],
        ],
    )
    def test_options_that_contradict_each_other(
        self, words: list[str], slotmq: Slotmq, board: FakeRepl
    ) -> None:
        assert slotmq("deploy", *words).exit_code == 2
        assert board.resets == 0


class TestPasswd:
    @pytest.fixture(autouse=True)
    def with_alice(self, slotmq: Slotmq) -> None:
        done = slotmq("deploy", "--user", "alice", "--password-stdin", typed="sesame")
        assert done.exit_code == 0, done.output

    def test_users_change_without_a_deploy(
        self, slotmq: Slotmq, board: FakeRepl, tmp_path: Path
    ) -> None:
        code, resets = board.files["/slotmq.conf"], board.resets
        board.written.clear()
        done = slotmq("passwd", "users", "bob", "--stdin", typed="other\n")
        assert done.exit_code == 0 and "the board starts again" in done.output
        assert names(board, tmp_path) == ["alice", "bob"]
        assert opens(board.files["/users"].splitlines()[1], b"other")
        assert slotmq("passwd", "/users", "-D", "alice").exit_code == 0
        assert names(board, tmp_path) == ["bob"]
        assert board.written == ["/users", "/users"]
        assert board.files["/slotmq.conf"] == code and board.resets == resets + 2

    def test_a_list_changes_nothing(self, slotmq: Slotmq, board: FakeRepl) -> None:
        board.written.clear()
        done = slotmq("passwd", "users", "--list")
        assert done.output.startswith("alice  (CONNECT, SCRAM)") and board.written == []

    def test_errors_name_the_boards_file(self, slotmq: Slotmq, board: FakeRepl) -> None:
        before, resets = dict(board.files), board.resets
        done = slotmq("passwd", "users", "-D", "bob")
        assert done.exit_code == 1 and "/users has no user bob" in done.output
        done = slotmq("passwd", "others", "bob", "--stdin", typed="other")
        assert (
            done.exit_code == 1 and "/others: the board's slotmq.conf names users" in done.output
        )
        assert board.files == before and board.resets == resets + 2

    def test_more_users_than_the_boards_limit(self, slotmq: Slotmq, board: FakeRepl) -> None:
        line = passwd.line("u%d", "x", 4096, bytes(16))
        board.files["/users"] = b"".join(line % number + b"\n" for number in range(8))
        before = board.files["/users"]
        done = slotmq("passwd", "users", "ninth", "--stdin", typed="other")
        assert done.exit_code == 1 and "at most 8 users" in done.output
        assert board.files["/users"] == before

    def test_a_board_without_slotmq(self, slotmq: Slotmq, board: FakeRepl) -> None:
        board.files.clear()
        done = slotmq("passwd", "users", "bob", "--stdin", typed="other")
        assert done.exit_code == 1 and "`slotmq deploy` comes first" in done.output


class TestAcl:
    """`slotmq acl`: new rules for a board."""

    @pytest.fixture(autouse=True)
    def with_rules(self, slotmq: Slotmq, tmp_path: Path) -> Path:
        rules = tmp_path / "rules"
        rules.write_text("topic read #\n")
        conf = tmp_path / "my.conf"
        conf.write_text("listener 1883\nallow_anonymous true\nacl_file rules\n")
        done = slotmq("deploy", "-c", str(conf))
        assert done.exit_code == 0, done.output
        return rules

    def test_they_change_without_a_deploy(
        self, slotmq: Slotmq, board: FakeRepl, tmp_path: Path
    ) -> None:
        before, resets = dict(board.files), board.resets
        board.written.clear()
        new = tmp_path / "new"
        new.write_text("topic readwrite home/#\n")
        done = slotmq("acl", str(new))
        assert done.exit_code == 0 and "/rules of the board, which starts again" in done.output
        assert board.written == ["/rules"] and board.resets == resets + 1
        assert board.files == before | {"/rules": new.read_bytes()}

    @pytest.mark.parametrize(
        ("text", "error"),
        [
            ("topic read #\ntopic never b\n", "{}:2: expected read, write"),
            ("topic read #\n" * 25, "{}: it takes limit acl_rules 25, not 24"),
            ("", "{}: No such file"),
        ],
    )
    def test_wrong_ones_leave_the_board_as_it_was(
        self, text: str, error: str, slotmq: Slotmq, board: FakeRepl, with_rules: Path
    ) -> None:
        before, resets = dict(board.files), board.resets
        with_rules.write_text(text)
        if not text:
            with_rules.unlink()
        done = slotmq("acl", str(with_rules))
        assert done.exit_code == 1 and error.format(with_rules) in done.output
        assert board.files == before and board.resets == resets + 1

    def test_a_board_that_asks_no_rules(
        self, slotmq: Slotmq, board: FakeRepl, with_rules: Path
    ) -> None:
        board.files["/slotmq.conf"] = b"listener 1883\n"
        before = dict(board.files)
        done = slotmq("acl", str(with_rules))
        assert done.exit_code == 1 and "slotmq.conf has no acl_file" in done.output
        assert board.files == before
        board.files.clear()
        assert "`slotmq deploy` comes first" in slotmq("acl", str(with_rules)).output
        assert board.files == {}
