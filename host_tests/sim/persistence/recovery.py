# recovery.py - after a restart the broker's tables must equal, row by row, one of the snapshots
# that the medium may have (see storage.py).
#
# By then the broker has published the wills of clients that were connected. So the model is set
# back to a snapshot, publishes these wills too, and is then compared with the tables.
from ..model import tables
from ..model.delivery import DONE, QUEUED, RELEASED
from ..model.model import PromiseBroken
from .snapshot import requeue

_MINUTE_MS = 60000


def find_state(model, candidates):
    """Set the model to the newest candidate with which the tables agree; return it."""
    wrong = []
    world = model.world
    before = world.clock.ms
    for at in range(len(candidates) - 1, -1, -1):
        found = candidates[at]
        try:
            world.clock.ms = found.ms  # expiry times stand still since the last commit
            found.restore(model)
            model.restart(model.broker)
            _lose_connections(model)
            _compare(model)
            break
        except PromiseBroken as error:
            wrong.append(str(error))
    else:
        world.clock.ms = before
        texts = "; the one before: ".join(wrong[:2])
        raise PromiseBroken(f"after a reboot, the newest of {len(wrong)} states: {texts}")
    _check_lost_time(world, found, before - found.ms)
    return found


def _check_lost_time(world, found, lost_ms):
    """If a time runs, it is stored once a minute and by an orderly stop."""
    if world.loss_allowed or world.plan.fills or not found.has_pending_expiry(found.ms + lost_ms):
        return
    most = 0 if world.stopped_in_order else _MINUTE_MS
    if lost_ms > 1000:
        world.events["lost time"] += 1
    if lost_ms > most + world.early_ms:
        raise PromiseBroken(f"{lost_ms} ms of running times are lost")


def _lose_connections(model):
    """The power cut ended all connections, and the sessions that end with them."""
    ending = [session for session in model.sessions if session.clean]
    model.sessions = [session for session in model.sessions if not session.clean]
    for session in ending + model.sessions:
        if session.was_connected:
            session.disconnected_ms = model.now()
            if session.will:
                model.keep_or_send_will(session)
    for session in ending:
        session.has_ended = True


def _compare(model):
    broker = model.broker
    there = sorted(tables.names(broker))
    wanted = sorted([session.name for session in model.sessions])
    if there != wanted:
        model.fail("the sessions are %s, not %s", there, wanted)
    for session in model.sessions:
        session.disconnected_at = tables.disconnected_at(broker, session.name)
        _compare_session(model, session)
        _compare_qos_0(model, session)
        _restore_finished(model, session)
        for delivery in session.queue:
            if delivery.group is not None:
                name, text = delivery.group
                delivery.group_slot = tables.group_slot(broker, text, name)
    model.check_after_reboot()
    model.retained.check()
    _compare_expiry(model)
    for session in model.sessions:
        _compare_states(model, session)


def _compare_session(model, session):
    name = session.name
    found = tables.subscriptions(model.broker, name)
    wanted = {}
    for sub in session.subscriptions:
        options = sub.no_local | sub.as_published
        wanted[sub.filter, sub.group] = (sub.qos, options, sub.identifier)
    if found != wanted:
        model.fail("%s has subscribed %s, not %s", name, _listed(found), _listed(wanted))
    found = tables.received(model.broker, name)
    wanted = {key: msg.key() if msg else None for key, msg in session.received.items()}
    if found != wanted:
        model.fail("%s has sent %s, not %s", name, _listed(found), _listed(wanted))
    waits = session.will_due is not None
    if tables.has_will(model.broker, name) != waits:
        model.fail("%s: does a will wait? %s", name, not waits)
    if waits and tables.will(model.broker, name) != session.will.key():
        model.fail("%s: the will that waits is not %r", name, session.will)
    _compare_times(model, session)
    if model.broker.five:
        expiry = tables.expiry(model.broker, name)
        if expiry != session.expiry_ms // 1000 if session.expiry_ms is not None else False:
            model.fail("%s expires in %d s, not %s ms", name, expiry, session.expiry_ms)


def _compare_qos_0(model, session):
    """No QoS 0 message is stored: such a row must come from a will."""
    for row in tables.queue(model.broker, session.name):
        if row.qos or row.group != tables.NONE:
            continue
        if not [delivery for delivery in session.deliveries.get(row.key, ()) if not delivery.qos]:
            model.fail("%s has %s in its queue, which is no will", session.name, row.key)


