"""Safe mode: the board says on its network why it runs no broker, and starts again by itself."""

import json
import signal
import socket
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from host_tests.broker.wire import codec
from host_tests.host.firmware.test_firmware_network import UP, Board, board
from slotmq_tools.cli import main

__all__ = ["board"]  # the fixture
RESET = 42  # the status with which fake_board_start.py is reset
SAFE = "slotmq: safe mode: "
THREE = SAFE + "3 starts ended within a minute, the last one by "
BITTEN = "the watchdog or a reset"
WRONG = "listener {} 127.0.0.1\nallow_anonymous perhaps\n"


def told(board: Board, ask: bytes = b"") -> bytes:
    """What who connects hears, until the board closes; nobody there yet is waited for."""
    answer = b""

    def heard() -> bool:
        nonlocal answer
        try:
            with socket.create_connection(("127.0.0.1", board.port), 5) as sock:
                if ask:
                    sock.sendall(ask)
                while piece := sock.recv(1000):
                    answer += piece
        except OSError:
            return False
        return True

    board.wait(heard, "answer")
    return answer


def boots(board: Board) -> str:
    found = Path(board.flash, "slotmq.boots")
    return found.read_text() if found.exists() else ""


def in_safe_mode(board: Board, boots: str = "+++ ValueError('a bug')", **facts: object) -> None:
    """Start it after so many starts."""
    (board.flash / "slotmq.boots").write_text(boots)
    board.facts |= facts
    board.air()
    board.start()
    board.hears(SAFE)


def test_three_bites_are_safe_mode_that_tells_and_starts_anew(board: Board) -> None:
    board.network(watchdog=3000)
    board.facts = {"bitten": True, "pause": 4}
    for count in (1, 2, 3):
        board.air()
        board.start()
        board.hears(UP)
        board.air(hang=True)
        assert board.ends() == -signal.SIGALRM, board.said()
        assert boots(board) == "+" * count
    board.air()
    board.start()
    board.hears(UP)
    assert THREE + BITTEN + "\n" in board.said()
    assert "slotmq: next start in 4 s; Ctrl-C: the REPL" in board.said()
    assert (THREE + BITTEN + "; next start in ").encode() in told(board)
    assert board.ends() == RESET, board.said()
    assert boots(board) == "-"
    # and the next one is a start as any other
    board.start()
    board.client(codec.connect("me")).sock.close()
    assert boots(board) == "-+"


def test_what_ended_a_start_is_known_after_the_reset(board: Board) -> None:
    (board.flash / "app.py").write_text("def start(broker):\n    raise ValueError('a bug')\n")
    for count in (1, 2, 3):
        board.start()
        assert board.ends() == RESET, board.said()
        assert boots(board).startswith("+" * count + " ValueError('a bug'")
    board.start()
    board.hears(THREE + "ValueError('a bug'")


def test_a_browser_a_silent_client_and_an_mqtt_client_are_told(board: Board) -> None:
    in_safe_mode(board)
    line = f"{THREE}ValueError('a bug')".encode()
    for ask in (b"GET / HTTP/1.1\r\nHost: shed\r\n\r\n", b"", codec.connect("me")):
        head, body = told(board, ask).split(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.0 503 ") and b"Retry-After: 1" in head
        assert body.startswith(line + b"; next start in 1"), body


def test_slotmq_status_shows_it(board: Board) -> None:
    in_safe_mode(board)
    told(board)
    run = CliRunner().invoke(main, ["status", f"127.0.0.1:{board.port}"])
    assert run.exit_code != 0
    assert "is in safe mode: 3 starts ended within a minute" in run.output, run.output
    assert "; next start in 1" in run.output


def test_its_pause_doubles_up_to_an_hour(board: Board) -> None:
    pauses = []
    for count in range(7):
        in_safe_mode(board, "-" * min(count, 5) + "+++ x")
        board.hears("slotmq: next start in ")
        pauses.append(int(board.said().split("next start in ")[1].split()[0]))
        board.power_cut()
    assert pauses == [120, 240, 480, 960, 1920, 3600, 3600]


def test_ctrl_c_gives_the_board_to_the_repl(board: Board) -> None:
    in_safe_mode(board)
    told(board)
    assert board.process
    assert boots(board) == "-?"
    board.process.send_signal(signal.SIGINT)
    assert board.ends() == 0, board.said()
    assert boots(board) == "-"
    assert "Traceback" not in board.said()


def test_a_network_that_hangs_in_safe_mode_too_is_left_alone_the_next_time(board: Board) -> None:
    board.network(watchdog=2000)
    board.air(hang=True)
    (board.flash / "slotmq.boots").write_text("+++")
    board.start()
    assert board.ends() == -signal.SIGALRM, board.said()
    assert boots(board) == "-?"
    board.facts = {"bitten": True, "pause": 2}
    board.air(hang=True)
    board.start()  # as any other
    assert board.ends() == -signal.SIGALRM, board.said()
    assert boots(board) == "-!+"
    (board.flash / "slotmq.boots").write_text("-!+++")
    began = time.monotonic()
    board.start()
    assert board.ends() == RESET, board.said()
    assert time.monotonic() - began >= 4  # twice the first pause
    assert boots(board) == "!--"


def test_a_configuration_that_cannot_be_used_is_tried_again(board: Board) -> None:
    conf = board.flash / "slotmq.conf"
    good = conf.read_text()
    conf.write_text(WRONG.format(board.port))
    board.facts = {"pause": 3}
    board.air()
    board.start()
    board.hears("slotmq.conf:2: allow_anonymous: expected")
    assert b"safe mode: the broker did not start: slotmq.conf:2: allow_anonymous: " in told(board)
    conf.write_text(good)
    assert board.ends() == RESET, board.said()
    board.start()
    board.client(codec.connect("me")).sock.close()


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"link": "pigeon"})])
def test_so_is_a_network_json_that_is_none(board: Board, text: str) -> None:
    good = (board.flash / "network.json").read_text()
    (board.flash / "network.json").write_text(text)
    board.facts = {"pause": 1}
    board.air()
    board.start()
    assert board.ends() == RESET, board.said()
    assert SAFE + "network.json: " in board.said() and "slotmq: no network: " in board.said()
    (board.flash / "network.json").write_text(good)
    board.start()
    board.client(codec.connect("me")).sock.close()


@pytest.mark.parametrize("watchdog", [10, 99999, -5, "eight"])
def test_a_watchdog_that_no_board_has_is_told_on_the_network(
    board: Board, watchdog: object
) -> None:
    board.network(watchdog=watchdog)
    board.facts = {"pause": 4}
    board.air()
    board.start()
    assert b"safe mode: network.json: ValueError('watchdog: 0, or 2000 to " in told(board)
    assert board.ends() == RESET, board.said()


def test_the_port_answers_where_the_listeners_address_is_what_is_wrong(board: Board) -> None:
    conf = board.flash / "slotmq.conf"
    conf.write_text(f"listener {board.port} 192.0.2.1\n")
    in_safe_mode(board)
    assert SAFE.encode() in told(board)
