"""Thousands of wrong passwords while others publish: nobody else waits or is locked out."""

import statistics
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from . import codec
from .client import Client
from .process import BrokerProcess

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
