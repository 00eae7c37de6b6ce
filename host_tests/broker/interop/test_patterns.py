"""Applications as they use a broker (patterns.py), over each transport, on each runtime.

Those that take one packet for each event are played by paho itself, since it must be seen what TLS
and WebSocket hand out; the others by our client, over TLS and WebSocket through a relay.
"""

import contextlib
import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client as Paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from ..tls.client import context
from ..tls.conftest import made
from ..transports.served import SECURE, TRANSPORTS, Served
from ..wire.client import Client
from ..wire5.client import Client as Client5
from .patterns import PATTERNS, Again, Die, Gets, Given, Leave, Move, Pattern, Ping, Pub, Seen, Sub

TIMEOUT_S = 10.0
Got = tuple[str, bytes, bool]


class Around(Served):
    """A broker whose certificates the clients here trust."""

    def __init__(self, runtime: str, folder: Path) -> None:
        self.certs = made(folder / "certs")
        super().__init__(runtime, "fast", self.certs, folder)


class ByEvent:
    """paho in an event loop as Home Assistant has it: one loop_read() for a readable socket."""

    def __init__(self, pattern: Pattern, served: Around, transport: str) -> None:
        self.got: list[Got] = []
        self.answers: list[str] = []  # of SUBSCRIBE, PUBLISH and CONNECT
        is_web = "w" in transport
        self.paho = paho = Paho(
            CallbackAPIVersion.VERSION2,
            pattern.client_id,
            protocol=MQTTProtocolVersion(pattern.level),
            transport="websockets" if is_web else "tcp",
            reconnect_on_failure=False,
        )
        paho.on_message = lambda c, u, m: self.got.append((m.topic, bytes(m.payload), m.retain))
        paho.on_connect = lambda *_: self.answers.append("connect")
        paho.on_subscribe = lambda *_: self.answers.append("subscribe")
        paho.on_publish = lambda *_: self.answers.append("publish")
        if pattern.will:
            will = pattern.will
            paho.will_set(str(will.topic), will.payload, will.qos, will.retain)
        if transport in SECURE:
            paho.tls_set_context(context(served.certs))
        paho.connect("localhost", served.ports[transport], pattern.keep_alive)
        self._until("connect")

    def _event(self, what: str) -> None:
        sock: Any = self.paho.socket()
        ready, _, _ = select.select([sock], [], [], TIMEOUT_S)
        assert ready, f"the socket is not readable; {what} is still to come: {self.got[-1:]}"
        self.paho.loop_read()
        while self.paho.want_write():
            self.paho.loop_write()

    def _until(self, answer: str) -> None:
        while answer not in self.answers:
            self._event(answer)
        self.answers.remove(answer)

    def publish(self, move: Pub) -> None:
        self.paho.publish(*move)
        self._until("publish")

    def subscribe(self, move: Sub) -> None:
        self.paho.subscribe(list(move.filters))
        self._until("subscribe")

    def take(self, count: int) -> list[Got]:
        while len(self.got) < count:
            self._event(f"message {len(self.got) + 1} of {count}")
        found, self.got = self.got[:count], self.got[count:]
        return found

    def ping(self, _: Ping) -> None:
        """It is sent by loop_misc() only when it is time; what it has of QoS 2 ends meanwhile."""
        self.paho.loop_misc()

    def leave(self) -> None:
        self.paho.disconnect()
        self.close()

    def die(self) -> None:
        sock: Any = self.paho.socket()
        getattr(sock, "_socket", sock).shutdown(socket.SHUT_RDWR)  # of paho's WebSocket
        self.close()

    def close(self) -> None:
        if sock := self.paho.socket():
            sock.close()
        self.paho._reset_sockets()


