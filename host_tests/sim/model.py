# model.py - what must hold, in dicts and lists: who is owed which message after each packet
# that the broker has read.
#
# World tells of a read when the broker has handled it, so the tables can be asked what a
# full one refused; what may be refused, and how often, is told by the broker's counters.
# What each packet does is in handling.py, who is owed a message in owing.py.
from . import handling, owing, peek, queues, retained
from .session import Session


class Broken(Exception):
    """Something does not hold."""


class Model:
    def __init__(self, world):
        self.world = world
        self.broker = world.broker
        self.settings = world.broker.settings
        self.limits = world.broker.limits
        self.sessions = []
        self.died = []  # sessions that ended in this turn
        self.retained = retained.Retained(self)
        self.groups = []  # messages for groups that nobody is known to have got yet
        self.passed = {}  # keys of messages that may have gone to other members -> the message
        self.touched = []  # topics whose retained message was to change in this window
        self.fresh = []  # messages that were handed out in this window
        self.seq = 0
        self.refused_in = -1  # turn in which a message found no slot
        self.counts = peek.Counts(self.broker)

    def now(self):
        return self.world.clock.ms

    def fail(self, text, *what):
        raise Broken(text % what)

    def find(self, name):
        for session in self.sessions:
            if session.name == name:
                return session
        return None

    # A read

    def was_read(self, link, packets):
        """The broker has handled these packets of a link."""
        counts = peek.Counts(self.broker)
        grown = counts.since(self.counts)
        self.counts = counts
        self.note_refused(grown)
        for packet in packets:
            if link.deaf or (not link.attached and packet[0] != "connect"):
                break
            if packet[0] == "connect":
                self.connect(link, packet, grown)
            else:
                handling.HANDLERS[packet[0]](self, link, packet, grown)
        self.settle(grown)

    def settle(self, grown):
        """Learn what was refused in this window."""
        self.retained.learn(self.touched, grown)
        queues.settle(self, grown)
        self.touched = []
        self.fresh = []

    # Sessions

    def connect(self, link, packet, grown):
        _, spec, name = packet
        old = self.find(name)
        if old and old.link:
            old.link.was_taken = True
            self.world.seen["takeover"] += 1
            self.detach(old.link)
        self.look_for_detached()
        self.look_for_evicted(grown, name)
        if not peek.attached(self.world, link):
            full = grown.connections or grown.sessions or grown.messages
            if not full:
                self.fail("link %d of %s is refused without a reason", link.number, name)
            link.refused = True
            link.due.append(("connack", 0, True))
            return
        old = self.find(name)
        if old and spec.clean:
            self.end(old)
        session = self.find(name)
        link.resumed = bool(session)
        link.due.append(("connack", 1 if session and link.level > 3 else 0, False))
        self.attach(link, session or self.begin(name, link.level), spec)

    def begin(self, name, level):
        session = Session(name, level)
        self.sessions.append(session)
        return session

    def attach(self, link, session, spec):
        session.link = link
        session.links += 1
        session.will_due = None
        session.clean, session.expiry_ms = self.lasting(link.level, spec)
        session.will = spec.will
        if spec.will:
            self.world.seen["will"] += 1
        session.will_delay = spec.will_delay
        link.session = session
        link.conn = peek.connection(self.world, link)
        link.attached = True
        link.receive_max = min(spec.receive_max or 65535, self.broker.max_inflight)
        link.packet_max = spec.packet_max

    def lasting(self, level, spec):
        """-> (does the session end with its connection, ms that it outlives it)"""
        most = self.settings.persistent_client_expiration
        if level < 5:
            kept = None if not self.broker.five or not most else most * 1000
            return spec.clean, kept
        expiry = min(spec.expiry, most) if most else spec.expiry
        return expiry == 0, expiry * 1000

    def detach(self, link):
        """A connection leaves its session."""
        session = link.session
        link.attached = False
        session.link = None
        session.left_ms = self.now()
        session.left = peek.left(self.broker, session.name)
        session.unsure_qos_0()
        for scan in session.scans:
            scan.open = False
        if link.left:
            session.will = None
        elif session.will:
            self.keep_or_send_will(session)
        if session.clean:
            self.end(session)

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
        self.world.seen["will sent"] += 1
        owing.publish(self, will, session, True)

    def end(self, session):
        """A session is discarded, with all that hangs on it."""
        if session.will and session.will_due is not None:
            self.send_will(session)
        session.dead = True
        session.died_in = self.world.turns
        self.sessions.remove(session)
        self.died.append(session)
        queues.pass_on(self, session)

    # What the tables tell at once

    def look_for_detached(self):
        """Connections that have ended let go of their sessions."""
        for link in self.world.links:
            if link.attached and not peek.attached(self.world, link):
                self.check_reason(link)
                self.detach(link)

    def check_reason(self, link):
        """Was there a reason to end this connection?"""
        known = link.left or link.reset or link.ended or link.deaf or link.was_taken
        if known or self.world.stopping or self.is_late(link) or self.is_cut():
            return
        why = self.broker.conns.reason[link.conn]
        self.fail("link %d was ended without a reason: %d", link.number, why)

    def note_refused(self, grown):
        if grown.messages:
            self.refused_in = self.world.turns

    def is_cut(self):
        """May half of a QoS 0 packet have found no slot for its rest?"""
        return self.refused_in == self.world.turns

    def is_late(self, link):
        keep_alive = link.client.plan.keep_alive * 1500
        silent = self.now() - link.heard_ms + self.world.early_ms
        if self.now() - link.waited_ms < self.world.slack_ms:
            return True
        if keep_alive and silent >= keep_alive:
            return True
        return bool(link.ends) and self.now() - link.partial_ms + self.world.early_ms >= 10000

    def look_for_evicted(self, grown, name):
        """A full table of sessions: who left first may go."""
        if not grown.sessions:
            return
        for session in list(self.sessions):
            if session.link or session.name == name:
                continue
            if peek.session(self.broker, session.name) == peek.NONE:
                if not self.broker.drop_oldest_session:
                    self.fail("%s was discarded", session.name)
                self.world.seen["evicted"] += 1
                self.check_oldest(session)
                self.end(session)

    def check_oldest(self, evicted):
        for session in self.sessions:
            if session.link is None and session.left < evicted.left:
                self.fail("%s went before %s, who left earlier", evicted.name, session.name)

    def turn_ends(self):
        """After a turn: who has gone, whose time has come."""
        counts = peek.Counts(self.broker)
        grown = counts.since(self.counts)
        self.counts = counts
        self.note_refused(grown)
        self.look_for_detached()
        for session in list(self.sessions):
            if session.link is None:
                self.look_at_time(session)
            else:
                self.look_at_silence(session.link)
        self.look_for_scans()
        self.settle(grown)

    def look_at_silence(self, link):
        if self.broker.conns.waits_for_big(link.conn):
            link.waited_ms = self.now()  # that is not its fault
            return
        patience = link.client.plan.keep_alive * 1500
        heard = max(link.heard_ms, link.wrote_ms, link.waited_ms)
        if patience and self.now() > heard + patience + 2 * self.world.slack_ms + 10000:
            self.fail("link %d is silent and still there", link.number)

    def look_at_time(self, session):
        late = self.world.slack_ms
        now = self.now()
        if session.will_due is not None and not peek.has_will(self.broker, session.name):
            if now + self.world.early_ms < session.will_due:
                self.fail("the will of %s is early", session.name)
            self.send_will(session)
        elif session.will_due is not None and now > session.will_due + late:
            self.fail("the will of %s is late", session.name)
        if session.expiry_ms is None:
            return
        due = session.left_ms + session.expiry_ms
        if peek.session(self.broker, session.name) == peek.NONE:
            if now + self.world.early_ms < due:
                self.fail("session %s ended early", session.name)
            self.world.seen["expired session"] += 1
            self.end(session)
        elif now > due + late:
            self.fail("session %s has not expired", session.name)

    def look_for_scans(self):
        for session in self.sessions:
            if session.scans and session.link and not peek.scans(self.broker, session.name):
                for scan in session.scans:
                    scan.open = False

    def is_too_large(self, session, msg):
        most = session.link.packet_max if session.link else 0
        return most and msg.size + len(msg.topic) + len(msg.props) + 40 > most
