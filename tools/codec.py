"""The MQTT codec of the tools: encodes a client's packets, and decodes a broker's strictly, also
where the broker is the client, by a bridge.

`level` is the protocol level: 3 (MQTT 3.1), 4 (3.1.1) or 5 (5.0). `props` are encoded properties
without their length; only level 5 has them. The codec is written from the standards and shares no
code with the broker. The simulators run it on MicroPython too.
"""

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = 8, 9, 10, 11, 12, 13, 14
AUTH = 15

PING, PONG = b"\xc0\0", b"\xd0\0"
CONNECTED = b"\x20\2\0\0"  # a CONNACK of level 3 or 4: accepted, without a session

EXPIRY, IDENTIFIER, ALIAS = 0x02, 0x0B, 0x23  # properties
_ONE, _TWO, _FOUR, _VARINT, _TEXT, _PAIR = 1, 2, 4, 5, 6, 7
_TYPES = {
    0x01: _ONE, 0x02: _FOUR, 0x03: _TEXT, 0x08: _TEXT, 0x09: _TEXT, 0x0B: _VARINT, 0x11: _FOUR,
    0x12: _TEXT, 0x13: _TWO, 0x15: _TEXT, 0x16: _TEXT, 0x17: _ONE, 0x18: _FOUR, 0x19: _ONE,
    0x1A: _TEXT, 0x1C: _TEXT, 0x1F: _TEXT, 0x21: _TWO, 0x22: _TWO, 0x23: _TWO, 0x24: _ONE,
    0x25: _ONE, 0x26: _PAIR, 0x27: _FOUR, 0x28: _ONE, 0x29: _ONE, 0x2A: _ONE,
}  # fmt: skip
_IN_CONNECT = (0x11, 0x15, 0x16, 0x17, 0x19, 0x21, 0x22, 0x26, 0x27)
_IN_CONNACK = (
    0x11,
    0x12,
    0x13,
    0x15,
    0x16,
    0x1A,
    0x1C,
    0x1F,
    0x21,
    0x22,
    0x24,
    0x25,
    0x26,
    0x27,
    0x2A,
)
_IN_PUBLISH = (0x01, 0x02, 0x03, 0x08, 0x09, 0x0B, 0x23, 0x26)
_IN_WILL = (0x01, 0x02, 0x03, 0x08, 0x09, 0x18, 0x26)
_IN_AUTH = (0x15, 0x16, 0x1F, 0x26)
_IN_OTHERS = (0x1C, 0x1F, 0x26)


class Malformed(Exception):
    """The broker sent what the standard forbids."""


def check(good: object, what: str) -> None:
    if not good:
        raise Malformed(what)


# Packets of a client


def number(value: int) -> bytes:
    """A two byte integer."""
    return value.to_bytes(2, "big")


def number4(value: int) -> bytes:
    """A four byte integer."""
    return value.to_bytes(4, "big")


def string(data: bytes) -> bytes:
    """A string or binary data, with its length."""
    return number(len(data)) + data


def length(value: int) -> bytes:
    """A variable byte integer."""
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))


def packet(first: int, body: bytes = b"") -> bytes:
    """Fixed header and body; `first`: type and flags."""
    size = len(body)
    return (bytes((first, size)) if size < 128 else bytes((first,)) + length(size)) + body


def section(level: int, props: bytes) -> bytes:
    """The properties with their length; empty below level 5."""
    return length(len(props)) + props if level == 5 else b""


def connect(
    level: int,
    client_id: bytes,
    clean: bool = True,
    keep_alive: int = 0,
    props: bytes = b"",
    will: tuple[bytes, bytes, int, bool, bytes] | None = None,
    user: bytes | None = None,
    password: bytes | None = None,
) -> bytes:
    """will: (topic, payload, QoS, retain, props)"""
    flags = (2 if clean else 0) | (0 if user is None else 0x80)
    flags |= 0 if password is None else 0x40
    body = string(client_id)
    if will:
        topic, data, qos, retain, more = will
        flags |= 4 | qos << 3 | (32 if retain else 0)
        body += section(level, more) + string(topic) + string(data)
    if user is not None:
        body += string(user)
    if password is not None:
        body += string(password)
    head = string(b"MQIsdp" if level == 3 else b"MQTT") + bytes((level, flags))
    return packet(0x10, head + number(keep_alive) + section(level, props) + body)


