# connack.py - CONNACK of MQTT 5.0 [5.0, 3.2]: with the broker's limits, or the reason of a
# refusal. Owns nothing. Control plane: may allocate and free.
from slotmq.constants import ANNOUNCED, CONNACK, PACKET_MAX
from slotmq.delivery.encode import length_bytes, put_header, put_length, put_u16
from slotmq.v5.outgoing_acks import sent, space_for


def refuse(broker, conn, reason):
    """Send CONNACK with a reason code; -> the code.

    The server reference is omitted if the client accepts no packet of that size [3.1.2-24]."""
    properties = b""
    server = broker.settings.server_reference
    if server and reason in (0x88, 0x97):
        reason = 0x9C  # use another server
        properties = text(0x1C, server.encode())
    if not _put_connack(broker, conn, 0, reason, properties):
        _put_connack(broker, conn, 0, reason, b"")
    return reason


def prepare(broker, conn, fields):
    """Prepare the properties of a CONNACK that accepts [3.2.2.3].

    False: the client accepts no packet of that size; then nothing may change."""
    out = b"\x21" + u16(broker.sessions.ids_high[ANNOUNCED])
    out += b"\x27" + u32(broker.pkt[PACKET_MAX])
    aliases = broker.five.aliases.allowed[conn]
    if aliases:
        out += b"\x22" + u16(aliases)
    if not broker.limits.shares:
        out += b"\x2a\0"
    most = broker.conns.option(conn, "max_qos", broker.settings.max_qos)
    if most < 2:
        out += bytes((0x24, most))
    if not broker.settings.retain_available:
        out += b"\x25\0"
    if fields.assigned:
        out += text(0x12, fields.assigned)
    if fields.server_keep_alive:
        out += b"\x13" + u16(fields.keep_alive)
    if fields.expiry_lowered:
        out += b"\x11" + u32(fields.expiry)
    if fields.method:
        out += text(0x15, fields.method)
        if fields.auth_data:
            out += text(0x16, fields.auth_data)
    fields.answer = out
    information = broker.settings.response_information
    if fields.wants_information and information:
        longer = out + text(0x1A, information.encode())
        if _space(broker, conn, _remaining(longer)) >= 0:  # it may be left out [3.1.2.11.6]
            fields.answer = longer
    return _space(broker, conn, _remaining(out)) >= 0


def accept(broker, conn, fields, present):
    """Send the CONNACK that was prepared."""
    _put_connack(broker, conn, present, 0, fields.answer)


def _remaining(properties):
    n = len(properties)
    return 2 + length_bytes(n) + n


def _space(broker, conn, remaining):
    return space_for(broker, conn, 1 + length_bytes(remaining) + remaining)


def _put_connack(broker, conn, present, reason, properties):
    remaining = _remaining(properties)
    at = _space(broker, conn, remaining)
    if at < 0:
        return False
    tx = broker.conns.tx
    at = put_u16(tx, put_header(tx, at, CONNACK, remaining), present << 8 | reason)
    at = put_length(tx, at, len(properties))
    for byte in properties:
        tx[at] = byte
        at += 1
    sent(broker, conn, at)
    return True


def text(name, value):
    """A property with a text or binary data."""
    return bytes((name,)) + u16(len(value)) + value


def u16(number):
    return bytes((number >> 8, number & 255))


def u32(number):
    return u16(number >> 16) + u16(number & 0xFFFF)
