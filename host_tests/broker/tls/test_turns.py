"""What one turn does with connections over TLS, in a broker of this process (CPython)."""

import select
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slotmq import Broker, Limits, Settings
from slotmq_tools.testing.options import SIZES

from ...support.program import CONNACK, CONNECT, TIMEOUT_S
from ..wire import codec
from .client import context


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
        sock = socket.create_connection(self.address, TIMEOUT_S)
        self.turns(2)
        return sock

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.broker.turn(0)


class Records:
    """TLS of a client, as far as its socket has anything."""

    def __init__(self, world: World, sock: socket.socket) -> None:
        self.world, self.sock = world, sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = world.with_.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def exchange(self) -> None:
        """Send what there is, let the broker have a turn, and take in what has come."""
        if data := self.outgoing.read():
            self.sock.sendall(data)
        self.world.turns(1)
        if select.select([self.sock], [], [], 0.05)[0]:
            self.incoming.write(self.sock.recv(1 << 20))

    def shake_hands(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                self.exchange()

    def read(self, n: int) -> bytes:
        data = b""
        for _ in range(1000):
            try:
                data += self.tls.read(n - len(data))
            except ssl.SSLWantReadError:
                self.exchange()
            if len(data) == n:
                break
        return data


@pytest.fixture
def world(certs: Path) -> Iterator[World]:
    one = World(certs)
    yield one
    one.broker.close()


def test_one_handshake_goes_on_in_a_turn(world: World) -> None:
    clients = [Records(world, world.connect()) for _ in range(12)]
    for client in clients:
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.sock.sendall(client.outgoing.read())
    answered = []
    for _ in range(len(clients)):
        world.turns(1)
        answered.append(len(select.select([each.sock for each in clients], [], [], 0)[0]))
    assert answered == list(range(1, len(clients) + 1))
    for client in clients:
        client.sock.close()


def test_records_that_wait_leave_without_anything_else(world: World) -> None:
    """All packets are written, and the socket has not taken all records: nothing else is due."""
    sock = world.connect()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client = Records(world, sock)
    client.shake_hands()
    client.tls.write(CONNECT + codec.subscribe(1, ("a", 0)))
    assert client.read(9) == CONNACK + b"\x90\3\0\1\0"
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
    assert client.read(count * len(packet)) == packet * count
    assert not stream.waits
    sock.close()