def publish(
    level: int,
    topic: bytes,
    data: bytes,
    qos: int = 0,
    packet_id: int = 0,
    retain: int = 0,
    dup: int = 0,
    props: bytes = b"",
) -> bytes:
    first = 0x30 | (8 if dup else 0) | qos << 1 | (1 if retain else 0)
    head = string(topic) + (number(packet_id) if qos else b"")
    return packet(first, head + section(level, props) + data)


def ack(kind: int, packet_id: int, code: int = -1, props: bytes | None = None) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP; code and props are of level 5, and optional."""
    body = number(packet_id)
    if code >= 0:
        body += bytes((code,))
    if props is not None:
        body += section(5, props)
    return packet(kind << 4 | (2 if kind == PUBREL else 0), body)


def subscribe(
    level: int, packet_id: int, filters: list[tuple[bytes, int]], props: bytes = b""
) -> bytes:
    """filters: (filter, options)"""
    body = b"".join([string(text) + bytes((options,)) for text, options in filters])
    return packet(0x82, number(packet_id) + section(level, props) + body)


def suback(level: int, packet_id: int, codes: list[int]) -> bytes:
    """A broker's answer to SUBSCRIBE; codes: one reason code for each filter."""
    return packet(0x90, number(packet_id) + section(level, b"") + bytes(codes))


def unsubscribe(level: int, packet_id: int, filters: list[bytes]) -> bytes:
    body = b"".join([string(text) for text in filters])
    return packet(0xA2, number(packet_id) + section(level, b"") + body)


def disconnect(code: int = -1, props: bytes = b"") -> bytes:
    if code < 0:
        return b"\xe0\0"
    return packet(0xE0, bytes((code,)) + (section(5, props) if props else b""))


# Packets in a stream


def varint(data: bytes, at: int) -> tuple[int, int] | None:
    """A variable byte integer -> (value, offset of its end); None: it is incomplete."""
    value = shift = 0
    while at < len(data):
        check(shift < 28, "a length of more than four bytes")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return None


def extent(data: bytes, start: int = 0) -> tuple[int, int] | None:
    """The packet at `start` -> (offset of its body, offset of its end); None: it is incomplete."""
    found = varint(data, start + 1)
    if not found or sum(found) > len(data):
        return None
    return found[1], sum(found)


class Reader:
    """Splits the bytes of a connection into packets."""

    def __init__(self) -> None:
        self.rest = b""  # an incomplete packet

    def packets(self, data: bytes) -> list[tuple[int, bytes]]:
        """(first byte, body) of each packet that is complete with these bytes."""
        data = self.rest + data
        start, size = 0, len(data)
        found: list[tuple[int, bytes]] = []
        while start + 2 <= size:
            body = start + 2
            end = body + data[start + 1]
            if data[start + 1] > 127:
                body, end = extent(data, start) or (0, size + 1)
            if end > size:
                break
            found.append((data[start], data[body:end]))
            start = end
        self.rest = data[start:]
        return found


# Packets of a broker


class Packet:
    """A decoded packet: kind (its type), size in bytes, and the fields that this type has."""

    level = 0
    will: tuple[bytes, bytes] | None = None  # (topic, payload)
    qos = retain = dup = packet_id = code = present = 0
    topic = payload = passed = codes = b""
    identifiers: list[int] | tuple[()] = ()
    props: dict[int, object] | None = None
    owed: object = None  # used by the simulator's model

    def __init__(self, kind: int, size: int) -> None:
        self.kind = kind
        self.size = size


