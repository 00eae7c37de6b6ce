# recovery.py - after a reboot: what the broker's tables have must be what one of the
# candidates says, to the row, and what time has made of it.
#
# The wills of who was connected have gone out by then, so the comparison is that of any
# other moment: the model does the same with its sessions, and then looks at the tables.
from ..model import tables
from ..model.model import PromiseBroken
from ..model.session import DONE, QUEUED, RELEASED
from .snapshot import requeue

_MINUTE_MS = 60000


def find_state(model, candidates):
    """Go on with the newest candidate that the tables agree with."""
    wrong = []
    world = model.world
    before = world.clock.ms
    for at in range(len(candidates) - 1, -1, -1):
        found = candidates[at]
        try:
            world.clock.ms = found.ms  # time without power, or not written, is not counted
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
    """While something runs out, the time is kept each minute, and by a stop."""
    if world.loss_allowed or world.plan.fills or not found.has_pending_expiry(found.ms + lost_ms):
        return
    most = 0 if world.stopped_in_order else _MINUTE_MS
    if lost_ms > 1000:
        world.events["lost time"] += 1
    if lost_ms > most + world.early_ms:
        raise PromiseBroken(f"{lost_ms} ms of what runs out are not counted")


def _lose_connections(model):
    """What the power cut ended: connections, and sessions that end with them."""
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
                delivery.group_slot = tables.group_slot(
                    broker, delivery.group[1], delivery.group[0]
                )
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
        model.fail("%s: another will waits than %r", name, session.will)
    _compare_times(model, session)
    if model.broker.five:
        expiry = tables.expiry(model.broker, name)
        if expiry != session.expiry_ms // 1000 if session.expiry_ms is not None else False:
            model.fail("%s expires in %d s, not %s ms", name, expiry, session.expiry_ms)


def _compare_qos_0(model, session):
    """None is kept: what waits comes from wills, and of one who has just left there is none."""
    for row in tables.queue(model.broker, session.name):
        if row.flags & 6 or row.group != tables.NONE:
            continue
        if not [delivery for delivery in session.deliveries.get(row.key, ()) if not delivery.qos]:
            model.fail("%s has %s in its queue, of a will that is none", session.name, row.key)


def _compare_times(model, session):
    """Since when it has no connection, and when its will is due."""
    times = [(tables.disconnected_at(model.broker, session.name), session.disconnected_ms)]
    if session.will_due is not None:
        times.append((tables.will_at(model.broker, session.name), session.will_due))
    for found, wanted in times:
        if abs(found * 100 - (wanted - model.now())) > model.world.early_ms:
            what = (session.name, found, wanted, model.now())
            model.fail("%s: a time is %d tenths of a second, and not at %d ms, now %d ms", *what)


def _compare_expiry(model):
    """Of two commits with the same rows, the time of one is the right one."""
    for topic in model.retained.messages:
        left = tables.retained_seconds_left(model.broker, topic)
        _compare_end(model, model.retained.messages[topic], [] if left is None else [left])
    for session in model.sessions:
        ends = tables.queued_seconds_left(model.broker, session.name)
        for delivery in session.queue:
            _compare_end(model, delivery.msg, ends.get(delivery.msg.key(), []))


def _compare_end(model, msg, ends):
    """ends: of each copy of it that is there; one that was published again ends later."""
    if not ends or msg.deadline is None:
        return
    wanted = msg.deadline - model.now()
    if not min(ends) and wanted <= 0:
        return  # it has expired, and is there until the next sweep
    wrong = min(abs(left * 1000 - wanted) for left in ends)
    if wrong > max(msg.early_ms, model.world.early_ms) + 1000:
        model.fail("%r expires in %s s, not in %d ms", msg, ends, wanted)


def _compare_states(model, session):
    """PUBREC has come, or not: that is kept, and nothing else of a delivery's state."""
    rows = {}
    for row in tables.queue(model.broker, session.name):
        rows[row.packet_id] = row.state == RELEASED
        delivery = session.in_flight.get(row.packet_id)
        if delivery and row.state == QUEUED and not row.flags & 8:
            if not model.world.loss_allowed:
                model.fail(
                    "%s: was sent, and now it counts as not sent: %r", session.name, delivery
                )
            del session.in_flight[row.packet_id]
            delivery.state, delivery.packet_id, delivery.sent = QUEUED, 0, False
    for delivery in session.queue:
        if delivery.packet_id and rows[delivery.packet_id] != (delivery.state == RELEASED):
            model.fail(
                "%s: has PUBREC come for %r? %s", session.name, delivery, rows[delivery.packet_id]
            )


def _listed(table):
    return [(key, table[key]) for key in sorted(table, key=str)]


def _may_be(delivery, row):
    if delivery.packet_id:
        is_same = row.key == delivery.msg.key() and row.flags >> 1 & 3 == delivery.qos
        return delivery.packet_id == row.packet_id and (row.key is None or is_same)
    return row.key == delivery.msg.key() and _qos(delivery) == row.flags & 7


def _qos(delivery):
    return delivery.qos << 1 | delivery.retain  # as the flags of a row have it


def _is_another(delivery, row):
    """Is the row no longer this, which was sent, but the same given or published once more?"""
    return delivery.packet_id and row.key is not None and not row.flags & 8


def _had_finished(session, row):
    known = session.deliveries.get(row.key, ())
    return [
        delivery
        for delivery in known
        if delivery.state == DONE and delivery.packet_id == row.packet_id
    ]


def _restore_finished(model, session):
    """Deliveries that had ended, which the journal had not told: they may be there again."""
    known = [delivery.packet_id for delivery in session.queue]
    unsent = [
        (delivery.msg.key(), _qos(delivery))
        for delivery in session.queue
        if not delivery.packet_id
    ]
    for row in tables.queue(model.broker, session.name):
        if row.packet_id in known:
            continue
        back = [delivery for delivery in session.may_return if _may_be(delivery, row)]
        back = [delivery for delivery in back if not _is_another(delivery, row)]
        was_sent = [delivery for delivery in back if delivery.packet_id]
        what = row.key, row.flags & 7
        if what in unsent and not was_sent:
            unsent.remove(what)
            continue
        if back:
            delivery = (was_sent or back)[0]
            session.may_return.remove(delivery)
            if delivery in session.queue:  # two subscriptions were given the same retained message
                model.retained.add_delivery(session, delivery.msg, row.flags >> 1 & 3)
            else:
                requeue(session, delivery, RELEASED if row.key is None else QUEUED)
            continue
        if model.world.plan.rots and _had_finished(session, row):
            model.fail("%s: %s is back, so an older state was found", session.name, row.key)
        again = [
            delivery
            for delivery in session.may_return
            if delivery.from_retained and _is_another(delivery, row)
        ]
        again = [delivery for delivery in again if delivery.msg.key() == row.key]
        if again and row.flags & 1:
            model.retained.add_delivery(session, again[0].msg, row.flags >> 1 & 3)
    session.may_return = []
