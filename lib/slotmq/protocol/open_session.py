# open_session.py - the last steps of CONNECT: take over the client's older connection, create or
# resume its session, store its will, send CONNACK; or refuse it. Called by
# protocol/connect.py. The control plane: may allocate and free.
from slotmq.delivery import lifecycle
from slotmq.delivery.outgoing import put_ack
from slotmq.fast import store, unref
from slotmq.platform import ondemand
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_UNKNOWN = const(0xFFFE)  # of access/owners.py
_CONNACK = const(0x20)
_CONNECTED = const(2)
_ENDING = const(3)
_FIVE = const(4)
_REFUSED = const(5)
_TAKEN_OVER = const(7)
_ACCEPTED = const(15)
_NOTICE = const(4)
_QUOTA_MOST = const(0)
_QUOTA_CONNECTED = const(2)
_BAD_CLIENT_ID = const(2)
_UNAVAILABLE = const(3)
_QUOTA = const(0x97)
_CLEAN = const(2)
_UNDER_WAY = const(20)  # mosquitto drops more QoS 2 messages, and version 3 has no word for that
_COUNTED = const(7)  # a level: version 3 with receive_max
_WILL = const(4)


def open_session(broker, conn, buf, fields):
    """Accept the client, if there is space for it; a result."""
    ids, off, n = _client_id(broker, conn, buf, fields)
    if fields.v5:
        code = fields.v5.prepare(broker, conn, fields)
        if code:
            return refuse(broker, conn, code, fields)
    user = broker._log_mask & _NOTICE and fields.read()
    if getattr(broker._hooks, "with_peer", False):
        user = fields.user or fields.read(fields.user_name)
    source = broker.conns.source[conn]
    if user and source:
        broker.conns.source[conn] = [source, user]
    sessions = broker.sessions
    session = sessions.find(ids, off, n)
    bridges = broker.bridges
    if bridges and bridges.used(session) and not hasattr(broker.conns.stream[conn], "publish"):
        return refuse(broker, conn, _BAD_CLIENT_ID, fields)
    if broker.journal_full and _needs_journal(broker, fields, session):
        return refuse(broker, conn, _UNAVAILABLE, fields, b"space in the journal")
    old = _older(broker, session)
    owners = broker.owners
    if owners:
        fields.owner = owners.take(broker, conn, fields)
        if fields.owner == _NONE:
            code = _QUOTA if fields.v5 else _UNAVAILABLE
            return refuse(broker, conn, code, fields, b"users, or client_id_bytes for the name")
    if old != _NONE and not _gives_way(broker, conn, old, fields):
        return refuse(broker, conn, _BAD_CLIENT_ID, fields)
    if _is_full(broker, conn, old):
        for i in range(broker.ending_count):  # their sessions are free for others then
            lifecycle.detach(broker, broker.ending[i])
        session = sessions.find(ids, off, n)
        old = _older(broker, session)
        if _is_full(broker, conn, old):
            broker.conns.refused += 1
            return refuse(broker, conn, _UNAVAILABLE, fields, b"connections")
    will = _NONE
    if fields.flags & _WILL:
        will = _store_will(broker, buf, fields)
        if will == _NONE:
            text = b"messages or topic_bytes for the will"
            return refuse(broker, conn, _UNAVAILABLE, fields, text)
    present = 0  # CONNACK's Session Present, or -reason code if there is no slot
    if old != _NONE:
        if sessions.clean[session] and not (_may_come(broker, fields) or _evict(broker)):
            sessions.refused += 1  # no slot for a session that stays in place of a clean one
            present = -_QUOTA
        else:  # nothing can refuse it now: end the older connection, publish its will [3.1.4-2]
            broker.end(old, _TAKEN_OVER)
            lifecycle.detach(broker, old)
    present = present or _take_session(broker, conn, ids, off, n, fields)
    if present < 0:
        if will != _NONE:
            unref(broker.tables, will)
        text = b"sessions" if _may_come(broker, fields) else b"persistent sessions"
        return refuse(broker, conn, -present if fields.v5 else _UNAVAILABLE, fields, text)
    return _accept(broker, conn, fields, will, present)


