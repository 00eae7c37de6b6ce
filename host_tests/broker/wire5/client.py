"""A client of MQTT 5.0 for tests: as the one of 3.1.1, with codes and properties."""

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..wire import client as older
from ..wire.client import Send, whole
from . import codec, reader
from .codec import Ack, Auth, Connack, Disconnect, Publish, Suback, Unsuback
from .properties import Value


class Client(older.Client):
    """One network connection to the broker. It keeps topic aliases, and nothing else."""

    codec = codec
    connack: Connack

    def __init__(
        self, address: tuple[str, int], send: Send = whole, *, narrow: bool = False
    ) -> None:
        super().__init__(address, send, narrow=narrow)
        self.connack = Connack(False, 0)
        self.terms: dict[str, Value] = {}  # what the CONNECT asked for
        self._aliases: dict[int, str] = {}
        self._told_to_go = False  # by DISCONNECT
        self._open: set[int] = set()  # packet ids of PUBLISH that were not acknowledged

    # What goes out.

    def connect(self, packet: bytes) -> Connack:
        answer = super().connect(packet)
        assert isinstance(answer, Connack), answer
        return answer

    def subscribe(
        self, *filters: str, qos: int = 0, options: int = 0, **properties: Value
    ) -> None:
        """Subscribe to these with those options, and be granted that QoS for each."""
        codes = self.request(*((name, qos | options) for name in filters), **properties)
        assert codes == (qos,) * len(filters), f"granted {codes}"

    def request(self, *filters: tuple[str, int], **properties: Value) -> tuple[int, ...]:
        """Subscribe, and answer what was granted."""
        packet_id = self.next_id()
        self.send(codec.subscribe(packet_id, *filters, **properties))
        answer = self._first(Suback)
        assert answer.packet_id == packet_id, answer
        assert len(answer.codes) == len(filters), answer
        return answer.codes

    def unsubscribe(self, *filters: str) -> None:
        codes = self.withdraw(*filters)
        assert codes == (0,) * len(filters), f"answered {codes}"

    def withdraw(self, *filters: str, **properties: Value) -> tuple[int, ...]:
        """Unsubscribe, and answer what was said to each filter."""
        packet_id = self.next_id()
        self.send(codec.unsubscribe(packet_id, *filters, **properties))
        answer = self._first(Unsuback)
        assert answer.packet_id == packet_id, answer
        assert len(answer.codes) == len(filters), answer
        return answer.codes

    def publish(
        self,
        topic: str,
        payload: bytes = b"x",
        qos: int = 0,
        *,
        retain: bool = False,
        **properties: Value,
    ) -> None:
        """Publish with all acknowledgements; afterwards the broker has handled it."""
        packet_id = self.next_id() if qos else 0
        packet = codec.publish(topic, payload, qos, packet_id, retain=retain, **properties)
        self.send(packet)
        if qos == 0:
            self.ping()
        else:
            self.expect_accepted(codec.PUBACK if qos == 1 else codec.PUBREC, packet_id)
        if qos == 2:
            self.release(packet_id)

    # What comes in.

    def expect_accepted(self, kind: int, packet_id: int) -> Ack:
        """The next acknowledgement is that one, with a code of success."""
        found = self._first(Ack)
        assert (found.kind, found.packet_id) == (kind, packet_id), found
        assert found.code in (0, codec.NO_SUBSCRIBERS), found
        return found

    def expect_publish(
        self,
        topic: str,
        payload: bytes = b"x",
        qos: int = 0,
        *,
        retain: bool = False,
        dup: bool = False,
        **properties: Value,
    ) -> Publish:
        """The next PUBLISH is this one with these properties; not acknowledged."""
        message = self._first(Publish)
        expected = Publish(topic, payload, qos, retain, dup, properties=properties)
        assert message == expected, f"{message} came, not {expected}"
        return message

    def receive(
        self,
        topic: str,
        payload: bytes = b"x",
        qos: int = 0,
        *,
        retain: bool = False,
        dup: bool = False,
        **properties: Value,
    ) -> Publish:
        """The next PUBLISH is this one; acknowledged as its QoS asks."""
        message = self.expect_publish(topic, payload, qos, retain=retain, dup=dup, **properties)
        self.acknowledge(message)
        return message

    def next_message(self) -> Publish:
        """The next PUBLISH, whatever it is; acknowledged as its QoS asks."""
        message = self._first(Publish)
        self.acknowledge(message)
        return message

    def answer(self) -> Any:
        """The next packet, or None where the broker closes without one."""
        return self._inbox.pop(0) if self._inbox or self._read() else None

    def expect_auth(self, code: int) -> Auth:
        found = self._first(Auth)
        assert found.code == code, found
        return found

    def expect_disconnect(self, *codes: int) -> Disconnect:
        """The broker says why (one of these), and closes."""
        found = self._first(Disconnect)
        assert found.code in codes, f"{found.code:#x} came, not {[hex(code) for code in codes]}"
        self.expect_last()
        return found

    def expect_refused(self, packet: bytes, *codes: int) -> Connack:
        """The broker answers this CONNECT with one of these codes, and closes."""
        answer = self.connect(packet)
        assert answer.code in codes, f"{answer.code:#x} came, not {[hex(code) for code in codes]}"
        self.expect_last()
        return answer

    def expect_end(self) -> None:
        """The broker closes, whatever it has said before it does."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        super().expect_end()

    def expect_last(self) -> None:
        """That was the broker's last word: it closes, and sooner if the client goes first."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        self.expect_closed()

    def read_to_end(self) -> bytes:
        """The bytes until the broker closes, for who looks at these and not at packets."""
        said = bytearray()
        with contextlib.suppress(ConnectionError):
            while data := self.sock.recv(65536):
                said += data
        return bytes(said)

    # How it ends.

    def disconnect(self, code: int | None = None, **properties: Value) -> None:
        self.send(codec.disconnect(code, **properties))
        self.expect_closed()

    def wait(self, seconds: float) -> None:
        """Let time pass, and go on to read: what only time brings."""
        time.sleep(seconds)
        self.ping()

    # What holds at every packet.

    def send(self, data: bytes) -> None:
        super().send(data)
        for kind, packet_id, code in finished(data):
            if kind != codec.PUBREC or code >= 0x80:
                self._open.discard(packet_id)

    def _take(self) -> Any:
        before = len(self._bytes)
        packet = reader.take(self._bytes)
        if packet is not None:
            size = before - len(self._bytes)
            assert size <= self.terms.get("maximum_packet_size", size), f"{size} bytes: {packet}"
            assert not self._told_to_go, f"behind DISCONNECT: {packet}"
            self._told_to_go = isinstance(packet, Disconnect)
            self._check_about(packet)
        return self._check_publish(packet) if isinstance(packet, Publish) else packet

    def _check_about(self, packet: reader.Packet) -> None:
        """Who wants no problem information gets it with few packets."""
        if self.terms.get("request_problem_info") == 0:
            about = {"reason_string", "user"} & set(getattr(packet, "properties", ()))
            assert not about or isinstance(packet, Publish | Connack | Disconnect), packet

    def _check_publish(self, message: Publish) -> Publish:
        """No more in flight and no more aliases than asked for. -> with its topic"""
        if message.qos:
            self._open.add(message.packet_id)
        assert len(self._open) <= self.terms.get("receive_maximum", 65535), f"too many: {message}"
        assert message.alias <= self.terms.get("topic_alias_maximum", 0), f"alias: {message}"
        if not message.alias:
            return message
        if message.named:
            self._aliases[message.alias] = message.topic
        assert message.alias in self._aliases, f"an alias that was never set: {message.alias}"
        return replace(message, topic=self._aliases[message.alias])


def finished(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Kind, packet id and reason code of the acknowledgements that are sent alone."""
    while len(data) >= 4 and data[0] >> 4 in (codec.PUBACK, codec.PUBREC, codec.PUBCOMP):
        packet_id = int.from_bytes(data[2:4], "big")
        yield data[0] >> 4, packet_id, data[4] if data[1] > 2 else 0
        data = data[2 + data[1] :]
