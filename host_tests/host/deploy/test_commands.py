"""The commands deploy, logs and status: options, passwords, and errors without a board."""

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

DEPLOY = ["deploy", "--board", "W5500_EVB_PICO", "--port", "/dev/nowhere"]


@pytest.fixture
def nowhere() -> Iterator[tuple[str, int]]:
    """An address without a listener."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()


def test_status_without_a_broker_gives_its_own_advice(nowhere: tuple[str, int]) -> None:
    done = CliRunner().invoke(main, ["status", "{}:{}".format(*nowhere)])
    assert done.exit_code == 1
    assert "{}:{}".format(*nowhere) in done.output and "network" in done.output
    assert "--reach" not in done.output  # an option of deploy only


def test_without_a_terminal_a_password_is_an_error(
    monkeypatch: pytest.MonkeyPatch, nowhere: tuple[str, int]
) -> None:
    """getpass would print a warning and read the password with echo."""
    monkeypatch.delenv(options.LOGIN_PASSWORD, raising=False)
    with pytest.raises(ToolError, match=r"\$SLOTMQ_PASSWORD"):
        options.login("alice")
    done = CliRunner().invoke(main, ["status", "{}:{}".format(*nowhere), "--user", "alice"])
    assert done.exit_code == 1 and "$SLOTMQ_PASSWORD" in done.output
    assert "Warning" not in done.output


def test_the_password_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(options.LOGIN_PASSWORD, "sesame")
    assert options.login("alice") == mqtt_client.Login("alice", "sesame")
    assert options.login(None) == mqtt_client.Login()


class Board:
    """Accepts so many connections; sends a line on each and closes it."""

    def __init__(self, connections: int) -> None:
        self.connections = connections
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.device = "socket://{}:{}".format(*self.sock.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for number in range(self.connections):
            peer, _ = self.sock.accept()
            time.sleep(0.3)  # pyserial discards input that is there when it opens a port
            peer.sendall(b"start %d\r\n" % number)
            peer.close()
        self.sock.close()


def test_logs_reopen_the_port_and_end_when_it_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repl, "_REOPEN_S", 0.5)
    done = CliRunner().invoke(main, ["logs", "--port", Board(2).device])
    assert done.exit_code == 1
    assert done.output.startswith("start 0\nstart 1\n")
    assert "0.5 s" in done.output


def test_logs_end_after_their_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        device = "socket://{}:{}".format(*server.getsockname())
        done = CliRunner().invoke(main, ["logs", "--port", device, "--seconds", "0.3"])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "slotmq status" in done.stderr  # advice, since nothing was printed


@pytest.mark.parametrize(
    ("option", "value", "content", "complaint"),
    [
        ("--app", "mine", None, "No such file"),
        ("--app", "mine", "def begin(broker): pass\n", "start(broker)"),
        ("-c", "mine", "listener 1883\nmax_qos 7\n", "mine:2: max_qos"),
        ("--hostname", "x" * 33, None, "--hostname"),
    ],
)
def test_errors_that_need_no_board_come_before_it_is_stopped(
    option: str,
    value: str,
    content: str | None,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if content:
        Path(value).write_text(content)
    done = CliRunner().invoke(main, [*DEPLOY, option, value])
    assert done.exit_code == 1
    assert complaint in done.output and "nowhere" not in done.output


def test_config_and_no_config_exclude_each_other(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, [*DEPLOY, "--no-config", "-c", str(tmp_path / "x")])
    assert done.exit_code == 2
    assert "--config and --no-config" in done.output
