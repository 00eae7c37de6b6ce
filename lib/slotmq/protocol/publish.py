# publish.py - PUBLISH of version 3 [3.3], if the fast path has left it: checks it, finds its
# route, stores and queues the message, and only then acknowledges it. QoS 0 goes to
# routing.publish_packet() at once. Owns nothing. Does not allocate, except for may_publish.
from slotmq.constants import (END, FLAGS, MALFORMED, NONE, OK, PACKET_ID, PAYLOAD,
    POLICY_DISCONNECT, PROTOCOL, PUBACK, PUBLISH_IN, PUBREC, TOPIC, TOPIC_LEN)
from slotmq.delivery import retain, routing
from slotmq.delivery.outgoing import put_ack
from slotmq.fast import unref, utf8_ok
from slotmq.platform import heap, ondemand


def handle_publish(broker, conn, pkt, buf):
    flags = pkt[FLAGS]
    broker.stats[PUBLISH_IN] += 1
    topic = pkt[TOPIC]
    topic_len = pkt[TOPIC_LEN]
    subs = broker.subscriptions
    slot = subs.routes.find(buf, topic, topic_len)
    if slot < 0:
        if topic_len > broker.limits.topic_bytes or not utf8_ok(buf, topic, topic_len, 1):
            return MALFORMED
    slot = routing.route(broker, buf, topic, topic_len)
    if flags == 0 and broker.plain and buf[topic] != 36:
        routing.publish_packet(broker, pkt, buf, slot)
        return OK
    return _handle_any(broker, conn, pkt, buf, flags, slot)


def _handle_any(broker, conn, pkt, buf, flags, slot):
    qos = flags >> 1 & 3
    if qos == 0:
        if flags & 8 and broker.conns.level[conn] & 3 != 3:
            return MALFORMED  # [3.3.1-2]
    elif qos == 3 or pkt[PACKET_ID] == 0:
        return MALFORMED  # [3.3.1-4, 2.3.1-1]
    settings = broker.settings
    if flags & 1 and not settings.retain_available:
        return PROTOCOL
    if qos > broker.max_qos and qos > broker.conns.option(conn, "max_qos", settings.max_qos):
        return PROTOCOL
    wanted = broker.plain and buf[pkt[TOPIC]] != 36
    if not wanted:
        size = pkt[END] - pkt[PAYLOAD]
        wanted = is_wanted(broker, conn, buf, pkt[TOPIC], pkt[TOPIC_LEN], size)
        slot = routing.route(broker, buf, pkt[TOPIC], pkt[TOPIC_LEN])  # a hook may publish
    if qos == 2:
        return _handle_qos2(broker, conn, pkt, buf, flags & 7, slot, wanted)
    if wanted:
        if qos == 0:
            _publish_qos0(broker, pkt, buf, flags & 1, slot)
            return OK
        result = _publish(broker, pkt, buf, flags & 7, slot)
        if result:
            return result
    if qos:
        put_ack(broker, conn, PUBACK, pkt[PACKET_ID])
    return OK


def _handle_qos2(broker, conn, pkt, buf, flags, slot, wanted):
    # The receive list is asked first: a duplicate is acknowledged and not delivered [4.3.3-2].
    sessions = broker.sessions
    session = broker.conns.session[conn]
    packet_id = pkt[PACKET_ID]
    if sessions.find_received(session, packet_id) < 0:
        at = sessions.add_received(session, packet_id)
        if at < 0:
            return POLICY_DISCONNECT
        result = OK
        try:
            if wanted and sessions.id_msg is None:
                result = _publish(broker, pkt, buf, flags, slot)
            elif wanted:
                if routing.may_wait_for_pubrel(broker, session, pkt[END] - pkt[TOPIC]):
                    sessions.id_msg[at] = routing.store(broker, pkt, buf, flags)
                if sessions.id_msg[at] == NONE:
                    result = broker.when_no_message
        except BaseException:  # the client sends it again, and then it must not count as received
            sessions.remove_received(session, at)
            raise
        if result:
            sessions.remove_received(session, at)
            return result
    put_ack(broker, conn, PUBREC, packet_id)
    return OK


def _publish(broker, pkt, buf, flags, slot):
    # QoS 1 and 2: store the message, then queue it for each receiver.
    routes = broker.subscriptions.routes
    msg = NONE
    retains = flags & 1 and pkt[PAYLOAD] != pkt[END]
    if routing.is_refused(broker, slot, flags >> 1):
        return broker.when_no_message
    if retains or routes.first[slot] != routes.end[slot]:
        msg = routing.store(broker, pkt, buf, flags)
        if msg == NONE and (retains or broker.when_no_message):
            return broker.when_no_message
    if flags & 1:  # an empty message removes the retained one, even if it finds no slot
        retain.set_message(broker, buf, pkt[TOPIC], pkt[TOPIC_LEN], msg)
    if msg != NONE:
        routing.fan_out(broker, msg, flags >> 1, slot)
        unref(broker.tables, msg)
    return OK


def _publish_qos0(broker, pkt, buf, retained, slot):
    if broker.upgrade_qos:
        _publish(broker, pkt, buf, retained, slot)
        return
    if retained:
        msg = NONE
        if pkt[PAYLOAD] != pkt[END]:
            msg = routing.store(broker, pkt, buf, 1)
        retain.set_message(broker, buf, pkt[TOPIC], pkt[TOPIC_LEN], msg)
        if msg != NONE:
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
