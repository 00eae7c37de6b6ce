# snapshot.py - what the model knew at a commit, to go back to: of each session what a
# journal keeps of it, and the retained messages.
#
# Messages that are owed are shared with the model and not copied: what a client has been
# given stays given, whatever the broker forgets.
from .groups import ForGroup
from .session import QUEUED, RELEASED, SENT_1, SENT_2


class Snapshot:
    def __init__(self, model, ms):
        self.ms = ms
        self.births = model.births[0] if model else 0
        self.sessions = [Kept(session) for session in model.sessions] if model else []
        self.retained = dict(model.retained.kept) if model else {}
        self.groups = list(model.later) if model else []

    def parts(self):
        """What is left of it in a file whose bits have turned: the first of its tables."""
        sessions, received, deliveries = [Snapshot(None, self.ms) for _ in range(3)]
        sessions.sessions = [Kept(kept.session) for kept in self.sessions]
        received.sessions = [Kept(kept.session) for kept in self.sessions]
        deliveries.sessions = self.sessions
        for kept in sessions.sessions:
            kept.received = {}
        for kept in sessions.sessions + received.sessions:
            kept.lost, kept.queue, kept.ended = kept.queue, [], []
        for part in (sessions, received, deliveries):
            part.births, part.groups = self.births, self.groups
        return [sessions, received, deliveries]

    def runs_out(self, ms):
        """Was there something that expires or falls due, and had not until then?"""
        ends = [msg.deadline for msg in self.retained.values()]
        for kept in self.sessions:
            _, expiry_ms, left_ms, _ = kept.lasting
            if not kept.is_connected:
                ends.append(left_ms + expiry_ms if expiry_ms is not None else None)
                ends.append(kept.will[2])
        return any(end is not None and end > ms for end in ends)

    def put_back(self, model):
        """The model knows this and nothing else."""
        model.sessions = [
            kept.put_back(self.births, model.world.keeper.always) for kept in self.sessions
        ]
        model.retained.kept = dict(self.retained)
        model.died = []
        model.groups = [_maybe(wanted) for wanted in self.groups]
        model.later = []
        model.touched = []
        model.fresh = []


def _maybe(wanted):
    # It was just going out: a member may have it, or nobody.
    found = ForGroup(wanted.msg, wanted.key, wanted.members)
    found.passed = True
    return found


class Kept:
    """One session, as it was."""

    def __init__(self, session):
        self.session = session
        self.is_connected = session.link is not None
        self.lasting = session.clean, session.expiry_ms, session.left_ms, session.level
        self.will = session.will, session.will_delay, session.will_due
        self.subscriptions = [(sub, sub.before()) for sub in session.subscriptions]
        self.queue = [(owed, owed.state, owed.sure) for owed in session.queue]
        self.lost = []  # as queue, in a file that has lost them
        self.ended = list(session.ended)
        self.received = dict(session.received)
        self.changes = session.changes

    def put_back(self, births, always):
        session = self.session
        session.link = None
        session.is_cut = self.is_connected
        session.dead = False
        session.clean, session.expiry_ms, session.left_ms, session.level = self.lasting
        session.will, session.will_delay, session.will_due = self.will
        session.subscriptions = [_as_before(sub, before) for sub, before in self.subscriptions]
        session.removed = []
        session.received = dict(self.received)
        session.changes = self.changes
        session.ended = []
        self._put_back_queue(session, births, always)
        return session

    def _put_back_queue(self, session, births, always):
        waiting = [owed for owed, _, _ in self.queue]
        session.may_return = list(self.ended)  # of these the journal had not told yet
        for key in session.owed:
            row = session.owed[key]
            scans = [owed for owed in row if owed.is_scan and owed.qos]
            session.may_return += [owed for owed in scans if owed not in waiting]
            session.owed[key] = [owed for owed in row if owed.born <= births or owed.is_scan]
            for owed in session.owed[key]:  # what was just going out, and not to this one yet
                owed.sure = owed.sure and not (owed.qos and owed.state == QUEUED)
        for owed, _, _ in self.lost:
            owed.sure = False
        session.queue = []
        session.in_flight = {}
        for owed, state, sure in self.queue:
            first = owed.first_link
            return_to(session, owed, state)
            owed.sure = sure
            if always and not owed.packet_id and first > session.links:
                owed.first_link = first  # it came while nobody was there
        for scan in session.scans:
            scan.open = False
            scan.due = {}
        session.unsure_qos_0()


def return_to(session, owed, state):
    """It waits again. What the broker knows of its state is whether PUBREC had come."""
    if state != RELEASED:
        state = (SENT_1 if owed.qos == 1 else SENT_2) if owed.packet_id else QUEUED
    owed.state = state
    owed.first_link = 0  # it may have been sent on any connection
    owed.is_back = state != RELEASED
    session.queue.append(owed)
    if state != QUEUED:
        session.in_flight[owed.packet_id] = owed


def _as_before(sub, before):
    sub.qos, sub.no_local, sub.as_published = before.qos, before.no_local, before.as_published
    sub.identifier = before.identifier
    sub.gone = 0
    return sub


NOTHING = Snapshot(None, 0)  # before the first start
