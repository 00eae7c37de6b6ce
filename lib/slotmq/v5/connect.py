# connect.py - what MQTT 5.0 adds to the steps of CONNECT [5.0, 3.1]; it is Fields.v5 of
# protocol/connect.py. Owns nothing. Control plane: may allocate and free.
from slotmq.constants import (BODY, DATA, END, MALFORMED_PACKET, MAX_INFLIGHT, METHOD, MORE, OK,
    OTHER, PACKET_MAX, PACKET_TOO_LARGE, PASSWORD, PLAIN, PROTOCOL_ERROR, RESPONSE, SESSION_EXPIRY,
    USER_NAME, WILL)
from slotmq.fast import utf8_ok
from slotmq.v5 import connack
from slotmq.v5.properties import scan
from slotmq.v5.source import store

_IN_CONNECT = 1
_IN_WILL = 2
# Columns of properties.values
_MESSAGE_EXPIRY = 2
_WILL_DELAY = 11
_INFORMATION = 12
_RECEIVE_MAX = 15
_ALIAS_MAX = 16
_LARGEST = 18  # Maximum Packet Size


def read(broker, conn, fields):
    """Read the packet from its flags on into `fields`; a reason code, or 0."""
    buf = fields.buf
    end = fields.pkt[END]
    five = broker.five
    five.packet_max[conn] = 0
    flags = fields.flags
    if flags & 1 or flags >> 3 & 3 == 3 or not flags & WILL and flags & 0x38:
        return MALFORMED_PACKET
    at = scan(buf, fields.pkt[BODY] + 10, end, _IN_CONNECT, five.values)
    if at < 0:
        return -at
    code = _take_properties(broker, conn, buf, fields)
    return code or _read_payload(broker, buf, at, end, fields)


def take(broker, fields, flags):
    """The will in a message slot, or NONE."""
    buf = fields.buf
    source = broker.five.source
    topic, n = fields.will_topic
    payload, size = fields.will_message
    data = fields.will_properties + buf[payload : payload + size]
    source.from_packet(buf, topic, n, data, 0, len(data))
    source.props = len(fields.will_properties)
    if fields.will_expiry:
        source.set_expiry(fields.will_expiry, 0)
    return store(broker, flags)


def check(broker, conn, fields):
    """Prepare CONNACK; a reason code if the client accepts no packet of its size, or 0."""
    return OK if connack.prepare(broker, conn, fields) else PACKET_TOO_LARGE


def start(broker, conn, fields, flags):
    """The session is open: store what version 5 adds to it, and send CONNACK."""
    five = broker.five
    session = broker.conns.session[conn]
    five.take(broker, session, _kind(broker, conn))
    five.set_expiry(broker, session, fields.expiry)
    five.will_delay[session] = fields.will_delay
    five.will_since[session] = broker.now
    connack.accept(broker, conn, fields, flags)


def refuse(broker, conn, reason):
    """Send CONNACK with a reason code; -> the code."""
    return connack.refuse(broker, conn, reason)


def _kind(broker, conn):
    # Of the session: may the fast path send to it? A packet has at most two bytes more there.
    five = broker.five
    limited = 0 < five.packet_max[conn] < broker.pkt[PACKET_MAX] + 2
    return OTHER if limited or five.aliases.offered[conn] else PLAIN


def _take_properties(broker, conn, buf, fields):
    five = broker.five
    values = five.values
    found = values[0]
    for column in (_RECEIVE_MAX, _LARGEST):
        if found >> column & 1 and not values[column]:
            return PROTOCOL_ERROR
    if found >> DATA & 1 and not found >> METHOD & 1:
        return PROTOCOL_ERROR
    fields.expiry = values[SESSION_EXPIRY] if found >> SESSION_EXPIRY & 1 else 0
    asked = values[_RECEIVE_MAX] if found >> _RECEIVE_MAX & 1 else 65535
    five.receive_max[conn] = min(asked, broker.deliveries.window[MAX_INFLIGHT])
    five.packet_max[conn] = values[_LARGEST] if found >> _LARGEST & 1 else 0
    offered = values[_ALIAS_MAX] if found >> _ALIAS_MAX & 1 else 0
    aliases = five.aliases
    own = broker.conns.option
    most = min(aliases.most, own(conn, "max_topic_alias_broker", five.alias_max_out))
    aliases.offered[conn] = min(offered, most)
    aliases.allowed[conn] = min(aliases.most, own(conn, "max_topic_alias", five.alias_max))
    fields.wants_information = found >> _INFORMATION & 1 and values[_INFORMATION]
    fields.method = _text(buf, values, METHOD)
    fields.auth_data = _text(buf, values, DATA)
    most = broker.settings.persistent_client_expiration
    if most and fields.expiry > most:
        fields.expiry = most
        fields.expiry_lowered = True
    return OK


def _text(buf, values, column):
    if not values[0] >> column & 1:
        return None
    return bytes(buf[values[column] : values[column] + values[column + MORE]])


def _read_payload(broker, buf, at, end, fields):
    flags = fields.flags
    values = broker.five.values
    found, at = _string(buf, at, end)
    if at < 0:
        return MALFORMED_PACKET
    fields.client_id = found
    if flags & WILL:
        start = at
        at = scan(buf, at, end, _IN_WILL, values)
        if at < 0:
            return -at
        if values[0] >> RESPONSE & 1:
            if not utf8_ok(buf, values[RESPONSE], values[RESPONSE + MORE], 1):
                return PROTOCOL_ERROR  # [3.3.2-14]
        fields.will_delay = values[_WILL_DELAY] if values[0] >> _WILL_DELAY & 1 else 0
        fields.will_properties = _will_properties(buf, start, at, values, fields)
        fields.will_topic, at = _string(buf, at, end)
        fields.will_message, at = _string(buf, at, end, False)
        if at < 0:
            return MALFORMED_PACKET
        if not utf8_ok(buf, *fields.will_topic, 1):
            return PROTOCOL_ERROR  # empty, or with wildcards [4.7.1-1, 4.7.3-1]
    if flags & USER_NAME:
        fields.user_name, at = _string(buf, at, end)
    if flags & PASSWORD:
        fields.password, at = _string(buf, at, end, False)
    return OK if at == end else MALFORMED_PACKET


def _string(buf, at, end, is_text=True):
    # A text or binary data: ((offset, length), the offset past it); (None, -1): malformed.
    n = buf[at] << 8 | buf[at + 1] if 0 <= at <= end - 2 else 0
    at += 2
    if at < 2 or at + n > end or is_text and not utf8_ok(buf, at, n, 0):
        return None, -1
    return (at, n), at + n


def _will_properties(buf, start, end, values, fields):
    # The properties that are passed on: all but delay and expiry.
    while buf[start] > 127:
        start += 1
    data = bytearray(buf[start + 1 : end])
    gone = []
    if values[0] >> _WILL_DELAY & 1:
        gone.append(values[_WILL_DELAY + MORE])
    if values[0] >> _MESSAGE_EXPIRY & 1:
        at = values[_MESSAGE_EXPIRY + MORE]
        fields.will_expiry = bytes(buf[at + 1 : at + 5])
        gone.append(at)
    for at in sorted(gone, reverse=True):
        at -= start + 1
        data = data[:at] + data[at + 5 :]
    return data
