# learning.py - what the model learns from the broker's tables: who has gone, and why; whose
# time has come; who went because a table was full; all of it before a commit, and anew after
# a reboot.
from . import peek, queues
from .session import QUEUED

NOTHING = peek.Growth()


class Learning:
    """A part of Model."""

    def look_for_detached(self):
        """Connections that have ended let go of their sessions."""
        if self.world.stopping:
            self.look_for_wills()
        for link in self.world.links:
            if link.attached and not peek.attached(self.world, link):
                self.check_reason(link)
                self.detach(link)

    def look_for_wills(self):
        """At an orderly stop without a journal those of the connected go out before their
        connections end."""
        for session in self.sessions:
            there = session.link and session.will and not session.link.left
            if there and not peek.has_will(self.broker, session.name):
                self.send_will(session)

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
                if self.broker.settings.when_full["sessions"] != "drop_oldest":
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
        self.go_on()
        self.look_around()

    def look_around(self):
        grown = self.count()
        self.spare = grown if self.going else None
        self.look_for_detached()
        for session in list(self.sessions):
            if session.link is None:
                self.look_at_time(session)
            else:
                self.look_at_silence(session.link)
        self.look_for_scans()
        self.settle(grown)

    def learn_all(self):
        """In the midst of a turn: the model is to be as the tables are. To be trusted again."""
        fresh = self.fresh
        doubted = self.doubt()
        self.look_around()
        queues.reconcile(self, NOTHING)
        self.fresh = fresh
        return doubted

    def doubt(self):
        """What is just going out is sure for nobody; it was for these."""
        found = []
        for session in self.sessions if self.going else ():
            found += [(session, owed) for owed in session.queue if owed.msg in self.going]
        for _, owed in found:
            owed.sure = False
        self.groups += self.later
        self.later = [wanted for wanted in self.groups if wanted.msg in self.going]
        for wanted in self.later:
            wanted.is_going = True
        return found

    def trust(self, doubted):
        """It will go out to all."""
        for session, owed in doubted:
            owed.sure = True
            if owed not in session.queue:
                owed.state = QUEUED
                session.queue.append(owed)
                session.ended.remove(owed)
        self.later = [wanted for wanted in self.later if not wanted.is_given]
        for wanted in self.later:
            wanted.is_going = False

    def start_again(self, broker):
        """After a reboot, before the broker has taken over what was kept."""
        self.broker = broker
        self.counts = NOTHING
        self.later = []
        self.going = []

    def look_after_reboot(self):
        """What wills found no room, and what else is as it must be."""
        grown = self.count()
        self.retained.learn(self.touched, grown)
        queues.reconcile(self, grown)
        self.touched = []
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
