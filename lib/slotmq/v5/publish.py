# publish.py - PUBLISH from a client of MQTT 5.0 [5.0, 3.3]: reads properties and topic alias,
# makes the Source of it, publishes that, and answers with a reason code. Owns nothing. Does not
# allocate, except for may_publish.
from slotmq.constants import (ANNOUNCED, BRIDGE, END, FLAGS, IDENTIFIER, MALFORMED_PACKET, MORE,
    NONE, NO_QOS, NO_RETAIN, OK, PACKET_ID, PAYLOAD, PROTOCOL_ERROR, PUBACK, PUBLISH_IN, PUBREC,
    QUOTA, RESPONSE, TOPIC, TOPIC_INVALID, TOPIC_LEN, UNAUTHORIZED)
from slotmq.delivery import retain, routing
from slotmq.fast import unref, utf8_ok
from slotmq.platform import heap, ondemand
from slotmq.protocol.publish import is_wanted
from slotmq.v5.outgoing_acks import put_reason
from slotmq.v5.properties import scan
from slotmq.v5.routing import deliver, spread
from slotmq.v5.source import store

_IN_PUBLISH = 4  # of properties.WHERE
# Columns of properties.values
_EXPIRY = 2
_ALIAS = 14
# Reason codes [2.4]
_RECEIVE_MAXIMUM = 0x93
_ALIAS_INVALID = 0x94
_NOBODY = 0x10


def handle_publish(broker, conn, pkt, buf):
    broker.stats[PUBLISH_IN] += 1
    values = broker.five.values
    at = scan(buf, pkt[PAYLOAD], pkt[END], _IN_PUBLISH, values)
    if at < 0:
        return -at
    result = _check(broker, conn, pkt, buf, values)
    if result:
        return result
    source = broker.five.source
    source.from_packet(buf, pkt[TOPIC], pkt[TOPIC_LEN], buf, pkt[PAYLOAD], pkt[END])
    result = _find_topic(broker, conn, values)
    if result:
        return result
    source.retain = pkt[FLAGS] & 1
    _cut_own_properties(source, values, at)
    broker.five.publisher = session = broker.conns.session[conn]
    qos = pkt[FLAGS] >> 1 & 3
    try:
        if qos == 2:
            return _handle_qos2(broker, conn, session, pkt[PACKET_ID])
        reason = _publish(broker, conn, qos)
    finally:
        broker.five.publisher = NONE
    if reason < 0:
        return -reason
    if qos:
        put_reason(broker, conn, PUBACK, pkt[PACKET_ID], reason)
    return OK


def _check(broker, conn, pkt, buf, values):
    found = values[0]
    flags = pkt[FLAGS]
    qos = flags >> 1 & 3
    if qos == 3 or flags & 8 and not qos:
        return MALFORMED_PACKET
    if found >> IDENTIFIER & 1 or qos and not pkt[PACKET_ID]:
        return PROTOCOL_ERROR  # [3.3.4-6, 2.2.1-3]
    if found >> RESPONSE & 1 and not _is_topic(buf, values, RESPONSE):
        return PROTOCOL_ERROR  # [3.3.2-14]
    settings = broker.settings
    if qos > broker.max_qos and qos > broker.conns.option(conn, "max_qos", settings.max_qos):
        return NO_QOS
    return NO_RETAIN if flags & 1 and not settings.retain_available else OK


def _is_topic(buf, values, column):
    return utf8_ok(buf, values[column], values[column + MORE], 1)


def _find_topic(broker, conn, values):
    # Find the topic name, if necessary by its alias; a reason code, or 0.
    source = broker.five.source
    aliases = broker.five.aliases
    n = source.topic_len
    if not utf8_ok(source.tbuf, source.topic, n, 0):
        return MALFORMED_PACKET
    if n and not utf8_ok(source.tbuf, source.topic, n, 1):
        return PROTOCOL_ERROR  # [3.3.2-2]
    if n > broker.limits.topic_bytes:
        return TOPIC_INVALID
    if not values[0] >> _ALIAS & 1:
        return OK if n else PROTOCOL_ERROR
    alias = values[_ALIAS]
    if not 0 < alias <= aliases.allowed[conn]:
        return _ALIAS_INVALID
    if n:
        return _set_alias(broker, conn, alias, n)
    source.tbuf = source.text
    source.topic = 0
    source.topic_len = aliases.get(conn, alias, source.text, 0)
    return OK if source.topic_len else PROTOCOL_ERROR


def _set_alias(broker, conn, alias, n):
    # Without space, disconnect the client whose aliases take most; if that is this one, the result
    # does it.
    source = broker.five.source
    aliases = broker.five.aliases
    while not aliases.set(conn, alias, source.tbuf, source.topic, n):
        heap.lift()
        largest = ondemand.take("v5.expired_slots", broker.now).search(aliases, conn, n)
        heap.drop()
        if largest == conn:
            return QUOTA
        broker.end(largest, QUOTA)
        aliases.forget(largest)
    return OK


