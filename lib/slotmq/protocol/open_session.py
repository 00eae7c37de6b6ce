# open_session.py - the last steps of CONNECT, OPENING: take over the client's older connection,
# create or resume its session, store its will, send CONNACK; and go_through(), which goes through
# steps and refuses. See protocol/connect.py. The control plane: may allocate and free.
from slotmq.constants import (ACCEPTED, CLEAN, CONNACK, CONNECTED, ENDING, FIVE, MALFORMED,
    MALFORMED_PACKET, MAX_INFLIGHT, NONE, NOTICE, OK, PROTOCOL, QUOTA_CONNECTED, QUOTA_MOST,
    REFUSED, REFUSE_FULL, REFUSE_ID, REFUSE_QUOTA, TAKEN_OVER, UNDER_WAY, UNKNOWN, WAITS, WILL)
from slotmq.delivery import lifecycle
from slotmq.delivery.outgoing import put_ack
from slotmq.fast import store, unref
from slotmq.platform import ondemand

_LATER = -1  # of a step: a password is being computed; below: AUTH was sent
_COUNTED = 7  # a level: version 3 with receive_max


def go_through(steps, broker, conn, fields):
    """Go through steps of CONNECT, up to a refusal; a result."""
    for step in steps:
        refusal = step(broker, conn, fields)
        if refusal > 0:
            return refuse(broker, conn, refusal, fields)
        if refusal:
            return WAITS if refusal == _LATER else OK
    return ACCEPTED


def refuse(broker, conn, refusal, fields):
    """Send CONNACK with the refusal's code, if the version has one, and disconnect."""
    if fields.v5:
        code = fields.v5.refuse(broker, conn, refusal & 0xFF)
    else:
        code = refusal >> 8
        if not code:
            return MALFORMED if refusal == MALFORMED_PACKET else PROTOCOL
        put_ack(broker, conn, CONNACK, code)
    if broker._log_mask & NOTICE:
        ondemand.log_event(broker, "refused", conn, (code, fields))
    return REFUSED


def _full(fields, what, refusal=REFUSE_FULL):
    # The refusal, if there is too little of something.
    fields.full = what
    return refusal


def name_client(broker, conn, fields):
    """The client id; if it is empty, one is assigned [3.1.3-6]."""
    fields.name = fields.read(fields.client_id)
    prefix = broker.conns.option(conn, "auto_id_prefix", broker.settings.auto_id_prefix)
    while not fields.name:
        broker.auto_id += 1
        name = b"%s%08x" % (prefix, broker.auto_id)
        if broker.sessions.find(name, 0, len(name)) == NONE:
            fields.name = fields.assigned = name
    return 0


def prepare_answer(broker, conn, fields):
    """In version 5: a client that accepts no CONNACK of its size is refused."""
    return fields.v5.check(broker, conn, fields) if fields.v5 else 0


def note_user(broker, conn, fields):
    """The user, for log and hooks."""
    user = broker._log_mask & NOTICE and fields.read()
    if getattr(broker._hooks, "with_peer", False):
        user = fields.user or fields.read(fields.user_name)
    source = broker.conns.source[conn]
    if user and source:
        broker.conns.source[conn] = [source, user]
    return 0


def find_session(broker, conn, fields):
    """The session of this client id, which may be that of a bridge."""
    sessions = broker.sessions
    fields.session = session = sessions.find(fields.name, 0, len(fields.name))
    fields.conn = sessions.conn[session] if session != NONE else NONE
    bridges = broker.bridges
    return REFUSE_ID if bridges and bridges.used(session) and not fields.trusted else 0


def check_journal(broker, conn, fields):
    """A full journal takes no new row, of a will or of a session that stays. That is counted."""
    if not broker.journal_full:
        return 0
    session = fields.session
    if fields.flags & WILL:
        broker.messages.refused += 1
    elif _stays(fields) and (session == NONE or broker.sessions.clean[session]):
        broker.sessions.refused += 1
    else:
        return 0
    return _full(fields, b"space in the journal")


def find_owner(broker, conn, fields):
    """The user that the session belongs to."""
    if broker.owners:
        fields.owner = broker.owners.take(broker, conn, fields)
        if fields.owner == NONE:
            what = b"users, or client_id_bytes for the name"
            return _full(fields, what, REFUSE_QUOTA if fields.v5 else REFUSE_FULL)
    return 0


def check_older(broker, conn, fields):
    """May the older connection be taken over? Not by another user; nor may a client of the network
    take over one of the program itself."""
    old = fields.conn
    if old == NONE or broker.conns.state[old] == ENDING:
        return 0
    is_same = fields.trusted or not lifecycle.is_own(broker, old)
    is_same = is_same and not _is_anothers(broker, broker.conns.session[old], fields)
    return 0 if is_same else REFUSE_ID


def check_space(broker, conn, fields):
    """Is there space for one more connection that has a session?"""
    if _has_space(broker, conn, fields.conn):
        return 0
    for i in range(broker.ending_count):  # their sessions are free for others then
        lifecycle.detach(broker, broker.ending[i])
    find_session(broker, conn, fields)
    if _has_space(broker, conn, fields.conn):
        return 0
    broker.conns.refused += 1
    return _full(fields, b"connections")


