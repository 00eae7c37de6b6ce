# rows.py - writes the journal's rows of sessions and subscriptions, which CONNECT and SUBSCRIBE
# change. Only journal/compaction.py calls it, and is loaded with it. Owns nothing. Allocates.
from struct import pack_into

from slotmq.constants import ANONYMOUS, BODY_AT, NEVER, NONE, PROGRAM, ROW
from slotmq.fast.journal import next_bit
from slotmq.journal import records

_EINVAL = 22


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
            dirty[at] = dirty[at] & ~1 | ROW
        else:
            journal.gone(records.SESSION_GONE, dirty, at)
        at = next_bit(dirty, at + 1, sessions.slots, 1)
    sessions.changed = False


def is_gone(sessions, session):
    """Needs a session no row, since it ends with its connection and has no will?"""
    return sessions.clean[session] and sessions.will[session] == NONE


def _session(journal, sessions, session):
    buf = journal.buf
    five = journal.broker.five
    will = sessions.will[session]
    flags = records.IS_CLEAN if sessions.clean[session] else 0
    if sessions.conn[session] != NONE:
        flags |= records.WAS_CONNECTED
    if will != NONE:
        flags |= records.HAS_WILL
        journal.message(will)
    if five and journal.broker.subscriptions.kind[session]:
        flags |= records.OF_VERSION_5
    text = sessions.client_id(session)
    owners = journal.broker.owners
    if owners and owners.user[session] <= ANONYMOUS and owners.user[session] != PROGRAM:
        flags |= records.OWNED
        user = owners.name(session) or b""
        text = bytes((len(user) >> 8, len(user) & 255)) + user + text
    expiry, delay, due, since = NEVER, 0, 0, 0
    if five:
        expiry, delay = five.expiry[session], five.will_delay[session]
        due, since = five.will_at[session], five.will_since[session]
    _must_fit(sessions.names.length[session], len(buf) - BODY_AT - records.SESSION_SIZE)
    fields = session, flags, sessions.left[session], expiry, will, delay, due, since
    pack_into(records.SESSION_LAYOUT, buf, BODY_AT, *fields)
    journal.record(records.SESSION, records.SESSION_SIZE, len(text))
    journal.put(text, 0, len(text))
    journal.close_record()


def _subscriptions(journal, subs):
    dirty = subs.dirty
    at = next_bit(dirty, 0, subs.slots, 1)
    while at < subs.slots:
        session = subs.session[at]
        if session == NONE or journal.broker.sessions.clean[session]:
            journal.gone(records.SUBSCRIPTION_GONE, dirty, at)
        else:
            _subscription(journal, subs, at, session)
            dirty[at] = ROW
        at = next_bit(dirty, at + 1, subs.slots, 1)
    subs.changed = False


def _subscription(journal, subs, sub, session):
    buf = journal.buf
    five = journal.broker.five
    options, ident, share, n = 0, 0, NONE, 0
    if five:
        options, ident, share = five.options[sub], five.identifier[sub], five.share[sub]
    # Share name and filter together are no longer than a filter may be.
    text = bytearray(journal.broker.limits.topic_bytes)
    if share != NONE:
        n = five.shares.names.length[share]
    _must_fit(n + _filter_length(subs, subs.node[sub]), len(text))
    if n:
        five.shares.names.read(share, text, 0)
    start = subs.filter_text(subs.node[sub], text, len(text))
    fields = sub, session, subs.qos[sub], options, ident, share, n
    pack_into(records.SUBSCRIPTION_LAYOUT, buf, BODY_AT, *fields)
    journal.record(records.SUBSCRIPTION, records.SUBSCRIPTION_SIZE, n + len(text) - start)
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
