# session.py - the session behind a bridge: what it gets with each connection. Loaded on demand;
# owns nothing; `one` is the Bridge; allocates.
from slotmq.constants import ACCEPTED, BRIDGE, CLEAN, FAILURE, NEVER, NONE, OTHER, PLAIN, WARNING
from slotmq.delivery import lifecycle
from slotmq.fast import unref

_MAXIMUM_QOS = 0x24  # a property of CONNACK
_NOT_BACK = 16 | 8  # No Local, and Retain As Published: see v5/extension.py
_LIMITED = 6  # a level: 3.1.1 with packet_max and receive_max


def enter(one):
    """Give the slot its session, as CONNECT does; False: a table is full."""
    broker = one.broker
    conns = broker.conns
    conn = one.conn
    one.is_held = False
    conns.stream[conn] = one  # for this moment: a client of the program itself
    user = one.options.local_username
    result = one.module("protocol.connect").connect(
        broker,
        conn,
        one.local_id,
        user.encode() if user else None,
        CLEAN if one.is_clean else 0,
        one.keep_alive(),
    )
    conns.tx_end[conn] = conn * conns.tx_bytes  # without the answer
    is_open = result == ACCEPTED
    if is_open:
        one.session = session = conns.session[conn]
        _take_limits(one, session)
        if not one.is_clean:  # whatever persistent_client_expiration says
            broker.five.set_expiry(broker, session, NEVER)
        _subscribe(one, session)
    one.is_held = not is_open
    conns.stream[conn] = one.stream
    return is_open


def _take_limits(one, session):
    # What this connection allows, and so how its messages may be handled.
    five = one.broker.five
    conn = one.conn
    most = one.options.bridge_max_packet_size
    five.packet_max[conn] = most and max(most - one.growth, 1)
    kind = 0
    if most:
        kind = OTHER
        one.broker.conns.level[conn] = _LIMITED
    if one.is_5 and one.stream is not one:
        kind = OTHER if one.module("bridge.version5").entered(one) else PLAIN
    five.take(one.broker, session, BRIDGE | kind)
    if one.echoes:
        one.owner.slow[conn] = None
    if _MAXIMUM_QOS in one.remote:
        one.module("bridge.version5").lower_qos(one, one.remote[_MAXIMUM_QOS])


def _subscribe(one, session):
    # Subscribe to what goes out, and to nothing else.
    broker = one.broker
    subs = broker.subscriptions
    wanted = [topic.filters[0] for topic in one.outs]
    for sub in _subscriptions(broker, session):
        end = len(broker.work)
        at = subs.filter_text(subs.node[sub], broker.work, end)
        if bytes(broker.work[at:end]) not in wanted:  # of an earlier configuration
            subs.remove(broker.sessions, sub)
    add = one.module("protocol.subscribe").add
    for topic in one.outs:
        name = topic.filters[0]
        qos = min(topic.qos, one.remote.get(_MAXIMUM_QOS, 2))
        if add(broker, session, name, 0, len(name), qos) >= FAILURE:
            one.log(WARNING, "may not or cannot subscribe to %r" % name.decode())
    for sub in _subscriptions(broker, session):
        broker.five.options[sub] = _NOT_BACK


def _subscriptions(broker, session):
    sub = broker.sessions.first_sub[session]
    while sub != NONE:
        after = broker.subscriptions.next_in_session[sub]
        yield sub
        sub = after


def drop_scans(one):
    """The other broker has our retained messages: what has changed since waits in the session."""
    broker = one.broker
    for sub in _subscriptions(broker, one.session):
        broker.subscriptions.scan[sub] = 0
    broker.sessions.scans[one.session] = 0


def forget_received(one):
    """The other broker has no session, so it sends no PUBREL, and uses the ids anew."""
    broker = one.broker
    sessions = broker.sessions
    session = one.session
    while session != NONE and sessions.id_count[session]:
        at = session * sessions.received + sessions.id_count[session] - 1
        if sessions.id_msg is not None and sessions.id_msg[at] != NONE:
            lifecycle.publish_stored(broker, sessions.id_msg[at], session)
        msg = sessions.remove_received(session, at)
        if msg != NONE:
            unref(broker.tables, msg)
