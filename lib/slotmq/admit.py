# admit.py - a client that may come in: takeover of its older connection, its will, its
# session made or resumed, CONNACK; and the refusal of one that may not. The last steps of
# handle_connect.py. The control plane: may allocate and free.
from slotmq import lifecycle
from slotmq.outbox import put_ack
from slotmq.runtime import const, store, unref

_NONE = const(0xFFFF)
_CONNACK = const(0x20)
_CONNECTED = const(2)
_ENDING = const(3)
_FIVE = const(4)
_REFUSED = const(5)
_TAKEN_OVER = const(7)
_ACCEPTED = const(15)
_NOTICE = const(4)
_SHARE_MOST = const(0)
_SHARE_CONNECTED = const(2)
_BAD_CLIENT_ID = const(2)
_UNAVAILABLE = const(3)
_CLEAN = const(2)
_WILL = const(4)


def open_session(broker, conn, buf, fields):
    """It may come in, if there is room for it; a result."""
    ids, off, n = _client_id(broker, buf, fields)
    if fields.more:
        code = fields.more.prepare(broker, conn, fields)
        if code:
            return refuse(broker, conn, code, fields)
    sessions = broker.sessions
    session = sessions.find(ids, off, n)
    if broker.full and _must_keep(broker, fields, session):
        return refuse(broker, conn, _UNAVAILABLE, fields)
    if session != _NONE and sessions.conn[session] != _NONE:
        if not _take_over(broker, conn, sessions.conn[session]):
            return refuse(broker, conn, _BAD_CLIENT_ID, fields)
    will = _NONE
    if fields.flags & _WILL:
        will = _store_will(broker, buf, fields)
        if will == _NONE:
            return refuse(broker, conn, _UNAVAILABLE, fields)
    present = _take_session(broker, conn, ids, off, n, fields.flags & _CLEAN)
    if present < 0:
        if will != _NONE:
            unref(broker.queue, will)
        return refuse(broker, conn, _UNAVAILABLE, fields)
    session = broker.conns.session[conn]
    sessions.will[session] = will
    broker.conns.state[conn] = _CONNECTED
    broker.conns.patience[conn] = fields.keep_alive * 15  # 1.5 times, in tenths [3.1.2-24]
    if fields.more:
        broker.conns.state[conn] = _FIVE
        fields.more.opened(broker, conn, fields, present)
    else:
        if broker.five:
            broker.five.opened_3(broker, session, fields.flags & _CLEAN)
        put_ack(broker, conn, _CONNACK, present << 8 if fields.level > 3 else 0)
    if broker.log_mask & _NOTICE:
        who = sessions.client_id(session).decode()
        user = ", u'%s'" % fields.user.decode() if fields.user else ""
        what = (who, fields.level, fields.flags >> 1 & 1, fields.keep_alive, user)
        broker.log(_NOTICE, "New client connected as %s (p%d, c%d, k%d%s)." % what)
    return _ACCEPTED


def _must_keep(broker, fields, session):
    # There is no room for what the journal has not: a will, a session that stays.
    if fields.flags & _WILL:
        broker.messages.refused += 1
        return True
    stays = fields.expiry if fields.more else not fields.flags & _CLEAN
    if stays and (session == _NONE or broker.sessions.clean[session]):
        broker.sessions.refused += 1
        return True
    return False


def _store_will(broker, buf, fields):
    topic, topic_len = fields.will_topic
    payload, size = fields.will_message
    flags = fields.flags >> 2 & 6 | fields.flags >> 5 & 1
    msg = _NONE
    if topic_len > broker.limits.topic_bytes:
        pass
    elif fields.more:
        msg = fields.more.store_will(broker, buf, fields, flags)
    else:
        msg = store(broker.queue, buf, topic, topic_len, payload, size, flags)
    if msg == _NONE:
        broker.messages.refused += 1
    return msg


def _client_id(broker, buf, fields):
    # Where the client id stands; an empty one is made up [3.1.3-6].
    off, n = fields.client_id
    if n:
        return buf, off, n
    while True:
        broker.auto_id += 1
        name = b"%s%08x" % (broker.settings.auto_id_prefix, broker.auto_id)
        if broker.sessions.find(name, 0, len(name)) == _NONE:
            fields.assigned = name
            return name, 0, len(name)


def _take_session(broker, conn, ids, off, n, clean):
    """Attach the session of a client id: 1 it was there before, 0 new, -1 no room."""
    sessions = broker.sessions
    if _is_full(broker, conn):
        broker.settle_ending()
    if _is_full(broker, conn):
        broker.conns.refused += 1
        return -1
    session = sessions.find(ids, off, n)
    present = 0
    if session == _NONE:
        session = _new_session(broker, ids, off, n)
        if session == _NONE:
            return -1
    elif clean:
        lifecycle.discard_state(broker, session)
    else:
        present = 1
    sessions.clean[session] = 1 if clean else 0
    lifecycle.attach(broker, conn, session)
    return present


def _is_full(broker, conn):
    # Are as many connected as may be, in all or through the listener it came in by?
    share = broker.conns.share[conn]
    most = broker.settings.max_connections
    if most <= 0:
        most = broker.limits.connections
    return share[_SHARE_CONNECTED] >= share[_SHARE_MOST] or broker.connected >= most


def _take_over(broker, conn, old):
    # The older connection ends now, its will goes out [3.1.4-2]. One of the broker's own
    # program (inside_client.py) gives way to nobody who is on the network.
    streams = broker.conns.stream
    if hasattr(streams[old], "publish") and not hasattr(streams[conn], "publish"):
        if broker.conns.state[old] != _ENDING:
            return False
    broker.end(old, _TAKEN_OVER)
    lifecycle.detach(broker, old)
    return True


def _new_session(broker, ids, off, n):
    sessions = broker.sessions
    session = sessions.take(ids, off, n)
    if session == _NONE and broker.settings.when_full["sessions"] == "drop_oldest":
        oldest = sessions.oldest_offline()
        if oldest != _NONE:
            sessions.refused += 1
            lifecycle.end_session(broker, oldest)
            session = sessions.take(ids, off, n)
    if session == _NONE:
        sessions.refused += 1
    return session


def refuse(broker, conn, code, fields):
    """CONNACK with a return code, and the end."""
    if fields.more:
        fields.more.refuse(broker, conn, code)
    else:
        put_ack(broker, conn, _CONNACK, min(code, 5))
    if broker.log_mask & _NOTICE:
        what = "reason 0x%02x" if code & 0x80 else "return code %d"
        broker.log(_NOTICE, "Connection refused, %s." % (what % code))
    return _REFUSED
