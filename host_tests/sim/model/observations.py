# observations.py - what the model learns from the broker's tables only, since no packet shows it:
# which connections have ended, which sessions were evicted or have expired, which wills were sent.
#
# It looks at the end of each turn, before each commit of the journal, and after a restart.
from . import queue_check, tables
from .delivery import QUEUED

NO_REFUSALS = tables.Refusals()


class Observations:
    """Mixin of Model."""

    # The end of a connection

    def detach_closed_links(self):
        """Detach the sessions whose connection has ended in the broker."""
        if self.world.stopping:
            self.send_wills_at_stop()
        for link in self.world.links:
            if link.attached and not tables.attached(self.world, link):
                self.check_disconnect_reason(link)
                self.detach(link)

    def send_wills_at_stop(self):
        """An orderly stop without a journal sends the wills before it closes connections."""
        for session in self.sessions:
            there = session.link and session.will and not session.link.disconnect_sent
            if there and not tables.has_will(self.broker, session.name):
                self.send_will(session)

    def check_disconnect_reason(self, link):
        """Did the broker have a reason to end this connection?"""
        if link.disconnect_sent or link.reset or link.ended:
            return
        if link.ignores_input or link.taken_over or self.world.stopping:
            return
        if self.timeouts.may_have_expired(link) or self.may_be_cut_packet():
            return
        why = self.broker.conns.reason[link.conn]
        self.fail("link %d was ended without a reason: %d", link.number, why)

    def note_refused_message(self, refusals):
        if refusals.messages:
            self.messages_refused_turn = self.world.turns

    def may_be_cut_packet(self):
        """May the rest of a long QoS 0 packet have found no message slot?

        The connection may also have ended one turn later, if the heap ran out meanwhile."""
        return self.world.turns - self.messages_refused_turn <= 1

    # A full table of sessions

    def find_evicted_sessions(self, refusals, name):
        """A new session, of this name, may have evicted the one that disconnected first."""
        if not refusals.sessions:
            return
        policy = self.broker.settings.when_full["sessions"]
        only_empty = policy == "drop_empty"
        for session in list(self.sessions):
            if session.link or session.name == name:
                continue
            if tables.session(self.broker, session.name) == tables.NONE:
                lost = refusals.deliveries + refusals.messages  # perhaps the last that it had
                if policy == "refuse" or (only_empty and self.must_hold_state(session, lost)):
                    self.fail("session %s was discarded", session.name)
                self.world.events["evicted"] += 1
                self.check_eviction_order(session, only_empty)
                self.end_session(session)

    def check_eviction_order(self, evicted, only_empty):
        for session in self.sessions:
            earlier = session.link is None and session.disconnected_at < evicted.disconnected_at
            if earlier and not (only_empty and tables.has_state(self.broker, session.name)):
                text = "%s was evicted before %s, which disconnected earlier"
                self.fail(text, evicted.name, session.name)

    def must_hold_state(self, session, lost):
        """Must the session have a delivery or a QoS 2 id, if so many were lost in this window?"""
        expired = self.retained.has_expired
        waiting = [one for one in session.queue if one.required and not expired(one.msg)]
        return len(waiting) > lost or bool(session.received)

    def lasting_sessions(self):
        """Return how many sessions outlive their connections, and how many may."""
        connections, slots = self.limits.connections, self.limits.sessions
        most = slots - min(connections, max(0, slots - connections))
        lasting = [one for one in self.sessions if self.is_in_table(one) and not one.clean]
        return len(lasting), most

    def is_in_table(self, session):
        return tables.session(self.broker, session.name) != tables.NONE

    def check_session_refusal(self, lasts):
        """A session was refused: was there no slot for it, and none to evict?"""
        if self.broker.settings.when_full["sessions"] != "drop_empty" or self.broker.journal_full:
            return  # a full journal can store nothing new
        lasting, most = self.lasting_sessions()
        if (not lasts or lasting < most) and len(self.sessions) < self.limits.sessions:
            self.fail("refused, though %d of %d sessions are lasting", lasting, most)
        for session in self.sessions:
            absent = self.is_in_table(session) and session.link is None
            if absent and not tables.has_state(self.broker, session.name):
                self.fail("refused, though session %s is empty", session.name)

    def check_session_limit(self, name):
        """A new session was accepted: do not too many outlive their connections now?"""
        if self.broker.settings.when_full["sessions"] == "drop_empty":
            lasting, most = self.lasting_sessions()
            if lasting > most:
                self.fail("%s was accepted: %d lasting sessions, %d allowed", name, lasting, most)

    # Looking at the tables

    def end_turn(self):
        self.finish_routing()
        self.observe()
        self.quotas.check()

    def observe(self):
        self.timeouts.note_buffer_waiters()
        self.timeouts.check_buffer_holders()
        refusals = self.count_refusals()
        self.carried_refusals = refusals if self.being_routed else None
        self.detach_closed_links()
        for session in list(self.sessions):
            if session.link is None:
                self.check_expiry(session)
            else:
                self.timeouts.check_keep_alive(session.link)
        self.close_finished_scans()
        self.end_window(refusals)

    def observe_during_turn(self):
        """Before a commit: make the model agree with the tables.

        -> what restore_required() makes required again afterwards"""
        published_now = self.published_now
        made_optional = self.make_routed_optional()
        self.observe()
        queue_check.reconcile(self, NO_REFUSALS)
        self.published_now = published_now
        return made_optional

    def make_routed_optional(self):
        """Of the message that is just being routed any receiver may have a delivery or not yet.

        -> [(session, delivery)] that were required"""
        found = []
        for session in self.sessions if self.being_routed else ():
            found += [(session, one) for one in session.queue if one.msg in self.being_routed]
        for _, delivery in found:
            delivery.required = False
        self.groups += self.groups_being_routed
        self.groups_being_routed = [one for one in self.groups if one.msg in self.being_routed]
        for wanted in self.groups_being_routed:
            wanted.is_being_routed = True
        return found

    def restore_required(self, made_optional):
        """Routing goes on, and will reach all receivers."""
        for session, delivery in made_optional:
            delivery.required = True
            if delivery not in session.queue:
                delivery.state = QUEUED
                session.queue.append(delivery)
                session.finished.remove(delivery)
        waiting = [one for one in self.groups_being_routed if not one.is_assigned]
        self.groups_being_routed = waiting
        for wanted in waiting:
            wanted.is_being_routed = False

    def check_after_reboot(self):
        """The restart has sent wills: learn what was refused, and compare the queues."""
        refusals = self.count_refusals()
        self.retained.learn(self.retained_changes, refusals)
        queue_check.reconcile(self, refusals)
        self.retained_changes = []
        self.end_window(refusals)

    def check_expiry(self, session):
        """The will and the end of a session without a connection: neither early nor late."""
        late = self.world.slack_ms
        now = self.now()
        if session.will_due is not None and not tables.has_will(self.broker, session.name):
            if now + self.world.early_ms < session.will_due:
                self.fail("the will of %s is early", session.name)
            self.send_will(session)
        elif session.will_due is not None and now > session.will_due + late:
            self.fail("the will of %s is late", session.name)
        if session.expiry_ms is None:
            return
        due = session.disconnected_ms + session.expiry_ms
        if not self.is_in_table(session):
            if now + self.world.early_ms < due:
                self.fail("session %s ended early", session.name)
            self.world.events["expired session"] += 1
            self.end_session(session)
        elif now > due + late:
            self.fail("session %s has not expired", session.name)

    def close_finished_scans(self):
        for session in self.sessions:
            if session.scans and session.link and not tables.scans(self.broker, session.name):
                for scan in session.scans:
                    scan.open = False
