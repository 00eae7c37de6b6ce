# routing.py - delivers a message on a route with clients of MQTT 5.0, and sends what waits in a
# session of version 5: as delivery/routing.py does for version 3. The pool entries of such a route
# are subscriptions, not sessions, because their options matter. Owns nothing. Does not allocate.
from slotmq.constants import (BY, DROPPED, END, FLAGS, INFLIGHT_BYTES, NONE, NOT_OWN, OTHER,
    PACKETS_OUT, PAYLOAD, PUBLISH, PUBREL, QUEUED, RAP, RELEASED, TOPIC, TOPIC_LEN)
from slotmq.delivery import routing
from slotmq.delivery.encode import put_short
from slotmq.delivery.outgoing import space
from slotmq.fast import finish, send, unref
from slotmq.v5.send import emit
from slotmq.v5.source import store

_SEVERAL = -1
_OWN = 16  # flag of a delivery to its publisher; 0x30, PUBLISH, has the same bit


def publish_packet(broker, pkt, buf, slot):
    """Deliver a QoS 0 PUBLISH from a client of version 3 on such a route."""
    source = broker.five.source
    source.from_packet(buf, pkt[TOPIC], pkt[TOPIC_LEN], buf, pkt[PAYLOAD], pkt[END])
    source.retain = pkt[FLAGS] & 1
    spread(broker, slot, 0)
    if source.msg != NONE:
        unref(broker.tables, source.msg)


def fan_out(broker, msg, qos, slot):
    """Deliver a stored message on such a route."""
    broker.five.source.from_message(broker, msg)
    spread(broker, slot, qos)


def spread(broker, slot, qos):
    """Deliver the Source to every subscription of a route [3.3.4]."""
    subs = broker.subscriptions
    pool = subs.pool
    first = subs.routes.first[slot]
    end = subs.routes.end[slot]
    if not subs.every:
        _note_best(broker, first, end)
    best = subs.best
    for i in range(first, end):
        sub = pool[i]
        session = subs.session[sub]
        if subs.share[sub] != NONE:
            _to_group(broker, subs.share[sub], qos)
        elif subs.every:
            if not _is_local(broker, sub):
                deliver(broker, session, sub, qos, subs.qos[sub], broker.five.options[sub] & RAP)
        elif best[session]:
            # _note_best() has noted for the session: highest QoS + 1 in 2 bits, Retain As
            # Published
            found = best[session]
            best[session] = 0
            deliver(broker, session, NONE, qos, (found & 3) - 1, found & RAP)
            broker.five.idents[session] = 0
    for i in range(first, end):
        if subs.share[pool[i]] != NONE:
            broker.five.shares.picked[subs.share[pool[i]]] = 0


def _note_best(broker, first, end):
    # Note for each session, over all its subscriptions on the route: the highest QoS + 1, Retain
    # As Published, the identifier or SEVERAL.
    five = broker.five
    subs = broker.subscriptions
    best = subs.best
    for i in range(first, end):
        sub = subs.pool[i]
        session = subs.session[sub]
        if subs.share[sub] == NONE and not _is_local(broker, sub):
            found = best[session]
            granted = max(found & 3, subs.qos[sub] + 1)
            best[session] = granted | (found | five.options[sub]) & RAP
            if five.identifier[sub]:
                several = five.idents[session]
                five.idents[session] = _SEVERAL if several else five.identifier[sub]


def _is_local(broker, sub):
    # Does No Local exclude this subscription, since its client has published the message
    # [3.8.3-3]?
    five = broker.five
    if not five.options[sub] & NOT_OWN:
        return False
    publisher = five.publisher
    if publisher == NONE and broker.reading != NONE:  # a client of version 3 publishes
        publisher = broker.conns.session[broker.reading]
    return broker.subscriptions.session[sub] == publisher