def store_will(broker, conn, fields):
    """The will in a message slot."""
    if not fields.flags & WILL:
        return 0
    flags = fields.flags >> 2 & 6 | fields.flags >> 5 & 1
    if fields.v5:
        msg = fields.v5.take(broker, fields, flags)
    else:
        topic = fields.will_topic + fields.will_message
        msg = store(broker.tables, fields.buf, *topic, flags)
    if msg == NONE:
        broker.messages.refused += 1
        return _full(fields, b"messages for the will")
    fields.will = msg
    return 0


def take_session(broker, conn, fields):
    """Attach the session of the client id, an old one or a new one; CONNACK."""
    sessions = broker.sessions
    present = 0
    if fields.conn != NONE:
        if sessions.clean[fields.session] and not (_may_come(broker, fields) or _evict(broker)):
            sessions.refused += 1  # no slot for a session that stays in place of a clean one
            present = -1
        else:  # nothing can refuse it now: end the older connection, publish its will [3.1.4-2]
            broker.end(fields.conn, TAKEN_OVER)
            lifecycle.detach(broker, fields.conn)
    present = present or _attach(broker, conn, fields)
    if present < 0:
        if fields.will != NONE:
            unref(broker.tables, fields.will)
        what = b"sessions" if _may_come(broker, fields) else b"persistent sessions"
        return _full(fields, what, REFUSE_QUOTA if fields.v5 else REFUSE_FULL)
    _accept(broker, conn, fields, present)
    return 0


def _accept(broker, conn, fields, present):
    session = broker.conns.session[conn]
    broker.sessions.will[session] = fields.will
    broker.conns.state[conn] = CONNECTED
    broker.conns.keep_alive_timeout[conn] = fields.keep_alive * 15  # 1.5 times [3.1.2-24]
    if fields.v5:
        if fields.method:
            broker.conns.state[conn] = FIVE
        fields.v5.start(broker, conn, fields, present)
    else:
        if broker.five:
            broker.five.packet_max[conn] = 0  # of the client that had this slot before
            broker.five.opened_3(broker, session, fields.flags & CLEAN, fields.kind)
            if fields.kind:
                _bound_window(broker, conn)
        put_ack(broker, conn, CONNACK, present << 8 if fields.level > 3 else 0)
    if broker._log_mask & NOTICE:
        ondemand.log_event(broker, "connected", conn, fields)


OPENING = (
    name_client,
    prepare_answer,
    note_user,
    find_session,
    check_journal,
    find_owner,
    check_older,
    check_space,
    store_will,
    take_session,
)


def _bound_window(broker, conn):
    """The connection is that of a bridge of version 3: set its window."""
    window = broker.deliveries.window[MAX_INFLIGHT]
    if window > UNDER_WAY and not broker.settings.max_inflight_messages:
        window = UNDER_WAY
        broker.conns.level[conn] = _COUNTED
    broker.five.receive_max[conn] = window


def _stays(fields):
    # Does the client ask for a session that outlives its connection?
    return fields.expiry if fields.v5 else not fields.flags & CLEAN


def _attach(broker, conn, fields):
    # Attach the session of the client id. -> 1: it was there before; 0: it is new; -1: there is no
    # slot for it.
    sessions = broker.sessions
    name = fields.name
    clean = fields.flags & CLEAN
    present = 0
    session = sessions.find(name, 0, len(name))
    if session == NONE:
        session = _new_session(broker, fields)
        if session == NONE:
            return -1
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
        if broker.owners.set(session, fields.owner, name):
            broker.subscriptions.forget_routes()
        if broker.acl and present:
            ondemand.take("access.recheck_sessions", broker.now).handle(broker, session, False)
    return present


def _has_space(broker, conn, old):
    # Is there a connection left, of the broker's limit and of the listener's? The client's older
    # connection does not count.
    quotas = broker.conns.quota
    most = broker.settings.max_connections
    if most <= 0:
        most = broker.limits.connections
    there = quotas[conn][QUOTA_CONNECTED]
    if old != NONE:
        most += 1
        there -= quotas[old] is quotas[conn]
    if broker.bridges:
        most -= broker.bridges.count()
    return there < quotas[conn][QUOTA_MOST] and broker.connected < most


def _is_anothers(broker, session, fields):
    # Does the session belong to another user? Without a recorded user it is the first one's.
    owners = broker.owners
    return owners and owners.user[session] not in (UNKNOWN, fields.owner)


def _new_session(broker, fields):
    sessions = broker.sessions
    name = fields.name
    session = NONE
    if _may_come(broker, fields):
        session = sessions.take(name, 0, len(name))
    if session == NONE and _evict(broker):
        session = sessions.take(name, 0, len(name))
    if session == NONE:
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
    oldest = NONE
    if policy != "refuse":
        oldest = _oldest_offline(broker, policy != "drop_oldest")
    if oldest != NONE:
        sessions.refused += 1
        lifecycle.end_session(broker, oldest)
    return oldest != NONE


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
    oldest = NONE
    for session in range(sessions.slots):
        if sessions.used(session) and sessions.conn[session] == NONE:
            if broker.bridges and broker.bridges.used(session):
                continue
            if empty and (sessions.head[session] != NONE or sessions.id_count[session]):
                continue
            if oldest == NONE or sessions.left[session] < sessions.left[oldest]:
                oldest = session
    return oldest
