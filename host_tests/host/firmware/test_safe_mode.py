"""Safe mode: the board reports on its network why it runs no broker, and starts again."""

import json
import signal
import socket
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from host_tests.broker.wire import codec
from host_tests.host.firmware.test_network import UP, Board, board
from slotmq_tools.cli import main

__all__ = ["board"]  # the fixture
RESET = 42  # exit status of a reset in fake_board_start.py
SAFE = "slotmq: safe mode: "
THREE = SAFE + "3 starts ended within a minute, the last one by "
BITTEN = "the watchdog or a reset"
WRONG = "listener {} 127.0.0.1\nallow_anonymous perhaps\n"


def answer(board: Board, request: bytes = b"") -> bytes:
    """What a connection receives until the board closes it; waits for the listener."""
    received = b""

    def is_answered() -> bool:
        nonlocal received
        try:
            with socket.create_connection(("127.0.0.1", board.port), 5) as sock:
                if request:
                    sock.sendall(request)
                while piece := sock.recv(1000):
                    received += piece
        except OSError:
            return False
        return True

    board.wait(is_answered, "answer")
    return received


def boots(board: Board) -> str:
    found = Path(board.flash, "slotmq.boots")
    return found.read_text() if found.exists() else ""


def in_safe_mode(board: Board, boots: str = "+++ ValueError('a bug')", **facts: object) -> None:
    """Start it with this slotmq.boots; wait for safe mode."""
    (board.flash / "slotmq.boots").write_text(boots)
    board.facts |= facts
    board.surroundings()
    board.start()
    board.says(SAFE)


def test_after_three_watchdog_resets_there_is_a_pause_and_then_a_start(board: Board) -> None:
    board.network_json(watchdog=3000)
    board.facts = {"bitten": True, "pause": 4}
    for count in (1, 2, 3):
        board.surroundings()
        board.start()
        board.says(UP)
        board.surroundings(hang=True)
        assert board.exit_status() == -signal.SIGALRM, board.said()
        assert boots(board) == "+" * count
    board.surroundings()
    board.start()
    board.says(UP)
    assert THREE + BITTEN + "\n" in board.said()
    assert "start in 4 s" in board.said()
    assert (THREE + BITTEN + "; next start in ").encode() in answer(board)
    assert board.exit_status() == RESET, board.said()
    assert boots(board) == "-"
    board.start()
    board.client(codec.connect("me")).sock.close()
    assert boots(board) == "-+"


def test_the_exception_that_ended_a_start_is_reported_after_the_reset(board: Board) -> None:
    (board.flash / "app.py").write_text("def start(broker):\n    raise ValueError('a bug')\n")
    for count in (1, 2, 3):
        board.start()
        assert board.exit_status() == RESET, board.said()
        assert boots(board).startswith("+" * count + " ValueError('a bug'")
    board.start()
    board.says(THREE + "ValueError('a bug'")


def test_a_browser_a_silent_client_and_an_mqtt_client_get_the_reason(board: Board) -> None:
    in_safe_mode(board)
    line = f"{THREE}ValueError('a bug')".encode()
    for request in (b"GET / HTTP/1.1\r\nHost: shed\r\n\r\n", b"", codec.connect("me")):
        head, body = answer(board, request).split(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.0 503 ") and b"Retry-After: 1" in head
        assert body.startswith(line) and b"start in 1" in body, body


def test_slotmq_status_shows_the_reason(board: Board) -> None:
    in_safe_mode(board)
    answer(board)
    run = CliRunner().invoke(main, ["status", f"127.0.0.1:{board.port}"])
    assert run.exit_code != 0
    assert "safe mode: 3 starts" in run.output, run.output
    assert "start in 1" in run.output


def test_the_pause_doubles_up_to_an_hour(board: Board) -> None:
    pauses = []
    for count in range(7):
        in_safe_mode(board, "-" * min(count, 5) + "+++ x")
        board.says("slotmq: next start in ")
        pauses.append(int(board.said().split("next start in ")[1].split()[0]))
        board.power_cut()
    assert pauses == [120, 240, 480, 960, 1920, 3600, 3600]


def test_ctrl_c_ends_it_without_a_reset(board: Board) -> None:
    in_safe_mode(board)
    answer(board)
    assert board.process
    assert boots(board) == "-?"
    board.process.send_signal(signal.SIGINT)
    assert board.exit_status() == 0, board.said()
    assert boots(board) == "-"
    assert "Traceback" not in board.said()


def test_after_a_network_that_hangs_the_next_safe_mode_has_none(board: Board) -> None:
    board.network_json(watchdog=2000)
    board.surroundings(hang=True)
    (board.flash / "slotmq.boots").write_text("+++")
    board.start()
    assert board.exit_status() == -signal.SIGALRM, board.said()
    assert boots(board) == "-?"
    board.facts = {"bitten": True, "pause": 2}
    board.surroundings(hang=True)
    board.start()  # a normal start
    assert board.exit_status() == -signal.SIGALRM, board.said()
    assert boots(board) == "-!+"
    (board.flash / "slotmq.boots").write_text("-!+++")
    began = time.monotonic()
    board.start()
    assert board.exit_status() == RESET, board.said()
    assert time.monotonic() - began >= 4  # twice the first pause
    assert boots(board) == "!--"


def test_an_unusable_configuration_is_read_again_after_the_pause(board: Board) -> None:
    conf = board.flash / "slotmq.conf"
    good = conf.read_text()
    conf.write_text(WRONG.format(board.port))
    board.facts = {"pause": 3}
    board.surroundings()
    board.start()
    board.says("slotmq.conf:2: allow_anonymous: expected")
    reason = answer(board)
    assert b"safe mode: " in reason and b"slotmq.conf:2: allow_anonymous: " in reason
    conf.write_text(good)
    assert board.exit_status() == RESET, board.said()
    board.start()
    board.client(codec.connect("me")).sock.close()


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"link": "pigeon"})])
def test_so_is_an_unusable_network_json(board: Board, text: str) -> None:
    good = (board.flash / "network.json").read_text()
    (board.flash / "network.json").write_text(text)
    board.facts = {"pause": 1}
    board.surroundings()
    board.start()
    assert board.exit_status() == RESET, board.said()
    assert SAFE + "network.json: " in board.said() and "slotmq: no network: " in board.said()
    (board.flash / "network.json").write_text(good)
    board.start()
    board.client(codec.connect("me")).sock.close()


@pytest.mark.parametrize("watchdog", [10, 99999, -5, "eight"])
def test_an_invalid_watchdog_timeout_is_reported(board: Board, watchdog: object) -> None:
    board.network_json(watchdog=watchdog)
    board.facts = {"pause": 4}
    board.surroundings()
    board.start()
    assert b"network.json: ValueError('watchdog: " in answer(board)
    assert board.exit_status() == RESET, board.said()


def test_a_wrong_listener_address_is_replaced_by_all_addresses(board: Board) -> None:
    conf = board.flash / "slotmq.conf"
    conf.write_text(f"listener {board.port} 192.0.2.1\n")
    in_safe_mode(board)
    assert SAFE.encode() in answer(board)
