# groups.py - messages for shared subscriptions: one member of a group gets each, or nobody.
from .session import QUEUED, SENT_1, Delivery


class GroupMessage:
    """A message that one member of a group gets."""

    def __init__(self, msg, key, members, moment_unknown=False):
        self.msg = msg
        self.key = key  # (share name, filter)
        self.members = members  # (session, subscription)
        self.moment_unknown = (
            moment_unknown  # at some moment of a turn, in which members may have left?
        )
        self.qos = msg.qos
        self.was_passed_on = False  # from a member whose session has ended?
        self.is_being_routed = self.is_assigned = False  # out, just now; to a member


def granted_qos(model, wanted, sub):
    """The QoS at which a member gets it."""
    raised = model.broker.upgrade_qos and not wanted.was_passed_on
    return sub.qos if raised else min(sub.qos, wanted.qos)


def may_have_no_receiver(model, wanted):
    """May a message for a group have no receiver that is seen in a queue?

    Where a member takes it at QoS 0, that one may get it, or nobody. Of messages without a
    payload, which clear a topic, one is as another."""
    found = (
        wanted.was_passed_on
        or wanted.is_being_routed
        or not wanted.msg.size
        or model.retained.has_expired(wanted.msg)
        or (wanted.moment_unknown and not _has_members(wanted))
    )
    for session, sub in wanted.members:
        if session.has_ended:  # it went to one who is gone, and its place with it, or to another
            found = True
            model.passed_on[wanted.msg.key()] = wanted.msg
        if not granted_qos(model, wanted, sub):
            found = True
            delivery = Delivery(
                wanted.msg, 0, False, 1 if sub.as_published and wanted.msg.retain else 0
            )
            delivery.in_order = False
            delivery.group = wanted.key
            delivery.identifiers = [sub.identifier] if sub.identifier else []
            delivery.subscription_changes = session.subscription_changes
            session.add_delivery(delivery)
        elif model.is_too_large(session, wanted.msg):
            found = True
    return found


def _has_members(wanted):
    name, text = wanted.key
    return any(session.subscription(text, name) for session, _ in wanted.members)


def pass_on(model, session):
    """A session has ended: what it had of its groups may go to other members."""
    waiting = list(session.queue)
    for key in session.deliveries:
        for delivery in session.deliveries[key]:
            if delivery.group is not None:
                model.passed_on[key] = delivery.msg
    for row in session.deliveries.values():  # QoS 0, which may have waited for its sender's input
        waiting += [delivery for delivery in row if not delivery.qos and not delivery.sent]
    for delivery in waiting:
        if delivery.group is None or delivery.state not in (QUEUED, SENT_1):
            continue
        members = []
        for other in model.sessions:
            for sub in other.subscriptions:
                if (sub.group, sub.filter) == delivery.group:
                    members.append((other, sub.before()))
        if members:
            passed = GroupMessage(delivery.msg, delivery.group, members)
            passed.qos = delivery.qos
            passed.was_passed_on = True
            model.groups.append(passed)


def passed_on_delivery(model, session, packet, key):
    """At QoS 0 one may come from a member that is gone, without a place in a queue."""
    msg = model.passed_on.get(key)
    groups = [sub for sub in session.matching(packet.topic) if sub.group is not None]
    return Delivery(msg, 0, False, packet.retain) if msg and groups and not packet.qos else None
