# queues.py - what the broker has queued, against what the model says is owed.
#
# Only where counters say that something was dropped may something be missing, and only as
# much as they say. That is asked of the deliveries table in the window in which it happened.
from . import groups, peek
from .session import DONE, QUEUED, Owed


def settle(model, grown):
    """After a window: who has what, where anything may have been refused."""
    if grown.messages or grown.deliveries or grown.dropped or model.groups:
        reconcile(model, grown)
    if grown.dropped or grown.deliveries or grown.messages:
        for msg in model.fresh:
            _unsure_at_qos_0(model, msg)
        policies = model.settings.when_full
        if "drop_oldest" in (policies["deliveries"], policies["messages"]):
            for session in model.sessions:
                session.unsure_qos_0()
                for scan in session.scans:
                    scan.due = {}


def _unsure_at_qos_0(model, msg):
    for session in model.sessions:
        for owed in session.owed.get(msg.key(), ()):
            if not owed.qos:
                owed.sure = False


def reconcile(model, grown):
    """Every queue against its table; what is missing must have been counted."""
    tables = []
    for session in model.sessions:
        rows = [row for row in peek.queue(model.broker, session.name) if row.flags & 6]
        _forget_dropped(session, rows)
        if grown.deliveries:
            _doubt_copies(model, session, rows)
        tables.append((session, _unmatched(session, session.queue, rows, _is_row), rows))
    for wanted in model.groups:
        wanted.may_be_nobodys = groups.may_be_nobodys(model, wanted)
    waiting = [wanted for wanted in model.groups if not _find_receiver(model, wanted, tables)]
    model.groups = []
    missing = []
    spare = []
    for session, left, rows in tables:
        left = _unmatched(session, left, rows, _is_same)  # it may have left its group
        alike = left
        left = _unmatched(session, left, rows, _is_like)
        _doubt(model, session, [owed for owed in alike if owed not in left])
        for owed in left:
            if _is_excused(model, session, owed):
                owed.sure = False
                session.done(owed)
            else:
                missing.append((session, owed))
        spare += [(session, row) for row in rows]
    for session, row in spare:
        if not _is_explained(model, session, row, waiting):
            model.fail("%s has %s in its queue, which it is not owed", session.name, row.key)
    lost = [wanted.msg for wanted in waiting if not wanted.may_be_nobodys]
    _drop(model, missing, lost, grown)


def _forget_dropped(session, rows):
    """What was sent at QoS 1 before a reboot may be dropped now, and its id another's."""
    for packet_id in sorted(session.in_flight):
        owed = session.in_flight[packet_id]
        if (
            owed.is_back
            and owed.qos == 1
            and not [row for row in rows if _is_row(session, owed, row)]
        ):
            del session.in_flight[packet_id]
            owed.packet_id, owed.state, owed.sent = 0, QUEUED, False


def _doubt_copies(model, session, rows):
    """What its sender sent again in this window may have been refused: a row like it that was
    sent already may be that of an older copy."""
    sent = [row.key for row in rows if row.flags & 8 and row.packet_id not in session.in_flight]
    for owed in session.queue:
        if not owed.packet_id and owed.msg in model.fresh and owed.msg.key() in sent:
            owed.is_doubtful = True


def _is_explained(model, session, row, waiting):
    """A delivery that nothing owed explains."""
    # By a group that its session has left in this window, or as a retained message.
    is_retained = row.flags & 1 and model.retained.is_may(session, row.key)
    for wanted in sorted(waiting, key=lambda wanted: wanted.may_be_nobodys):
        if is_retained and (wanted.may_be_nobodys or row.flags & 8):
            break
        if wanted.msg.key() == row.key and session in [member for member, _ in wanted.members]:
            waiting.remove(wanted)
            _give(model, wanted, session, row)
            return True
    return is_retained


def _unmatched(session, queue, rows, is_like):
    """What of the queue has no row; the rows of the others are taken out.

    What must be there has a row before what may be there: they can look the same."""
    waiting = []
    for owed in sorted(queue, key=lambda owed: not owed.sure):
        for row in rows:
            if is_like(session, owed, row):
                rows.remove(row)
                break
        else:
            waiting.append(owed)
    return [owed for owed in queue if owed in waiting]


def _is_row(session, owed, row):
    if owed.packet_id:
        is_other = owed.is_back and owed.qos == 1 and not row.flags & 8  # a copy in its place
        found = row.packet_id == owed.packet_id and row.key in (None, owed.msg.key())
        return found and not is_other
    return row.group == owed.group_slot and _is_same(session, owed, row)


def _is_same(session, owed, row):
    if row.identifier is not None and owed.identifiers is not None:
        ids = owed.identifiers
        if row.identifier != (-1 if len(ids) > 1 else sum(ids)):
            return False
    return _is_like(session, owed, row)


