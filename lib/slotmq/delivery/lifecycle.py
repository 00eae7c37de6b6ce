# lifecycle.py - steps in a session's life, which change several tables: a connection gets it or
# leaves it, it ends, its will is published. Owns nothing. Does not allocate.
from slotmq.constants import EXTRA, LEFT, NONE, OF_WILL, QUOTA_CONNECTED
from slotmq.delivery import retain, routing
from slotmq.fast import finish, unref

_LET_IN = 25  # index in stats


def publish_stored(broker, msg, session):
    """Publish a message that was stored earlier: a will, one that waited for PUBREL, or one of the
    broker itself (session: NONE).

    -> False: its client, whose session that is, may not publish it by now."""
    messages = broker.messages
    n = messages.read_topic(msg, broker.work, 0)
    acl = broker.acl
    if acl and session != NONE and not acl.may_publish(session, broker.work, 0, n):
        return False
    before = broker.no_commit
    broker.no_commit = 1
    flags = messages.flags[msg]
    empty = flags & EXTRA
    if empty:
        five = broker.five
        five.to_sweep = True
        empty = five.props[msg] == messages.payload_len[msg]
    if flags & 1:
        retain.set_message(broker, broker.work, 0, n, NONE if empty else msg)
    routing.fan_out(broker, msg, flags >> 1 & 3, routing.route(broker, broker.work, 0, n))
    broker.no_commit = before
    return True


def is_own(broker, conn):
    """Is it a client of the program itself (embed/client.py)?"""
    return hasattr(broker.conns.stream[conn], "publish")


def attach(broker, conn, session):
    """Give a session to a connection; what was in flight will be sent again [4.4.0-1]."""
    sessions = broker.sessions
    assert sessions.conn[session] == NONE and broker.conns.session[conn] == NONE
    if broker.five:
        broker.five.attached(broker, session)
    sessions.conn[session] = conn
    sessions.touch(session)
    sessions.cursor[session] = sessions.head[session]
    broker.conns.session[conn] = session
    broker.connected += 1
    broker.stats[_LET_IN] += 1
    broker.conns.quota[conn][QUOTA_CONNECTED] += 1


def detach(broker, conn):
    """Detach a connection from its session; publish the will, unless DISCONNECT came."""
    conns = broker.conns
    sessions = broker.sessions
    session = conns.session[conn]
    if session == NONE:
        return
    assert sessions.conn[session] == conn and broker.connected > 0
    conns.session[conn] = NONE
    sessions.conn[session] = NONE
    broker.connected -= 1
    conns.quota[conn][QUOTA_CONNECTED] -= 1
    sessions.cursor[session] = sessions.head[session]
    sessions.left[session] = broker.now
    sessions.touch(session)
    if sessions.scans[session]:
        sessions.scans[session] = 0
        subs = broker.subscriptions
        sub = sessions.first_sub[session]
        while sub != NONE:
            subs.scan[sub] = 0
            sub = subs.next_in_session[sub]
    if conns.reason[conn] == LEFT:
        drop_will(broker, session)
    elif not broker.five or not broker.five.keeps_will(broker, session):
        publish_will(broker, session)
    if sessions.clean[session]:
        end_session(broker, session)
    elif broker.five:
        broker.five.note_due(broker, session)


def publish_will(broker, session):
    """Publish the session's will, if it has one."""
    will = broker.sessions.will[session]
    if will != NONE:
        five = broker.five
        if five:
            five.will_goes(broker, session, will)
        broker.messages.refs[will] += 1
        drop_will(broker, session)
        broker.handlers[OF_WILL](broker, will, session)
        unref(broker.tables, will)
        if five:
            five.publisher = NONE


def drop_will(broker, session):
    """Forget the session's will, if it has one."""
    will = broker.sessions.will[session]
    if will != NONE:
        broker.sessions.will[session] = NONE
        broker.sessions.touch(session)
        unref(broker.tables, will)


def end_session(broker, session):
    """Discard a session that has no connection, with its state [3.1.2-6]."""
    discard_state(broker, session)
    broker.sessions.free(session)


def discard_state(broker, session):
    """Empty a session: subscriptions, deliveries, QoS 2 ids; its client id stays."""
    sessions = broker.sessions
    if broker.five:
        broker.five.session_ends(broker, session)
    while sessions.first_sub[session] != NONE:
        broker.subscriptions.remove(sessions, sessions.first_sub[session])
    while sessions.head[session] != NONE:
        finish(broker.tables, sessions.head[session])
    while sessions.id_count[session]:
        at = session * sessions.received + sessions.id_count[session] - 1
        msg = sessions.remove_received(session, at)
        if msg != NONE:
            unref(broker.tables, msg)
