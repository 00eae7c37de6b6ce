"""Reads what a server sends in MQTT 5.0, and raises `Malformed` at what no server may send."""

from ..wire.codec import check, frame, publish_head
from .codec import (
    AUTH,
    CONNACK,
    PINGRESP,
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
    Pingresp,
    Publish,
    Suback,
    Unsuback,
)
from .properties import Properties, decode, text

Packet = Connack | Publish | Ack | Suback | Unsuback | Pingresp | Disconnect | Auth

_DISCONNECT = 14
_ABOUT = {"reason_string", "user"}
# The properties that a server may put into a packet.
ALLOWED: dict[int, set[str]] = {
    CONNACK: {
        "session_expiry", "receive_maximum", "maximum_qos", "retain_available",
        "maximum_packet_size", "assigned_client_id", "topic_alias_maximum",
        "wildcard_available", "subscription_id_available", "shared_available",
        "server_keep_alive", "response_info", "server_reference", "auth_method",
        "auth_data", *_ABOUT,
    },
    PUBLISH: {
        "payload_format", "message_expiry", "topic_alias", "response_topic",
        "correlation_data", "user", "subscription_id", "content_type",
    },
    PUBACK: _ABOUT,
    PUBREC: _ABOUT,
    PUBREL: _ABOUT,
    PUBCOMP: _ABOUT,
    SUBACK: _ABOUT,
    UNSUBACK: _ABOUT,
    _DISCONNECT: {"server_reference", *_ABOUT},
    AUTH: {"auth_method", "auth_data", *_ABOUT},
}  # fmt: skip

_RECEIVED = bytes.fromhex("00 10 80 83 87 90 91 97 99")
_RELEASED = bytes.fromhex("00 92")
# The reason codes that a server may put into a packet.
CODES: dict[int, bytes] = {
    CONNACK: bytes.fromhex("00 80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f"),
    PUBACK: _RECEIVED,
    PUBREC: _RECEIVED,
    PUBREL: _RELEASED,
    PUBCOMP: _RELEASED,
    SUBACK: bytes.fromhex("00 01 02 80 83 87 8f 91 97 9e a1 a2"),
    UNSUBACK: bytes.fromhex("00 11 80 83 87 8f 91"),
    # 8c stands in the list of all codes (2.4), and not in the one of this packet.
    _DISCONNECT: bytes.fromhex(
        "00 80 81 82 83 87 89 8b 8c 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2"
    ),
    AUTH: bytes.fromhex("00 18"),
}


def take(buffer: bytearray) -> Packet | None:
    """The first packet, cut off the front of the buffer; None while it is not whole."""
    found = frame(buffer)
    return None if found is None else _read(*found)


def _read(first: int, body: bytes) -> Packet:
    kind = first >> 4
    if kind == PUBLISH:
        return _read_publish(first, body)
    check(first & 15 == (2 if kind == PUBREL else 0), f"flags of packet {first:#x}")
    if kind == PINGRESP:
        check(not body, "PINGRESP with a body")
        return Pingresp()
    if kind == CONNACK:
        return _read_connack(body)
    if kind in (_DISCONNECT, AUTH):
        code, properties = _ending(kind, body, 0)
        return Disconnect(code, properties) if kind == _DISCONNECT else Auth(code, properties)
    packet_id = int.from_bytes(body[:2], "big")
    check(packet_id > 0, "packet id 0")
    if kind in (SUBACK, UNSUBACK):
        properties, end = decode(body, 2, ALLOWED[kind])
        codes = tuple(body[end:])
        check(len(codes) > 0 and set(codes) <= set(CODES[kind]), f"codes {body[end:].hex()}")
        answer = Suback if kind == SUBACK else Unsuback
        return answer(packet_id, codes, properties)
    check(kind in (PUBACK, PUBREC, PUBREL, PUBCOMP), f"packet type {kind}")
    return Ack(kind, packet_id, *_ending(kind, body, 2))


def _read_connack(body: bytes) -> Connack:
    check(len(body) > 2 and body[0] < 2, f"CONNACK {body.hex()}")
    code, properties = _ending(CONNACK, body, 1)
    check(code == 0 or not body[0], "a refusal with a session")
    return Connack(bool(body[0]), code, properties)


def _ending(kind: int, body: bytes, at: int) -> tuple[int, Properties]:
    """A reason code and properties, both of which may be left out."""
    if len(body) == at:
        return 0, {}
    check(body[at] in CODES[kind], f"reason code {body[at]:#x} in packet type {kind}")
    if len(body) == at + 1:
        return body[at], {}
    properties, end = decode(body, at + 1, ALLOWED[kind])
    check(end == len(body), "bytes behind the properties")
    return body[at], properties


def _read_publish(first: int, body: bytes) -> Publish:
    name, qos, packet_id, at = publish_head(first, body)
    topic = text(name)
    check(not set(topic) & set("+#"), "a topic with a wildcard")
    properties, at = decode(body, at, ALLOWED[PUBLISH])
    alias = properties.pop("topic_alias", 0)
    check(bool(topic or alias), "neither a topic nor an alias")
    flags = bool(first & 1), bool(first & 8)
    return Publish(topic, body[at:], qos, *flags, packet_id, properties, alias, bool(topic))
