# deliver.py - who gets a message, and the only writer of QoS 1 and 2 PUBLISH.
#
# Two exits. A QoS 0 packet goes from the receive buffer straight into the outgoing
# buffers (publish_packet). Everything else is stored in a message slot first,
# queued for each receiver (enqueue) and sent by pump(), which is also what sends
# again after a reconnect and goes on when a socket is writable again. The
# connection that is being read is pumped when its input has been handled, so that
# its acknowledgements always find room. Does not allocate.
#
# flags are the lower four bits of PUBLISH's first byte: DUP 8, QoS << 1, RETAIN 1.
from slotmq.encode import put_short
from slotmq.outbox import room, send_message, send_packet
from slotmq.runtime import const, place

_NONE = const(0xFFFF)
_QUEUED = const(0)
_RELEASED = const(3)
_PUBLISH = const(0x30)
_DUP = const(8)
_PUBREL = const(0x62)
_START = const(2)
_END = const(4)
_TOTAL = const(5)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_PACKETS_OUT = const(1)
_DROPPED = const(4)


def route(broker, buf, topic, topic_len):
    """Where in the route pool the receivers of a valid topic name stand."""
    subs = broker.subscriptions
    slot = subs.routes.find(buf, topic, topic_len)
    if slot < 0:
        slot = subs.match(buf, topic, topic_len)
    return slot


def publish_packet(broker, pkt, buf, slot):
    """A QoS 0 PUBLISH, byte for byte, to all its receivers."""
    subs = broker.subscriptions
    conns = broker.conns
    i = subs.routes.first[slot]
    end = subs.routes.end[slot]
    if broker.queue_qos0:
        _queue_offline(broker, pkt, buf, i, end)
    while True:
        i = place(conns.columns, i, end, buf, pkt[_START], pkt[_TOTAL])
        if i == end:
            break
        _place_slowly(broker, pkt, buf, subs.pool[i] >> 2)
        i += 1


def _place_slowly(broker, pkt, buf, session):
    conn = broker.sessions.conn[session]
    n = pkt[_TOTAL]
    if conn == broker.current and n > broker.conns.tx_bytes:
        # to its own sender, in parts: not before its input has been handled
        msg = store(broker, pkt, buf, 0)
        if msg != _NONE:
            enqueue(broker, session, msg, 0)
            broker.messages.unref(msg)
    elif not send_packet(broker, conn, buf, pkt[_START], n):
        broker.stats[_DROPPED] += 1


def _queue_offline(broker, pkt, buf, i, end):
    # queue_qos0_messages: sessions without a connection get QoS 0 messages later.
    msg = _NONE
    while i < end:
        session = broker.subscriptions.pool[i] >> 2
        if broker.sessions.conn[session] == _NONE:
            if msg == _NONE:
                msg = store(broker, pkt, buf, 0)
                if msg == _NONE:
                    return
            enqueue(broker, session, msg, 0)
        i += 1
    if msg != _NONE:
        broker.messages.unref(msg)


def fan_out(broker, msg, qos, slot):
    """A stored message to all receivers of a route, each at its effective QoS [3.8.4-6]."""
    subs = broker.subscriptions
    pool = subs.pool
    i = subs.routes.first[slot]
    end = subs.routes.end[slot]
    while i < end:
        granted = pool[i] & 3
        if granted > qos and not broker.upgrade_qos:
            granted = qos
        if granted:
            enqueue(broker, pool[i] >> 2, msg, granted << 1)
        else:
            _send_qos0(broker, pool[i] >> 2, msg)
        i += 1


def _send_qos0(broker, session, msg):
    conn = broker.sessions.conn[session]
    if conn == _NONE or conn == broker.current:
        if conn != _NONE or broker.queue_qos0:
            enqueue(broker, session, msg, 0)
    elif not send_message(broker, conn, msg, _PUBLISH, 0):
        broker.stats[_DROPPED] += 1


def enqueue(broker, session, msg, flags):
    """Queue a stored message for one session and send what may be sent. False: full."""
    sessions = broker.sessions
    deliveries = broker.deliveries
    full = sessions.queued[session] >= broker.max_queued or deliveries.count == deliveries.slots
    if full and not (broker.drop_oldest and drop_oldest(broker, session)):
        deliveries.refused += 1
        broker.stats[_DROPPED] += 1
        return False
    deliveries.add(sessions, session, msg, flags)
    broker.messages.refs[msg] += 1
    conn = sessions.conn[session]
    if conn != _NONE and conn != broker.current:
        pump(broker, session)
    return True


def store(broker, pkt, buf, flags):
    """The PUBLISH in a message slot, with one reference; NONE where all is full."""
    messages = broker.messages
    topic = pkt[_TOPIC]
    payload = pkt[_PAYLOAD]
    while True:
        msg = messages.store(buf, topic, pkt[_TOPIC_LEN], payload, pkt[_END] - payload, flags)
        if msg != _NONE:
            return msg
        if not (broker.drop_oldest_message and drop_oldest(broker, _longest_queue(broker))):
            messages.refused += 1
            broker.stats[_DROPPED] += 1
            return _NONE


def _longest_queue(broker):
    queued = broker.sessions.queued
    longest = 0
    for session in range(broker.sessions.slots):
        if queued[session] > queued[longest]:
            longest = session
    return longest


def drop_oldest(broker, session):
    """Make room: forget the session's oldest message that was never sent."""
    entry = broker.deliveries.oldest_queued(broker.sessions, session)
    if entry == _NONE:
        return False
    broker.deliveries.refused += 1
    broker.stats[_DROPPED] += 1
    finish(broker, entry)
    return True


def finish(broker, entry):
    """A delivery has ended: acknowledged, dropped, or its session is over."""
    msg = broker.deliveries.msg[entry]
    broker.deliveries.remove(broker.sessions, entry)
    if msg != _NONE:
        broker.messages.unref(msg)


def pump(broker, session):
    """Send from the session's cursor on, until its window or its buffer is full."""
    conn = broker.sessions.conn[session]
    cursor = broker.sessions.cursor
    while cursor[session] != _NONE and _send_entry(broker, conn, session, cursor[session]):
        pass


def _send_entry(broker, conn, session, entry):
    # Sends one delivery and moves the cursor past it. False: not now.
    sessions = broker.sessions
    deliveries = broker.deliveries
    state = deliveries.state[entry]
    if state == _RELEASED:
        at = room(broker, conn, 4)
        if at < 0:
            return False
        put_short(broker.conns.tx, at, _PUBREL, entry + 1)
        broker.stats[_PACKETS_OUT] += 1
    else:
        if state == _QUEUED and sessions.inflight[session] >= broker.max_inflight:
            return False
        flags = deliveries.flags[entry]
        packet_id = entry + 1 if flags & 6 else 0
        if not send_message(broker, conn, deliveries.msg[entry], _PUBLISH | flags, packet_id):
            return False
        if not packet_id:
            finish(broker, entry)
            return True
        if state == _QUEUED:
            deliveries.state[entry] = flags >> 1 & 3
            deliveries.flags[entry] = flags | _DUP
            sessions.queued[session] -= 1
            sessions.inflight[session] += 1
    sessions.cursor[session] = deliveries.next[entry]
    return True
