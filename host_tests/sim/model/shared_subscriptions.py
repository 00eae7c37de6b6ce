# shared_subscriptions.py - messages for groups. One member of a group gets each message; which
# one, only the broker's deliveries table shows.
from .delivery import QUEUED, SENT_1, Delivery
from .rights import may_read


class GroupMessage:
    """A message for a group, until its receiver is known."""

    def __init__(self, msg, key, members, moment_unknown=False):
        self.msg = msg
        self.key = key  # (share name, filter)
        self.members = members  # (session, subscription)
        self.moment_unknown = moment_unknown  # see routing.publish()
        self.qos = msg.qos
        self.was_passed_on = False  # by the end of another member's session?
        self.is_being_routed = False  # see Model.being_routed
        self.is_assigned = False  # was a receiver found?


def granted_qos(model, wanted, sub):
    """Return the QoS at which a member gets the message."""
    raised = model.broker.upgrade_qos and not wanted.was_passed_on
    return sub.qos if raised else min(sub.qos, wanted.qos)


def may_have_no_receiver(model, wanted):
    """May the message be in no queue?

    So it is if it went to a member at QoS 0, expired, or was too large. Messages without a payload
    cannot be told apart."""
    found = (
        wanted.was_passed_on
        or wanted.is_being_routed
        or not wanted.msg.size
        or model.retained.has_expired(wanted.msg)
        or (wanted.moment_unknown and not _has_members(wanted))
    )
    for session, sub in wanted.members:
        if session.has_ended:  # the message went to this one, or was passed on
            found = True
            model.passed_on[wanted.msg.key()] = wanted.msg
        if not granted_qos(model, wanted, sub):
            found = True
            retain = 1 if sub.as_published and wanted.msg.retain else 0
            delivery = Delivery(wanted.msg, 0, False, retain)
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
    """A session has ended: its messages for groups may go to other members."""
    waiting = list(session.queue)
    for key in session.deliveries:
        for delivery in session.deliveries[key]:
            if delivery.group is not None:
                model.passed_on[key] = delivery.msg
    for row in session.deliveries.values():  # QoS 0 may have waited, too
        waiting += [delivery for delivery in row if not delivery.qos and not delivery.sent]
    for delivery in waiting:
        if delivery.group is None or delivery.state not in (QUEUED, SENT_1):
            continue
        members = []
        for other in model.sessions:
            for sub in other.subscriptions:
                may = may_read(model, other.user, delivery.msg.topic)
                if may and (sub.group, sub.filter) == delivery.group:
                    members.append((other, sub.copy()))
        if members:
            passed = GroupMessage(delivery.msg, delivery.group, members)
            passed.qos = delivery.qos
            passed.was_passed_on = True
            model.groups.append(passed)


def passed_on_delivery(model, session, packet, key):
    """Return the delivery at QoS 0 that explains this packet: passed on from an ended session."""
    msg = model.passed_on.get(key)
    groups = [sub for sub in session.matching(packet.topic) if sub.group is not None]
    return Delivery(msg, 0, False, packet.retain) if msg and groups and not packet.qos else None
