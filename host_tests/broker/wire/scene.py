"""What a test is given: clients with names of the test's own, on a shared broker."""

import contextlib
import itertools
import socket
from collections.abc import Callable
from typing import Any

import pytest

from . import codec
from .client import TIMEOUT_S, Client, Send
from .process import PEER, BrokerProcess, Program

# The test runs with clients of 3.1.1 and with clients of 5.0.
EACH_VERSION = pytest.mark.parametrize("mqtt", ["3.1.1", "5.0"], indirect=True)
Decorator = Callable[[Any], Any]


def spec(old: str = "", new: str = "") -> Decorator:
    """The statements that the test would see broken: those of 3.1.1, and those of 5.0.

    @spec("3.1.2-8 3.1.2-9", "3.1.2-7") says that it is about MQTT-3.1.2-8 and -9 of 3.1.1, and
    MQTT-3.1.2-7 of 5.0.
    """

    def decorated(test: Any) -> Any:
        for version, numbers in (("3.1.1", old), ("5.0", new)):
            if numbers:
                names = [f"MQTT-{number}" for number in numbers.split()]
                test = pytest.mark.spec(*names, of=version)(test)
        return test

    return decorated


def each_version(old: str = "", new: str = "") -> Decorator:
    """The same of a test that runs with clients of 3.1.1 and with clients of 5.0."""
    return lambda test: EACH_VERSION(spec(old, new)(test))


_numbers = itertools.count(1)


class Scene:
    """The clients of one test, with client ids and topics that no other test uses."""

    codec: Any = codec  # of the protocol version that the clients speak

    def __init__(self, broker: Program, send: Send) -> None:
        self.broker = broker
        self.number = next(_numbers)
        self.topic = f"t{self.number}"
        self._send = send
        self._clients: list[Client] = []
        self._kept: set[str] = set()  # client ids with a session that outlives its connection
        self._unnamed = itertools.count(1)

    @property
    def is_peer(self) -> bool:
        """Is the broker mosquitto, on which the tests themselves are tried?"""
        return isinstance(self.broker, BrokerProcess) and self.broker.runtime == PEER

    def socket(self, *, narrow: bool = False) -> Client:
        """A network connection on which nothing has been sent."""
        client = Client(self.broker.address, self._send, narrow=narrow)
        client.expect_known()
        self._clients.append(client)
        return client

    def client_id(self, name: str) -> str:
        """The client id that `name` has in this test."""
        return f"{name}{self.number}"

    def packet(self, name: str = "", *, clean: bool = True, **options: Any) -> bytes:
        """The CONNECT of the client with that name."""
        client_id = self.client_id(name or f"client{next(self._unnamed)}x")
        if not clean:
            self._kept.add(client_id)
        return codec.connect(client_id, clean=clean, **options)

    def connect(self, name: str = "", *, narrow: bool = False, **options: Any) -> Client:
        """A client that the broker has accepted. The same name is the same client id."""
        client = self.socket(narrow=narrow)
        answer = client.connect(self.packet(name, **options))
        assert answer.code == 0
        return client

    def reader(
        self, *filters: str, name: str = "", qos: int = 0, options: int = 0, **more: Any
    ) -> Any:
        """Such a client that has subscribed to these filters."""
        named = {key: more.pop(key) for key in ("subscription_id",) if key in more}
        client = self.connect(name, **more)
        client.subscribe(*filters, qos=qos, options=options, **named)
        return client

    def close(self) -> None:
        """Close all connections, and end all sessions; the broker has noticed each end."""
        for client in self._clients:
            client.drain()
            with contextlib.suppress(OSError):
                client.sock.shutdown(socket.SHUT_WR)
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.sock.settimeout(TIMEOUT_S)
                client.drop()
            client.sock.close()
        if self.broker.alive():
            for client_id in self._kept:
                self._forget(client_id)

    def _forget(self, client_id: str) -> None:
        client = Client(self.broker.address)
        with client.sock:
            client.send(codec.connect(client_id) + codec.DISCONNECT)
            client.next()
            client.expect_closed()
