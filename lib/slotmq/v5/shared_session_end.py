# shared_session_end.py - what becomes of messages of shared subscriptions when a session ends
# [5.0, 4.8.2]. Loaded on demand. Owns nothing. Does not allocate.
from slotmq.constants import BY, NONE, QUEUED, RAP, SENT_1
from slotmq.delivery import routing
from slotmq.fast import finish, unref


def handle(broker, session):
    """Pass messages of shared subscriptions of a session that ends to other members.

    A QoS 2 message that was sent is not passed on [4.8.2-5]."""
    # Until the next tick nothing but this removes what has expired, so none of this list.
    broker.five.reclaim()
    deliveries = broker.deliveries
    flags = broker.deliveries.flags
    entry = broker.sessions.head[session]
    while entry != NONE:
        after = deliveries.next[entry]
        passes = deliveries.state[entry] in (QUEUED, SENT_1)
        group = broker.five.group[entry] if flags[entry] & BY else NONE
        if group != NONE and passes and not deliveries.may_be_known(entry):
            _pass(broker, session, entry, group)
        entry = after


def _pass(broker, session, entry, slot):
    # The delivery is removed first, so that the new one has space in a full table.
    subs = broker.subscriptions
    sub = broker.five.shares.choose(broker, slot, 1, session, broker.deliveries.msg[entry])
    if sub == NONE:
        return
    flags = min(broker.deliveries.flags[entry] & 6, subs.qos[sub] << 1)
    msg = broker.deliveries.msg[entry]
    if broker.five.options[sub] & RAP:
        flags |= broker.messages.flags[msg] & 1
    broker.messages.refs[msg] += 1
    finish(broker.tables, entry)
    made = routing.enqueue(broker, subs.session[sub], msg, flags)
    if made != NONE:
        five = broker.five
        five.set_subscription(broker, made, slot, five.identifier[sub])
    unref(broker.tables, msg)
