# queue_check.py - what the broker has queued, against what the model says is owed.
#
# Only where counters say that something was dropped may something be missing, and only as
# much as they say. That is asked of the deliveries table in the window in which it happened.
from . import shared_subscriptions, tables
from .session import DONE, QUEUED, Delivery


def end_window(model, refusals):
    """After a window: who has what, where anything may have been refused."""
    if refusals.messages or refusals.deliveries or refusals.dropped or model.groups:
        reconcile(model, refusals)
    if refusals.dropped or refusals.deliveries or refusals.messages:
        for msg in model.published_now:
            _make_qos_0_optional(model, msg)
        policies = model.settings.when_full
        if "drop_oldest" in (policies["deliveries"], policies["messages"]):
            for session in model.sessions:
                session.make_qos_0_optional()
                for scan in session.scans:
                    scan.expected = {}


def _make_qos_0_optional(model, msg):
    for session in model.sessions:
        for delivery in session.deliveries.get(msg.key(), ()):
            if not delivery.qos:
                delivery.required = False


def reconcile(model, refusals):
    """Every queue against its table; what is missing must have been counted."""
    per_session = []
    for session in model.sessions:
        rows = [row for row in tables.queue(model.broker, session.name) if row.flags & 6]
        _forget_dropped(session, rows)
        if refusals.deliveries:
            _mark_possible_refusals(model, session, rows)
        per_session.append((session, _unmatched(session, session.queue, rows, _is_same_row), rows))
    for wanted in model.groups:
        wanted.may_have_no_receiver = shared_subscriptions.may_have_no_receiver(model, wanted)
    waiting = [wanted for wanted in model.groups if not _find_receiver(model, wanted, per_session)]
    model.groups = []
    missing = []
    spare = []
    for session, left, rows in per_session:
        left = _unmatched(session, left, rows, _matches_identifier)  # it may have left its group
        alike = left
        left = _unmatched(session, left, rows, _matches_message)
        _make_alike_optional(
            model, session, [delivery for delivery in alike if delivery not in left]
        )
        for delivery in left:
            if _may_be_missing(model, session, delivery):
                delivery.required = False
                session.finish(delivery)
            else:
                missing.append((session, delivery))
        spare += [(session, row) for row in rows]
    for session, row in spare:
        if not _is_explained(model, session, row, waiting):
            model.fail("%s has %s in its queue, which it is not owed", session.name, row.key)
    lost = [wanted.msg for wanted in waiting if not wanted.may_have_no_receiver]
    _account_for_missing(model, missing, lost, refusals)


def _forget_dropped(session, rows):
    """What was sent at QoS 1 before a reboot may be dropped now, and its id another's."""
    for packet_id in sorted(session.in_flight):
        delivery = session.in_flight[packet_id]
        if (
            delivery.restored
            and delivery.qos == 1
            and not [row for row in rows if _is_same_row(session, delivery, row)]
        ):
            del session.in_flight[packet_id]
            delivery.packet_id, delivery.state, delivery.sent = 0, QUEUED, False


def _mark_possible_refusals(model, session, rows):
    """What its sender sent again in this window may have been refused: a row like it that was
    sent already may be that of an older copy."""
    sent = [row.key for row in rows if row.flags & 8 and row.packet_id not in session.in_flight]
    for delivery in session.queue:
        if (
            not delivery.packet_id
            and delivery.msg in model.published_now
            and delivery.msg.key() in sent
        ):
            delivery.may_be_refused = True


def _is_explained(model, session, row, waiting):
    """A delivery that nothing owed explains."""
    # By a group that its session has left in this window, or as a retained message.
    is_retained = row.flags & 1 and model.retained.is_possible(session, row.key)
    for wanted in sorted(waiting, key=lambda wanted: wanted.may_have_no_receiver):
        if is_retained and (wanted.may_have_no_receiver or row.flags & 8):
            break
        if wanted.msg.key() == row.key and session in [member for member, _ in wanted.members]:
            waiting.remove(wanted)
            _assign(model, wanted, session, row)
            return True
    return is_retained


def _unmatched(session, queue, rows, is_like):
    """What of the queue has no row; the rows of the others are taken out.

    What must be there has a row before what may be there: they can look the same."""
    waiting = []
    for delivery in sorted(queue, key=lambda delivery: not delivery.required):
        for row in rows:
            if is_like(session, delivery, row):
                rows.remove(row)
                break
        else:
            waiting.append(delivery)
    return [delivery for delivery in queue if delivery in waiting]


def _is_same_row(session, delivery, row):
    if delivery.packet_id:
        is_other = (
            delivery.restored and delivery.qos == 1 and not row.flags & 8
        )  # a copy in its place
        found = row.packet_id == delivery.packet_id and row.key in (None, delivery.msg.key())
        return found and not is_other
    return row.group == delivery.group_slot and _matches_identifier(session, delivery, row)


def _matches_identifier(session, delivery, row):
    if row.identifier is not None and delivery.identifiers is not None:
        ids = delivery.identifiers
        if row.identifier != (-1 if len(ids) > 1 else sum(ids)):
            return False
    return _matches_message(session, delivery, row)


