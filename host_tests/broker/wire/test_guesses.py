"""Whoever guesses passwords keeps nobody out: thousands of wrong ones while others publish delay
and lock out nobody else, and no connection is held for a delay."""

import signal
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from slotmq_tools import passwd

from ..wire5 import codec as codec5
from ..wire5.client import Client as Client5
from ..wire5.scram import METHOD, Exchange, answer
from . import codec
from .client import Client
from .process import RUNTIMES, BrokerProcess

USERS = Path(__file__).parents[1] / "wire5/users.txt"
RIGHT: dict[str, Any] = {"username": "user", "password": b"pencil"}
AT_ONCE = 8
LINES, PERIOD_S = 10, 10  # of refused logins in the log


class Guesser(threading.Thread):
    """Guesses passwords of known and unknown users, several at a time."""

    def __init__(self, address: tuple[str, int], count: int) -> None:
        super().__init__()
        self.address = address
        self.count = count
        self.codes: list[int] = []

    def run(self) -> None:
        for first in range(0, self.count, AT_ONCE):
            some = range(first, min(first + AT_ONCE, self.count))
            clients = [Client(self.address) for _ in some]
            for client, number in zip(clients, some, strict=True):
                name = f"user{number}" if number % 2 else "user"
                guess: dict[str, Any] = {"username": name, "password": b"guess%d" % number}
                client.send(codec.connect(f"g{number}", **guess))
            for client in clients:
                self.codes.append(client.next().code)
                client.sock.close()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_others_publish_and_log_in_meanwhile(count: int, tmp_path: Path) -> None:
    """Printed: how long a message of the others takes."""
    log = tmp_path / "log"
    conf = f"password_file {USERS}\nallow_anonymous false\nlogin_delay_max 0\nsys_interval 1\n"
    broker = BrokerProcess("cpython", f"{conf}log_dest file {log}\n", tmp_path)
    with ExitStack() as stack:
        stack.callback(broker.stop)
        reader, writer = connected(broker, "reader"), connected(broker, "writer")
        stack.enter_context(reader.sock)
        stack.enter_context(writer.sock)
        reader.subscribe("t")
        guesser = Guesser(broker.address, count)
        began = time.monotonic()
        guesser.start()
        waits: list[float] = []
        while guesser.is_alive():
            sent = time.monotonic()
            writer.publish("t", b"%d" % len(waits), 0)
            reader.receive("t", b"%d" % len(waits))
            waits.append(time.monotonic() - sent)
            time.sleep(0.005)
            if len(waits) % 20 == 0:
                connected(broker, "comes and goes").sock.close()
        took = time.monotonic() - began
        assert guesser.codes == [4] * count  # wrong user name or password [MQTT-3.2.2-4]
        p99 = statistics.quantiles(waits, n=100)[-1] * 1000
        print(f"{count} guesses in {took:.0f} s; {len(waits)} messages, p99 {p99:.1f} ms")
        wait_until_counted(reader, count)
    lines = [line for line in log.read_text().splitlines() if "refused" in line]
    assert LINES <= len(lines) <= (LINES + 1) * (took / PERIOD_S + 2)
    assert "user" in lines[0] and "127.0.0.1" in lines[0] and "wrong password" in log.read_text()


def connected(broker: BrokerProcess, name: str) -> Client:
    client = Client(broker.address)
    assert client.connect(codec.connect(name, **RIGHT)).code == 0
    return client


def wait_until_counted(reader: Client, count: int) -> None:
    reader.subscribe("$SYS/broker/logins/refused")
    while (message := reader.next()).payload != b"%d" % count:
        assert int(message.payload) < count


CONNECTIONS = 64  # of the broker that the tests start
ROUNDS = 3
ELSEWHERE = "127.0.0.2"
BAD_LOGIN, BUSY, UNAUTHORIZED = 4, 0x89, 0x87
REFUSED = bytes((0x20, 2, 0, BAD_LOGIN))  # CONNACK


