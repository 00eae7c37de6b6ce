# snapshot.py - the state of the model at a commit: what the journal stores of each session, and
# the retained messages. After a restart the model is set back to it.
#
# The Delivery objects are shared with the model and not copied: what a client has received stays
# received, whatever the broker forgets.
from ..model.delivery import QUEUED, RELEASED, SENT_1, SENT_2
from ..model.shared_subscriptions import GroupMessage


class Snapshot:
    def __init__(self, model, ms):
        self.ms = ms
        self.creations = model.creations[0] if model else 0
        self.sessions = [SessionState(session) for session in model.sessions] if model else []
        self.retained = dict(model.retained.messages) if model else {}
        self.groups = list(model.groups_being_routed) if model else []

    def damaged_parts(self):
        """Return what may be left of it in a file with damaged bits: the first of its tables."""
        sessions, received, deliveries = [Snapshot(None, self.ms) for _ in range(3)]
        sessions.sessions = [SessionState(saved.session) for saved in self.sessions]
        received.sessions = [SessionState(saved.session) for saved in self.sessions]
        deliveries.sessions = self.sessions
        for saved in sessions.sessions:
            saved.received = {}
        for saved in sessions.sessions + received.sessions:
            saved.lost, saved.queue, saved.finished = saved.queue, [], []
        for part in (sessions, received, deliveries):
            part.creations, part.groups = self.creations, self.groups
        return [sessions, received, deliveries]

    def has_pending_expiry(self, ms):
        """Does anything expire or fall due after this time?"""
        ends = [msg.deadline for msg in self.retained.values()]
        for saved in self.sessions:
            _, expiry_ms, disconnected_ms, _ = saved.lifetime
            if not saved.is_connected:
                ends.append(disconnected_ms + expiry_ms if expiry_ms is not None else None)
                ends.append(saved.will[2])
        return any(end is not None and end > ms for end in ends)

    def restore(self, model):
        """Set the model back to this state."""
        model.sessions = [
            saved.restore(self.creations, model.world.storage.always) for saved in self.sessions
        ]
        model.retained.messages = dict(self.retained)
        model.ended_sessions = []
        model.groups = [_as_optional(wanted) for wanted in self.groups]
        model.groups_being_routed = []
        model.retained_changes = []
        model.published_now = []


def _as_optional(wanted):
    # It was being routed: a member may have it or not.
    found = GroupMessage(wanted.msg, wanted.key, wanted.members)
    found.was_passed_on = True
    return found


class SessionState:
    """One session, as it was."""

    def __init__(self, session):
        self.session = session
        self.is_connected = session.link is not None
        self.lifetime = session.clean, session.expiry_ms, session.disconnected_ms, session.level
        self.will = session.will, session.will_delay, session.will_due
        self.subscriptions = [(sub, sub.copy()) for sub in session.subscriptions]
        self.queue = [(one, one.state, one.required) for one in session.queue]
        self.lost = []  # the same, in a damaged file that has no deliveries
        self.finished = list(session.finished)
        self.received = dict(session.received)
        self.subscription_changes = session.subscription_changes

    def restore(self, creations, always):
        session = self.session
        session.link = None
        session.was_connected = self.is_connected
        session.has_ended = False
        session.clean, session.expiry_ms, session.disconnected_ms, session.level = self.lifetime
        session.will, session.will_delay, session.will_due = self.will
        session.subscriptions = [_as_before(sub, before) for sub, before in self.subscriptions]
        session.removed = []
        session.received = dict(self.received)
        session.subscription_changes = self.subscription_changes
        session.finished = []
        self._restore_queue(session, creations, always)
        return session

    def _restore_queue(self, session, creations, always):
        waiting = [delivery for delivery, _, _ in self.queue]
        session.may_return = list(self.finished)  # their end is not in the journal yet
        for key in session.deliveries:
            row = session.deliveries[key]
            scans = [one for one in row if one.from_retained and one.qos]
            session.may_return += [one for one in scans if one not in waiting]
            row = [one for one in row if one.created <= creations or one.from_retained]
            session.deliveries[key] = row
            for delivery in row:
                if delivery.qos and delivery.state == QUEUED:
                    delivery.required = False  # it may have been routed after the commit
        for delivery, _, _ in self.lost:
            delivery.required = False
        session.queue = []
        session.in_flight = {}
        for delivery, state, required in self.queue:
            first = delivery.first_link
            requeue(session, delivery, state)
            delivery.required = required
            if always and not delivery.packet_id and first > session.links:
                delivery.first_link = first  # it came while there was no connection
        for scan in session.scans:
            scan.open = False
            scan.expected = {}
        session.make_qos_0_optional()


def requeue(session, delivery, state):
    """Queue the delivery again. Of its state, the broker knows whether it was sent or released."""
    if state != RELEASED:
        state = (SENT_1 if delivery.qos == 1 else SENT_2) if delivery.packet_id else QUEUED
    delivery.state = state
    delivery.first_link = 0  # it may have been sent on any connection
    delivery.restored = state != RELEASED
    session.queue.append(delivery)
    if state != QUEUED:
        session.in_flight[delivery.packet_id] = delivery


def _as_before(sub, before):
    sub.qos, sub.no_local, sub.as_published = before.qos, before.no_local, before.as_published
    sub.identifier = before.identifier
    return sub


EMPTY = Snapshot(None, 0)  # before the first start