class Plain:
    """Our client, which reads whatever comes, through a relay."""

    def __init__(self, pattern: Pattern, served: Around, transport: str) -> None:
        self._relay = served if transport == "plain" else served.relay(transport)
        self.client: Any = (Client5 if pattern.level == 5 else Client)(self._relay.address)
        codec = self.client.codec
        connack = self.client.connect(
            codec.connect(
                pattern.client_id,
                clean=pattern.clean,
                keep_alive=pattern.keep_alive,
                will=pattern.will,
            )
        )
        assert connack.code == 0
        self.present = connack.session_present

    def publish(self, move: Pub) -> None:
        if move.qos:
            self.client.publish(move.topic, move.payload, move.qos, retain=move.retain)
        else:  # as applications do: no answer shows that it has come
            packet = self.client.codec.publish(move.topic, move.payload, retain=move.retain)
            self.client.send(packet)

    def subscribe(self, move: Sub) -> None:
        codes = self.client.request(*move.filters)
        assert codes == tuple(qos for _, qos in move.filters)

    def take(self, count: int) -> list[Got]:
        found: list[Got] = []
        while len(found) < count:
            message = self.client._first(self.client.codec.Publish)
            self.client.acknowledge(message)
            found.append((message.topic, message.payload, message.retain))
        return found

    def ping(self, move: Ping) -> None:
        if move.waits:
            self.client.ping()
        else:
            self.client.send(b"\xc0\0")

    def leave(self) -> None:
        self.client.send(b"\xe0\0")
        self.client.expect_end()
        self.close()

    def die(self) -> None:
        self.client.drop()
        self.close()

    def close(self) -> None:
        self.client.sock.close()
        if isinstance(self._relay, Served):
            return
        self._relay.close()


class House:
    """The clients around the application: one publishes, one subscribes to all."""

    def __init__(self, served: Served) -> None:
        self._writer, self._reader = Client(served.address), Client(served.address)
        for name, client in (("writer", self._writer), ("reader", self._reader)):
            client.connect(client.codec.connect(name, keep_alive=60))
        self._reader.subscribe("#", qos=1)
        self._came: list[Got] = []
        self._kept: set[str] = set()

    def give(self, move: Given) -> None:
        self._writer.publish(move.topic, move.payload, move.qos, retain=move.retain)
        if move.retain:
            self._kept.add(move.topic)

    def keeps(self, move: Pub) -> None:
        if move.retain:
            self._kept.add(move.topic)

    def see(self, wanted: Seen) -> None:
        """The next message of that topic; others wait."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            for at, (topic, payload, _) in enumerate(self._came):
                if topic == wanted.topic:
                    del self._came[at]
                    assert payload == wanted.payload, (topic, payload[:80])
                    return
            assert time.monotonic() < deadline, f"{wanted.topic} has not come: {self._came}"
            message = self._reader._first(self._reader.codec.Publish)
            self._reader.acknowledge(message)
            self._came.append((message.topic, message.payload, message.retain))

    def close(self) -> None:
        self._reader.send(b"\xe0\0")
        self._reader.expect_end()
        for topic in self._kept:
            self._writer.publish(topic, b"", 1, retain=True)
        self._writer.disconnect()


class Play:
    def __init__(self, pattern: Pattern, served: Around, transport: str) -> None:
        self.pattern = pattern
        self._where = served, transport
        self.house = House(served)
        if pattern.will and pattern.will.retain:
            self.house.keeps(Pub(str(pattern.will.topic), retain=True))
        self.one = self.start()

    def start(self) -> ByEvent | Plain:
        return (ByEvent if self.pattern.by_event else Plain)(self.pattern, *self._where)

    def move(self, move: Move) -> None:
        match move:
            case Pub():
                self.one.publish(move)
                self.house.keeps(move)
            case Sub():
                self.one.subscribe(move)
            case Given():
                self.house.give(move)
            case Gets():
                # Retained messages come in the order of the table
                found = self.one.take(len(move.messages))
                order = sorted if move.messages[0][2] else list
                assert order(found) == order(move.messages)
            case Seen():
                self.house.see(move)
            case Ping():
                self.one.ping(move)
            case Again():
                self.one.die()
                self.one = self.start()
                assert isinstance(self.one, Plain)
                assert self.one.present == move.present
            case Leave():
                self.one.leave()
            case Die():
                self.one.die()

    def close(self) -> None:
        """Also of the session that stays."""
        with contextlib.suppress(OSError):
            self.one.close()
        if not self.pattern.clean:
            client = Client(self._where[0].address)
            client.connect(client.codec.connect(self.pattern.client_id))
            client.disconnect()
        self.house.close()


@pytest.fixture(scope="module")
def served(runtime: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    folder: Path = tmp_path_factory.mktemp("patterns")
    one = Around(runtime, folder)
    yield one
    one.stop()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("name", PATTERNS)
def test_application(served: Around, name: str, transport: str) -> None:
    play = Play(PATTERNS[name], served, transport)
    try:
        for move in PATTERNS[name].moves:
            play.move(move)
    finally:
        play.close()
    assert served.alive(), served.complaints()
