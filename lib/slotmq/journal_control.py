# journal_control.py - what the journal does seldom: rows of sessions and subscriptions, which
# CONNECT and SUBSCRIBE change, compaction, and room for the next one. Loaded on demand and
# owns nothing; what must be remembered is the Journal's. The control plane: allocates.
from slotmq.encode import put_u16, put_u32
from slotmq.journal import VERSION, Journal
from slotmq.runtime import const
from slotmq.runtime_journal import next_bit

_NONE = const(0xFFFF)
_NEVER = const(0x3FFFFFFF)
_FIELDS = const(8)
_ROW = const(4)
_CHANGED = const(32)
_KEPT = const(16)
_LOOK = const(100)  # tenths of a second between two looks for room
_FAR = const(65536)  # bytes that the journal grows between two looks, where there is room
_MARGIN = const(4096)  # where there is little
_WARNING = const(2)
_PUBLISH_TYPE = const(3)
_ENOSPC = const(28)
_EINVAL = const(22)
# Types of records
_HEAD = const(1)
_SESSION = const(2)
_SESSION_GONE = const(3)
_SUBSCRIPTION = const(4)
_SUBSCRIPTION_GONE = const(5)
# Flags of a session's row
_IS_CLEAN = const(1)
_CONNECTED = const(2)
_WILL = const(4)
_MARKED = const(8)


def write(journal):
    """The rows of all sessions and subscriptions that have changed."""
    if journal.broker.sessions.changed:
        _sessions(journal, journal.broker.sessions)
    if journal.broker.subscriptions.changed:
        _subscriptions(journal, journal.broker.subscriptions)


def _sessions(journal, sessions):
    marks = sessions.mark
    at = next_bit(marks, 0, sessions.slots, 1)
    while at < sessions.slots:
        is_used = sessions.used(at)
        if is_used and (not sessions.clean[at] or sessions.will[at] != _NONE):
            _session(journal, sessions, at)
            marks[at] = marks[at] & ~1 | _ROW
        else:
            journal.gone(_SESSION_GONE, marks, at)
        at = next_bit(marks, at + 1, sessions.slots, 1)
    sessions.changed = False


def _session(journal, sessions, session):
    # slot, flags, when it was left, expiry, will: message, delay, when it is due, since
    # when it is there; client id
    buf = journal.buf
    five = journal.broker.five
    will = sessions.will[session]
    flags = _IS_CLEAN if sessions.clean[session] else 0
    if sessions.conn[session] != _NONE:
        flags |= _CONNECTED
    if will != _NONE:
        flags |= _WILL
        journal.message(will)
    if five and five.marked[session]:
        flags |= _MARKED
    at = put_u16(buf, _FIELDS, session)
    buf[at] = flags
    at = put_u32(buf, at + 1, sessions.left[session])
    at = put_u32(buf, at, five.expiry[session] if five else _NEVER)
    at = put_u16(buf, at, will)
    at = put_u32(buf, at, five.will_delay[session] if five else 0)
    at = put_u32(buf, at, five.will_at[session] if five else 0)
    at = put_u32(buf, at, five.will_since[session] if five else 0)
    _must_fit(sessions.names.length[session], len(buf) - at)
    at += sessions.names.read(session, buf, at)
    journal.record(_SESSION, at)


def _subscriptions(journal, subs):
    marks = subs.mark
    at = next_bit(marks, 0, subs.slots, 1)
    while at < subs.slots:
        session = subs.session[at]
        if session == _NONE or journal.broker.sessions.clean[session]:
            journal.gone(_SUBSCRIPTION_GONE, marks, at)
        else:
            _subscription(journal, subs, at, session)
            marks[at] = _ROW
        at = next_bit(marks, at + 1, subs.slots, 1)
    subs.changed = False


def _subscription(journal, subs, sub, session):
    # slot, session, QoS, options, identifier, group, length of its name, it, the filter
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


def _must_fit(n, room):
    # What no start could read is not written: the generation that is there stays.
    if n > room:
        raise OSError(_EINVAL, "write")


# A new generation


def begin(broker, medium, newest, say, *sync):
    """The journal of a broker, which goes on behind the newest generation there was."""
    broker.journal = journal = Journal(broker, medium, newest, *sync)
    try:
        make(journal)
    except OSError as error:
        if error.errno != _ENOSPC:
            broker.journal = None  # the start ends here: nothing is written any more
            medium.close()
            raise
        say("there is no room to write")
        note(journal, True)
    return journal


def compact(journal):
    """Try to write all there is into a new generation, and to switch to it."""
    try:
        make(journal)
    except OSError as error:
        journal.failures += 1
        note(journal, True, error.errno)


