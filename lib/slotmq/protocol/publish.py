# publish.py - PUBLISH of version 3 [3.3], if the fast path has left it: checks it, finds its
# route, stores and queues the message, and only then acknowledges it. QoS 0 goes to
# routing.publish_packet() at once. Owns nothing. Does not allocate, except for may_publish.
from slotmq.delivery import retain, routing
from slotmq.delivery.outgoing import put_ack
from slotmq.fast import unref, utf8_ok
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_FLAGS = const(1)
_END = const(4)
_PACKET_ID = const(6)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_PUBACK = const(0x40)
_PUBREC = const(0x50)
_PUBLISH_IN = const(2)
_OK = const(0)
_MALFORMED = const(2)
_PROTOCOL = const(3)
_POLICY_DISCONNECT = const(6)


def handle_publish(broker, conn, pkt, buf):
    flags = pkt[_FLAGS]
    broker.stats[_PUBLISH_IN] += 1
    topic = pkt[_TOPIC]
    topic_len = pkt[_TOPIC_LEN]
    subs = broker.subscriptions
    slot = subs.routes.find(buf, topic, topic_len)
    if slot < 0:
        if topic_len > broker.limits.topic_bytes or not utf8_ok(buf, topic, topic_len, 1):
            return _MALFORMED
    slot = routing.route(broker, buf, topic, topic_len)
    if flags == 0 and broker.plain and buf[topic] != 36:
        routing.publish_packet(broker, pkt, buf, slot)
        return _OK
    return _handle_any(broker, conn, pkt, buf, flags, slot)


def _handle_any(broker, conn, pkt, buf, flags, slot):
    qos = flags >> 1 & 3
    if qos == 0:
        if flags & 8 and broker.conns.level[conn] & 3 != 3:
            return _MALFORMED  # [3.3.1-2]
    elif qos == 3 or pkt[_PACKET_ID] == 0:
        return _MALFORMED  # [3.3.1-4, 2.3.1-1]
    settings = broker.settings
    if flags & 1 and not settings.retain_available:
        return _PROTOCOL
    if qos > broker.max_qos and qos > broker.conns.option(conn, "max_qos", settings.max_qos):
        return _PROTOCOL
    wanted = broker.plain and buf[pkt[_TOPIC]] != 36
    if not wanted:
        size = pkt[_END] - pkt[_PAYLOAD]
        wanted = is_wanted(broker, conn, buf, pkt[_TOPIC], pkt[_TOPIC_LEN], size)
        slot = routing.route(broker, buf, pkt[_TOPIC], pkt[_TOPIC_LEN])  # a hook may publish
    if qos == 2:
        return _handle_qos2(broker, conn, pkt, buf, flags & 7, slot, wanted)
    if wanted:
        if qos == 0:
            _publish_qos0(broker, pkt, buf, flags & 1, slot)
            return _OK
        result = _publish(broker, pkt, buf, flags & 7, slot)
        if result:
            return result
    if qos:
        put_ack(broker, conn, _PUBACK, pkt[_PACKET_ID])
    return _OK


def _handle_qos2(broker, conn, pkt, buf, flags, slot, wanted):
    # The receive list is asked first: a duplicate is acknowledged and not delivered [4.3.3-2].
    sessions = broker.sessions
    session = broker.conns.session[conn]
    packet_id = pkt[_PACKET_ID]
    if sessions.find_received(session, packet_id) < 0:
        at = sessions.add_received(session, packet_id)
        if at < 0:
            return _POLICY_DISCONNECT
        result = _OK
        try:
            if wanted and sessions.id_msg is None:
                result = _publish(broker, pkt, buf, flags, slot)
            elif wanted:
                if routing.may_wait_for_pubrel(broker, session, pkt[_END] - pkt[_TOPIC]):
                    sessions.id_msg[at] = routing.store(broker, pkt, buf, flags)
                if sessions.id_msg[at] == _NONE:
                    result = broker.when_no_message
        except BaseException:  # the client sends it again, and then it must not count as received
            sessions.remove_received(session, at)
            raise
        if result:
            sessions.remove_received(session, at)
            return result
    put_ack(broker, conn, _PUBREC, packet_id)
    return _OK


def _publish(broker, pkt, buf, flags, slot):
    # QoS 1 and 2: store the message, then queue it for each receiver.
    routes = broker.subscriptions.routes
    msg = _NONE
    retains = flags & 1 and pkt[_PAYLOAD] != pkt[_END]
    if routing.is_refused(broker, slot, flags >> 1):
        return broker.when_no_message
    if retains or routes.first[slot] != routes.end[slot]:
        msg = routing.store(broker, pkt, buf, flags)
        if msg == _NONE and (retains or broker.when_no_message):
            return broker.when_no_message
    if flags & 1:  # an empty message removes the retained one, even if it finds no slot
        retain.set_message(broker, buf, pkt[_TOPIC], pkt[_TOPIC_LEN], msg)
    if msg != _NONE:
        routing.fan_out(broker, msg, flags >> 1, slot)
        unref(broker.tables, msg)
    return _OK


def _publish_qos0(broker, pkt, buf, retained, slot):
    if broker.upgrade_qos:
        _publish(broker, pkt, buf, retained, slot)
        return
    if retained:
        msg = _NONE
        if pkt[_PAYLOAD] != pkt[_END]:
            msg = routing.store(broker, pkt, buf, 1)
        retain.set_message(broker, buf, pkt[_TOPIC], pkt[_TOPIC_LEN], msg)
        if msg != _NONE:
            unref(broker.tables, msg)
    routing.publish_packet(broker, pkt, buf, slot)


def is_wanted(broker, conn, buf, topic, n, size):
    """May the message be published? If not, it is acknowledged and dropped [3.3.5-2]: its topic is
    the broker's own, its payload is over message_size_limit, or acl_file or the hook may_publish
    forbids it."""
    if buf[topic] == 36 or 0 < broker.settings.message_size_limit < size:
        heap.lift()
        refused = ondemand.take("embed.publishing", broker.now).refused(
            broker, buf, topic, n, conn, size
        )
        heap.drop()
        if refused:
            return False
    return not broker.asks or broker.asks(conn, buf, topic, n)
