# queue_check.py - compare the broker's queues, row by row, with the deliveries of the model.
#
# A delivery may be missing only if the broker has counted something as refused or dropped, and
# only as many as it has counted. This is checked in the window in which it happened.
from . import tables
from .delivery import DONE, QUEUED, Delivery
from .shared_subscriptions import granted_qos, may_have_no_receiver


def end_window(model, refusals):
    """If anything may have been refused or dropped in this window, find out what."""
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
    """Match each queue with its rows in the broker's table; what is missing must be counted."""
    per_session = []
    for session in model.sessions:
        rows = [row for row in tables.queue(model.broker, session.name) if row.qos]
        _forget_dropped(session, rows)
        if refusals.deliveries:
            _mark_possible_refusals(model, session, rows)
        per_session.append((session, _unmatched(session, session.queue, rows, _is_same_row), rows))
    for wanted in model.groups:
        wanted.may_have_no_receiver = may_have_no_receiver(model, wanted)
    waiting = [wanted for wanted in model.groups if not _find_receiver(model, wanted, per_session)]
    model.groups = []
    missing = []
    spare = []
    for session, left, rows in per_session:
        # The session may have left its group since.
        left = _unmatched(session, left, rows, _matches_identifier)
        before = left
        left = _unmatched(session, left, rows, _matches_message)
        alike = [delivery for delivery in before if delivery not in left]
        _make_alike_optional(model, session, alike)
        for delivery in left:
            if _may_be_missing(model, session, delivery):
                delivery.required = False
                session.finish(delivery)
            else:
                missing.append((session, delivery))
        spare += [(session, row) for row in rows]
    for session, row in spare:
        if not _is_explained(model, session, row, waiting):
            model.fail("%s has %s in its queue, for no reason", session.name, row.key)
    lost = [wanted.msg for wanted in waiting if not wanted.may_have_no_receiver]
    _account_for_missing(model, missing, lost, refusals)


def _forget_dropped(session, rows):
    """A QoS 1 message sent before a reboot may be dropped, and its packet id used again."""
    for packet_id in sorted(session.in_flight):
        delivery = session.in_flight[packet_id]
        if not delivery.restored or delivery.qos != 1:
            continue
        if not any(_is_same_row(session, delivery, row) for row in rows):
            del session.in_flight[packet_id]
            delivery.packet_id, delivery.state, delivery.sent = 0, QUEUED, False


def _mark_possible_refusals(model, session, rows):
    """A message that its publisher has sent again may have been refused. A row that looks like it,
    and was sent already, may be that of the older copy."""
    sent = [row.key for row in rows if row.was_sent and row.packet_id not in session.in_flight]
    for delivery in session.queue:
        is_new = not delivery.packet_id and delivery.msg in model.published_now
        if is_new and delivery.msg.key() in sent:
            delivery.may_be_refused = True


def _is_explained(model, session, row, waiting):
    """May this row be there, though no delivery of the session matches it?

    It may come from a group that the session has left in this window, or be a retained message."""
    is_retained = row.retain and model.retained.is_possible(session, row.key)
    for wanted in sorted(waiting, key=lambda wanted: wanted.may_have_no_receiver):
        if is_retained and (wanted.may_have_no_receiver or row.was_sent):
            break
        if wanted.msg.key() == row.key and session in [member for member, _ in wanted.members]:
            waiting.remove(wanted)
            _assign(model, wanted, session, row)
            return True
    return is_retained


def _unmatched(session, queue, rows, is_like):
    """Return the deliveries that have no row. The rows of the others are removed from `rows`.

    Required deliveries are matched first, since an optional one can look the same."""
    unmatched = []
    for delivery in sorted(queue, key=lambda delivery: not delivery.required):
        for row in rows:
            if is_like(session, delivery, row):
                rows.remove(row)
                break
        else:
            unmatched.append(delivery)
    return [delivery for delivery in queue if delivery in unmatched]


def _is_same_row(session, delivery, row):
    if delivery.packet_id:
        is_same = row.packet_id == delivery.packet_id
        if row.key is not None:
            is_same = is_same and (row.key, row.retain) == (delivery.msg.key(), delivery.retain)
        is_copy = delivery.restored and delivery.qos == 1 and not row.was_sent
        return is_same and not is_copy
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
    return (row.qos, row.retain) == (delivery.qos, delivery.retain)


