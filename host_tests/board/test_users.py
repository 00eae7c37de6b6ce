"""A board with users: who comes in, and users that change without a deploy."""

import select
import threading
import time
from typing import Any

from host_tests.broker.wire import codec

from .conftest import Deployed

# CONNACK return codes [MQTT-3.2.2-4]
MUST_WAIT, BAD_LOGIN, NOT_AUTHORIZED = 3, 4, 5
ALICE: dict[str, Any] = {"username": "alice", "password": b"sesame"}
GUESSES = 30
BOB: dict[str, Any] = {"username": "bob", "password": b"other"}


def answer(board: Deployed, **who: object) -> int:
    """The return code of a CONNECT."""
    return int(board.open().connect(codec.connect("c", **who)).code)  # type: ignore[arg-type]


def test_the_first_user_comes_in_and_nobody_else(board: Deployed) -> None:
    words = ["--user", "alice", "--password-stdin"]
    said = board.deploy("", *words, typed="sesame\n")
    assert "/users with the user alice" in said and "a message came back" in said
    assert answer(board, **ALICE) == 0
    assert answer(board, username="alice", password=b"sesam") == BAD_LOGIN
    assert answer(board, username="bob", password=b"sesame") == BAD_LOGIN
    assert answer(board) == NOT_AUTHORIZED


def test_a_login_is_served_beside_others(board: Deployed) -> None:
    """Printed: how long a login takes, and the longest wait of another client meanwhile, whose
    client id the guess has: it is not taken over."""
    other = board.connect("other", **ALICE)
    waiting = board.open()
    began = time.monotonic()
    waiting.send(codec.connect("other", username="alice", password=b"a guess"))
    waits = []
    while not select.select([waiting.sock], [], [], 0)[0]:
        asked = time.monotonic()
        other.ping()
        waits.append(time.monotonic() - asked)
    waiting.expect(codec.Connack(False, BAD_LOGIN))
    print(f"{time.monotonic() - began:.1f} s, {len(waits)} pings, {max(waits):.2f} s at most")
    assert len(waits) > 5
    other.ping()


class Guesser(threading.Thread):
    """Guesses alice's password, two at a time."""

    def __init__(self, board: Deployed) -> None:
        super().__init__()
        self.board = board
        self.codes: list[int] = []

    def run(self) -> None:
        while len(self.codes) < GUESSES:
            clients = [self.board.open() for _ in range(2)]
            for client in clients:
                guess = b"guess %d %d" % (len(self.codes), clients.index(client))
                client.send(codec.connect("g", username="alice", password=guess))
            for client in clients:
                self.codes.append(client.next().code)
                client.sock.close()


def test_many_guesses_while_others_publish(board: Deployed) -> None:
    """Printed: how many were computed, and the longest wait of a message. Who was let in before
    comes in meanwhile, from the same address."""
    other = board.connect("other", **ALICE)
    other.subscribe("t", qos=1)
    guesser = Guesser(board)
    guesser.start()
    waits: list[float] = []
    while guesser.is_alive():
        began = time.monotonic()
        other.publish("t", b"%d" % len(waits), 1)
        other.receive("t", b"%d" % len(waits), 1)
        waits.append(time.monotonic() - began)
        if len(waits) % 10 == 0:
            board.wait_until(lambda: board.comes_in(**ALICE), "alice to come in")
    counts = [guesser.codes.count(code) for code in (BAD_LOGIN, MUST_WAIT)]
    print(f"{counts} guesses, {len(waits)} messages, {max(waits):.2f} s at most")
    assert sum(counts) == len(guesser.codes) and min(counts) > 0
    assert len(waits) > 5


def test_users_change_without_a_deploy(board: Deployed) -> None:
    at = ["--port", board.board.device, "users"]
    board.hang_up()
    status, said = board.cli("passwd", *at, "bob", "--stdin", typed="other\n")
    assert status == 0 and "the board starts again" in said, said
    board.wait_until(lambda: board.comes_in(**BOB), "the broker with bob")
    assert answer(board, **ALICE) == 0
    board.hang_up()
    assert board.cli("passwd", *at, "-D", "alice")[0] == 0
    board.wait_until(lambda: board.comes_in(**BOB), "the broker without alice")
    assert answer(board, **ALICE) == BAD_LOGIN


def test_a_second_deploy_keeps_the_users(board: Deployed) -> None:
    said = board.deploy(None)
    assert "kept from the board" in said and "/users" in said
    assert "it answers, and requires a login" in said
    assert answer(board, **BOB) == 0
