"""The MQTT codec of tools and tests: encodes packets, and decodes a broker's strictly, also where
the broker is the client, by a bridge.

    publish("t", b"x", 1, 7)                          # 3.1 and 3.1.1
    publish("t", b"x", 1, 7, properties=b"")          # 5.0: properties without their length
    publish("t", b"x", 1, 7, properties=of(level))    # of whichever level

`level` is the protocol level: 3 (MQTT 3.1), 4 (3.1.1) or 5 (5.0). The encoders encode what they
are given, since tests need wrong packets too. The codec is written from the standards and shares
no code with the broker. The simulators and the unit tests run it on MicroPython too.
"""

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = 8, 9, 10, 11, 12, 13, 14
AUTH = 15

PING, PONG = b"\xc0\0", b"\xd0\0"
CONNECTED = b"\x20\2\0\0"  # a CONNACK of level 3 or 4: accepted, without a session

EXPIRY, IDENTIFIER, ALIAS, USER = 0x02, 0x0B, 0x23, 0x26
FLAG, TWO, FOUR, VARINT, TEXT, BINARY, PAIR = 1, 2, 4, 5, 6, 7, 8
# The properties of MQTT 5.0 by identifier: a name of our own, the type, and where each may stand:
# c CONNECT, k CONNACK, w a will, p PUBLISH, a acknowledgements (SUBACK and UNSUBACK too),
# s SUBSCRIBE, u UNSUBSCRIBE, d a server's DISCONNECT, D a client's, x AUTH
PROPERTIES = {
    0x01: ("payload_format", FLAG, "pw"),
    0x02: ("message_expiry", FOUR, "pw"),
    0x03: ("content_type", TEXT, "pw"),
    0x08: ("response_topic", TEXT, "pw"),
    0x09: ("correlation_data", BINARY, "pw"),
    0x0B: ("subscription_id", VARINT, "ps"),
    0x11: ("session_expiry", FOUR, "ckD"),
    0x12: ("assigned_client_id", TEXT, "k"),
    0x13: ("server_keep_alive", TWO, "k"),
    0x15: ("auth_method", TEXT, "ckx"),
    0x16: ("auth_data", BINARY, "ckx"),
    0x17: ("request_problem_info", FLAG, "c"),
    0x18: ("will_delay", FOUR, "w"),
    0x19: ("request_response_info", FLAG, "c"),
    0x1A: ("response_info", TEXT, "k"),
    0x1C: ("server_reference", TEXT, "kd"),
    0x1F: ("reason_string", TEXT, "kadDx"),
    0x21: ("receive_maximum", TWO, "ck"),
    0x22: ("topic_alias_maximum", TWO, "ck"),
    0x23: ("topic_alias", TWO, "p"),
    0x24: ("maximum_qos", FLAG, "k"),
    0x25: ("retain_available", FLAG, "k"),
    0x26: ("user", PAIR, "ckwpasudDx"),
    0x27: ("maximum_packet_size", FOUR, "ck"),
    0x28: ("wildcard_available", FLAG, "k"),
    0x29: ("subscription_id_available", FLAG, "k"),
    0x2A: ("shared_available", FLAG, "k"),
}
_NEVER_0 = 0x0B, 0x21, 0x23, 0x27
_RECEIVED = bytes.fromhex("00 10 80 83 87 90 91 97 99")
_RELEASED = bytes.fromhex("00 92")
# The reason codes that a server may put into a packet of MQTT 5.0
CODES = {
    CONNACK: bytes.fromhex("00 80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f"),
    PUBACK: _RECEIVED,
    PUBREC: _RECEIVED,
    PUBREL: _RELEASED,
    PUBCOMP: _RELEASED,
    SUBACK: bytes.fromhex("00 01 02 80 83 87 8f 91 97 9e a1 a2"),
    UNSUBACK: bytes.fromhex("00 11 80 83 87 8f 91"),
    # 8c stands in the list of all codes (2.4), and not in the one of this packet.
    DISCONNECT: bytes.fromhex(
        "80 81 82 83 87 89 8b 8c 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2"
    ),
    AUTH: bytes.fromhex("00 18"),
}