def _to_group(broker, slot, qos):
    # Deliver to one member of a group, once, however many of its members the route has.
    shares = broker.five.shares
    if shares.picked[slot]:
        return
    shares.picked[slot] = 1
    source = broker.five.source
    size = source.topic_len + 2 + source.size
    sub = shares.choose(broker, slot, qos, NONE, source.msg, size)
    if sub != NONE:
        subs = broker.subscriptions
        deliver(
            broker, subs.session[sub], sub, qos, subs.qos[sub], broker.five.options[sub] & RAP
        )


def deliver(broker, session, sub, qos, granted, keep_retain):
    """Deliver the Source to one session, at once or by its queue."""
    five = broker.five
    source = five.source
    conn = broker.sessions.conn[session]
    source.own = five.publisher == session
    ident = five.identifier[sub] if sub != NONE else five.idents[session]
    retain = source.retain if keep_retain else 0
    qos = granted if broker.upgrade_qos else min(qos, granted)
    if qos == 0:
        waits = routing.way(broker, session, source.topic_len + source.size)
        if waits is None:
            return
        if waits <= 0:
            sent = 0 if waits else emit(broker, conn, PUBLISH | retain, 0, ident)
            if sent or not routing.must_wait(broker, conn):
                if sent == 0:
                    routing.drop(broker, session, NONE, source.topic_len + source.size)
                elif sent < 0:
                    broker.stats[DROPPED] += 1
                return
    if source.msg == NONE and store(broker, retain) == NONE:
        routing.refuse(broker, NONE, source.topic_len + 2 + source.size)
        return
    flags = qos << 1 | retain | (_OWN if source.own else 0)
    entry = routing.enqueue(broker, session, source.msg, flags)
    if entry != NONE:
        group = broker.subscriptions.share[sub] if sub != NONE else NONE
        five.set_subscription(broker, entry, group, ident)


def drain(broker, session):
    """Send the session's deliveries from its cursor on, until its window or its buffer is full."""
    sessions = broker.sessions
    sessions.progress[session] = broker.now
    conn = sessions.conn[session]
    most = broker.five.receive_max[conn]
    if broker.deliveries.count[INFLIGHT_BYTES]:
        most = routing.ask_quota(broker, session, most, 0, 0, -1, most)
    is_plain = not broker.subscriptions.kind[session] & OTHER
    while sessions.cursor[session] != NONE:
        if is_plain and not send(broker.tables, session, conn, most):
            break
        if not _send(broker, conn, session, most):
            break


def _under_way(broker, session, entry):
    # How many deliveries before this one wait for an acknowledgement on this connection.
    deliveries = broker.deliveries
    if deliveries.state[entry] == QUEUED:
        return broker.sessions.inflight[session]
    count = 0
    before = broker.sessions.head[session]
    while before != entry:
        count += 1
        before = deliveries.next[before]
    return count


def _send(broker, conn, session, most):
    # Send the delivery at the cursor, if fewer than `most` are under way. False: not now.
    deliveries = broker.deliveries
    sessions = broker.sessions
    entry = sessions.cursor[session]
    flags = deliveries.flags[entry]
    if deliveries.state[entry] == RELEASED:
        at = space(broker, conn, 4)
        if at < 0:
            return False
        put_short(broker.conns.tx, at, PUBREL, entry + 1)
        broker.stats[PACKETS_OUT] += 1
        sessions.cursor[session] = deliveries.next[entry]
        return True
    if flags & 6 and _under_way(broker, session, entry) >= most:
        return False  # [3.3.4-9]
    source = broker.five.source
    source.from_message(broker, deliveries.msg[entry])
    packet_id = entry + 1 if flags & 6 else 0
    source.own = flags & _OWN
    ident = broker.five.ident[entry] if flags & BY else 0
    sent = emit(broker, conn, PUBLISH | flags & 15, packet_id, ident)
    if sent == 0:
        return False
    if sent < 0:
        broker.stats[DROPPED] += 1
    if sent < 0 or not flags & 6:
        finish(broker.tables, entry)
        return True
    routing.mark_sent(broker, session, entry)
    sessions.cursor[session] = deliveries.next[entry]
    return True
