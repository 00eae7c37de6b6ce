# rows.py - writes the journal's rows of sessions and subscriptions, which CONNECT and SUBSCRIBE
# change. Only journal/compaction.py calls it, and is loaded with it. Owns nothing. Allocates.
from slotmq.delivery.encode import put_u16, put_u32
from slotmq.fast.journal import next_bit
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_NEVER = const(0x3FFFFFFF)
_FIELDS = const(8)
_ROW = const(4)
_EINVAL = const(22)
# Types of records
_SESSION = const(2)
_SESSION_GONE = const(3)
_SUBSCRIPTION = const(4)
_SUBSCRIPTION_GONE = const(5)
# Flags of a session's row
_IS_CLEAN = const(1)
_CONNECTED = const(2)
_WILL = const(4)
_V5 = const(8)
_OWNED = const(16)
_PROGRAM = const(0xFFFC)  # of access/owners.py, as the next one
_ANONYMOUS = const(0xFFFD)


def write_rows(journal):
    """Write the rows of all sessions and subscriptions that have changed."""
    if journal.broker.sessions.changed:
        _sessions(journal, journal.broker.sessions)
    if journal.broker.subscriptions.changed:
        _subscriptions(journal, journal.broker.subscriptions)


def _sessions(journal, sessions):
    dirty = sessions.dirty
    at = next_bit(dirty, 0, sessions.slots, 1)
    while at < sessions.slots:
        if sessions.used(at) and not is_gone(sessions, at):
            _session(journal, sessions, at)
            dirty[at] = dirty[at] & ~1 | _ROW
        else:
            journal.gone(_SESSION_GONE, dirty, at)
        at = next_bit(dirty, at + 1, sessions.slots, 1)
    sessions.changed = False


def is_gone(sessions, session):
    """Needs a session no row, since it ends with its connection and has no will?"""
    return sessions.clean[session] and sessions.will[session] == _NONE


def _session(journal, sessions, session):
    # slot, flags, when its connection ended, expiry; of the will: message, delay, when it is
    # due, since when it is there; if the session's user is known, the length of its name and the
    # name; client id
    buf = journal.buf
    five = journal.broker.five
    will = sessions.will[session]
    flags = _IS_CLEAN if sessions.clean[session] else 0
    if sessions.conn[session] != _NONE:
        flags |= _CONNECTED
    if will != _NONE:
        flags |= _WILL
        journal.message(will)
    if five and journal.broker.subscriptions.kind[session]:
        flags |= _V5
    user = b""
    owners = journal.broker.owners
    if owners and owners.user[session] <= _ANONYMOUS and owners.user[session] != _PROGRAM:
        flags |= _OWNED
        user = owners.name(session) or user
    at = put_u16(buf, _FIELDS, session)
    buf[at] = flags
    at = put_u32(buf, at + 1, sessions.left[session])
    at = put_u32(buf, at, five.expiry[session] if five else _NEVER)
    at = put_u16(buf, at, will)
    at = put_u32(buf, at, five.will_delay[session] if five else 0)
    at = put_u32(buf, at, five.will_at[session] if five else 0)
    at = put_u32(buf, at, five.will_since[session] if five else 0)
    _must_fit(sessions.names.length[session], len(buf) - at)
    text = bytes((len(user) >> 8, len(user) & 255)) + user if flags & _OWNED else user
    text += sessions.client_id(session)
    journal.record(_SESSION, at, len(text))
    journal.put(text, 0, len(text))
    journal.close_record()


def _subscriptions(journal, subs):
    dirty = subs.dirty
    at = next_bit(dirty, 0, subs.slots, 1)
    while at < subs.slots:
        session = subs.session[at]
        if session == _NONE or journal.broker.sessions.clean[session]:
            journal.gone(_SUBSCRIPTION_GONE, dirty, at)
        else:
            _subscription(journal, subs, at, session)
            dirty[at] = _ROW
        at = next_bit(dirty, at + 1, subs.slots, 1)
    subs.changed = False


def _subscription(journal, subs, sub, session):
    # slot, session, QoS, options, identifier, group, length of the share name, share name, filter
    buf = journal.buf
    five = journal.broker.five
    at = put_u16(buf, _FIELDS, sub)
    at = put_u16(buf, at, session)
    buf[at] = subs.qos[sub]
    buf[at + 1] = five.options[sub] if five else 0
    at = put_u32(buf, at + 2, five.identifier[sub] if five else 0)
    share = five.share[sub] if five else _NONE
    # Share name and filter together are no longer than a filter may be.
    at = put_u16(buf, at, share)
    text = bytearray(journal.broker.limits.topic_bytes)
    n = five.shares.names.length[share] if share != _NONE else 0
    _must_fit(n + _filter_length(subs, subs.node[sub]), len(text))
    if n:
        five.shares.names.read(share, text, 0)
    start = subs.filter_text(subs.node[sub], text, len(text))
    buf[at] = n
    journal.record(_SUBSCRIPTION, at + 1, n + len(text) - start)
    journal.put(text, 0, n)
    journal.put(text, start, len(text) - start)
    journal.close_record()


def _filter_length(subs, node):
    n = -1
    while node != subs.root:
        n += subs.nodes.length[node] + 1
        node = subs.nodes.scope[node]
    return n


def _must_fit(n, space):
    # A row that no start could read is not written, so the current generation stays.
    if n > space:
        raise OSError(_EINVAL, "write")
