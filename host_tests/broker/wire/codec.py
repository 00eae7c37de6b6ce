"""MQTT 3.1 and 3.1.1 for the tests' client: packets to send, and what the server sends, as values
of which two can be compared. `wire5/codec.py` has the packets to send of 5.0.

`take` raises `Malformed` at what a server may not send. It is the codec of the tools, which shares
nothing with the broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from slotmq_tools import codec
from slotmq_tools.codec import (
    CONNACK,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
    Malformed,
    connect,
    length,
    number,
    packet,
    publish,
    string,
    subscribe,
    unsubscribe,
)

__all__ = [
    "CONNACK", "PUBACK", "PUBCOMP", "PUBLISH", "PUBREC", "PUBREL", "SUBACK", "UNSUBACK",
    "Malformed", "connect", "length", "number", "packet", "publish", "string", "subscribe",
    "unsubscribe",
]  # fmt: skip

PINGREQ, DISCONNECT = codec.PING, codec.disconnect()

Properties = dict[str, Any]  # the values: int, str, bytes, or a tuple of those that are repeated


class Will(NamedTuple):
    """The message that the broker publishes when the connection ends without DISCONNECT."""

    topic: str | bytes
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    properties: Mapping[str, Any] = {}  # of MQTT 5.0


@dataclass(frozen=True)
class _Answer:
    # Not compared: a test looks at the properties that it is about.
    properties: Properties = field(default_factory=dict, compare=False, kw_only=True)


@dataclass(frozen=True)
class Connack(_Answer):
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
    properties: Properties = field(default_factory=dict)
    # Not compared: whether the topic was sent, or an alias.
    alias: int = field(default=0, compare=False)
    named: bool = field(default=True, compare=False)

    def __repr__(self) -> str:
        flags = "retain " * self.retain + "dup " * self.dup + f"qos {self.qos}"
        data = f"{len(self.payload)}:{self.payload[:40]!r}"
        return f"<{self.topic[:40]} {data} {flags} {self.properties or ''}>"


@dataclass(frozen=True)
class Ack(_Answer):
    """PUBACK, PUBREC, PUBREL, PUBCOMP, or UNSUBACK before 5.0."""

    kind: int
    packet_id: int
    code: int = 0


@dataclass(frozen=True)
class Suback(_Answer):
    packet_id: int
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Unsuback(_Answer):  # of 5.0
    packet_id: int
    codes: tuple[int, ...]


@dataclass(frozen=True)
class Pingresp(_Answer):
    pass


@dataclass(frozen=True)
class Disconnect(_Answer):
    code: int


@dataclass(frozen=True)
class Auth(_Answer):
    code: int


Packet = Publish | _Answer


def ack(kind: int, packet_id: int, *, dup: bool = False) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP; `dup` is MQTT 3.1's, on PUBREL only."""
    return codec.ack(kind, packet_id, dup=dup)


def take(buffer: bytearray, level: int = 4) -> Packet | None:
    """The first packet, cut off the front of the buffer; None while it is not whole."""
    found = codec.take(buffer, level)
    if found is None:
        return None
    del buffer[: found.size]
    properties = _named(found.props or {})
    if found.kind == PUBLISH:
        alias = properties.pop("topic_alias", 0)
        topic = found.topic.decode()
        return Publish(
            topic,
            found.payload,
            found.qos,
            bool(found.retain),
            bool(found.dup),
            found.packet_id,
            properties,
            alias,
            bool(topic),
        )
    if found.kind == CONNACK:
        codec.check(level < 5 or found.code in codec.CODES[CONNACK], f"code {found.code:x}")
        return Connack(bool(found.present), found.code, properties=properties)
    if found.kind in (codec.DISCONNECT, codec.AUTH):
        made = Disconnect if found.kind == codec.DISCONNECT else Auth
        return made(found.code, properties=properties)
    if found.codes:
        answer = Suback if found.kind == SUBACK else Unsuback
        return answer(found.packet_id, tuple(found.codes), properties=properties)
    if found.kind == codec.PINGRESP:
        return Pingresp()
    return Ack(found.kind, found.packet_id, found.code, properties=properties)


def _named(props: Mapping[int, Any]) -> Properties:
    found = {}
    for identifier, value in props.items():
        name, kind, _ = codec.PROPERTIES[identifier]
        if kind == codec.TEXT:
            value = value.decode()
        elif kind == codec.PAIR:
            value = tuple((name.decode(), text.decode()) for name, text in value)
        found[name] = tuple(value) if isinstance(value, list) else value
    return found