class Malformed(Exception):
    """The broker sent what the standard forbids."""


def check(good: object, what: str) -> None:
    if not good:
        raise Malformed(what)


# Encoders


def number(value: int) -> bytes:
    """A two byte integer."""
    return value.to_bytes(2, "big")


def number4(value: int) -> bytes:
    """A four byte integer."""
    return value.to_bytes(4, "big")


def string(value: str | bytes) -> bytes:
    """A string or binary data, with its length."""
    data = value if isinstance(value, bytes) else value.encode()
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


def of(level: int, properties: bytes = b"") -> bytes | None:
    """The properties of a packet of this level: none below 5."""
    return properties if level == 5 else None


def section(properties: bytes | None) -> bytes:
    """The properties with their length; nothing without properties."""
    return b"" if properties is None else length(len(properties)) + properties


def connect(
    client_id: str | bytes,
    clean: bool = True,
    will: tuple | None = None,
    keep_alive: int = 0,
    *,
    username: str | bytes | None = None,
    password: bytes | None = None,
    level: int = 4,
    properties: bytes = b"",
    will_properties: bytes = b"",
) -> bytes:
    """will: (topic, payload, QoS, and perhaps retain)"""
    flags = clean << 1 | (password is not None) << 6 | (username is not None) << 7
    tail = string(client_id)
    if will:
        flags |= 4 | will[2] << 3 | (len(will) > 3 and will[3]) << 5
        tail += section(of(level, will_properties)) + string(will[0]) + string(will[1])
    for each in (username, password):
        if each is not None:
            tail += string(each)
    head = string("MQIsdp" if level == 3 else "MQTT") + bytes((level, flags))
    return packet(0x10, head + number(keep_alive) + section(of(level, properties)) + tail)


def publish(
    topic: str | bytes,
    payload: bytes = b"",
    qos: int = 0,
    packet_id: int = 0,
    retain: int = 0,
    dup: int = 0,
    properties: bytes | None = None,
) -> bytes:
    head = string(topic) + (number(packet_id) if qos else b"") + section(properties)
    return packet(0x30 | (dup and 8) | qos << 1 | retain, head + payload)


def ack(
    kind: int, packet_id: int, code: int = -1, properties: bytes | None = None, dup: int = 0
) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP; code and properties are of level 5, and optional, and
    `dup` of level 3, on PUBREL."""
    body = number(packet_id) + (b"" if code < 0 else bytes((code,))) + section(properties)
    return packet(kind << 4 | (2 if kind == PUBREL else 0) | dup << 3, body)


def subscribe(
    packet_id: int,
    *filters: tuple[str | bytes, int],
    properties: bytes | None = None,
    dup: int = 0,
) -> bytes:
    """filters: (filter, options); `dup` is of level 3, here and below."""
    body = b"".join([string(name) + bytes((options,)) for name, options in filters])
    return packet(0x82 | dup << 3, number(packet_id) + section(properties) + body)


def suback(packet_id: int, codes: list[int], properties: bytes | None = None) -> bytes:
    """A broker's answer to SUBSCRIBE; codes: one reason code for each filter."""
    return packet(0x90, number(packet_id) + section(properties) + bytes(codes))


def unsubscribe(
    packet_id: int, *filters: str | bytes, properties: bytes | None = None, dup: int = 0
) -> bytes:
    body = b"".join([string(name) for name in filters])
    return packet(0xA2 | dup << 3, number(packet_id) + section(properties) + body)


def disconnect(code: int = -1, properties: bytes = b"") -> bytes:
    if code < 0:
        return b"\xe0\0"
    return packet(0xE0, bytes((code,)) + (section(properties) if properties else b""))