def _compare_times(model, session):
    """Compare since when there is no connection, and when the will is due."""
    times = [(tables.disconnected_at(model.broker, session.name), session.disconnected_ms)]
    if session.will_due is not None:
        times.append((tables.will_at(model.broker, session.name), session.will_due))
    for found, wanted in times:
        if abs(found * 100 - (wanted - model.now())) > model.world.early_ms:
            what = (session.name, found, wanted, model.now())
            model.fail("%s: a time is %d tenths of a second, and not at %d ms, now %d ms", *what)


def _compare_expiry(model):
    """Two commits may have the same rows: the expiry times tell which was found."""
    for topic in model.retained.messages:
        left = tables.retained_seconds_left(model.broker, topic)
        _compare_end(model, model.retained.messages[topic], [] if left is None else [left])
    for session in model.sessions:
        ends = tables.queued_seconds_left(model.broker, session.name)
        for delivery in session.queue:
            _compare_end(model, delivery.msg, ends.get(delivery.msg.key(), []))


def _compare_end(model, msg, ends):
    """ends: seconds left of each copy in the tables; a copy that was published again has more."""
    if not ends or msg.deadline is None:
        return
    wanted = msg.deadline - model.now()
    if not min(ends) and wanted <= 0:
        return  # it has expired, and the next sweep removes it
    wrong = min(abs(left * 1000 - wanted) for left in ends)
    if wrong > max(msg.early_ms, model.world.early_ms) + 1000:
        model.fail("%r expires in %s s, not in %d ms", msg, ends, wanted)


def _compare_states(model, session):
    """Of a delivery's state, the journal stores whether it was sent and whether PUBREC came."""
    rows = {}
    for row in tables.queue(model.broker, session.name):
        rows[row.packet_id] = row.state == RELEASED
        delivery = session.in_flight.get(row.packet_id)
        if delivery and row.state == QUEUED and not row.was_sent:
            if not model.world.loss_allowed:
                model.fail("%s: was sent, and counts as not sent: %r", session.name, delivery)
            del session.in_flight[row.packet_id]
            delivery.state, delivery.packet_id, delivery.sent = QUEUED, 0, False
    for delivery in session.queue:
        if not delivery.packet_id:
            continue
        released = rows[delivery.packet_id]
        if released != (delivery.state == RELEASED):
            model.fail("%s: has PUBREC come for %r? %s", session.name, delivery, released)


def _listed(table):
    return [(key, table[key]) for key in sorted(table, key=str)]


def _may_be(delivery, row):
    if delivery.packet_id:
        is_same = row.key == delivery.msg.key() and row.qos == delivery.qos
        return delivery.packet_id == row.packet_id and (row.key is None or is_same)
    return _content(delivery) == (row.key, row.qos, row.retain)


def _content(delivery):
    return delivery.msg.key(), delivery.qos, delivery.retain


def _is_another(delivery, row):
    """The delivery was sent, the row was not: is it the same message, published once more?"""
    return delivery.packet_id and row.key is not None and not row.was_sent


def _had_finished(session, row):
    known = session.deliveries.get(row.key, ())
    return any(one.state == DONE and one.packet_id == row.packet_id for one in known)


def _restore_finished(model, session):
    """Deliveries that were done after the last commit may be in the queue again."""
    known = [delivery.packet_id for delivery in session.queue]
    unsent = [_content(one) for one in session.queue if not one.packet_id]
    for row in tables.queue(model.broker, session.name):
        if row.packet_id in known:
            continue
        back = [one for one in session.may_return if _may_be(one, row)]
        back = [one for one in back if not _is_another(one, row)]
        was_sent = [one for one in back if one.packet_id]
        what = row.key, row.qos, row.retain
        if what in unsent and not was_sent:
            unsent.remove(what)
            continue
        if back:
            delivery = (was_sent or back)[0]
            session.may_return.remove(delivery)
            if delivery in session.queue:  # a second scan has sent the same message
                model.retained.add_delivery(session, delivery.msg, row.qos)
            else:
                requeue(session, delivery, RELEASED if row.key is None else QUEUED)
            continue
        if model.world.plan.rots and _had_finished(session, row):
            model.fail("%s: %s is back, so an older state was found", session.name, row.key)
        again = [one for one in session.may_return if one.from_retained and _is_another(one, row)]
        again = [one for one in again if one.msg.key() == row.key]
        if again and row.retain:
            model.retained.add_delivery(session, again[0].msg, row.qos)
    session.may_return = []