def take(buf: bytes, level: int, of_client: bool = False) -> Packet | None:
    """Decode the first packet of these bytes; None: it is incomplete. Malformed: it is invalid.

    of_client: a client has sent it, as a bridge is one."""
    found = extent(buf)
    if not found:
        return None
    start, end = found
    check(start == 2 or buf[start - 1], "remaining length is not the shortest")
    packet = decode(buf[0], bytes(buf[start:end]), level, of_client)
    packet.size = end
    return packet


def decode(first: int, body: bytes, level: int, of_client: bool = False) -> Packet:
    """The packet with this first byte and body."""
    packet = Packet(first >> 4, 0)
    (_read_of_client if of_client else _read)(packet, first, body, level)
    return packet


def two(data: bytes, at: int) -> int:
    check(at + 2 <= len(data), "the packet ends within a number")
    return data[at] << 8 | data[at + 1]


def _read(packet: Packet, first: int, body: bytes, level: int) -> None:
    kind = packet.kind
    if kind == PUBLISH:
        _read_publish(packet, first, body, level)
        return
    check(first & 15 == (2 if kind == PUBREL else 0), f"flags of packet {first:x}")
    if kind == PINGRESP:
        check(not body, "PINGRESP with a body")
    elif kind == CONNACK:
        _read_connack(packet, body, level)
    elif kind == AUTH:
        check(level == 5, "AUTH before version 5")
        _read_end(packet, body, 0, _IN_AUTH)
    elif kind == DISCONNECT:
        check(level == 5 and len(body) > 0, "DISCONNECT from a server of version 3")
        _read_end(packet, body, 0, _IN_OTHERS)
        check(packet.code >= 0x80, f"DISCONNECT {packet.code:x}")
    elif kind in (SUBACK, UNSUBACK) and (level == 5 or kind == SUBACK):
        packet.packet_id = two(body, 0)
        at = 2
        if level == 5:
            packet.props, at, _ = properties(body, 2, _IN_OTHERS)
        packet.codes = body[at:]
        check(len(packet.codes) > 0, "SUBACK without a code")
    else:
        check(kind in (PUBACK, PUBREC, PUBREL, PUBCOMP, UNSUBACK), f"packet type {kind}")
        packet.packet_id = two(body, 0)
        if level == 5:
            _read_end(packet, body, 2, _IN_OTHERS)
        else:
            check(len(body) == 2, f"an acknowledgement of {len(body)} bytes")
    check(kind in (CONNACK, PINGRESP, DISCONNECT, AUTH) or packet.packet_id, "packet id 0")


def _read_of_client(packet: Packet, first: int, body: bytes, level: int) -> None:
    kind = packet.kind
    if kind == CONNECT:
        check(first == 0x10, f"CONNECT {first:x}")
        _read_connect(packet, body)
    elif kind in (SUBSCRIBE, UNSUBSCRIBE):
        check(first & (7 if level == 3 else 15) == 2, f"flags of packet {first:x}")
        packet.packet_id = two(body, 0)
        packet.props, at, _ = properties(body, 2, (0x0B, 0x26)) if level == 5 else ({}, 2, b"")
        check(packet.packet_id and at < len(body), "SUBSCRIBE without an id or a filter")
        while at < len(body):
            at = _value(body, at, _TEXT)[1] + (kind == SUBSCRIBE)
        check(at == len(body), "a filter without options")
    elif kind in (PINGREQ, DISCONNECT) and not (level == 5 and body):
        check(first & 15 == 0 and not body, f"packet {first:x} with a body")
    elif kind == DISCONNECT:
        _read_end(packet, body, 0, (0x11, 0x1C, 0x1F, 0x26))
    else:
        check(PUBLISH <= kind <= PUBCOMP or kind == AUTH, f"packet type {kind} of a client")
        _read(packet, first & ~8 if level == 3 and kind == PUBREL else first, body, level)