def _older_copy(model, session, delivery):
    """If its publisher has sent the message again, the older copy may be the missing one."""
    for other in session.queue:
        is_copy = other.msg is not delivery.msg and other.msg.key() == delivery.msg.key()
        if is_copy and not other.sent and model.retained.has_expired(other.msg):
            return other
    return delivery


def _make_alike_optional(model, session, alike):
    """A row with another identifier may be the same message, retained, for a new subscription.
    Then this delivery is among what was dropped."""
    for delivery in alike:
        if delivery.retain and model.retained.is_possible(session, delivery.msg.key()):
            delivery.required = False


def _may_be_missing(model, session, delivery):
    """May it be missing without being counted: expired, too large or optional?"""
    large = model.is_too_large(session, delivery.msg)
    if large or model.retained.has_expired(delivery.msg):
        return True
    # After a reboot the model may have a retained message twice: as sent and as not sent.
    restored = [one.msg.key() for one in session.in_flight.values() if one.restored]
    is_twice = delivery.times_received or delivery.msg.key() in restored
    return not delivery.required and (not delivery.from_retained or bool(is_twice))


def _find_receiver(model, wanted, per_session):
    for session, _, rows in per_session:
        for row in rows[::-1]:  # the newest first: messages without a payload look alike
            if row.key == wanted.msg.key() and _is_of(model, session, row, wanted):
                rows.remove(row)
                _assign(model, wanted, session, row)
                return True
    return False


def _is_of(model, session, row, wanted):
    """Is this the row of a member of that group, at the right QoS?"""
    name, topic_filter = wanted.key
    if row.group == tables.NONE:
        return False
    if row.group != tables.group_slot(model.broker, topic_filter, name):
        return False
    for member, sub in wanted.members:
        if member is session and granted_qos(model, wanted, sub) == row.qos:
            return True
    return False


def _assign(model, wanted, session, row):
    wanted.is_assigned = True
    delivery = Delivery(wanted.msg, row.qos, True, row.retain)
    delivery.in_order = False
    delivery.group = wanted.key
    delivery.group_slot = row.group
    delivery.identifiers = _identifiers(session, wanted)
    if row.identifier is not None and row.identifier != sum(delivery.identifiers or ()):
        delivery.identifiers = None  # the subscription was another when it was passed on
    delivery.subscription_changes = session.subscription_changes
    session.add_delivery(delivery)
    if not session.link:
        delivery.first_link = 0  # the connection may have ended in this turn
    if wanted.was_passed_on:
        model.world.events["passed on"] += 1


def _identifiers(session, wanted):
    for member, sub in wanted.members:
        if member is session:
            return [sub.identifier] if sub.identifier else []
    return None


def _account_for_missing(model, missing, lost, refusals):
    """Each missing delivery is counted: its message found no slot, or it found none itself."""
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
            counts = refusals.messages, refusals.deliveries, refusals.dropped
            model.fail("%s has lost %r: %d, %d, %d", session.name, delivery, *counts)
        was_sent = session.in_flight.get(delivery.packet_id) is delivery
        storage = model.world.storage
        # After a restart that may have lost something: was it sent after the last commit?
        may_go = model.world.loss_allowed and storage and storage.booting
        if was_sent and not may_go and (delivery.qos == 2 or not delivery.restored):
            model.fail("%s has lost what was sent: %r", session.name, delivery)
        delivery.required = False
        session.finish(delivery)
        model.world.events["dropped"] += 1


def _refused(model, missing, lost, most):
    """Return at most so many messages of this window that no receiver has; first those that most
    receivers miss."""
    found = []
    for msg in model.published_now if most else []:
        count = lost.count(msg)
        count += len([1 for _, one in missing if one.msg is msg and one.seq == msg.seq])
        if count and not _is_queued(model, missing, msg):
            found.append((count, msg.number, msg))
    found.sort(key=lambda row: -row[0])
    return [row[2] for row in found[:most]]


def _is_queued(model, missing, msg):
    lost = [one for _, one in missing]
    for session in model.sessions:
        for other in session.deliveries.get(msg.key(), ()):
            same = other.msg is msg and other.seq == msg.seq
            waits = same and other.qos and other.state != DONE and other not in lost
            if waits and not _may_be_retained(session, msg):
                return True
    return False


def _may_be_retained(session, msg):
    """May what is in the queue be the retained message, for a new subscription?"""
    return any(msg.topic in scan.expected for scan in session.scans)
