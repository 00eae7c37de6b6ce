# owing.py - a message goes out: what each session is owed of it, and each group.
from . import queues
from .messages import matches
from .session import Owed


def publish(model, msg, sender, loose=False):
    """A message goes out. loose: at some moment of this turn, so order does not count."""
    model.seq += 1
    msg.seq = model.seq
    msg.turn = model.world.turns
    if msg.expiry is not None and (msg.deadline is None or msg.is_will):
        begin_to_expire(model, msg)
    if msg.retain:
        model.retained.put(msg)
    model.fresh.append(msg)
    groups = {}
    found = False
    for session in model.sessions + (model.died if loose else []):
        found |= owe(model, session, msg, sender, loose, groups)
    for key in sorted(groups):
        model.groups.append(queues.ForGroup(msg, key, groups[key]))
        model.world.seen["shared"] += 1
    return found or bool(groups)


def begin_to_expire(model, msg):
    msg.deadline = model.now() + msg.expiry * 1000
    msg.early_ms = model.world.early_ms


def owe(model, session, msg, sender, loose, groups):
    best = -1
    keep = 0
    sure = not loose
    plain = []
    matched = session.matching(msg.topic)
    if loose:
        matched += [s for s in session.removed if matches(s.filter, msg.topic)]
    for sub in matched:
        if sub.group is not None:
            groups.setdefault((sub.group, sub.filter), []).append((session, sub.before()))
        elif not (sub.no_local and sender is session):
            plain.append(sub)
            best = max(best, sub.qos)
            keep |= sub.as_published
            if loose and sub.turn < model.world.turns and not sub.gone:
                sure = True
    if model.broker.subscriptions.every or (loose and len(plain) > 1 and not sure):
        for sub in plain:
            owe_one(model, session, msg, sub.qos, sub.as_published, sure, loose, [sub])
    elif plain:
        owe_one(model, session, msg, best, keep, sure, loose, plain)
    return bool(matched)


def owe_one(model, session, msg, granted, keep, sure, loose, subs):
    qos = granted if model.broker.upgrade_qos else min(granted, msg.qos)
    if not qos and session.link is None and not (model.broker.queue_qos0 or loose):
        return
    if (not qos and loose) or session.dead or model.is_too_large(session, msg):
        sure = False
    owed = Owed(msg, qos, sure, 1 if keep and msg.retain else 0)
    owed.in_order = not loose
    owed.seq = msg.seq
    owed.identifiers = (
        None if loose else sorted([sub.identifier for sub in subs if sub.identifier])
    )
    owed.changes = session.changes
    session.owe(owed)