def _accept(broker, conn, fields, will, present):
    # The session is there: CONNACK.
    session = broker.conns.session[conn]
    broker.sessions.will[session] = will
    broker.conns.state[conn] = _CONNECTED
    broker.conns.keep_alive_timeout[conn] = fields.keep_alive * 15  # 1.5 times [3.1.2-24]
    if fields.v5:
        if fields.method:
            broker.conns.state[conn] = _FIVE
        fields.v5.opened(broker, conn, fields, present)
    else:
        if broker.five:
            broker.five.packet_max[conn] = 0  # of the client that had this slot before
            broker.five.opened_3(broker, session, fields.flags & _CLEAN, fields.kind)
            if fields.kind:
                _bound_window(broker, conn)
        put_ack(broker, conn, _CONNACK, present << 8 if fields.level > 3 else 0)
    if broker._log_mask & _NOTICE:
        ondemand.log_event(broker, "connected", conn, fields)
    return _ACCEPTED


def _bound_window(broker, conn):
    """The connection is that of a bridge of version 3: set its window."""
    window = broker.deliveries.window[0]
    if window > _UNDER_WAY and not broker.settings.max_inflight_messages:
        window = _UNDER_WAY
        broker.conns.level[conn] = _COUNTED
    broker.five.receive_max[conn] = window


def _needs_journal(broker, fields, session):
    # Would this CONNECT need a new row, of a will or of a session that stays? Counted as refused.
    if fields.flags & _WILL:
        broker.messages.refused += 1
        return True
    if _stays(fields) and (session == _NONE or broker.sessions.clean[session]):
        broker.sessions.refused += 1
        return True
    return False


def _stays(fields):
    # Does the client ask for a session that outlives its connection?
    return fields.expiry if fields.v5 else not fields.flags & _CLEAN


def _store_will(broker, buf, fields):
    topic, topic_len = fields.will_topic
    payload, size = fields.will_message
    flags = fields.flags >> 2 & 6 | fields.flags >> 5 & 1
    msg = _NONE
    if topic_len > broker.limits.topic_bytes:
        pass
    elif fields.v5:
        msg = fields.v5.store_will(broker, buf, fields, flags)
    else:
        msg = store(broker.tables, buf, topic, topic_len, payload, size, flags)
    if msg == _NONE:
        broker.messages.refused += 1
    return msg


def _client_id(broker, conn, buf, fields):
    # -> (buffer, offset, length) of the client id; if it is empty, one is assigned [3.1.3-6].
    off, n = fields.client_id
    if n:
        return buf, off, n
    prefix = broker.conns.option(conn, "auto_id_prefix", broker.settings.auto_id_prefix)
    while True:
        broker.auto_id += 1
        name = b"%s%08x" % (prefix, broker.auto_id)
        if broker.sessions.find(name, 0, len(name)) == _NONE:
            fields.assigned = name
            return name, 0, len(name)


def _take_session(broker, conn, ids, off, n, fields):
    """Attach the session of a client id. -> 1: it was there before; 0: it is new; -reason code:
    there is no slot."""
    sessions = broker.sessions
    clean = fields.flags & _CLEAN
    session = sessions.find(ids, off, n)
    present = 0
    if session == _NONE:
        session = _new_session(broker, ids, off, n, fields)
        if session == _NONE:
            return -_QUOTA
    elif clean or _is_anothers(broker, session, fields):
        lifecycle.discard_state(broker, session)
    else:
        present = 1
    sessions.clean[session] = 1 if clean else 0
    senders = broker.subscriptions.routes.senders
    if senders:
        senders.remove(conn)  # what the client before it on this connection's slot was allowed
    lifecycle.attach(broker, conn, session)
    if broker.owners:
        if broker.owners.set(session, fields.owner, sessions.client_id(session)):
            broker.subscriptions.forget_routes()
        if broker.acl and present:
            ondemand.take("access.recheck_sessions", broker.now).handle(broker, session, False)
    return present


