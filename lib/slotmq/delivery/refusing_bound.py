# refusing_bound.py - what the log says of the bound that refused a message or a delivery: its
# name, its value, what is in use and what was needed. Loaded on demand; owns nothing; allocates.
from slotmq.constants import (AMPLE, CROWDED, DELIVERIES, FIRST_FREE, IN_USE, MAX_INFLIGHT,
    MESSAGES, MORE_QUEUED, NONE, NOTED_QOS_0, QUEUED_BYTES, QUOTAS_FROM, QUOTA_SLOTS)
from slotmq.delivery import quota


def report(broker, what, session, msg, size):
    """Store in Broker.said what refuses a message of so many bytes, or that in slot msg: for all,
    or for this session. status/log_full_tables.py logs and removes it."""
    messages = broker.messages
    size = size or messages.topic_len[msg] + 2 + messages.payload_len[msg]
    if broker.journal_full:
        text = ": the journal's space"
    elif session == NONE:
        text = ": " + _of_all(messages, size)
    else:
        who = broker.sessions.client_id(session).decode()
        why = _of_qos_0 if what == NOTED_QOS_0 else _of_session
        text = ", the first for %r: %s" % (who, why(broker, session, msg, size))
    broker.said[what] = text


def _of_all(messages, size):
    arena = messages.arena
    if messages.count[IN_USE] == messages.slots:
        return "limit messages %d, all in use" % messages.slots
    used = (arena.blocks - arena.free_blocks()) * arena.size
    what = arena.blocks * arena.size, used, size
    return "limit message_bytes %d, %d in use, %d needed" % what


def _of_qos_0(broker, session, msg, size):
    # As delivery/routing.is_slow() decides.
    sessions, conns, messages = broker.sessions, broker.conns, broker.messages
    conn = sessions.conn[session]
    first = entry = sessions.cursor[session]
    while entry != NONE and not broker.deliveries.flags[entry] & 6:
        entry = broker.deliveries.next[entry]
    if entry != first:
        what = broker.deliveries.window[MAX_INFLIGHT], sessions.inflight[session]
        if entry != NONE:
            return "max_inflight_messages %d, %d sent, and QoS 1 or 2 waits before it" % what
    elif first != NONE or conns.chunked_msg[conn] == NONE:
        used = conns.tx_end[conn] - conn * conns.tx_bytes
        if used or size <= conns.tx_bytes:
            return "limit tx_bytes %d, %d in use, %d needed" % (conns.tx_bytes, used, size)
        return _of_all(messages, size - conns.tx_bytes)
    bytes_ = broker.limits.message_bytes
    if bytes_ < AMPLE:
        return "limit message_bytes %d, %d needed to queue QoS 0" % (bytes_, AMPLE)
    return _of_quota(broker, size)


def _of_quota(broker, size):
    # What is_tight() has found
    settings, messages = broker.settings, broker.messages
    window, arena = broker.deliveries.window, messages.arena
    has, needed = messages.count[IN_USE], 1
    what = "messages", messages.slots
    if has + 1 <= window[QUOTA_SLOTS]:
        what = "deliveries", broker.deliveries.slots
        has = broker.deliveries.count[IN_USE]
        if has + 1 <= broker.deliveries.count[QUOTAS_FROM]:
            what = "message_bytes", arena.blocks * arena.size
            has, needed = (arena.blocks - arena.free_blocks()) * arena.size, size
    share = "max_session_share %d" % settings.max_session_share
    if settings.max_offline_share < settings.max_session_share:
        share = "max_offline_share %d" % settings.max_offline_share
    return "%s of limit %s %d, %d in use, %d needed" % ((share,) + what + (has, needed))


def _of_session(broker, session, msg, size):
    sessions, deliveries, settings = broker.sessions, broker.deliveries, broker.settings
    messages = broker.messages
    waiting = sessions.queued[session]
    inflight, most = deliveries.window[:2]
    what = most, inflight
    if sessions.conn[session] != NONE:
        waiting += sessions.inflight[session]
        most += inflight
    if waiting >= most + deliveries.count[MORE_QUEUED]:
        return "max_queued_messages %d, max_inflight_messages %d, %d wait" % (what + (waiting,))
    if deliveries.count[FIRST_FREE] == NONE:
        return "limit deliveries %d, all in use" % deliveries.slots
    # (drop_oldest() may have freed blocks, which does not change much.)
    found = quota.bound(broker, session, msg, size, 0, 1 if waiting < most else NONE)
    if found == QUEUED_BYTES:
        return "max_queued_bytes %d" % settings.max_queued_bytes
    if found == CROWDED:
        return "max_offline_share %d, and it has no connection" % settings.max_offline_share
    slots, blocks = quota.of_session(broker, session)
    kind = found & ~1
    what = "message_bytes", messages.arena.blocks * messages.arena.size
    has, needed = blocks * messages.arena.size, size
    if kind == DELIVERIES:
        what, has, needed = ("deliveries", deliveries.slots), slots, 1
    elif kind == MESSAGES:
        what, has, needed = ("messages", messages.slots), slots, 1
    share = "max_session_share %d" % settings.max_session_share
    if found & CROWDED:
        share = "max_offline_share %d, used by all, its part" % settings.max_offline_share
    return "%s of limit %s %d, it has %d, %d needed" % ((share,) + what + (has, needed))
