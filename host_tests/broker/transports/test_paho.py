"""paho as Home Assistant drives it: loop_read() for each event of the socket, which handles one
packet, and nobody asks whether TLS has more."""

import select
import time
from collections.abc import Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from ..wire import codec
from ..wire.client import Client
from .conftest import Matrix
from .served import SECURE, Served

ENTITIES = 30
_IDLE_S = 8


class Assistant:
    """Notes what it gets, by topic."""

    def __init__(self, served: Served, transport: str, name: str) -> None:
        self.came: list[str] = []
        kind: Any = "websockets" if "w" in transport else "tcp"
        self.client = paho.Client(CallbackAPIVersion.VERSION2, name, transport=kind)
        if transport in SECURE:
            self.client.tls_set(str(served.certs / "ca.crt"))
        self.granted = False
        self.client.on_subscribe = self._subscribed
        self.client.on_message = lambda _client, _data, message: self.came.append(message.topic)
        self.client.connect("localhost", served.ports[transport])
        self.until(self.client.is_connected)

    def _subscribed(self, *_: object) -> None:
        self.granted = True

    def until(self, condition: object) -> None:
        """Serve its socket until then, or until it has been idle for long."""
        idle = time.monotonic() + _IDLE_S
        while not condition() and time.monotonic() < idle:  # type: ignore[operator]
            sock: Any = self.client.socket()
            writing = [sock] if self.client.want_write() else []
            readable, writable, _ = select.select([sock], writing, [], 0.1)
            if readable:
                idle = time.monotonic() + _IDLE_S
                self.client.loop_read()
            if writable:
                self.client.loop_write()
        assert condition(), self.came  # type: ignore[operator]


@pytest.fixture
def served(matrix: Matrix, runtime: str, cell: tuple[str, str]) -> Served:
    transport, path = cell
    return matrix.broker(runtime, path, transport)


@pytest.fixture
def assistant(served: Served, cell: tuple[str, str]) -> Iterator[Assistant]:
    one = Assistant(served, cell[0], "-".join(cell))
    yield one
    one.client.disconnect()


def test_each_entity_is_there(served: Served, assistant: Assistant, cell: tuple[str, str]) -> None:
    base = "-".join(cell)
    wanted = [f"{base}/{k}" for k in range(ENTITIES)]
    for retain in (True, False):
        packets = [codec.publish(topic, b"online", retain=retain) for topic in wanted]
        device = Client(served.address)
        device.connect(codec.connect(f"device-{base}"))
        device.send(b"".join(packets))
        device.ping()
        if retain:
            assistant.client.subscribe(f"{base}/#")
            assistant.until(lambda: assistant.granted)
        assistant.until(lambda: len(assistant.came) >= ENTITIES)
        assert sorted(assistant.came) == sorted(wanted)
        assistant.came.clear()
        device.disconnect()