def _is_full(broker, conn, old):
    # Is the limit of connections reached, of the broker or of the listener? The client's older
    # connection does not count.
    quotas = broker.conns.quota
    most = broker.settings.max_connections
    if most <= 0:
        most = broker.limits.connections
    there = quotas[conn][_QUOTA_CONNECTED]
    if old != _NONE:
        most += 1
        there -= quotas[old] is quotas[conn]
    if broker.bridges:
        most -= broker.bridges.count()
    return there >= quotas[conn][_QUOTA_MOST] or broker.connected >= most


def _older(broker, session):
    # The connection that has the session, or NONE.
    return broker.sessions.conn[session] if session != _NONE else _NONE


def _gives_way(broker, conn, old, fields):
    # May the older connection be taken over? Not by another user; nor may a client of the network
    # take over one of the program itself (embed/client.py), whose stream has publish().
    streams = broker.conns.stream
    is_same = not hasattr(streams[old], "publish") or hasattr(streams[conn], "publish")
    is_same = is_same and not _is_anothers(broker, broker.conns.session[old], fields)
    return is_same or broker.conns.state[old] == _ENDING


def _is_anothers(broker, session, fields):
    # Does the session belong to another user? Without a recorded user it is the first one's.
    owners = broker.owners
    return owners and owners.user[session] not in (_UNKNOWN, fields.owner)


def _new_session(broker, ids, off, n, fields):
    sessions = broker.sessions
    session = _NONE
    if _may_come(broker, fields):
        session = sessions.take(ids, off, n)
    if session == _NONE and _evict(broker):
        session = sessions.take(ids, off, n)
    if session == _NONE:
        sessions.refused += 1
    return session


def _may_come(broker, fields):
    # Does the policy allow a new session to take a free slot?
    policy = broker.settings.when_full["sessions"]
    return policy in ("drop_oldest", "refuse") or not _stays(fields) or _may_stay(broker)


def _evict(broker):
    # Evict a session without a connection, if the policy allows it.
    sessions = broker.sessions
    policy = broker.settings.when_full["sessions"]
    oldest = _NONE
    if policy != "refuse":
        oldest = _oldest_offline(broker, policy != "drop_oldest")
    if oldest != _NONE:
        sessions.refused += 1
        lifecycle.end_session(broker, oldest)
    return oldest != _NONE


def _may_stay(broker):
    # May one more session outlive its connection? The last `connections` slots of the table are
    # for sessions that do not; but at least `connections` may stay, if there are so many slots.
    sessions = broker.sessions
    staying = 0
    for session in range(sessions.slots):
        if sessions.used(session) and not sessions.clean[session]:
            staying += 1
    most = broker.limits.connections
    return staying < sessions.slots - min(most, max(0, sessions.slots - most))


def _oldest_offline(broker, empty):
    # The session whose connection ended first, or NONE. empty: among those that have neither a
    # message to deliver nor a QoS 2 id. A bridge's is never evicted.
    sessions = broker.sessions
    oldest = _NONE
    for session in range(sessions.slots):
        if sessions.used(session) and sessions.conn[session] == _NONE:
            if broker.bridges and broker.bridges.used(session):
                continue
            if empty and (sessions.head[session] != _NONE or sessions.id_count[session]):
                continue
            if oldest == _NONE or sessions.left[session] < sessions.left[oldest]:
                oldest = session
    return oldest


def refuse(broker, conn, code, fields, text=b""):
    """Send CONNACK with a return code and disconnect. text: which table was full, for the log."""
    if fields.v5:
        code = fields.v5.refuse(broker, conn, code)
    else:
        code = min(code, 5)
        put_ack(broker, conn, _CONNACK, code)
    if broker._log_mask & _NOTICE:
        ondemand.log_event(broker, "refused", conn, (code, fields, text))
    return _REFUSED
