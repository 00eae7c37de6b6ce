# packets.py - MQTT packets as bytes, for all tests: 3.1, 3.1.1, and 5.0 where `properties` are
# given, the bytes behind their length. It runs on both runtimes.
#
# Written from the standards, with nothing of the broker. The writers write whatever they are told,
# since tests need wrong packets too. The strict readers are in broker/wire and broker/wire5.

PINGREQ = b"\xc0\0"
PINGRESP = b"\xd0\0"
DISCONNECT = b"\xe0\0"
PUBACK, PUBREC, PUBREL, PUBCOMP = 0x40, 0x50, 0x62, 0x70
NAMES = {3: "MQIsdp", 4: "MQTT", 5: "MQTT"}


def text(value: "str | bytes") -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return number(len(data)) + data


def number(value: int) -> bytes:
    return value.to_bytes(2, "big")


def length(value: int) -> bytes:
    """A remaining length, seven bits a byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def section(properties: "bytes | None") -> bytes:
    return b"" if properties is None else length(len(properties)) + properties


def packet(first: int, body: bytes = b"") -> bytes:
    return bytes((first,)) + length(len(body)) + body


def connect(
    client_id: "str | bytes",
    clean: bool = True,
    will: "tuple | None" = None,
    keep_alive: int = 0,
    *,
    username: "str | bytes | None" = None,
    password: "bytes | None" = None,
    level: int = 4,
    properties: "bytes | None" = None,
    will_properties: "bytes | None" = None,
) -> bytes:
    """will: (topic, payload, QoS, and perhaps retain)"""
    flags = clean << 1 | (password is not None) << 6 | (username is not None) << 7
    tail = text(client_id)
    if will:
        flags |= 4 | will[2] << 3 | (len(will) > 3 and will[3]) << 5
        tail += section(will_properties) + text(will[0]) + text(will[1])
    for each in (username, password):
        if each is not None:
            tail += text(each)
    head = text(NAMES[level]) + bytes((level, flags)) + number(keep_alive)
    return packet(0x10, head + section(properties) + tail)


def publish(
    topic: "str | bytes",
    payload: bytes = b"",
    qos: int = 0,
    packet_id: int = 0,
    retain: bool = False,
    dup: bool = False,
    properties: "bytes | None" = None,
) -> bytes:
    head = text(topic) + (number(packet_id) if qos else b"") + section(properties)
    return packet(0x30 | dup << 3 | qos << 1 | retain, head + payload)


def subscribe(
    packet_id: int, topic_filter: "str | bytes", options: int, properties: "bytes | None" = None
) -> bytes:
    """options: the QoS, with 5.0 and what is `|`ed to it"""
    body = number(packet_id) + section(properties)
    return packet(0x82, body + text(topic_filter) + bytes((options,)))


def ack(first: int, packet_id: int) -> bytes:
    return packet(first, number(packet_id))


def split(data):
    """The whole packets that data begins with, and how many bytes they are."""
    found = []
    at = 0
    while True:
        size = _size(data, at)
        if not size or at + size > len(data):
            return found, at
        found.append(bytes(data[at : at + size]))
        at += size


def _size(data, at):
    length = 0
    for i in range(4):
        if at + 1 + i >= len(data):
            return 0
        byte = data[at + 1 + i]
        length |= (byte & 127) << 7 * i
        if byte < 128:
            return 2 + i + length
    raise ValueError("no remaining length")


def read_publish(data):
    """(topic, payload, QoS, packet id) of a PUBLISH."""
    at = 2
    while data[at - 1] > 127:
        at += 1
    end = at + 2 + (data[at] << 8 | data[at + 1])
    topic = bytes(data[at + 2 : end])
    qos = data[0] >> 1 & 3
    if not qos:
        return topic, bytes(data[end:]), 0, 0
    return topic, bytes(data[end + 2 :]), qos, data[end] << 8 | data[end + 1]
