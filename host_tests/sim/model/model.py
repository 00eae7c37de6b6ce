# model.py - what the broker has promised, in dicts and lists.
#
# World calls was_read() after the broker has handled a read, and end_turn() after the turn. What
# lies between two such calls is a *window*. When it ends, the model asks the broker's counters how
# much was refused or dropped in it, and the tables what that was.
#
# Here: windows, and sessions with their connections. The effect of each packet is in packets.py,
# the deliveries of a published message in routing.py.
from . import queue_check, rights, routing, shared_subscriptions, tables
from .observations import NO_REFUSALS, Observations
from .packets import HANDLERS
from .quotas import Quotas
from .retained import Retained
from .session import Session
from .timeouts import Timeouts


class PromiseBroken(Exception):
    """The broker has not done what it promises, or has done what it may not do."""


class Model(Observations):
    def __init__(self, world):
        self.world = world
        self.broker = world.broker
        self.settings = world.broker.settings
        self.limits = world.broker.limits
        self.sessions = []
        self.ended_sessions = []  # sessions that ended in this turn
        self.retained = Retained(self)
        self.groups = []  # GroupMessages whose receiver is not known yet
        self.passed_on = {}  # message key -> message that may have gone to another member
        self.seq = 0  # of published messages
        self.creations = [0]  # number of deliveries, shared with the sessions
        self.journal_changes = 0  # number of changes that a journal stores
        self.quotas = Quotas(self)
        self.timeouts = Timeouts(self)
        # In this window
        self.published_now = []
        self.retained_changes = []  # (topic, retained message before, message)
        self.is_refused = False  # has a table refused anything?
        # A commit may come while a message is being routed: some receivers have it, others
        # will have it.
        self.being_routed = []  # that message
        self.groups_being_routed = []  # its GroupMessages
        self.carried_refusals = None  # counted before the commit, perhaps for that message
        # The counters of the broker
        self.counts = tables.RefusalCounters(self.broker)
        self.messages_refused_before = 0  # when the last read began
        self.messages_refused_since = 0
        self.messages_refused_turn = -1  # the last turn in which a message found no slot

    def now(self):
        return self.world.clock.ms

    def fail(self, text, *what):
        raise PromiseBroken(text % what)

    def find_session(self, name):
        for session in self.sessions:
            if session.name == name:
                return session
        return None

    # A read

    def was_read(self, link, packets, is_partial=False):
        """The broker has handled these packets; is_partial: the last one not completely."""
        self.finish_routing()
        refusals = self.count_refusals()
        self.carried_refusals = refusals if is_partial else None
        for packet in packets:
            if link.ignores_input or (not link.attached and packet[0] != "connect"):
                break
            before = self.journal_changes
            if packet[0] == "connect":
                self.connect(link, packet, refusals)
            else:
                HANDLERS[packet[0]](self, link, packet, refusals)
            changed = self.journal_changes != before and not self.is_refused
            link.note_answers(self.journal_changes if changed else 0)
        last = self.being_routed = self.published_now[-1:] if is_partial else []
        made_optional = self.make_routed_optional()
        self.end_window(refusals)
        self.restore_required(made_optional)
        self.published_now = last

    def finish_routing(self):
        """The message that was being routed has reached all receivers."""
        self.groups += self.groups_being_routed
        self.groups_being_routed = []
        self.being_routed = []

    def count_refusals(self):
        """Return what the broker has counted as refused or dropped since the last call."""
        counts = tables.RefusalCounters(self.broker)
        refusals = counts.since(self.counts)
        self.counts = counts
        self.messages_refused_since = counts.messages - self.messages_refused_before
        self.messages_refused_before = counts.messages
        if self.carried_refusals:
            refusals.messages += self.carried_refusals.messages
            refusals.deliveries += self.carried_refusals.deliveries
            refusals.dropped += self.carried_refusals.dropped
        self.is_refused = refusals.any()
        self.note_refused_message(refusals)
        return refusals

    def note_journal_change(self, session=None):
        """Count a change that a journal stores; of a session, if that is stored at all."""
        if session is None or not session.clean:
            self.journal_changes += 1

    def end_window(self, refusals):
        """Find out what was refused or dropped in this window."""
        self.retained.learn(self.retained_changes, refusals)
        queue_check.end_window(self, refusals)
        self.retained_changes = []
        self.published_now = []

    # Sessions

    def connect(self, link, packet, refusals):
        _, spec, name = packet
        old = self.find_session(name)
        is_in = tables.attached(self.world, link)
        if old and old.link and tables.is_taken_over(self.world, old.link):
            if not is_in:
                self.fail("%s is taken over by one that is refused", name)
            if self.is_anothers(old, spec):
                self.fail("%s is taken over by another user", name)
            old.link.taken_over = True
            self.world.events["takeover"] += 1
            self.detach(old.link)
        self.detach_closed_links()
        self.find_evicted_sessions(refusals, name)
        if not is_in:
            full = refusals.connections or refusals.sessions or refusals.messages
            if not full and self.is_anothers(old, spec):
                self.world.events["another user"] += 1
            elif not full:
                self.fail("link %d of %s is refused without a reason", link.number, name)
            if refusals.sessions and not refusals.connections:
                self.check_session_refusal(not self.session_lifetime(link.level, spec)[0])
            link.refused = True
            link.pending_answers.append(("connack", 0, True))
            return
        old = self.find_session(name)
        if old and (spec.clean or self.is_anothers(old, spec)):
            self.note_journal_change(old)
            self.end_session(old)
        session = self.find_session(name)
        link.resumed = bool(session)
        link.pending_answers.append(("connack", 1 if session and link.level > 3 else 0, False))
        self.attach(link, session or self.create_session(name, link.level, spec.user), spec)
        if self.world.plan.has_rules and session:
            rights.recheck(self, session, False)
        if not old and not link.session.clean:
            self.check_session_limit(name)

    def is_anothers(self, session, spec):
        """Does the session belong to another user than that of this CONNECT?"""
        return self.world.plan.has_rules and session and session.user != spec.user

    def rules_changed(self):
        """The broker has read other rules, between two turns."""
        self.count_refusals()  # what it has dropped is known
        for session in self.sessions:
            rights.recheck(self, session, session.link is not None)
        queue_check.reconcile(self, NO_REFUSALS)

    def restart(self, broker):
        """After a reboot, before the broker has read its journal."""
        self.broker = broker
        self.quotas = Quotas(self)
        self.counts = NO_REFUSALS
        self.groups_being_routed = []
        self.being_routed = []

    def create_session(self, name, level, user):
        session = Session(name, level, self.creations)
        session.user = user
        self.sessions.append(session)
        return session

    def attach(self, link, session, spec):
        session.link = link
        session.slots_at_disconnect = session.deliveries_at_disconnect = None
        session.links += 1
        session.will_due = None
        session.clean, session.expiry_ms = self.session_lifetime(link.level, spec)
        session.will = spec.will
        if spec.will:
            self.world.events["will"] += 1
        session.will_delay = spec.will_delay
        if spec.will:
            self.note_journal_change()
        self.note_journal_change(session)
        link.session = session
        link.conn = tables.connection(self.world, link)
        link.attached = True
        link.receive_max = min(spec.receive_max or 65535, self.broker.deliveries.window[0])
        link.packet_max = session.packet_max = spec.packet_max

    def session_lifetime(self, level, spec):
        """-> (does the session end with its connection, ms that it outlives it)"""
        most = self.settings.persistent_client_expiration
        if level < 5:
            return spec.clean, most * 1000 if self.broker.five and most else None
        expiry = min(spec.expiry, most) if most else spec.expiry
        return expiry == 0, expiry * 1000

    def detach(self, link):
        """The connection of a session has ended."""
        session = link.session
        link.attached = False
        session.link = None
        # None: taken at the end of this turn, in which it may still get a message
        session.slots_at_disconnect = session.deliveries_at_disconnect = None
        session.disconnected_ms = self.now()
        session.disconnected_at = tables.disconnected_at(self.broker, session.name)
        session.make_qos_0_optional()
        for scan in session.scans:
            scan.open = False
        if link.disconnect_sent:
            session.will = None
        elif session.will:
            self.keep_or_send_will(session)
        if session.clean:
            self.end_session(session)

    def keep_or_send_will(self, session):
        delay = session.will_delay * 1000
        if session.expiry_ms is not None:
            delay = min(delay, session.expiry_ms)
        if session.level == 5 and delay:
            session.will_due = self.now() + delay
        else:
            self.send_will(session)

    def send_will(self, session):
        will, session.will, session.will_due = session.will, None, None
        self.world.events["will sent"] += 1
        if rights.may_write(self, session.user, will.topic):
            routing.publish(self, will, session, True)

    def end_session(self, session):
        """The broker has discarded a session."""
        if session.will and session.will_due is not None:
            self.send_will(session)
        session.has_ended = True
        self.sessions.remove(session)
        self.ended_sessions.append(session)
        shared_subscriptions.pass_on(self, session)

    def is_too_large(self, session, msg):
        most = session.packet_max
        return most and msg.size + len(msg.topic) + len(msg.props) + 40 > most
