# quota.py - how much of the space for messages a session may have, once much of it is in use
# (is_tight() of delivery/routing.py), and what max_queued_bytes and max_inflight_bytes allow.
# Loaded on demand; owns nothing. Does not allocate.
from slotmq.constants import (CROWDED, DELIVERIES, INFLIGHT_BYTES, IN_USE, MAX_INFLIGHT, MESSAGES,
    NONE, QUEUED_BYTES)

_OF_BYTES = 6


def may_hold(broker, session, msg, new_size, freed, n):
    """May a session have one message more? msg: its slot, or NONE; new_size: its bytes if it has
    no slot yet; freed: blocks that were freed for it; n: how many deliveries it takes, or NONE:
    one, and max_queued_bytes must be checked. n < 0: how many deliveries, `msg` at most, may be in
    flight?

    A session gets at most max_session_share of the deliveries, and of the message slots and blocks
    that retained messages leave. Once max_offline_share of these is in use, sessions without a
    connection get nothing more, and each other session at most an equal part of the rest. A
    session without any message may have one while it is connected."""
    if n < 0:
        return _within_bytes(broker, session, msg)
    return not bound(broker, session, msg, new_size, freed, n)


def bound(broker, session, msg, new_size, freed, n):
    """What keeps the session from one message more, as may_hold(): 0: nothing, else one of the
    numbers above."""
    if n == NONE and _has_queued(broker, session, broker.settings.max_queued_bytes):
        return QUEUED_BYTES
    sessions = broker.sessions
    messages = broker.messages
    arena = messages.arena
    free = messages.slots - messages.count[IN_USE]
    free_blocks = arena.free_blocks()
    size = messages.blocks(msg)
    if msg == NONE:
        size = (new_size + arena.size - 1) // arena.size
        free -= 1
        free_blocks -= size
    most = messages.slots - broker.retained.names.count()
    most_blocks = arena.blocks - broker.retained.blocks
    left = 100 - broker.settings.max_offline_share
    crowded = free * 100 < most * left or free_blocks * 100 < most_blocks * left
    crowded = crowded and (msg == NONE or size > freed)
    deliveries = broker.deliveries
    free = deliveries.slots - deliveries.count[IN_USE] - 1
    if n and not freed and free * 100 < deliveries.slots * left:
        crowded = True
    crowded = int(crowded)
    if crowded and sessions.conn[session] == NONE:
        return CROWDED
    slots, blocks = of_session(broker, session)
    share = broker.settings.max_session_share * sessions.slots
    if crowded:
        share = min(share, left)
    share_of = 100 * sessions.slots
    taken = n and sessions.queued[session] + sessions.inflight[session]
    if taken and taken >= deliveries.slots * share // share_of:
        return DELIVERIES + crowded
    if not blocks:
        return 0
    if slots >= most * share // share_of:
        return MESSAGES + crowded
    return _OF_BYTES + crowded if blocks + size > most_blocks * share // share_of else 0


def _has_queued(broker, session, most):
    # Do so many bytes wait behind what the window can take? As in mosquitto, a message may begin
    # below the limit and end above it.
    sessions = broker.sessions
    deliveries = broker.deliveries
    waiting = sessions.queued[session]
    if sessions.conn[session] != NONE:
        waiting += min(sessions.inflight[session] - deliveries.window[MAX_INFLIGHT], 0)
    entry = sessions.tail[session]
    while waiting > 0 and most > 0:
        most -= broker.messages.payload_len[deliveries.msg[entry]]
        entry = deliveries.prev[entry]
        waiting -= 1
    return most <= 0


def _within_bytes(broker, session, most):
    """How many of the session's first deliveries, `most` at most, may be in flight with
    max_inflight_bytes? As in mosquitto, a message may begin below the limit and end above it."""
    deliveries = broker.deliveries
    left = deliveries.count[INFLIGHT_BYTES]
    entry = broker.sessions.head[session]
    n = 0
    while entry != NONE and n < most and left > 0:
        if deliveries.flags[entry] & 6:  # QoS 0 is never in flight
            n += 1
            if deliveries.msg[entry] != NONE:  # has a message, which waits for PUBREC or PUBACK
                left -= broker.messages.payload_len[deliveries.msg[entry]]
        entry = deliveries.next[entry]
    return most if left > 0 else n


def of_session(broker, session):
    """Message slots and blocks of a session: of its deliveries, and of its receive list."""
    sessions = broker.sessions
    slots = sessions.queued[session] + sessions.inflight[session]
    blocks = sessions.blocks[session] if sessions.blocks else _queued(broker, session)
    if sessions.id_msg:  # qos2_delivery release
        first = session * sessions.received
        for i in range(first, first + sessions.id_count[session]):
            slots += sessions.id_msg[i] != NONE
            blocks += broker.messages.blocks(sessions.id_msg[i])
    return slots, blocks


def _queued(broker, session):
    """Blocks of the messages in a session's list of deliveries."""
    deliveries = broker.deliveries
    blocks = 0
    entry = broker.sessions.head[session]
    while entry != NONE:
        blocks += broker.messages.blocks(deliveries.msg[entry])
        entry = deliveries.next[entry]
    return blocks