@pytest.fixture
def users(tmp_path: Path) -> Path:
    file = tmp_path / "users"
    for name in ("user", *(f"new{number}" for number in range(ROUNDS))):
        passwd.put(file, name, "pencil")
    return file


@pytest.fixture(params=RUNTIMES)
def broker(request: pytest.FixtureRequest, tmp_path: Path, users: Path) -> Iterator[BrokerProcess]:
    conf = f"password_file {users}\nallow_anonymous false\nlog_dest stdout\n"
    process = BrokerProcess(request.param, conf, tmp_path)
    yield process
    process.stop()


def code(broker: BrokerProcess, name: str, password: bytes = b"pencil") -> int:
    """The return code of a CONNECT; the client leaves."""
    client = Client(broker.address)
    with client.sock:
        found: int = client.connect(codec.connect("c", username=name, password=password)).code
    return found


def answer_of(client: Client) -> bytes:
    """All that it gets until the broker closes the connection."""
    with client.sock:
        return b"".join(iter(lambda: client.sock.recv(64), b""))


def begin(broker: BrokerProcess, name: str, password: str = "pencil") -> tuple[Client5, bytes]:
    """A client that has got its challenge by SCRAM, and its proof."""
    client, exchange = Client5(broker.address), Exchange("user", password)
    client.send(codec5.connect(name, auth_method=METHOD, auth_data=exchange.first()))
    data = client.expect_auth(codec5.CONTINUE).properties["auth_data"]
    assert isinstance(data, bytes)
    return client, exchange.final(data)


def test_clients_with_an_old_password_that_fill_the_broker(broker: BrokerProcess) -> None:
    """All come at once, half of them close at once, and come again. A client that was in before,
    and in each round a new one, get in: for each of them one that waits may have to make way."""
    assert code(broker, "user") == 0
    for number in range(ROUNDS):
        bad = [Client(broker.address) for _ in range(CONNECTIONS)]
        for at, client in enumerate(bad):
            client.send(codec.connect(f"bad{at}", username="user", password=b"old"))
            if at >= CONNECTIONS // 2:
                client.sock.close()
        assert code(broker, "user") == 0
        assert code(broker, f"new{number}") == 0
        answers = [answer_of(client) for client in bad[: CONNECTIONS // 2]]
        made_way = answers.count(b"")
        assert made_way <= 2
        assert answers.count(REFUSED) == CONNECTIONS // 2 - made_way


def test_guesses_from_elsewhere_do_not_delay_a_first_login(broker: BrokerProcess) -> None:
    for number in range(8):
        source = (ELSEWHERE, 0)
        with socket.create_connection(broker.address, source_address=source) as sock:
            sock.sendall(codec.connect("g", username="user", password=b"guess %d" % number))
            assert sock.recv(4)[:3] == b"\x20\x02\0"
    assert code(broker, "user") == 0


def test_guesses_by_scram_side_by_side(broker: BrokerProcess) -> None:
    guesses = [begin(broker, f"g{number}", f"guess {number}") for number in range(8)]
    codes = []
    for client, proof in guesses:
        answer(client, proof)
        codes.append(client.next().code)
        client.expect_last()
    assert codes == [UNAUTHORIZED] + [BUSY] * 7


@pytest.mark.parametrize("change", ["another password", "deleted"])
def test_an_exchange_of_scram_that_was_open_at_a_reload(
    broker: BrokerProcess, users: Path, change: str
) -> None:
    client, proof = begin(broker, "late")
    if change == "deleted":
        passwd.delete(users, "user")
    else:
        passwd.put(users, "user", "another")
    broker.signal(signal.SIGHUP)
    done = f"Read {users}: "
    broker.wait_for(lambda: any(done in line for line in broker.lines), "the reload")
    answer(client, proof)
    assert client.next() == codec5.Connack(False, UNAUTHORIZED)
    client.expect_last()
