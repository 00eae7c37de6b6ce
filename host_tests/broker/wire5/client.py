"""A client of MQTT 5.0 for tests: the one of 3.1.1, with reason codes and properties."""

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..wire import client as older
from ..wire.client import Send, whole
from ..wire.codec import take
from . import codec
from .codec import Ack, Auth, Connack, Disconnect, Publish, Unsuback, Value


class Client(older.Client):
    """One network connection to the broker, with its topic aliases."""

    codec = codec

    def __init__(
        self, address: tuple[str, int], send: Send = whole, *, narrow: bool = False
    ) -> None:
        super().__init__(address, send, narrow=narrow)
        self.terms: dict[str, Value] = {}  # the properties of its CONNECT
        self._aliases: dict[int, str] = {}
        self._disconnected = False  # the broker has sent DISCONNECT
        self._open: set[int] = set()  # packet ids of PUBLISH that were not acknowledged

    # Sending.

    def unsubscribe(self, *filters: str) -> None:
        codes = self.withdraw(*filters)
        assert codes == (0,) * len(filters), f"answered {codes}"

    def withdraw(self, *filters: str, **properties: Value) -> tuple[int, ...]:
        """Unsubscribe, and return the codes of the UNSUBACK."""
        packet_id = self.next_id()
        self.send(codec.unsubscribe(packet_id, *filters, **properties))
        answer = self._first(Unsuback)
        assert answer.packet_id == packet_id, answer
        assert len(answer.codes) == len(filters), answer
        return answer.codes

    # Receiving.

    def expect_accepted(self, packet_id: int, qos: int) -> Ack:
        """The next acknowledgement is the first one of this PUBLISH, with a code of success."""
        kind = codec.PUBACK if qos == 1 else codec.PUBREC
        found = self._first(Ack)
        assert (found.kind, found.packet_id) == (kind, packet_id), found
        assert found.code in (0, codec.NO_SUBSCRIBERS), found
        return found

    def next_message(self) -> Publish:
        """The next PUBLISH; acknowledged as its QoS asks."""
        message = self._first(Publish)
        self.acknowledge(message)
        return message

    def answer(self) -> Any:
        """The next packet; None if the broker closes without one."""
        return self._inbox.pop(0) if self._inbox or self._read() else None

    def expect_auth(self, code: int) -> Auth:
        found = self._first(Auth)
        assert found.code == code, found
        return found

    def expect_disconnect(self, *codes: int) -> Disconnect:
        """The broker sends DISCONNECT with one of these codes, and closes."""
        found = self._first(Disconnect)
        assert found.code in codes, f"{found.code:#x} came, not {[hex(code) for code in codes]}"
        self.expect_last()
        return found

    def expect_end(self) -> None:
        """The broker closes, whatever it has sent before."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        super().expect_end()

    def expect_last(self) -> None:
        """The broker sends nothing more, and closes; at once if the client closes first."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)
        self.expect_closed()

    def read_to_end(self) -> bytes:
        """All bytes until the broker closes, not taken apart into packets."""
        found = bytearray()
        with contextlib.suppress(ConnectionError):
            while data := self.sock.recv(65536):
                found += data
        return bytes(found)

    # Ending.

    def disconnect(self, code: int | None = None, **properties: Value) -> None:
        self.send(codec.disconnect(code, **properties))
        self.expect_closed()

    def wait(self, seconds: float) -> None:
        """Let time pass, and read what has come."""
        time.sleep(seconds)
        self.ping()

    # What is checked at every packet.

    def send(self, data: bytes) -> None:
        super().send(data)
        for kind, packet_id, code in finished(data):
            if kind != codec.PUBREC or code >= 0x80:
                self._open.discard(packet_id)

    def _take(self) -> Any:
        before = len(self._bytes)
        packet = take(self._bytes, 5)
        if packet is not None:
            size = before - len(self._bytes)
            assert size <= self.terms.get("maximum_packet_size", size), f"{size} bytes: {packet}"
            assert not self._disconnected, f"behind DISCONNECT: {packet}"
            self._disconnected = isinstance(packet, Disconnect)
            self._check_about(packet)
        return self._check_publish(packet) if isinstance(packet, Publish) else packet

    def _check_about(self, packet: codec.Packet) -> None:
        """With Request Problem Information 0, few packets may have such properties."""
        if self.terms.get("request_problem_info") == 0:
            about = {"reason_string", "user"} & set(getattr(packet, "properties", ()))
            assert not about or isinstance(packet, Publish | Connack | Disconnect), packet

    def _check_publish(self, message: Publish) -> Publish:
        """Check Receive Maximum and Topic Alias Maximum; return the message with its topic."""
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
