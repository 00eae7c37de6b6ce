# owing.py - a message goes out: what each session is owed of it, and each group.
from .groups import ForGroup
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
        model.groups.append(ForGroup(msg, key, groups[key], loose))
        model.world.seen["shared"] += 1
    return found or bool(groups)


def begin_to_expire(model, msg):
    msg.deadline = model.now() + msg.expiry * 1000
    msg.early_ms = model.world.early_ms


def owe(model, session, msg, sender, loose, groups):
    matched = session.matching(msg.topic)
    before = [sub for sub in session.removed if matches(sub.filter, msg.topic)]
    changed = before + [sub for sub in matched if sub.turn == model.world.turns]
    plain = []
    for sub in matched + (before if loose else []):
        if sub.group is not None:
            groups.setdefault((sub.group, sub.filter), []).append((session, sub.before()))
        elif not (sub.no_local and sender is session):
            plain.append(sub)
    unsure = loose and changed
    if model.broker.subscriptions.every or unsure:
        for sub in plain:
            owe_one(model, session, msg, loose, not unsure, [sub])
        if unsure and len(plain) > 1 and not model.broker.subscriptions.every:
            owe_one(model, session, msg, loose, False, plain)  # or once, by all of them
    elif plain:
        owe_one(model, session, msg, loose, True, plain)
    return bool(matched)


def owe_one(model, session, msg, loose, sure, subs):
    granted = max([sub.qos for sub in subs])
    keep = [sub for sub in subs if sub.as_published]
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
    if qos and sure and not (loose or model.is_refused or session.clean):
        model.touch()
        owed.need = model.changes
    if loose:
        owed.first_link = 0  # perhaps of a connection that ended in this turn