def make(journal):
    """As compact(); OSError: it cannot be done."""
    medium = journal.medium
    journal.whole = False
    journal.generation += 1
    put_u32(journal.seed, 0, journal.generation)
    medium.begin(journal.generation)
    _forget(journal)
    journal.records = 0
    buf = journal.buf
    buf[_FIELDS] = VERSION
    # So many of QoS 2 may have been sent of which no row says so
    journal.window = min(journal.broker.max_inflight, _NONE)
    at = put_u16(buf, put_u32(buf, _FIELDS + 1, journal.generation), journal.window)
    buf[at] = journal.always
    journal.record(_HEAD, at + 1)
    journal.write()
    medium.switch()
    journal.snapshot = medium.end
    journal.whole = True
    keep_room(journal)


def _forget(journal):
    # Nothing is written yet: every used slot has changed.
    broker = journal.broker
    for i in range(broker.sessions.slots):
        broker.sessions.mark[i] = 3 if broker.sessions.used(i) else 0
    for table in (broker.subscriptions, broker.retained):
        for i in range(table.slots):
            table.mark[i] = 1
    for i in range(broker.deliveries.slots):
        journal.delivery_rows[i] = 0
        broker.deliveries.flags[i] |= _CHANGED
    for i in range(broker.messages.slots):
        broker.messages.flags[i] &= ~_KEPT
    broker.sessions.changed = broker.subscriptions.changed = broker.retained.changed = True
    broker.deliveries.count[4] = broker.sessions.ids_high[1] = 1


# Room for it


def keep_room(journal):
    """See to room for the next generation, and for what comes until the next look.

    What has ended may make some."""
    medium = journal.medium
    broker = journal.broker
    end = medium.end
    is_short = broker.full or not medium.spare(end + _FAR + turn(broker.limits))
    margin = _MARGIN if broker.full or is_short and not medium.spare(end + 2 * _FAR) else _FAR
    is_full = margin == _MARGIN and not medium.spare(end + 2 * _MARGIN)
    if is_full and (end > journal.snapshot or broker.deliveries.count[4]):
        compact(journal)
        return
    if is_full:
        medium.spare(end)
        journal.retry_at = broker.now + _LOOK
    # No generation is longer than `most`.
    is_never = not is_short and end + _FAR + turn(broker.limits) >= medium.most
    journal.safe = _NEVER if is_never else end + margin
    journal.held = 0
    before = journal.most
    journal.most = end + 2 * margin if is_short and journal.always else 0
    if (before > 0) != (journal.most > 0):
        broker.apply_settings()
    note(journal, is_full)


def turn(limits):
    # Bytes that one turn may bring: what is read, and rows of all that may change by it.
    total = limits.connections * (limits.rx_bytes + 4 * limits.received)
    total += limits.reassembly * limits.max_packet
    total += 22 * (limits.messages + limits.deliveries) + 13 * limits.retained
    return total + 23 * limits.subscriptions + limits.sessions * (60 + limits.client_id_bytes)


def full(journal, kind, n):
    """Little room is left: may a packet bring more than is reserved? It is handled as if there
    were none then. What came before it is written first, where that makes the difference."""
    broker = journal.broker
    # The longest rows for the least bytes are those of SUBSCRIBE.
    need = 128 + (n if kind == _PUBLISH_TYPE else 10 * n) + 4 * broker.limits.received
    need += 22 * broker.sessions.names.count()
    if broker.full:
        return False
    if journal.medium.end + journal.held + need > journal.most and journal.held:
        saved = journal.saved
        early = journal.saved = broker.now - journal.interval  # nothing may wait
        if journal.commit():
            journal.held = 0
        if journal.saved == early:  # there was nothing: much later `now - early` would be large
            journal.saved = saved
        if broker.full or not journal.most:
            return False
    if not journal.whole or journal.medium.end + journal.held + need > journal.most:
        broker.full = broker.subscriptions.full = 2  # for this packet
        return True
    journal.held += need
    return False


def note(journal, is_full, error=_ENOSPC):
    """Is there no room for new promises? Tables and the log are told."""
    broker = journal.broker
    if (broker.full == 1) == is_full:
        return
    broker.full = broker.subscriptions.full = is_full
    broker.apply_settings()
    if broker.log_mask & _WARNING:
        why = "no room" if error == _ENOSPC else "it cannot be written (error %s)" % error
        waits = journal.always and not journal.whole
        # Nothing leaves then, CONNACK and PINGRESP neither.
        then = "all clients wait until that changes" if waits else "nothing new is promised"
        what = "%s, %s" % (why, then) if is_full else "there is room again"
        broker.log(_WARNING, "The journal: %s." % what)


def must_keep(broker, slot):
    """Would one of a route's receivers have to be kept a message of QoS 1 or 2?"""
    subs = broker.subscriptions
    for i in range(subs.routes.first[slot], subs.routes.end[slot]):
        entry = subs.pool[i]
        session = subs.session[entry] if subs.special else entry >> 2
        granted = subs.qos[entry] if subs.special else entry & 3
        if not broker.sessions.clean[session] and (granted or broker.upgrade_qos):
            return True
    return False
