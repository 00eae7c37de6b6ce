"""MQTT 5.0 for the tests' client: packets to send, with properties by the names of the tools'
codec as keywords at their end. What comes is read by `wire/codec.py`.

`user` contains pairs, and it and `subscription_id` may be a sequence. The writers write whatever
they are given, since tests need wrong packets, too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from slotmq_tools import codec
from slotmq_tools.codec import BINARY, PAIR, PROPERTIES, TEXT, VARINT

from ..wire.codec import (
    CONNACK,
    DISCONNECT,
    PINGREQ,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
    Ack,
    Auth,
    Connack,
    Disconnect,
    Malformed,
    Packet,
    Pingresp,
    Properties,
    Publish,
    Suback,
    Unsuback,
    Will,
    length,
    number,
    packet,
    string,
)

__all__ = [
    "BINARY", "CONNACK", "DISCONNECT", "PAIR", "PINGREQ", "PUBACK", "PUBCOMP", "PUBLISH",
    "PUBREC", "PUBREL", "SUBACK", "TEXT", "UNSUBACK", "VARINT", "Ack", "Auth", "Connack",
    "Disconnect", "Malformed", "Packet", "Pingresp", "Properties", "Publish", "Suback",
    "Unsuback", "Will", "number", "packet", "string",
]  # fmt: skip

Value = Any  # int, str, bytes, or a sequence of those that may be repeated
NORMAL, WITH_WILL, CONTINUE, AGAIN = 0x00, 0x04, 0x18, 0x19
NO_SUBSCRIBERS, NO_SUBSCRIPTION = 0x10, 0x11
NO_LOCAL, AS_PUBLISHED = 0x04, 0x08
HANDLING = (0x00, 0x10, 0x20)  # when retained messages are sent: always, if new, never
TABLE = {number: (name, kind) for number, (name, kind, _) in PROPERTIES.items()}
IDS = {name: number for number, (name, _) in TABLE.items()}


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
    return codec.connect(
        client_id,
        clean,
        will,
        keep_alive,
        username=username,
        password=password,
        level=5,
        properties=body(properties),
        will_properties=body(will.properties) if will else b"",
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
    return codec.publish(topic, payload, qos, packet_id, retain, dup, body(properties))


def ack(
    kind: int,
    packet_id: int,
    code: int | None = None,
    properties: Mapping[str, Value] | None = None,
) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP, in the short form unless a code is given."""
    props = None if properties is None else body(properties)
    return codec.ack(kind, packet_id, -1 if code is None else code, props)


def subscribe(packet_id: int, *filters: tuple[str | bytes, int], **properties: Value) -> bytes:
    """Each filter with its options: the QoS, combined with others by `|`."""
    return codec.subscribe(packet_id, *filters, properties=body(properties))


def unsubscribe(packet_id: int, *filters: str | bytes, **properties: Value) -> bytes:
    return codec.unsubscribe(packet_id, *filters, properties=body(properties))


def disconnect(code: int | None = None, **properties: Value) -> bytes:
    return codec.disconnect(-1 if code is None else code, body(properties))


def auth(code: int, **properties: Value) -> bytes:
    return packet(0xF0, bytes([code]) + encode(properties))


def encode(properties: Mapping[str, Value]) -> bytes:
    """The properties in the order of the dict, with their length before them."""
    return codec.section(body(properties))


def body(properties: Mapping[str, Value]) -> bytes:
    """The same without the length."""
    return b"".join(bytes([IDS[name]]) + part for name, part in _parts(properties))


def _parts(properties: Mapping[str, Value]) -> Iterable[tuple[str, bytes]]:
    for name, value in properties.items():
        several = name in ("user", "subscription_id") and not isinstance(value, int)
        for one in value if several else (value,):
            yield name, _encode_one(TABLE[IDS[name]][1], one)


def _encode_one(kind: int, value: Value) -> bytes:
    if kind in (TEXT, BINARY):
        return string(value)
    if kind == PAIR:
        return string(value[0]) + string(value[1])
    return length(value) if kind == VARINT else int(value).to_bytes(kind, "big")
