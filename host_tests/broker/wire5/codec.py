"""MQTT 5.0 as bytes, written from the standard and sharing nothing with the broker.

The writers write whatever they are given, since tests need wrong packets, too; the
keywords at their end are properties. The reader is strict: it raises `Malformed` at
what a server may not send.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..wire import codec as older
from ..wire.codec import (
    CONNACK,
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
    Malformed,
    Pingresp,
    Will,
    number,
    packet,
    string,
)
from .properties import Properties, Value, body, encode

__all__ = [
    "CONNACK", "DISCONNECT", "PINGREQ", "PINGRESP", "PUBACK", "PUBCOMP", "PUBLISH", "PUBREC",
    "PUBREL", "SUBACK", "UNSUBACK", "Malformed", "Pingresp", "Will", "number", "packet", "string",
]  # fmt: skip

AUTH = 15
NORMAL, WITH_WILL, CONTINUE, AGAIN = 0x00, 0x04, 0x18, 0x19
NO_SUBSCRIBERS, NO_SUBSCRIPTION = 0x10, 0x11
NO_LOCAL, AS_PUBLISHED = 0x04, 0x08
HANDLING = (0x00, 0x10, 0x20)  # when retained messages are sent: always, if new, never


@dataclass(frozen=True)
class Connack(older.Connack):
    # Not compared, here and below: a test looks at the properties that it is about.
    properties: Properties = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Publish(older.Publish):
    properties: Properties = field(default_factory=dict)
    # Not compared: whether the topic was sent, or an alias.
    alias: int = field(default=0, compare=False)
    named: bool = field(default=True, compare=False)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]} {self.properties}>"


@dataclass(frozen=True)
class Ack(older.Ack):
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    code: int = 0
    properties: Properties = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Suback(older.Suback):
    properties: Properties = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Unsuback:
    packet_id: int
    codes: tuple[int, ...]
    properties: Properties = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Disconnect:
    code: int
    properties: Properties = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Auth:
    code: int
    properties: Properties = field(default_factory=dict, compare=False)


def connect(
    client_id: str | bytes,
    *,
    clean: bool = True,
    keep_alive: int = 0,
    will: Will | None = None,
    username: str | bytes | None = None,
    password: bytes | None = None,
    **properties: Value,
) -> bytes:
    return older.connect(
        client_id,
        clean,
        will,
        keep_alive,
        username=username,
        password=password,
        level=5,
        properties=body(properties),
        will_properties=body(will.properties) if will else None,
    )


def publish(
    topic: str | bytes,
    payload: bytes = b"",
    qos: int = 0,
    packet_id: int = 0,
    *,
    retain: bool = False,
    dup: bool = False,
    **properties: Value,
) -> bytes:
    return older.publish(topic, payload, qos, packet_id, retain, dup, body(properties))


def ack(
    kind: int,
    packet_id: int,
    code: int | None = None,
    properties: Mapping[str, Value] | None = None,
) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP, in the short form unless a code is given."""
    rest = number(packet_id) + (b"" if code is None else bytes([code]))
    rest += b"" if properties is None else encode(properties)
    return packet(kind << 4 | (2 if kind == PUBREL else 0), rest)


def subscribe(packet_id: int, *filters: tuple[str | bytes, int], **properties: Value) -> bytes:
    """Each filter with its options: the QoS, combined with others by `|`."""
    payload = b"".join(string(name) + bytes([options]) for name, options in filters)
    return packet(0x82, number(packet_id) + encode(properties) + payload)


def unsubscribe(packet_id: int, *filters: str | bytes, **properties: Value) -> bytes:
    return packet(0xA2, number(packet_id) + encode(properties) + b"".join(map(string, filters)))


def disconnect(code: int | None = None, **properties: Value) -> bytes:
    if code is None:
        return DISCONNECT
    return packet(0xE0, bytes([code]) + (encode(properties) if properties else b""))


def auth(code: int, **properties: Value) -> bytes:
    return packet(0xF0, bytes([code]) + encode(properties))
