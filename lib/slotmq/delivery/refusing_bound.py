# refusing_bound.py - what the log says of the bound that refused a message or a delivery: its
# name, its value, what is in use and what was needed. Loaded on demand; owns nothing; allocates.
from slotmq.delivery import quota
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_CROWDED = const(1)
_DELIVERIES = const(2)
_MESSAGES = const(4)
_QUEUED_BYTES = const(8)


def report(broker, what, session, msg, size):
    """Store in Broker.said what refuses a message of so many bytes, or that in slot msg: for all,
    or for this session. status/log_full_tables.py logs and removes it."""
    messages = broker.messages
    size = size or messages.topic_len[msg] + 2 + messages.payload_len[msg]
    if broker.journal_full:
        text = ": the journal's space"
    elif session == _NONE:
        text = ": " + _of_all(messages, size)
    else:
        who = broker.sessions.client_id(session).decode()
        text = ", the first for %r: %s" % (who, _of_session(broker, session, msg, size))
    broker.said[what] = text


def _of_all(messages, size):
    arena = messages.arena
    if messages.count[0] == messages.slots:
        return "limit messages %d, all in use" % messages.slots
    used = (arena.blocks - arena.free_blocks()) * arena.size
    what = arena.blocks * arena.size, used, size
    return "limit message_bytes %d, %d in use, %d needed" % what


def _of_session(broker, session, msg, size):
    sessions, deliveries, settings = broker.sessions, broker.deliveries, broker.settings
    messages = broker.messages
    waiting = sessions.queued[session]
    inflight, most = deliveries.window[:2]
    what = most, inflight
    if sessions.conn[session] != _NONE:
        waiting += sessions.inflight[session]
        most += inflight
    if waiting >= most + deliveries.count[6]:
        return "max_queued_messages %d, max_inflight_messages %d, %d wait" % (what + (waiting,))
    if deliveries.count[2] == _NONE:
        return "limit deliveries %d, all in use" % deliveries.slots
    # (drop_oldest() may have freed blocks, which does not change much.)
    found = quota.bound(broker, session, msg, size, 0, 1 if waiting < most else _NONE)
    if found == _QUEUED_BYTES:
        return "max_queued_bytes %d" % settings.max_queued_bytes
    if found == _CROWDED:
        return "max_offline_share %d, and it has no connection" % settings.max_offline_share
    slots, blocks = quota.of_session(broker, session)
    kind = found & ~1
    what = "message_bytes", messages.arena.blocks * messages.arena.size
    has, needed = blocks * messages.arena.size, size
    if kind == _DELIVERIES:
        what, has, needed = ("deliveries", deliveries.slots), slots, 1
    elif kind == _MESSAGES:
        what, has, needed = ("messages", messages.slots), slots, 1
    share = "max_session_share %d" % settings.max_session_share
    if found & _CROWDED:
        share = "max_offline_share %d, used by all, its part" % settings.max_offline_share
    return "%s of limit %s %d, it has %d, %d needed" % ((share,) + what + (has, needed))
