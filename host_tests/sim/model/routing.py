# routing.py - a message is published: which deliveries each session and each group must get.
from ..messages import matches
from . import rights
from .delivery import Delivery
from .shared_subscriptions import GroupMessage


def publish(model, msg, sender, moment_unknown=False):
    """Publish a message. -> Does anybody subscribe to it?

    moment_unknown: it was a will, published at some moment of this turn. So it has no place in
    the order of messages, and subscriptions that changed in this turn may have counted or not."""
    model.seq += 1
    msg.seq = model.seq
    if msg.expiry is not None and (msg.deadline is None or msg.is_will):
        begin_to_expire(model, msg)
    if msg.retain:
        model.retained.put(msg)
    model.published_now.append(msg)
    groups = {}
    found = False
    for session in model.sessions + (model.ended_sessions if moment_unknown else []):
        found |= route_to_session(model, session, msg, sender, moment_unknown, groups)
    for key in sorted(groups):
        model.groups.append(GroupMessage(msg, key, groups[key], moment_unknown))
        model.world.events["shared"] += 1
    return found or bool(groups)


def begin_to_expire(model, msg):
    msg.deadline = model.now() + msg.expiry * 1000
    msg.early_ms = model.world.early_ms


def route_to_session(model, session, msg, sender, moment_unknown, groups):
    if not rights.may_read(model, session.user, msg.topic):
        return False
    matched = session.matching(msg.topic)
    before = [sub for sub in session.removed if matches(sub.filter, msg.topic)]
    changed = before + [sub for sub in matched if sub.turn == model.world.turns]
    plain = []
    for sub in matched + (before if moment_unknown else []):
        if sub.group is not None:
            groups.setdefault((sub.group, sub.filter), []).append((session, sub.copy()))
        elif not (sub.no_local and sender is session):
            plain.append(sub)
    uncertain = moment_unknown and changed
    every = model.broker.subscriptions.every  # a delivery for each subscription?
    if every or uncertain:
        for sub in plain:
            expect_delivery(model, session, msg, moment_unknown, not uncertain, [sub])
        if uncertain and len(plain) > 1 and not every:
            # or one delivery for all of them
            expect_delivery(model, session, msg, moment_unknown, False, plain)
    elif plain:
        expect_delivery(model, session, msg, moment_unknown, True, plain)
    return bool(matched)


def expect_delivery(model, session, msg, moment_unknown, required, subs):
    granted = max([sub.qos for sub in subs])
    keep = [sub for sub in subs if sub.as_published]
    qos = granted if model.broker.upgrade_qos else min(granted, msg.qos)
    if not qos and session.link is None and not (model.broker.queue_qos0 or moment_unknown):
        return
    if (not qos and moment_unknown) or session.has_ended or model.is_too_large(session, msg):
        required = False
    delivery = Delivery(msg, qos, required, 1 if keep and msg.retain else 0)
    delivery.in_order = not moment_unknown
    delivery.seq = msg.seq
    if not moment_unknown:
        delivery.identifiers = sorted([sub.identifier for sub in subs if sub.identifier])
    delivery.subscription_changes = session.subscription_changes
    session.add_delivery(delivery)
    if qos and required and not (moment_unknown or model.is_refused or session.clean):
        model.note_journal_change()
        delivery.needed_change = model.journal_changes
    if moment_unknown:
        delivery.first_link = 0  # perhaps on a connection that ended in this turn
