"""What one turn does with connections over TLS, in a broker of this process (CPython)."""

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slotmq import Broker, Limits, Settings
from slotmq_tools.testing.options import SIZES

from ...support.program import CONNACK, CONNECT, TIMEOUT_S
from ..wire import codec
from .client import Peer, context


class World:
    """A broker whose turns the test makes, and clients that send bytes."""

    def __init__(self, certs: Path) -> None:
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(certs / "server.crt", certs / "server.key")
        settings = Settings(connect_timeout=600)  # the machine may be busy
        self.broker: Any = Broker(Limits(**{**SIZES, "tx_bytes": 16384}), settings)
        self.address = self.broker.listen("127.0.0.1", 0, options={"tls": own})
        self.with_ = context(certs)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, TIMEOUT_S)

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.broker.turn(0)

    @contextlib.contextmanager
    def turning(self) -> Iterator["World"]:
        """Turns go on beside the test."""
        over = threading.Event()

        def turn() -> None:
            while not over.is_set():
                self.turns(1)

        thread = threading.Thread(target=turn)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()


@pytest.fixture
def world(certs: Path) -> Iterator[World]:
    one = World(certs)
    yield one
    one.broker.close()


def test_one_handshake_goes_on_in_a_turn(world: World) -> None:
    clients = [Peer(world, world.with_) for _ in range(12)]
    world.turns(8)
    for client in clients:
        client.sock.sendall(client.flight())
    answered = []
    for _ in clients:
        world.turns(1)
        answered.append(len(select.select([each.sock for each in clients], [], [], 0)[0]))
    assert answered == list(range(1, len(clients) + 1))
    for client in clients:
        client.sock.close()


def test_records_that_wait_leave_without_anything_else(world: World) -> None:
    """All packets are written, and the socket has not taken all records: nothing else is due."""
    client = Peer(world, world.with_)
    client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with world.turning():
        client.shake_hands()
        client.sock.sendall(client.records(CONNECT + codec.subscribe(1, ("a", 0))))
        assert client.received(9) == CONNACK + b"\x90\3\0\1\0"
    conns = world.broker.conns
    conn = next(conn for conn in range(conns.top) if conns.stream[conn])
    stream = conns.stream[conn]
    stream._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    packet = codec.publish("a", bytes(10_000))
    count = 0
    while not stream.waits:
        assert world.broker.publish("a", bytes(10_000))
        world.turns(1)
        count += 1
    assert conns.is_empty(conn), "the loop has nothing left to write"
    with world.turning():
        assert client.received(count * len(packet)) == packet * count
    assert not stream.waits
    client.sock.close()
