"""MQTT 3.1 and 3.1.1: packets to send, and a strict reader of what the server sends.

The reader raises `Malformed` at what a server may not send. Written from the standard; it
shares nothing with the broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..unit.support.packets import DISCONNECT, PINGREQ, connect, length, number, packet, publish
from ..unit.support.packets import text as string

__all__ = ["DISCONNECT", "PINGREQ", "connect", "length", "number", "packet", "publish", "string"]

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 2, 3, 4, 5, 6, 7
SUBACK, UNSUBACK, PINGRESP = 9, 11, 13


class Malformed(AssertionError):
    """The server sent something that is no MQTT."""


class Will(NamedTuple):
    """The message that the broker publishes when the connection ends without DISCONNECT."""

    topic: str | bytes
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    properties: Mapping[str, Any] = {}  # of MQTT 5.0


@dataclass(frozen=True)
class Connack:
    session_present: bool
    code: int


@dataclass(frozen=True)
class Publish:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    # Not compared: the server chooses it.
    packet_id: int = field(default=0, compare=False)

    def __repr__(self) -> str:
        flags = "retain " * self.retain + "dup " * self.dup + f"qos {self.qos}"
        return f"<{self.topic[:40]} {len(self.payload)}:{self.payload[:40]!r} {flags}>"


@dataclass(frozen=True)
class Ack:
    """PUBACK, PUBREC, PUBREL, PUBCOMP or UNSUBACK."""

    kind: int
    packet_id: int


@dataclass(frozen=True)
class Suback:
    packet_id: int
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Pingresp:
    pass


Packet = Connack | Publish | Ack | Suback | Pingresp


def ack(kind: int, packet_id: int, *, dup: bool = False) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP; `dup` is MQTT 3.1's, on PUBREL only."""
    return packet(kind << 4 | (2 if kind == PUBREL else 0) | dup << 3, number(packet_id))


def subscribe(packet_id: int, *filters: tuple[str | bytes, int], dup: bool = False) -> bytes:
    payload = b"".join(string(name) + bytes([qos]) for name, qos in filters)
    return packet(0x82 | dup << 3, number(packet_id) + payload)


def unsubscribe(packet_id: int, *filters: str | bytes, dup: bool = False) -> bytes:
    return packet(0xA2 | dup << 3, number(packet_id) + b"".join(map(string, filters)))


def take(buffer: bytearray) -> Packet | None:
    """The first packet, cut off the front of the buffer; None while it is not whole."""
    if (found := frame(buffer)) is None:
        return None
    first, body = found
    return _read_publish(first, body) if first >> 4 == PUBLISH else _read_answer(first, body)


def frame(buffer: bytearray) -> tuple[int, bytes] | None:
    """First byte and body of the first packet, cut off; None while it is not whole."""
    size, start = 0, 0
    for start in range(1, 6):
        if start >= len(buffer):
            return None
        size |= (buffer[start] & 127) << 7 * (start - 1)
        if not buffer[start] & 128:
            break
    check(start < 5, "remaining length longer than four bytes")
    check(start == 1 or buffer[start] > 0, "remaining length is not the shortest")
    end = start + 1 + size
    if len(buffer) < end:
        return None
    first, body = buffer[0], bytes(buffer[start + 1 : end])
    del buffer[:end]
    return first, body


def publish_head(first: int, body: bytes) -> tuple[bytes, int, int, int]:
    """Topic, QoS and packet id of a PUBLISH, and where its properties or its payload begin."""
    qos = first >> 1 & 3
    check(qos < 3, "QoS 3")
    check(qos > 0 or not first & 8, "DUP with QoS 0")
    end = 2 + int.from_bytes(body[:2], "big")
    payload = end + (2 if qos else 0)
    check(len(body) >= payload, "PUBLISH ends in its header")
    packet_id = int.from_bytes(body[end:payload], "big")
    check(bool(packet_id) == bool(qos), "packet id 0")
    return body[2:end], qos, packet_id, payload


def _read_publish(first: int, body: bytes) -> Publish:
    topic, qos, packet_id, payload = publish_head(first, body)
    flags = bool(first & 1), bool(first & 8)
    return Publish(topic.decode(), body[payload:], qos, *flags, packet_id)


def _read_answer(first: int, body: bytes) -> Packet:
    kind, flags, packet_id = first >> 4, first & 15, int.from_bytes(body[:2], "big")
    check(flags == (2 if kind == PUBREL else 0), f"flags of packet {first:#x}")
    if kind == CONNACK:
        check(len(body) == 2 and body[0] < 2, f"CONNACK {body.hex()}")
        return Connack(bool(body[0]), body[1])
    if kind == PINGRESP:
        check(not body, "PINGRESP with a body")
        return Pingresp()
    check(packet_id > 0, "packet id 0")
    if kind == SUBACK:
        check(set(body[2:]) <= {0, 1, 2, 0x80}, f"SUBACK {body.hex()}")
        return Suback(packet_id, tuple(body[2:]))
    check(kind in (PUBACK, PUBREC, PUBREL, PUBCOMP, UNSUBACK), f"packet type {kind}")
    check(len(body) == 2, f"packet {first:#x} of {len(body)} bytes")
    return Ack(kind, packet_id)


def check(good: bool, what: str) -> None:
    if not good:
        raise Malformed(what)