def matches(topic_filter: str | bytes, topic: str | bytes) -> bool:
    """Does the topic match the filter, by chapter 4.7 of both standards?"""
    wanted, levels = (string(each)[2:].split(b"/") for each in (topic_filter, topic))
    if levels[0][:1] == b"$" and wanted[0] in (b"+", b"#"):
        return False
    for at, level in enumerate(wanted):
        if level == b"#":
            return True
        if at >= len(levels) or level not in (b"+", levels[at]):
            return False
    return len(wanted) == len(levels)


# Packets in a stream


def varint(data: bytes | bytearray, at: int) -> tuple[int, int] | None:
    """A variable byte integer -> (value, offset of its end); None: it is incomplete."""
    value = shift = 0
    while at < len(data):
        check(shift < 28, "a length of more than four bytes")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            check(byte or not shift, "a length is not the shortest")
            return value, at
        shift += 7
    return None


def extent(data: bytes | bytearray, start: int = 0) -> tuple[int, int] | None:
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


def take(buf: bytes | bytearray, level: int, of_client: bool = False) -> Packet | None:
    """Decode the first packet of these bytes; None: it is incomplete. Malformed: it is invalid.

    of_client: a client has sent it, as a bridge is one."""
    found = extent(buf)
    if not found:
        return None
    start, end = found
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


def text(data: bytes) -> str:
    """A string as the standards want it: UTF-8 without U+0000."""
    try:
        found = data.decode()
    except UnicodeError:
        raise Malformed(f"no UTF-8: {data!r}") from None
    check("\0" not in found, "a string with U+0000")
    return found


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
    elif kind in (AUTH, DISCONNECT):
        check(level == 5 and body, f"packet type {kind} of {len(body)} bytes")
        _read_end(packet, body, 0, "x" if kind == AUTH else "d")
    elif kind in (SUBACK, UNSUBACK) and (level == 5 or kind == SUBACK):
        packet.packet_id = two(body, 0)
        at = 2
        if level == 5:
            packet.props, at, _ = properties(body, 2, "a")
        packet.codes = body[at:]
        check(len(packet.codes) > 0, "SUBACK without a code")
        for code in packet.codes:
            good = code in CODES[kind] if level == 5 else code in (0, 1, 2, 0x80)
            check(good, f"code {code:x} in packet type {kind}")
    else:
        check(kind in (PUBACK, PUBREC, PUBREL, PUBCOMP, UNSUBACK), f"packet type {kind}")
        packet.packet_id = two(body, 0)
        if level == 5:
            _read_end(packet, body, 2, "a")
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
        where = "s" if kind == SUBSCRIBE else "u"
        packet.props, at, _ = properties(body, 2, where) if level == 5 else ({}, 2, b"")
        check(packet.packet_id and at < len(body), "SUBSCRIBE without an id or a filter")
        while at < len(body):
            at = _value(body, at, TEXT)[1] + (kind == SUBSCRIBE)
        check(at == len(body), "a filter without options")
    elif kind in (PINGREQ, DISCONNECT) and not (level == 5 and body):
        check(first & 15 == 0 and not body, f"packet {first:x} with a body")
    elif kind == DISCONNECT:
        _read_end(packet, body, 0, "D")
    else:
        check(PUBLISH <= kind <= PUBCOMP or kind == AUTH, f"packet type {kind} of a client")
        _read(packet, first & ~8 if level == 3 and kind == PUBREL else first, body, level)


def _read_connect(packet: Packet, body: bytes) -> None:
    name, at = _value(body, 0, TEXT)
    check(at + 2 <= len(body), "CONNECT ends within its header")
    packet.level, flags = body[at] & 127, body[at + 1]  # 128: a bridge, as mosquitto says it
    check(name == (b"MQIsdp" if packet.level == 3 else b"MQTT"), f"protocol {name}")
    two(body, at + 2)
    at += 4
    is_5 = packet.level == 5
    if is_5:
        packet.props, at, _ = properties(body, at, "c")
    _, at = _value(body, at, TEXT)
    if flags & 4:
        if is_5:
            _, at, _ = properties(body, at, "w")
        topic, at = _value(body, at, TEXT)
        data, at = _value(body, at, BINARY)
        packet.will = topic, data
    for bit in (0x80, 0x40):
        if flags & bit:
            _, at = _value(body, at, BINARY)
    check(at == len(body) and not flags & 1, "CONNECT does not end with its fields")