def _is_like(session, owed, row):
    if owed.packet_id or row.key != owed.msg.key() or row.packet_id in session.in_flight:
        return False
    return row.flags & 7 == owed.qos << 1 | owed.retain


def _excused_instead(model, session, owed):
    # Of two copies, because its sender sent it again, the older one may be what is missing.
    for other in session.queue:
        is_copy = other.msg is not owed.msg and other.msg.key() == owed.msg.key()
        if is_copy and not other.sent and model.retained.has_expired(other.msg):
            return other
    return owed


def _doubt(model, session, alike):
    # A row with another identifier may be what a new subscription was given of the same message,
    # and this one among what was dropped.
    for owed in alike:
        if owed.retain and model.retained.is_may(session, owed.msg.key()):
            owed.sure = False


def _is_excused(model, session, owed):
    """Expired, or larger than its receiver takes: it goes without a place in a counter."""
    large = model.is_too_large(session, owed.msg)
    if large or model.retained.has_expired(owed.msg):
        return True
    # After a reboot a delivery of a retained message may be known twice: as sent, and as not.
    back = [one.msg.key() for one in session.in_flight.values() if one.is_back]
    return not owed.sure and (not owed.is_scan or owed.msg.key() in back)


def _find_receiver(model, wanted, tables):
    for session, _, rows in tables:
        for row in rows[::-1]:  # it is among the last ones, and clears of a topic are alike
            if row.key == wanted.msg.key() and _is_of(model, session, row, wanted):
                rows.remove(row)
                _give(model, wanted, session, row)
                return True
    return False


def _is_of(model, session, row, wanted):
    """Did this come to the session by that group?"""
    name, topic_filter = wanted.key
    if row.group == peek.NONE or row.group != peek.group(model.broker, topic_filter, name):
        return False
    qos = row.flags >> 1 & 3
    return any(
        who is session and groups.granted(model, wanted, sub) == qos for who, sub in wanted.members
    )


def _give(model, wanted, session, row):
    wanted.is_given = True
    owed = Owed(wanted.msg, row.flags >> 1 & 3, True, row.flags & 1)
    owed.in_order = False
    owed.group = wanted.key
    owed.group_slot = row.group
    owed.identifiers = _identifiers(session, wanted)
    if row.identifier is not None and row.identifier != sum(owed.identifiers or ()):
        owed.identifiers = None  # it was subscribed otherwise when it was handed on
    owed.changes = session.changes
    session.owe(owed)
    if not session.link:
        owed.first_link = 0  # its connection may have ended in this turn
    if wanted.passed:
        model.world.seen["passed on"] += 1


def _identifiers(session, wanted):
    for member, sub in wanted.members:
        if member is session:
            return [sub.identifier] if sub.identifier else []
    return None


def _drop(model, missing, lost, grown):
    """What is missing must have been counted: a message that found no slot, or a delivery."""
    refused = _refused(model, missing, lost, grown.messages)
    left = grown.deliveries - len([msg for msg in lost if msg not in refused])
    if left < 0:
        model.fail("a group has lost %r", lost)
    for session, owed in missing:
        left -= owed.msg not in refused
        if left < 0:
            other = _excused_instead(model, session, owed)
            if other is not owed or owed.is_doubtful:
                other.sure = False
                session.done(other)
                left = 0
                continue
            what = (session.name, owed, grown.messages, grown.deliveries, grown.dropped)
            model.fail("%s has lost %r: %d, %d, %d", *what)
        was_sent = session.in_flight.get(owed.packet_id) is owed
        keeper = model.world.keeper
        may_go = model.world.weak and keeper and keeper.booting  # sent after what was kept
        if was_sent and not may_go and (owed.qos == 2 or not owed.is_back):
            model.fail("%s has lost what was sent: %r", session.name, owed)
        owed.sure = False
        session.done(owed)
        model.world.seen["dropped"] += 1


def _refused(model, missing, lost, most):
    """So many messages of this window that nobody has, those first that most should have."""
    found = []
    for msg in model.fresh if most else []:
        fewer = lost.count(msg)
        fewer += len([1 for _, owed in missing if owed.msg is msg and owed.seq == msg.seq])
        if fewer and not _anybody_has(model, missing, msg, msg.seq):
            found.append((fewer, msg.number, msg))
    found.sort(key=lambda row: -row[0])
    return [row[2] for row in found[:most]]


def _anybody_has(model, missing, msg, seq):
    lost = [one for _, one in missing]
    for session in model.sessions:
        for other in session.owed.get(msg.key(), ()):
            same = other.msg is msg and other.seq == seq
            waits = same and other.qos and other.state != DONE and other not in lost
            if waits and not _may_be_retained(session, msg):
                return True
    return False


def _may_be_retained(session, msg):
    # What is in its queue may be the retained one, for a subscription that has just been made.
    return any(msg.topic in scan.due for scan in session.scans)
