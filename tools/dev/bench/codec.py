"""MQTT packets as the load generator needs them, apart from the broker's own codec.

Packets are built whole, before a round starts, and read by position. Nothing
here is meant to be complete: a client that knows what it will be sent. `level` is
the version: 4 is MQTT 3.1.1, 5 is MQTT 5.0, which has a section of properties more.
"""

from collections.abc import Iterable, Iterator

CONNACK = 0x20
PUBLISH = 0x30
PUBACK = 0x40
PUBREC = 0x50
PUBREL = 0x62
PUBCOMP = 0x70
SUBSCRIBE = 0x82
SUBACK = 0x90
UNSUBSCRIBE = 0xA2
UNSUBACK = 0xB0

PINGREQ = b"\xc0\x00"
PINGRESP = b"\xd0\x00"
DISCONNECT = b"\xe0\x00"
CONNECTED = b"\x20\x02\x00\x00"  # a CONNACK that accepts, without a session

_CLEAN_SESSION = 0x02


class BadPacket(Exception):
    """A peer sent what is no packet, or not the one that was due."""


def connect(client_id: str, level: int = 4, aliases: int = 0) -> bytes:
    """CONNECT with a clean session and no keep-alive; so many topic aliases are taken."""
    head = _text("MQTT") + bytes((level, _CLEAN_SESSION, 0, 0))
    if aliases:
        head += b"\x03\x22" + aliases.to_bytes(2, "big")
    else:
        head += no_properties(level)
    return _packet(0x10, head + _text(client_id))


def subscribe(packet_id: int, filters: Iterable[str], qos: int = 0, level: int = 4) -> bytes:
    """SUBSCRIBE to all the filters with one QoS."""
    wanted = b"".join(_text(topic_filter) + bytes((qos,)) for topic_filter in filters)
    return _packet(SUBSCRIBE, packet_id.to_bytes(2, "big") + no_properties(level) + wanted)


def suback(packet_id: int, count: int, qos: int = 0, level: int = 4) -> bytes:
    """The SUBACK that grants all of a SUBSCRIBE's filters."""
    codes = bytes((qos,)) * count
    return _packet(SUBACK, packet_id.to_bytes(2, "big") + no_properties(level) + codes)


def no_properties(level: int) -> bytes:
    """An empty section of properties, in the version that has one."""
    return b"\0" if level == 5 else b""


def alias(number: int) -> bytes:
    """The section of properties that says which alias a topic has."""
    return b"\x03\x23" + number.to_bytes(2, "big")


def unsubscribe(packet_id: int, filters: Iterable[str]) -> bytes:
    """UNSUBSCRIBE from all the filters."""
    return _packet(UNSUBSCRIBE, packet_id.to_bytes(2, "big") + b"".join(map(_text, filters)))


def publish(
    topic: str,
    payload: bytes,
    qos: int = 0,
    packet_id: int = 0,
    *,
    retain: bool = False,
    properties: bytes = b"",
) -> bytes:
    """PUBLISH; the packet id is left out at QoS 0."""
    number = packet_id.to_bytes(2, "big") if qos else b""
    return _packet(PUBLISH | qos << 1 | retain, _text(topic) + number + properties + payload)


def acknowledge(kind: int, packet_id: int) -> bytes:
    """A packet that is nothing but a packet id: PUBACK to PUBCOMP, UNSUBACK."""
    return bytes((kind, 2)) + packet_id.to_bytes(2, "big")


class Reader:
    """Cuts what a connection brings into packets."""

    def __init__(self) -> None:
        self.data = b""  # what the positions are in; at the end, the part of a packet

    def packets(self, data: bytes) -> Iterator[tuple[int, int, int]]:
        """(first byte, start of the body, end) of each packet that is whole now."""
        self.data = data = self.data + data
        start, size = 0, len(data)
        while start + 2 <= size:
            length, body = data[start + 1], start + 2
            if length >= 0x80:
                length, body = _long_length(data, start)
            if body + length > size:
                break
            yield data[start], body, body + length
            start = body + length
        self.data = data[start:]


def _long_length(data: bytes, start: int) -> tuple[int, int]:
    """The length that takes more than a byte, and where it ends; past the data if it does."""
    length = shift = 0
    for at in range(start + 1, start + 5):
        if at == len(data):
            return 0, at + 1
        length |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return length, at + 1
        shift += 7
    raise BadPacket("a length of more than four bytes")


def _packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + _remaining_length(len(body)) + body


def _remaining_length(length: int) -> bytes:
    encoded = bytearray()
    while length >= 0x80:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return len(encoded).to_bytes(2, "big") + encoded
