# recheck_sessions.py - drops what a session may no longer read: when its client comes back, and
# when the rules have changed. Loaded on demand; owns nothing. Does not allocate.
#
# Queued messages are dropped. Of those that were sent, QoS 1 is dropped and QoS 2 goes on without
# its message: PUBREL follows, so that the handshake ends and the packet id becomes free. While
# the client is connected it has these already, and acknowledges them: they stay.
from slotmq.constants import DROPPED, NONE, QUEUED, RELEASED, SENT_2
from slotmq.fast import acked, finish


def every_session(broker):
    for session in range(broker.sessions.slots):
        if broker.sessions.used(session):
            handle(broker, session, broker.sessions.conn[session] != NONE)


def handle(broker, session, is_connected):
    """Look through the deliveries of a session. is_connected: for longer than this CONNECT."""
    deliveries = broker.deliveries
    entry = broker.sessions.head[session]
    while entry != NONE:
        after = deliveries.next[entry]
        if not (is_connected and deliveries.state[entry] != QUEUED):
            _look_at(broker, session, entry)
        entry = after


def _look_at(broker, session, entry):
    deliveries = broker.deliveries
    state = deliveries.state[entry]
    if state == RELEASED:
        return
    if not broker.acl.may_read(session, deliveries.msg[entry]):
        drop(broker, session, entry)


def drop(broker, session, entry):
    """Drop the message of a delivery, which is not released yet."""
    deliveries = broker.deliveries
    state = deliveries.state[entry]
    broker.stats[DROPPED] += 1
    if state == QUEUED and deliveries.may_be_known(entry):  # the journal does not know
        deliveries.state[entry] = state = SENT_2
        broker.sessions.queued[session] -= 1
        broker.sessions.inflight[session] += 1
    if state == SENT_2:
        acked(broker.tables, session, entry + 1, SENT_2)
    else:
        finish(broker.tables, entry)
