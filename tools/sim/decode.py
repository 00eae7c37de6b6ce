# decode.py - what the broker sends, of all three versions, read strictly: what a server may
# not send is Malformed. Written from the standards and sharing nothing with the broker.
CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 2, 3, 4, 5, 6, 7
SUBACK, UNSUBACK, PINGRESP, DISCONNECT = 9, 11, 13, 14

_ONE, _TWO, _FOUR, _VARINT, _TEXT, _PAIR = 1, 2, 4, 5, 6, 7
_TYPES = {
    0x01: _ONE, 0x02: _FOUR, 0x03: _TEXT, 0x08: _TEXT, 0x09: _TEXT, 0x0B: _VARINT, 0x11: _FOUR,
    0x12: _TEXT, 0x13: _TWO, 0x1A: _TEXT, 0x1C: _TEXT, 0x1F: _TEXT, 0x21: _TWO, 0x22: _TWO,
    0x23: _TWO, 0x24: _ONE, 0x25: _ONE, 0x26: _PAIR, 0x27: _FOUR, 0x28: _ONE, 0x29: _ONE,
    0x2A: _ONE,
}  # fmt: skip
_IN_CONNACK = (0x11, 0x12, 0x13, 0x1A, 0x1C, 0x1F, 0x21, 0x22, 0x24, 0x25, 0x26, 0x27, 0x2A)
_IN_PUBLISH = (0x01, 0x02, 0x03, 0x08, 0x09, 0x0B, 0x23, 0x26)
_IN_OTHERS = (0x1C, 0x1F, 0x26)
EXPIRY, IDENTIFIER, ALIAS = 0x02, 0x0B, 0x23


class Malformed(Exception):
    pass


class Packet:
    """kind, and of the others what that kind has."""

    qos = retain = dup = packet_id = code = present = 0
    topic = payload = passed = b""
    codes = ()
    identifiers = ()
    props = None
    owed = None  # of a PUBLISH: what the model says of it

    def __init__(self, kind, size):
        self.kind = kind
        self.size = size


def check(good, what):
    if not good:
        raise Malformed(what)


def two(data, at):
    check(at + 2 <= len(data), "a packet that ends in a number")
    return data[at] << 8 | data[at + 1]


def take(buf, level):
    """The first packet of these bytes, or None while it is not whole."""
    size = shift = 0
    at = 1
    while True:
        if at >= len(buf):
            return None
        check(at < 5, "remaining length longer than four bytes")
        size |= (buf[at] & 127) << shift
        shift += 7
        at += 1
        if not buf[at - 1] & 128:
            break
    check(at == 2 or buf[at - 1], "remaining length is not the shortest")
    if at + size > len(buf):
        return None
    packet = Packet(buf[0] >> 4, at + size)
    _read(packet, buf[0], bytes(buf[at : at + size]), level)
    return packet


def _read(packet, first, body, level):
    kind = packet.kind
    if kind == PUBLISH:
        _read_publish(packet, first, body, level)
        return
    check(first & 15 == (2 if kind == PUBREL else 0), f"flags of packet {first:x}")
    if kind == PINGRESP:
        check(not body, "PINGRESP with a body")
    elif kind == CONNACK:
        _read_connack(packet, body, level)
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
    check(kind in (CONNACK, PINGRESP, DISCONNECT) or packet.packet_id, "packet id 0")


def _read_connack(packet, body, level):
    check(len(body) >= 2 and body[0] < 2, "CONNACK")
    packet.present = body[0]
    if level == 5:
        check(len(body) > 2, "CONNACK without properties")
        _read_end(packet, body, 1, _IN_CONNACK)
    else:
        check(len(body) == 2 and body[1] < 6, "CONNACK")
        packet.code = body[1]
    check(not packet.code or not packet.present, "a refusal with a session")


def _read_end(packet, body, at, allowed):
    if len(body) > at:
        packet.code = body[at]
    if len(body) > at + 1:
        packet.props, end, _ = properties(body, at + 1, allowed)
        check(end == len(body), "bytes behind the properties")


def _read_publish(packet, first, body, level):
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
    check(at <= len(body), "PUBLISH ends in its header")
    if level == 5:
        packet.props, at, packet.passed = properties(body, at, _IN_PUBLISH)
        packet.identifiers = packet.props.get(IDENTIFIER, ())
        check(packet.topic or ALIAS in packet.props, "neither topic nor alias")
    else:
        check(packet.topic, "no topic")
    check(b"+" not in packet.topic and b"#" not in packet.topic, "a topic with a wildcard")
    packet.payload = body[at:]


def properties(data, at, allowed):
    """-> those that there are, where they end, and as they came those that are passed on."""
    size, at = _varint(data, at)
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
            check(name not in found, f"property {name:x} stands there twice")
            found[name] = value
        if name not in (EXPIRY, ALIAS, IDENTIFIER):
            passed += data[start:at]
    check(at == end, "a property longer than its section")
    return found, end, passed


def _value(data, at, kind):
    if kind == _VARINT:
        return _varint(data, at)
    if kind == _PAIR:
        _, at = _value(data, at, _TEXT)
        return _value(data, at, _TEXT)
    if kind == _TEXT:
        end = at + 2 + two(data, at)
        check(end <= len(data), "a text longer than its packet")
        return data[at + 2 : end], end
    check(at + kind <= len(data), "a packet that ends in a property")
    value = 0
    for byte in data[at : at + kind]:
        value = value << 8 | byte
    return value, at + kind


def _varint(data, at):
    value = shift = 0
    while True:
        check(at < len(data) and shift < 28, "a variable byte integer")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
