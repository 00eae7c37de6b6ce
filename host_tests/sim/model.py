# model.py - what must hold, in dicts and lists: who is owed which message after each packet
# that the broker has read.
#
# World tells of a read when the broker has handled it, so the tables can be asked what a
# full one refused; what may be refused, and how often, is told by the broker's counters.
# What each packet does is in handling.py, who is owed a message in owing.py, what is seen in
# the tables only in learning.py.
from . import groups, handling, owing, peek, queues, retained
from .learning import Learning
from .session import Session


class Broken(Exception):
    """Something does not hold."""


class Model(Learning):
    def __init__(self, world):
        self.world = world
        self.broker = world.broker
        self.watch_retained()
        self.settings = world.broker.settings
        self.limits = world.broker.limits
        self.sessions = []
        self.died = []  # sessions that ended in this turn
        self.retained = retained.Retained(self)
        self.groups = []  # messages for groups that nobody is known to have got yet
        self.going = []  # the message that is just going out: some have it, others will
        self.later = []  # groups that will have it
        self.spare = None  # what has been counted, perhaps for it
        # Messages: when the last read began, and since then
        self.refused_before = self.newly_refused = 0
        self.passed = {}  # keys of messages that may have gone to other members -> the message
        self.touched = []  # topics whose retained message was to change in this window
        self.fresh = []  # messages that were handed out in this window
        self.seq = 0
        self.refused_in = -1  # turn in which a message found no slot
        self.buffers_refused = 0
        self.wanted_ms = -99999  # when somebody waited for a reassembly buffer
        self.unwanted_ms = 0  # when nobody did
        self.counts = peek.Counts(self.broker)
        self.births = [0]  # of what sessions are owed
        self.changes = 0  # of what a journal keeps
        self.is_refused = False  # has a table refused anything in this window?

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

    def was_read(self, link, packets, is_part=False):
        """The broker has handled these packets of a link; is_part: all but the last one."""
        self.go_on()
        grown = self.count()
        self.spare = grown if is_part else None
        for packet in packets:
            if link.deaf or (not link.attached and packet[0] != "connect"):
                break
            before = self.changes
            if packet[0] == "connect":
                self.connect(link, packet, grown)
            else:
                handling.HANDLERS[packet[0]](self, link, packet, grown)
            link.owe_answers(0 if self.changes == before or self.is_refused else self.changes)
        last = self.going = self.fresh[-1:] if is_part else []
        doubted = self.doubt()
        self.settle(grown)
        self.trust(doubted)
        self.fresh = last

    def go_on(self):
        """The message that was going out has gone to all."""
        self.groups += self.later
        self.later = []
        self.going = []

    def count(self):
        """What the counters say that was refused since they were looked at."""
        counts = peek.Counts(self.broker)
        grown = counts.since(self.counts)
        self.counts = counts
        self.newly_refused = counts.messages - self.refused_before
        self.refused_before = counts.messages
        if self.spare:
            grown.messages += self.spare.messages
            grown.deliveries += self.spare.deliveries
            grown.dropped += self.spare.dropped
        self.is_refused = grown.any()
        self.note_refused(grown)
        return grown

    def touch(self, session=None):
        """Something changes that a journal keeps; of a session, where that is kept."""
        if session is None or not session.clean:
            self.changes += 1

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
        is_in = peek.attached(self.world, link)
        if old and old.link and peek.is_taken_over(self.world, old.link):
            if not is_in:
                self.fail("%s is taken over by one that is refused", name)
            old.link.was_taken = True
            self.world.seen["takeover"] += 1
            self.detach(old.link)
        self.look_for_detached()
        self.look_for_evicted(grown, name)
        if not is_in:
            full = grown.connections or grown.sessions or grown.messages
            if not full:
                self.fail("link %d of %s is refused without a reason", link.number, name)
            if grown.sessions and not grown.connections:
                self.check_refused(not self.lasting(link.level, spec)[0])
            link.refused = True
            link.due.append(("connack", 0, True))
            return
        old = self.find(name)
        if old and spec.clean:
            self.touch(old)
            self.end(old)
        session = self.find(name)
        link.resumed = bool(session)
        link.due.append(("connack", 1 if session and link.level > 3 else 0, False))
        self.attach(link, session or self.begin(name, link.level), spec)
        if not old and not link.session.clean:
            self.check_staying(name)

    def begin(self, name, level):
        session = Session(name, level, self.births)
        self.sessions.append(session)
        return session

    def attach(self, link, session, spec):
        session.link = link
        session.brought = session.entries = None
        session.links += 1
        session.will_due = None
        session.clean, session.expiry_ms = self.lasting(link.level, spec)
        session.will = spec.will
        if spec.will:
            self.world.seen["will"] += 1
        session.will_delay = spec.will_delay
        if spec.will:
            self.touch()
        self.touch(session)
        link.session = session
        link.conn = peek.connection(self.world, link)
        link.attached = True
        link.receive_max = min(spec.receive_max or 65535, self.broker.deliveries.window[0])
        link.packet_max = session.packet_max = spec.packet_max

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
        session.brought = session.entries = None  # it may have been given one in this very turn
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
        groups.pass_on(self, session)

    def is_too_large(self, session, msg):
        most = session.packet_max
        return most and msg.size + len(msg.topic) + len(msg.props) + 40 > most
