# compaction.py - the journal's rare tasks: begins a new generation, reserves space for the next
# one, sets whether the journal is full, and writes the rows that CONNECT and SUBSCRIBE change.
# Loaded on demand; allocates. Owns nothing: what must be remembered is in the Journal.
from struct import pack_into

from slotmq.constants import (ANONYMOUS, BODY_AT, CHANGED, ENOMEM, ENOSPC, FOR_THIS_PACKET,
    HAS_ROW, IDS_UNSAVED, MAX_INFLIGHT, NEVER, NONE, NOTICE, PROGRAM, PUBLISH_TYPE, RETRY, ROW,
    UNSAVED, WARNING, WHOLE)
from slotmq.fast.journal import next_bit
from slotmq.journal import records
from slotmq.journal.writer import Journal

_NOTHING = -1  # `snapshot` where none was ever written
_LOOK = 100  # tenths of a second between two looks for space, if there is none
_FAR = 65536  # bytes that the journal grows between two looks, if there is space
_MARGIN = 4096  # the same, if there is little
_EINVAL = 22
_NO_SPACE = (28, 122)  # ENOSPC; EDQUOT: a user's quota is used up


# A new generation


def begin(broker, medium, newest, warn, *sync):
    """Make the broker's journal, and write its first generation, whose number is above `newest`.

    OSError: the medium cannot be written, for another reason than a lack of space. Without space
    all clients wait, if there is anything that must be kept."""
    broker.journal = journal = Journal(broker, medium, newest, *sync)
    broker.conns.counts[WHOLE] = 1
    # In a region of flash each try begins after the block that could not be written.
    tries = getattr(medium, "blocks", 1)
    while True:
        try:
            make(journal)
            return journal
        except OSError as error:
            tries -= 1
            if error.errno in _NO_SPACE:
                break
            if not tries:
                broker.journal = None  # the start ends here: nothing more is written
                medium.close()
                raise
    warn("there is no space to write")
    journal.snapshot = 0 if newest else _NOTHING
    _failed(journal)
    return journal


def compact(journal):
    """Try to write all rows into a new generation, and to switch to it."""
    # Each attempt wears flash, so the pause doubles; in a region after one attempt for each block.
    pause = journal.pause
    journal.retry_at = journal.broker.now + max(pause, RETRY)
    journal.pause = pause + 1 if pause < RETRY else min(2 * pause, RETRY << 8)
    try:
        make(journal)
    except OSError as error:
        journal.failures += 1
        _failed(journal, error.errno)
    except MemoryError:
        journal.failures += 1
        _failed(journal, ENOMEM)


def _failed(journal, *error):
    # If nothing was ever written and there is nothing to write, no client has to wait.
    broker = journal.broker
    if journal.snapshot == _NOTHING and not broker.retained.names.count():
        sessions = broker.sessions
        at = 0
        while at < sessions.slots and (not sessions.used(at) or _is_gone(sessions, at)):
            at += 1
        if at == sessions.slots:
            journal.medium.close()  # until the next attempt: no generation takes rows
            journal.whole = True
            journal.records = 0
            journal.saved = broker.now
            journal.retry_at = broker.now + _LOOK
    set_full(journal, True, *error)


def make(journal):
    """Write all rows into a new generation, and switch to it. OSError: that failed."""
    medium = journal.medium
    journal.whole = False
    # The most QoS 2 deliveries that may have been sent without a row that says so
    journal.window = min(journal.broker.deliveries.window[MAX_INFLIGHT], NONE)
    journal.generation += 1
    pack_into(">I", journal.seed, 0, journal.generation)
    medium.begin(journal.generation)
    _forget(journal)
    journal.records = 0
    # Where sessions have no users, an older broker can read what is written.
    version = records.VERSION if journal.broker.owners else records.VERSION - 1
    by_table = medium.page == 1
    head = version, journal.generation, journal.window, journal.always | by_table << 1
    pack_into(records.HEAD_LAYOUT, journal.buf, BODY_AT, *head)
    journal.record(records.HEAD, records.HEAD_SIZE)
    if by_table:
        interval = journal.time_interval
        journal.time_interval = NEVER  # no COMMIT for the time alone
        try:
            _write_by_table(journal, journal.broker)
        finally:
            journal.time_interval = interval
    journal.write()
    medium.switch()
    journal.snapshot = medium.end
    journal.whole = True
    journal.retry_at = min(journal.retry_at, journal.broker.now + RETRY)
    journal.pause = RETRY - getattr(medium, "blocks", 0)
    spare(journal)


def _write_by_table(journal, broker):
    # A COMMIT follows each table: in a damaged file, the tables before the damage count. (In
    # flash, the generation before can be read instead.) Two COMMITs in a row say that all tables
    # are there; the caller writes the second one.
    broker.sessions.ids_high[IDS_UNSAVED] = broker.deliveries.count[UNSAVED] = 0
    broker.retained.changed = False
    journal.write()
    broker.sessions.ids_high[IDS_UNSAVED] = 1
    journal.write()
    broker.deliveries.count[UNSAVED] = 1
    journal.write()
    broker.retained.changed = True
    journal.write()
    journal.records = 1


def _forget(journal):
    # The new generation has no rows yet, so every used slot is dirty.
    broker = journal.broker
    for i in range(broker.sessions.slots):
        broker.sessions.dirty[i] = 3 if broker.sessions.used(i) else 0
    for table in (broker.subscriptions, broker.retained):
        for i in range(table.slots):
            table.dirty[i] = 1
    for i in range(broker.deliveries.slots):
        journal.delivery_rows[i] = 0
        broker.deliveries.flags[i] |= CHANGED
    for i in range(broker.messages.slots):
        broker.messages.flags[i] &= ~HAS_ROW
    broker.sessions.changed = broker.subscriptions.changed = broker.retained.changed = True
    broker.deliveries.count[UNSAVED] = broker.sessions.ids_high[IDS_UNSAVED] = 1