def _read_connect(packet: Packet, body: bytes) -> None:
    name, at = _value(body, 0, _TEXT)
    check(at + 2 <= len(body), "CONNECT ends within its header")
    packet.level, flags = body[at] & 127, body[at + 1]  # 128: a bridge, as mosquitto says it
    check(name == (b"MQIsdp" if packet.level == 3 else b"MQTT"), f"protocol {name}")
    two(body, at + 2)
    at += 4
    is_5 = packet.level == 5
    if is_5:
        packet.props, at, _ = properties(body, at, _IN_CONNECT)
    _, at = _value(body, at, _TEXT)
    if flags & 4:
        if is_5:
            _, at, _ = properties(body, at, _IN_WILL)
        topic, at = _value(body, at, _TEXT)
        data, at = _value(body, at, _TEXT)
        packet.will = topic, data
    for bit in (0x80, 0x40):
        if flags & bit:
            _, at = _value(body, at, _TEXT)
    check(at == len(body) and not flags & 1, "CONNECT does not end with its fields")


def _read_connack(packet: Packet, body: bytes, level: int) -> None:
    check(len(body) >= 2 and body[0] < 2, "CONNACK")
    packet.present = body[0]
    if level == 5:
        check(len(body) > 2, "CONNACK without properties")
        _read_end(packet, body, 1, _IN_CONNACK)
    else:
        check(len(body) == 2 and body[1] < 6, "CONNACK")
        packet.code = body[1]
    check(not packet.code or not packet.present, "a refusal with a session")


def _read_end(packet: Packet, body: bytes, at: int, allowed: tuple[int, ...]) -> None:
    if len(body) > at:
        packet.code = body[at]
    if len(body) > at + 1:
        packet.props, end, _ = properties(body, at + 1, allowed)
        check(end == len(body), "bytes after the properties")


def _read_publish(packet: Packet, first: int, body: bytes, level: int) -> None:
    packet.qos = first >> 1 & 3
    packet.retain = first & 1
    packet.dup = first >> 3 & 1
    check(packet.qos < 3 and (packet.qos or not packet.dup), f"PUBLISH {first:x}")
    at = 2 + two(body, 0)
    packet.topic = body[2:at]
    if packet.qos:
        packet.packet_id = two(body, at)
        check(packet.packet_id, "packet id 0")
        at += 2
    check(at <= len(body), "PUBLISH ends within its header")
    if level == 5:
        packet.props, at, packet.passed = properties(body, at, _IN_PUBLISH)
        packet.identifiers = packet.props.get(IDENTIFIER, ())
        check(packet.topic or ALIAS in packet.props, "neither topic nor alias")
    else:
        check(packet.topic, "no topic")
    check(b"+" not in packet.topic and b"#" not in packet.topic, "a topic with a wildcard")
    packet.payload = body[at:]


def properties(
    data: bytes, at: int, allowed: tuple[int, ...]
) -> tuple[dict[int, object], int, bytes]:
    """Decode the properties at `at`; -> (values by identifier, offset of their end, raw bytes of
    those that a broker forwards)."""
    size, at = _value(data, at, _VARINT)
    end = at + size
    check(end <= len(data), "properties longer than their packet")
    found = {}
    passed = b""
    while at < end:
        start = at
        name = data[at]
        check(name in allowed, f"property {name:x} does not belong there")
        value, at = _value(data, at + 1, _TYPES[name])
        if name == IDENTIFIER:
            found.setdefault(name, []).append(value)
            check(value, "identifier 0")
        elif name == 0x26:
            found[name] = value
        else:
            check(name not in found, f"property {name:x} appears twice")
            found[name] = value
        if name not in (EXPIRY, ALIAS, IDENTIFIER):
            passed += data[start:at]
    check(at == end, "a property longer than its section")
    return found, end, passed


def _value(data, at, kind):
    if kind == _VARINT:
        found = varint(data, at)
        check(found, "the packet ends within a number")
        return found
    if kind == _PAIR:
        _, at = _value(data, at, _TEXT)
        return _value(data, at, _TEXT)
    if kind == _TEXT:
        end = at + 2 + two(data, at)
        check(end <= len(data), "a string longer than its packet")
        return data[at + 2 : end], end
    check(at + kind <= len(data), "the packet ends within a property")
    value = 0
    for byte in data[at : at + kind]:
        value = value << 8 | byte
    return value, at + kind