def _matches_message(session, delivery, row):
    if delivery.packet_id or row.key != delivery.msg.key() or row.packet_id in session.in_flight:
        return False
    return row.flags & 7 == delivery.qos << 1 | delivery.retain


def _older_copy(model, session, delivery):
    # Of two copies, because its sender sent it again, the older one may be what is missing.
    for other in session.queue:
        is_copy = other.msg is not delivery.msg and other.msg.key() == delivery.msg.key()
        if is_copy and not other.sent and model.retained.has_expired(other.msg):
            return other
    return delivery


def _make_alike_optional(model, session, alike):
    # A row with another identifier may be what a new subscription was given of the same message,
    # and this one among what was dropped.
    for delivery in alike:
        if delivery.retain and model.retained.is_possible(session, delivery.msg.key()):
            delivery.required = False


def _may_be_missing(model, session, delivery):
    """Expired, or larger than its receiver takes: it goes without a place in a counter."""
    large = model.is_too_large(session, delivery.msg)
    if large or model.retained.has_expired(delivery.msg):
        return True
    # After a reboot a delivery of a retained message may be known twice: as sent, and as not.
    back = [one.msg.key() for one in session.in_flight.values() if one.restored]
    return not delivery.required and (not delivery.from_retained or delivery.msg.key() in back)


def _find_receiver(model, wanted, per_session):
    for session, _, rows in per_session:
        for row in rows[::-1]:  # it is among the last ones, and clears of a topic are alike
            if row.key == wanted.msg.key() and _is_of(model, session, row, wanted):
                rows.remove(row)
                _assign(model, wanted, session, row)
                return True
    return False


def _is_of(model, session, row, wanted):
    """Did this come to the session by that group?"""
    name, topic_filter = wanted.key
    if row.group == tables.NONE or row.group != tables.group_slot(
        model.broker, topic_filter, name
    ):
        return False
    qos = row.flags >> 1 & 3
    return any(
        who is session and shared_subscriptions.granted_qos(model, wanted, sub) == qos
        for who, sub in wanted.members
    )


def _assign(model, wanted, session, row):
    wanted.is_assigned = True
    delivery = Delivery(wanted.msg, row.flags >> 1 & 3, True, row.flags & 1)
    delivery.in_order = False
    delivery.group = wanted.key
    delivery.group_slot = row.group
    delivery.identifiers = _identifiers(session, wanted)
    if row.identifier is not None and row.identifier != sum(delivery.identifiers or ()):
        delivery.identifiers = None  # it was subscribed otherwise when it was handed on
    delivery.subscription_changes = session.subscription_changes
    session.add_delivery(delivery)
    if not session.link:
        delivery.first_link = 0  # its connection may have ended in this turn
    if wanted.was_passed_on:
        model.world.events["passed on"] += 1


def _identifiers(session, wanted):
    for member, sub in wanted.members:
        if member is session:
            return [sub.identifier] if sub.identifier else []
    return None


def _account_for_missing(model, missing, lost, refusals):
    """What is missing must have been counted: a message that found no slot, or a delivery."""
    refused = _refused(model, missing, lost, refusals.messages)
    left = refusals.deliveries - len([msg for msg in lost if msg not in refused])
    if left < 0:
        model.fail("a group has lost %r", lost)
    for session, delivery in missing:
        left -= delivery.msg not in refused
        if left < 0:
            other = _older_copy(model, session, delivery)
            if other is not delivery or delivery.may_be_refused:
                other.required = False
                session.finish(other)
                left = 0
                continue
            what = (
                session.name,
                delivery,
                refusals.messages,
                refusals.deliveries,
                refusals.dropped,
            )
            model.fail("%s has lost %r: %d, %d, %d", *what)
        was_sent = session.in_flight.get(delivery.packet_id) is delivery
        storage = model.world.storage
        may_go = (
            model.world.loss_allowed and storage and storage.booting
        )  # sent after what was kept
        if was_sent and not may_go and (delivery.qos == 2 or not delivery.restored):
            model.fail("%s has lost what was sent: %r", session.name, delivery)
        delivery.required = False
        session.finish(delivery)
        model.world.events["dropped"] += 1


def _refused(model, missing, lost, most):
    """So many messages of this window that nobody has, those first that most should have."""
    found = []
    for msg in model.published_now if most else []:
        fewer = lost.count(msg)
        fewer += len(
            [1 for _, delivery in missing if delivery.msg is msg and delivery.seq == msg.seq]
        )
        if fewer and not _anybody_has(model, missing, msg, msg.seq):
            found.append((fewer, msg.number, msg))
    found.sort(key=lambda row: -row[0])
    return [row[2] for row in found[:most]]


def _anybody_has(model, missing, msg, seq):
    lost = [one for _, one in missing]
    for session in model.sessions:
        for other in session.deliveries.get(msg.key(), ()):
            same = other.msg is msg and other.seq == seq
            waits = same and other.qos and other.state != DONE and other not in lost
            if waits and not _may_be_retained(session, msg):
                return True
    return False


def _may_be_retained(session, msg):
    # What is in its queue may be the retained one, for a subscription that has just been made.
    return any(msg.topic in scan.expected for scan in session.scans)
