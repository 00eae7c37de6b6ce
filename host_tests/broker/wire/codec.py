"""MQTT 3.1 and 3.1.1 as bytes, written from the standard and sharing nothing with the broker.

The writers put down whatever they are told, since tests need wrong packets too.
The reader is strict: what a server may not send raises `Malformed`.
"""

from dataclasses import dataclass, field

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 2, 3, 4, 5, 6, 7
SUBACK, UNSUBACK, PINGRESP = 9, 11, 13

PINGREQ = b"\xc0\x00"
DISCONNECT = b"\xe0\x00"
NAMES = {3: "MQIsdp", 4: "MQTT"}


class Malformed(AssertionError):
    """The server sent something that is no MQTT."""


@dataclass(frozen=True)
class Will:
    """What the broker publishes when the connection ends without DISCONNECT."""

    topic: str | bytes
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False


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
    # Chosen by the server, hence no part of what a test compares.
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


def string(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return len(data).to_bytes(2, "big") + data


def number(value: int) -> bytes:
    return value.to_bytes(2, "big")


def length(value: int) -> bytes:
    """A remaining length, seven bits to a byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def packet(first: int, body: bytes = b"") -> bytes:
    return bytes([first]) + length(len(body)) + body


def connect(
    client_id: str | bytes,
    *,
    clean: bool = True,
    keep_alive: int = 0,
    will: Will | None = None,
    username: str | bytes | None = None,
    password: bytes | None = None,
    level: int = 4,
) -> bytes:
    flags = clean << 1 | (username is not None) << 7 | (password is not None) << 6
    payload = string(client_id)
    if will:
        flags |= 4 | will.qos << 3 | will.retain << 5
        payload += string(will.topic) + string(will.payload)
    for text in (username, password):
        if text is not None:
            payload += string(text)
    head = string(NAMES[level]) + bytes([level, flags])
    return packet(0x10, head + number(keep_alive) + payload)


def publish(
    topic: str | bytes,
    payload: bytes = b"",
    qos: int = 0,
    packet_id: int = 0,
    *,
    retain: bool = False,
    dup: bool = False,
) -> bytes:
    first = 0x30 | dup << 3 | qos << 1 | retain
    return packet(first, string(topic) + (number(packet_id) if qos else b"") + payload)


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
    size, start = 0, 0
    for start in range(1, 6):
        if start >= len(buffer):
            return None
        size |= (buffer[start] & 127) << 7 * (start - 1)
        if not buffer[start] & 128:
            break
    _check(start < 5, "remaining length longer than four bytes")
    end = start + 1 + size
    if len(buffer) < end:
        return None
    first, body = buffer[0], bytes(buffer[start + 1 : end])
    del buffer[:end]
    return _read_publish(first, body) if first >> 4 == PUBLISH else _read_answer(first, body)


def _read_publish(first: int, body: bytes) -> Publish:
    qos = first >> 1 & 3
    _check(qos < 3, "QoS 3")
    _check(qos > 0 or not first & 8, "DUP with QoS 0")
    end = 2 + int.from_bytes(body[:2], "big")
    payload = end + (2 if qos else 0)
    _check(len(body) >= payload, "PUBLISH ends in its header")
    packet_id = int.from_bytes(body[end:payload], "big")
    _check(bool(packet_id) == bool(qos), "packet id 0")
    topic = body[2:end].decode()
    return Publish(topic, body[payload:], qos, bool(first & 1), bool(first & 8), packet_id)


def _read_answer(first: int, body: bytes) -> Packet:
    kind, flags, packet_id = first >> 4, first & 15, int.from_bytes(body[:2], "big")
    _check(flags == (2 if kind == PUBREL else 0), f"flags of packet {first:#x}")
    if kind == CONNACK:
        _check(len(body) == 2 and body[0] < 2, f"CONNACK {body.hex()}")
        return Connack(bool(body[0]), body[1])
    if kind == PINGRESP:
        _check(not body, "PINGRESP with a body")
        return Pingresp()
    _check(packet_id > 0, "packet id 0")
    if kind == SUBACK:
        _check(set(body[2:]) <= {0, 1, 2, 0x80}, f"SUBACK {body.hex()}")
        return Suback(packet_id, tuple(body[2:]))
    _check(kind in (PUBACK, PUBREC, PUBREL, PUBCOMP, UNSUBACK), f"packet type {kind}")
    _check(len(body) == 2, f"packet {first:#x} of {len(body)} bytes")
    return Ack(kind, packet_id)


def _check(good: bool, what: str) -> None:
    if not good:
        raise Malformed(what)
