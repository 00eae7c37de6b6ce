"""The properties of MQTT 5.0, by names of our own, to bytes and back.

In a packet they are a dict. `user` contains pairs, and `subscription_id` of a PUBLISH
the identifiers, both as tuples in the order in which they came. The writer writes
whatever it is given; the reader raises `Malformed` at what no server may send.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..wire.codec import Malformed, check, length, string

Value = Any  # int, str, bytes, or a sequence of those that may be repeated
Properties = dict[str, Value]

# Types as chapter 2.2.2.2 has them; of numbers with a fixed size, their bytes.
FLAG, BYTE, TWO, FOUR = "flag", 1, 2, 4
VARINT, TEXT, BINARY, PAIR = "varint", "text", "binary", "pair"

TABLE: dict[int, tuple[str, str | int]] = {
    0x01: ("payload_format", FLAG),
    0x02: ("message_expiry", FOUR),
    0x03: ("content_type", TEXT),
    0x08: ("response_topic", TEXT),
    0x09: ("correlation_data", BINARY),
    0x0B: ("subscription_id", VARINT),
    0x11: ("session_expiry", FOUR),
    0x12: ("assigned_client_id", TEXT),
    0x13: ("server_keep_alive", TWO),
    0x15: ("auth_method", TEXT),
    0x16: ("auth_data", BINARY),
    0x17: ("request_problem_info", FLAG),
    0x18: ("will_delay", FOUR),
    0x19: ("request_response_info", FLAG),
    0x1A: ("response_info", TEXT),
    0x1C: ("server_reference", TEXT),
    0x1F: ("reason_string", TEXT),
    0x21: ("receive_maximum", TWO),
    0x22: ("topic_alias_maximum", TWO),
    0x23: ("topic_alias", TWO),
    0x24: ("maximum_qos", FLAG),
    0x25: ("retain_available", FLAG),
    0x26: ("user", PAIR),
    0x27: ("maximum_packet_size", FOUR),
    0x28: ("wildcard_available", FLAG),
    0x29: ("subscription_id_available", FLAG),
    0x2A: ("shared_available", FLAG),
}
IDS = {name: number for number, (name, _) in TABLE.items()}
MANY = {"user", "subscription_id"}
NEVER_0 = {"receive_maximum", "topic_alias", "maximum_packet_size", "subscription_id"}


def encode(properties: Mapping[str, Value]) -> bytes:
    """The properties in the order of the dict, with their length before them."""
    data = body(properties)
    return length(len(data)) + data


def body(properties: Mapping[str, Value]) -> bytes:
    """The same without the length."""
    return b"".join(bytes([IDS[name]]) + part for name, part in _parts(properties))


def _parts(properties: Mapping[str, Value]) -> Iterable[tuple[str, bytes]]:
    for name, value in properties.items():
        several = name in MANY and not isinstance(value, int)
        for one in value if several else (value,):
            yield name, _encode_one(TABLE[IDS[name]][1], one)


def _encode_one(kind: str | int, value: Value) -> bytes:
    if kind in (TEXT, BINARY):
        return string(value)
    if kind == PAIR:
        return string(value[0]) + string(value[1])
    if kind == VARINT:
        return length(value)
    return int(value).to_bytes(kind if isinstance(kind, int) else 1, "big")


def decode(data: bytes, at: int, allowed: Collection[str]) -> tuple[Properties, int]:
    """The properties that begin there, and where they end."""
    size, at = _varint(data, at)
    end = at + size
    check(end <= len(data), "properties longer than their packet")
    found: Properties = {}
    while at < end:
        name, kind = TABLE.get(data[at], ("", ""))
        check(name in allowed, f"property {data[at]:#x} does not belong there")
        value, at = _decode_one(kind, data[:end], at + 1)
        check(value != 0 or name not in NEVER_0, f"{name} is 0")
        if name in MANY:
            value = (*found.get(name, ()), value)
        else:
            check(name not in found, f"{name} stands there twice")
        found[name] = value
    return found, end


def _decode_one(kind: str | int, data: bytes, at: int) -> tuple[Value, int]:
    if kind == VARINT:
        return _varint(data, at)
    if kind == PAIR:
        name, at = _sized(data, at)
        value, at = _sized(data, at)
        return (text(name), text(value)), at
    if kind in (TEXT, BINARY):
        value, at = _sized(data, at)
        return (text(value) if kind == TEXT else value), at
    size = kind if isinstance(kind, int) else 1
    check(at + size <= len(data), "a property is cut")
    number = int.from_bytes(data[at : at + size], "big")
    check(kind != FLAG or number < 2, f"a flag is {number}")
    return number, at + size


def text(data: bytes) -> str:
    """A string as the standard wants it: UTF-8 without U+0000."""
    try:
        found = data.decode()
    except UnicodeDecodeError:
        raise Malformed(f"no UTF-8: {data!r}") from None
    check("\0" not in found, "a string with U+0000")
    return found


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    check(at + 2 <= len(data) and end <= len(data), "a string is cut")
    return data[at + 2 : end], end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(4):
        check(at + i < len(data), "a variable byte integer is cut")
        value |= (data[at + i] & 127) << 7 * i
        if not data[at + i] & 128:
            check(data[at + i] > 0 or i == 0, "a variable byte integer is not the shortest")
            return value, at + i + 1
    raise Malformed("a variable byte integer of five bytes")