# Space for the next generation


def spare(journal):
    """Reserve space for the next generation, and for what is written until the next look.

    If there is none, a compaction may free some. If that frees none, the journal is full."""
    medium = journal.medium
    broker = journal.broker
    end = medium.end
    is_short = broker.journal_full or not medium.spare(end + _FAR + turn_bytes(broker.limits))
    margin = (
        _MARGIN if broker.journal_full or is_short and not medium.spare(end + 2 * _FAR) else _FAR
    )
    is_full = margin == _MARGIN and not medium.spare(end + 2 * _MARGIN)
    if is_full and (end > journal.snapshot or broker.deliveries.count[UNSAVED]):
        compact(journal)
        return
    if is_full:
        medium.spare(end)
        journal.retry_at = broker.now + _LOOK
    # No generation is longer than `most`: if so much is reserved, no further look is needed.
    is_never = not is_short and end + _FAR + turn_bytes(broker.limits) >= medium.most
    journal.spare_until = NEVER if is_never else end + margin
    journal.pending = 0
    before = journal.limit
    journal.limit = end + 2 * margin if is_short and journal.always else 0
    if (before > 0) != (journal.limit > 0):
        if broker._log_mask & NOTICE:
            what = "enough space again"
            if journal.limit:
                what = "little space, what needs more is refused"
            broker.log(NOTICE, "The journal: %s." % what)
        broker.apply_settings()
    set_full(journal, is_full)


def turn_bytes(limits):
    # The most bytes that one turn may add: what is read, and the rows of all slots.
    total = limits.connections * (limits.rx_bytes + 4 * limits.received)
    total += limits.reassembly * limits.max_packet
    total += 22 * (limits.messages + limits.deliveries) + 13 * limits.retained
    return total + 23 * limits.subscriptions + limits.sessions * (60 + limits.client_id_bytes)


def weigh(journal, kind, n):
    """Little space is left: if this packet may need more than is reserved, it is handled as if the
    journal were full. What came before it is committed first, if that makes the difference.

    kind, n: type and length of the packet. -> will it be handled so?"""
    broker = journal.broker
    # For its length, SUBSCRIBE makes the longest rows.
    need = 128 + (n if kind == PUBLISH_TYPE else 10 * n) + 4 * broker.limits.received
    need += 22 * broker.sessions.names.count()
    if broker.journal_full:
        return False
    if journal.medium.end + journal.pending + need > journal.limit and journal.pending:
        saved = journal.saved
        early = journal.saved = broker.now - journal.interval  # nothing may wait
        if journal.commit():
            journal.pending = 0
        if journal.saved == early:  # no COMMIT: `now - early` would leave the small integers
            journal.saved = saved
    now = broker.now
    least = journal.medium.end + need
    if least > journal.limit and journal.whole and not journal.pending and now >= journal.retry_at:
        # The reserve is used up; there may be more space by now.
        spare(journal)
        if least > journal.limit:
            journal.retry_at = max(journal.retry_at, now + RETRY)
    if broker.journal_full or not journal.limit:
        return False
    if not journal.whole or journal.medium.end + journal.pending + need > journal.limit:
        broker.journal_full = broker.subscriptions.journal_full = FOR_THIS_PACKET
        return True
    journal.pending += need
    return False


def set_full(journal, is_full, error=ENOSPC):
    """Set and log whether the journal is full: whether it refuses new promises."""
    broker = journal.broker
    if (broker.journal_full is True) == is_full:
        return
    if broker._log_mask & WARNING:
        why = "no space" if error == ENOSPC else "it cannot be written (error %s)" % error
        why = "no heap is left" if error == ENOMEM else why
        waits = journal.always and not journal.whole
        # Then no packet leaves, not even CONNACK or PINGRESP.
        then = "all clients wait until that changes" if waits else "nothing new is promised"
        what = "%s, %s" % (why, then) if is_full else "there is space again"
        broker.log(WARNING, "The journal: %s." % what)
    # After the log line, which needs heap too: if that fails, status/log_connections.py logs it.
    broker.journal_full = broker.subscriptions.journal_full = is_full
    broker.fast_path = None
    broker.apply_settings()


def needs_row(broker, slot):
    """Would a QoS 1 or 2 message on this route need a row, since a receiver's session stays?"""
    subs = broker.subscriptions
    for i in range(subs.routes.first[slot], subs.routes.end[slot]):
        entry = subs.pool[i]
        session = subs.session[entry] if subs.needs_options else entry >> 2
        granted = subs.qos[entry] if subs.needs_options else entry & 3
        if not broker.sessions.clean[session] and (granted or broker.upgrade_qos):
            return True
    return False


# Rows that CONNECT and SUBSCRIBE change


def write(journal):
    """Write the rows of all sessions and subscriptions that have changed."""
    if journal.broker.sessions.changed:
        _sessions(journal, journal.broker.sessions)
    if journal.broker.subscriptions.changed:
        _subscriptions(journal, journal.broker.subscriptions)


def _sessions(journal, sessions):
    dirty = sessions.dirty
    at = next_bit(dirty, 0, sessions.slots, 1)
    while at < sessions.slots:
        if sessions.used(at) and not _is_gone(sessions, at):
            _session(journal, sessions, at)
            dirty[at] = dirty[at] & ~1 | ROW
        else:
            journal.gone(records.SESSION_GONE, dirty, at)
        at = next_bit(dirty, at + 1, sessions.slots, 1)
    sessions.changed = False


def _is_gone(sessions, session):
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
