# groups.py - messages for shared subscriptions: one member of a group gets each, or nobody.
from .session import QUEUED, SENT_1, Owed


class ForGroup:
    """A message that one member of a group gets."""

    def __init__(self, msg, key, members, loose=False):
        self.msg = msg
        self.key = key  # (share name, filter)
        self.members = members  # (session, subscription)
        self.loose = loose  # at some moment of a turn, in which members may have left?
        self.qos = msg.qos
        self.passed = False  # from a member whose session has ended?
        self.is_going = self.is_given = False  # out, just now; to a member


def granted(model, wanted, sub):
    """The QoS at which a member gets it."""
    raised = model.broker.upgrade_qos and not wanted.passed
    return sub.qos if raised else min(sub.qos, wanted.qos)


def may_be_nobodys(model, wanted):
    """May a message for a group have no receiver that is seen in a queue?

    Where a member takes it at QoS 0, that one may get it, or nobody. Of messages without a
    payload, which clear a topic, one is as another."""
    found = (
        wanted.passed
        or wanted.is_going
        or not wanted.msg.size
        or model.retained.has_expired(wanted.msg)
        or (wanted.loose and not _has_members(wanted))
    )
    for session, sub in wanted.members:
        if session.dead:  # it went to one who is gone, and its place with it, or to another
            found = True
            model.passed[wanted.msg.key()] = wanted.msg
        if not granted(model, wanted, sub):
            found = True
            owed = Owed(wanted.msg, 0, False, 1 if sub.as_published and wanted.msg.retain else 0)
            owed.in_order = False
            owed.group = wanted.key
            owed.identifiers = [sub.identifier] if sub.identifier else []
            owed.changes = session.changes
            session.owe(owed)
        elif model.is_too_large(session, wanted.msg):
            found = True
    return found


def _has_members(wanted):
    name, text = wanted.key
    return any(session.subscription(text, name) for session, _ in wanted.members)


def pass_on(model, session):
    """A session has ended: what it had of its groups may go to other members."""
    waiting = list(session.queue)
    for key in session.owed:
        for owed in session.owed[key]:
            if owed.group is not None:
                model.passed[key] = owed.msg
    for row in session.owed.values():  # QoS 0, which may have waited for its sender's input
        waiting += [owed for owed in row if not owed.qos and not owed.sent]
    for owed in waiting:
        if owed.group is None or owed.state not in (QUEUED, SENT_1):
            continue
        members = []
        for other in model.sessions:
            for sub in other.subscriptions:
                if (sub.group, sub.filter) == owed.group:
                    members.append((other, sub.before()))
        if members:
            passed = ForGroup(owed.msg, owed.group, members)
            passed.qos = owed.qos
            passed.passed = True
            model.groups.append(passed)


def passed(model, session, packet, key):
    """At QoS 0 one may come from a member that is gone, without a place in a queue."""
    msg = model.passed.get(key)
    groups = [sub for sub in session.matching(packet.topic) if sub.group is not None]
    return Owed(msg, 0, False, packet.retain) if msg and groups and not packet.qos else None