def _cut_own_properties(source, values, payload):
    # Alias and expiry are not forwarded as they came: cut them out of the property section, in the
    # receive buffer.
    start = payload - _section(source.buf, source.at, payload)
    gone = 0
    if values[0] >> _EXPIRY & 1:
        source.set_expiry(source.buf, values[_EXPIRY + MORE] + 1)
    if values[0] >> _ALIAS & 1:
        start = _cut(source.buf, start, values[_ALIAS + MORE], 3)
        gone = values[_ALIAS + MORE]
    if values[0] >> _EXPIRY & 1:
        at = values[_EXPIRY + MORE]
        start = _cut(source.buf, start, at + 3 if at < gone else at, 5)
    source.size += source.at - start
    source.at = start
    source.props = payload - start


def _section(buf, at, payload):
    # The length of the property section, without its length field.
    while buf[at] > 127:
        at += 1
    return payload - at - 1


def _cut(buf, start, at, n):
    # Remove n bytes at `at`: move the bytes before them up. -> the new start.
    while at > start:
        at -= 1
        buf[at + n] = buf[at]
    return start + n


def _publish(broker, conn, qos):
    # Route, store and deliver the Source; -> the reason code for its sender, or -code to end
    # its connection.
    source = broker.five.source
    size = source.size - source.props
    topic = source.topic
    n = source.topic_len
    if not is_wanted(broker, conn, source.tbuf, topic, n, size):
        return QUOTA if 0 < broker.settings.message_size_limit < size else UNAUTHORIZED
    subs = broker.subscriptions
    slot = -1
    if not (source.retain or subs.asks):
        slot = subs.routes.find(source.tbuf, topic, n)
    subs.needs_options = 0
    if slot < 0:
        slot = routing.route(broker, source.tbuf, topic, n)
    nobody = subs.routes.first[slot] == subs.routes.end[slot]
    keeps = source.retain and size
    if routing.is_refused(broker, slot, qos):
        return -QUOTA if broker.when_no_message else QUOTA
    if (qos and not nobody or keeps) and _store(broker, qos << 1 | source.retain) == NONE:
        if qos:
            return -QUOTA if broker.when_no_message else QUOTA
    if source.retain:
        retain.set_message(broker, source.tbuf, topic, n, source.msg if size else NONE)
    if subs.needs_options:
        spread(broker, slot, qos)
    elif not nobody:
        _to_sessions(broker, slot, qos)
    if source.msg != NONE:
        unref(broker.tables, source.msg)
    return _NOBODY if nobody else OK


def _to_sessions(broker, slot, qos):
    # Deliver on a route of sessions: no option of version 5 matters.
    if qos or broker.upgrade_qos:
        if broker.five.source.msg != NONE or _store(broker, qos << 1) != NONE:
            routing.fan_out(broker, broker.five.source.msg, qos, slot)
        return
    subs = broker.subscriptions
    for i in range(subs.routes.first[slot], subs.routes.end[slot]):
        deliver(broker, subs.pool[i] >> 2, NONE, 0, 0, 0)


def _store(broker, flags):
    for _ in range(routing.TRIES):
        msg = store(broker, flags)
        if msg != NONE:
            return msg
        if not routing.make_space(broker):
            break
    source = broker.five.source
    routing.refuse(broker, NONE, source.topic_len + 2 + source.size)
    return NONE


def _handle_qos2(broker, conn, session, packet_id):
    # The receive list is asked first: a duplicate is acknowledged and not delivered [4.3.3-10].
    sessions = broker.sessions
    reason = OK
    if sessions.find_received(session, packet_id) < 0:
        kind = broker.subscriptions.kind[session]
        if sessions.id_count[session] >= sessions.ids_high[ANNOUNCED] and not kind & BRIDGE:
            sessions.ids_refused += 1
            return _RECEIVE_MAXIMUM
        at = sessions.add_received(session, packet_id)
        if at < 0:
            return _RECEIVE_MAXIMUM
        try:
            if sessions.id_msg is None:
                reason = _publish(broker, conn, 2)
            else:
                reason = _hold_until_pubrel(broker, conn, at)
        except BaseException:  # the client sends it again, and it must not be a duplicate then
            sessions.remove_received(session, at)
            raise
        if reason < 0 or reason & 0x80:
            sessions.remove_received(session, at)
        if reason < 0:
            return -reason
    put_reason(broker, conn, PUBREC, packet_id, reason)
    return OK


def _hold_until_pubrel(broker, conn, at):
    # With `qos2_delivery release` the message waits for its PUBREL.
    source = broker.five.source
    size = source.size - source.props
    if not is_wanted(broker, conn, source.tbuf, source.topic, source.topic_len, size):
        return QUOTA if 0 < broker.settings.message_size_limit < size else UNAUTHORIZED
    msg = NONE
    session = broker.conns.session[conn]
    if routing.may_wait_for_pubrel(broker, session, source.topic_len + 2 + source.size):
        msg = _store(broker, 4 | source.retain)
    if msg == NONE:
        return -QUOTA if broker.when_no_message else QUOTA
    broker.sessions.id_msg[at] = msg
    return OK
