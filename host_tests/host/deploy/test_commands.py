"""The board's line from the outside: passwords that are asked for, logs of a board that goes,
and what is said where nobody answers."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from slotmq_tools.cli import main
from slotmq_tools.deploy import mqtt_client, options, repl
from slotmq_tools.errors import ToolError


@pytest.fixture
def nowhere() -> Iterator[tuple[str, int]]:
    """An address that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()


def test_status_of_nobody_gives_its_own_advice(nowhere: tuple[str, int]) -> None:
    told = CliRunner().invoke(main, ["status", "{}:{}".format(*nowhere)])
    assert told.exit_code == 1
    assert "is this computer on the board's network" in told.output
    assert "--reach" not in told.output  # of which it knows nothing


def test_without_a_terminal_a_password_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, nowhere: tuple[str, int]
) -> None:
    """getpass would warn, and show what is typed."""
    monkeypatch.delenv(options.LOGIN, raising=False)
    with pytest.raises(
        ToolError, match=r"no password was given: there is also \$SLOTMQ_PASSWORD$"
    ):
        options.login("alice")
    told = CliRunner().invoke(main, ["status", "{}:{}".format(*nowhere), "--user", "alice"])
    assert told.exit_code == 1 and "$SLOTMQ_PASSWORD" in told.output
    assert "Warning" not in told.output


def test_a_password_in_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(options.LOGIN, "sesame")
    assert options.login("alice") == mqtt_client.Login("alice", "sesame")
    assert options.login(None) == mqtt_client.Login()


def test_a_user_who_is_not_let_in_hears_that_scram_is_not_spoken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(options.LOGIN, "sesame")
    door = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        for _ in range(2):
            with door.accept()[0] as client:
                client.recv(1000)
                client.sendall(b"\x20\x02\x00\x04")

    threading.Thread(target=refuse, daemon=True).start()
    address = "{}:{}".format(*door.getsockname())
    told = CliRunner().invoke(main, ["status", address, "--user", "alice"])
    assert told.exit_code == 1 and "Bad user name or password" in told.output
    assert "SCRAM of MQTT 5.0 only" in " ".join(told.output.split())
    told = CliRunner().invoke(main, ["status", address])
    assert told.exit_code == 1 and "SCRAM" not in told.output
    door.close()


class Board:
    """Prints a line each time somebody listens, and hangs up."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.device = "socket://{}:{}".format(*self.sock.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for number in range(self.times):
            peer, _ = self.sock.accept()
            time.sleep(0.3)  # pyserial throws away what is there when it opens a line
            peer.sendall(b"start %d\r\n" % number)
            peer.close()
        self.sock.close()


def test_logs_go_on_when_a_board_has_started_anew_and_end_with_a_line_when_it_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repl, "_BACK_S", 0.5)
    told = CliRunner().invoke(main, ["logs", "--port", Board(2).device])
    assert told.exit_code == 1
    assert told.output.startswith("start 0\nstart 1\n")
    assert "the board has gone, and did not come back in 0.5 s" in told.output


def test_logs_end_when_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        device = "socket://{}:{}".format(*server.getsockname())
        told = CliRunner().invoke(main, ["logs", "--port", device, "--seconds", "0.3"])
    assert (told.exit_code, told.stdout) == (0, "")
    assert "the board has said nothing" in told.stderr


@pytest.mark.parametrize(
    ("option", "content", "complaint"),
    [
        ("--app", None, "No such file"),
        ("--app", "def begin(broker): pass\n", "has no start(broker)"),
        ("-c", "listener 1883\nmax_qos 7\n", "mine:2: max_qos"),
        ("--hostname", "x" * 33, "--hostname takes 1 to 32 letters"),
    ],
)
def test_what_takes_no_board_is_told_before_one_is_stopped(
    option: str, content: str | None, complaint: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine"
    if content and option != "--hostname":
        file.write_text(content)
    words = ["deploy", "--board", "W5500_EVB_PICO", "--port", "/dev/nowhere", option]
    told = CliRunner().invoke(main, [*words, str(content if option == "--hostname" else file)])
    assert told.exit_code == 1
    assert complaint in told.output and "nowhere" not in told.output


def test_a_configuration_and_none_are_not_both(tmp_path: Path) -> None:
    words = ["deploy", "--board", "W5500_EVB_PICO", "--no-config", "-c", str(tmp_path / "x")]
    told = CliRunner().invoke(main, words)
    assert told.exit_code == 2
    assert "one of --config and --no-config" in told.output