def _read_connack(packet: Packet, body: bytes, level: int) -> None:
    check(len(body) >= 2 and body[0] < 2, "CONNACK")
    packet.present = body[0]
    if level == 5:
        check(len(body) > 2, "CONNACK without properties")
        _read_end(packet, body, 1, "k")
    else:
        check(len(body) == 2 and body[1] < 6, "CONNACK")
        packet.code = body[1]
    check(not packet.code or not packet.present, "a refusal with a session")


def _read_end(packet: Packet, body: bytes, at: int, where: str) -> None:
    """A reason code and properties, both of which may be left out."""
    if len(body) > at:
        packet.code = body[at]
        # A client's may be any, and so may what a hook answers to CONNECT
        good = where in "Dk" or packet.code in CODES[packet.kind]
        check(good, f"reason code {packet.code:x} in packet type {packet.kind}")
    if len(body) > at + 1:
        packet.props, end, _ = properties(body, at + 1, where)
        check(end == len(body), "bytes after the properties")


def _read_publish(packet: Packet, first: int, body: bytes, level: int) -> None:
    packet.qos = first >> 1 & 3
    packet.retain = first & 1
    packet.dup = first >> 3 & 1
    check(packet.qos < 3 and (packet.qos or not packet.dup), f"PUBLISH {first:x}")
    packet.topic, at = _value(body, 0, TEXT)
    if packet.qos:
        packet.packet_id = two(body, at)
        check(packet.packet_id, "packet id 0")
        at += 2
    if level == 5:
        packet.props, at, packet.passed = properties(body, at, "p")
        packet.identifiers = packet.props.get(IDENTIFIER, ())
        check(packet.topic or ALIAS in packet.props, "neither topic nor alias")
    else:
        check(packet.topic, "no topic")
    check(b"+" not in packet.topic and b"#" not in packet.topic, "a topic with a wildcard")
    packet.payload = body[at:]


def properties(data: bytes, at: int, where: str) -> tuple[dict[int, object], int, bytes]:
    """Decode the properties at `at`; -> (values by identifier, offset of their end, raw bytes of
    those that a broker forwards). Of those that may be repeated the value is a list."""
    size, at = _value(data, at, VARINT)
    end = at + size
    check(end <= len(data), "properties longer than their packet")
    found = {}
    passed = b""
    while at < end:
        start = at
        name = data[at]
        check(name in PROPERTIES, f"property {name:x} does not exist")
        _, kind, places = PROPERTIES[name]
        check(where in places, f"property {name:x} does not belong there")
        value, at = _value(data, at + 1, kind)
        check(value or name not in _NEVER_0, f"property {name:x} is 0")
        check(kind != FLAG or value < 2, f"property {name:x} is {value}")
        if name in (IDENTIFIER, USER):
            found.setdefault(name, []).append(value)
        else:
            check(name not in found, f"property {name:x} appears twice")
            found[name] = value
        if name not in (EXPIRY, ALIAS, IDENTIFIER):
            passed += data[start:at]
    check(at == end, "a property longer than its section")
    return found, end, passed


def _value(data, at, kind):
    if kind == VARINT:
        found = varint(data, at)
        check(found, "the packet ends within a number")
        return found
    if kind == PAIR:
        name, at = _value(data, at, TEXT)
        value, at = _value(data, at, TEXT)
        return (name, value), at
    if kind in (TEXT, BINARY):
        end = at + 2 + two(data, at)
        check(end <= len(data), "a string longer than its packet")
        value = data[at + 2 : end]
        if kind == TEXT:
            text(value)
        return value, end
    check(at + kind <= len(data), "the packet ends within a property")
    value = 0
    for byte in data[at : at + kind]:
        value = value << 8 | byte
    return value, at + kind
