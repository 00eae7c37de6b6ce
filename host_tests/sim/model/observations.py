# learning.py - what the model learns from the broker's tables: who has gone, and why; whose
# time has come; who went because a table was full; all of it before a commit, and anew after
# a reboot.
from slotmq_tools.sim.machine import IN

from . import queue_check, tables
from .session import QUEUED

NO_REFUSALS = tables.Refusals()
_WAITED_MS = 1500  # that count as held for who has waited for a reassembly buffer


class Observations:
    """A part of Model."""

    def detach_closed_links(self):
        """Connections that have ended let go of their sessions."""
        if self.world.stopping:
            self.send_wills_at_stop()
        for link in self.world.links:
            if link.attached and not tables.attached(self.world, link):
                self.check_disconnect_reason(link)
                self.detach(link)

    def send_wills_at_stop(self):
        """At an orderly stop without a journal those of the connected go out before their
        connections end."""
        for session in self.sessions:
            there = session.link and session.will and not session.link.disconnect_sent
            if there and not tables.has_will(self.broker, session.name):
                self.send_will(session)

    def check_disconnect_reason(self, link):
        """Was there a reason to end this connection?"""
        known = (
            link.disconnect_sent
            or link.reset
            or link.ended
            or link.ignores_input
            or link.taken_over
        )
        if (
            known
            or self.world.stopping
            or self.may_have_timed_out(link)
            or self.may_be_cut_packet()
        ):
            return
        why = self.broker.conns.reason[link.conn]
        self.fail("link %d was ended without a reason: %d", link.number, why)

    def note_refused_message(self, refusals):
        if refusals.messages:
            self.messages_refused_turn = self.world.turns

    def may_be_cut_packet(self):
        """May half of a QoS 0 packet have found no slot for its rest?

        In the turn before, where that one ran out of heap before it could close."""
        return self.world.turns - self.messages_refused_turn <= 1

    def may_have_timed_out(self, link):
        now = self.now()
        keep_alive = link.client.plan.keep_alive * 1500
        silent = now - link.partial_ms + self.world.early_ms
        if now - link.buffer_waited_ms < self.world.slack_ms:
            return True
        if keep_alive and silent >= keep_alive:
            return True
        if not link.ends:
            return False
        self.note_reassembly_waiters()
        cut = now - link.packet_begun_ms + self.world.early_ms
        if now - self.buffer_wanted_ms < self.world.slack_ms:
            return cut >= 2000
        waited = (
            _WAITED_MS
            if link.buffer_waited_ms + self.world.slack_ms >= link.input_paused_ms
            else 0
        )
        return min(cut, now - link.input_paused_ms + waited + self.world.early_ms) >= 10000

    def find_evicted_sessions(self, refusals, name):
        """A full table of sessions: who left first may go."""
        if not refusals.sessions:
            return
        for session in list(self.sessions):
            if session.link or session.name == name:
                continue
            if tables.session(self.broker, session.name) == tables.NONE:
                policy = self.broker.settings.when_full["sessions"]
                lost = refusals.deliveries + refusals.messages  # perhaps the last that it held
                if policy == "refuse" or (
                    policy == "drop_empty" and self.must_hold_state(session, lost)
                ):
                    self.fail("%s was discarded", session.name)
                self.world.events["evicted"] += 1
                self.check_eviction_order(session, policy == "drop_empty")
                self.end_session(session)

    def check_eviction_order(self, evicted, empty):
        for session in self.sessions:
            earlier = session.link is None and session.disconnected_at < evicted.disconnected_at
            if earlier and not (empty and tables.has_state(self.broker, session.name)):
                self.fail("%s went before %s, who left earlier", evicted.name, session.name)

    def must_hold_state(self, session, lost):
        """Must it have a message to be delivered, if some were lost in this window, or an id?"""
        gone = self.retained.has_expired
        waiting = [one for one in session.queue if one.required and not gone(one.msg)]
        return len(waiting) > lost or bool(session.received)

    def lasting_sessions(self):
        """Sessions that outlive their connections, and how many of them there may be."""
        connections, slots = self.limits.connections, self.limits.sessions
        most = slots - min(connections, max(0, slots - connections))
        there = [
            one for one in self.sessions if tables.session(self.broker, one.name) != tables.NONE
        ]
        return len([one for one in there if not one.clean]), most

    def check_session_refusal(self, stays):
        """A session found no slot: was there none for it, and none to be had?"""
        if self.broker.settings.when_full["sessions"] != "drop_empty" or self.broker.journal_full:
            return  # full: the journal can keep nothing new
        lasting_sessions, most = self.lasting_sessions()
        if (not stays or lasting_sessions < most) and len(self.sessions) < self.limits.sessions:
            self.fail("refused, though %d of %d sessions stay", lasting_sessions, most)
        for session in self.sessions:
            there = tables.session(self.broker, session.name) != tables.NONE
            if there and session.link is None and not tables.has_state(self.broker, session.name):
                self.fail("refused, though %s holds nothing", session.name)

    def check_session_limit(self, name):
        """A new session is there: are not too many of those that stay?"""
        if self.broker.settings.when_full["sessions"] == "drop_empty":
            lasting_sessions, most = self.lasting_sessions()
            if lasting_sessions > most:
                self.fail("%s has come, and %d of %d sessions stay", name, lasting_sessions, most)

    def end_turn(self):
        """After a turn: who has gone, whose time has come."""
        self.finish_routing()
        self.observe()
        self.check_message_quotas()

    def track_retained_slots(self):
        """Which message slots were retained: what a session holds of these is no part of its
        share, also when another message is retained since. After a reboot nobody knows which
        these were: then none that was kept counts."""
        retained = self.broker.retained
        put = retained.put
        commit_marks = self.was_retained = bytearray(b"\1" * self.broker.messages.slots)

        def note(slot, msg):
            if msg != tables.NONE:
                commit_marks[msg] = 1
            return put(slot, msg)

        retained.put = note

    def check_message_quotas(self):
        """No session holds more than its share of the messages, but for one; nor do those that
        are offline, of what has come since they are, and those that hold much together."""
        share = self.settings.max_session_share
        crowd = {}
        refs = self.broker.messages.refs
        for msg in range(len(refs)):
            self.was_retained[msg] &= refs[msg] > 0
        for session in self.sessions:
            held = tables.message_slots(self.broker, session.name)
            swapped = self.may_have_replaced(session, len(held))
            held = {msg: held[msg] for msg in held if not self.was_retained[msg]}
            if len(held) > 1 and self.exceeds(held, share):
                self.fail("%s holds more than %d percent: %r", session.name, share, held)
            if session.link or session.slots_at_disconnect is None:
                session.slots_at_disconnect = set() if self.exceeds_even_share(held) else set(held)
            elif swapped:
                session.slots_at_disconnect |= set(held)
            crowd.update(
                {msg: held[msg] for msg in held if msg not in session.slots_at_disconnect}
            )
        if self.exceeds(crowd, self.settings.max_offline_share):
            self.fail("sessions that hold much, or are offline, hold %r", crowd)
        self.check_delivery_quotas()

    def check_delivery_quotas(self):
        """The same of the deliveries, which have no need of names: what one drops for another, or
        what ends, makes these fewer than they were when it left."""
        slots = self.broker.deliveries.slots
        share = self.settings.max_session_share
        left = (100 - self.settings.max_offline_share) * slots
        crowd = 0
        for session in self.sessions:
            held = tables.delivery_count(self.broker, session.name)
            if held > 1 and held * 100 > slots * share:
                self.fail("%s holds %d of %d deliveries", session.name, held, slots)
            if session.link or session.deliveries_at_disconnect is None:
                exceeds_even_share = held > 1 and held * 100 * self.limits.sessions > left
                session.deliveries_at_disconnect = 0 if exceeds_even_share else held
            crowd += max(0, held - session.deliveries_at_disconnect)
        if crowd * 100 > slots * self.settings.max_offline_share:
            self.fail("sessions that hold much, or are offline, hold %d deliveries", crowd)

    def may_have_replaced(self, session, count):
        """With drop_oldest a session may have a new message for one that was retained."""
        before, session.slots_before = session.slots_before, count
        return count <= before and self.settings.when_full["deliveries"] == "drop_oldest"

    def exceeds_even_share(self, held):
        """More than an even part of what those that are offline leave? With drop_oldest a session
        has a new one for each that it drops, also where others still hold that."""
        if self.settings.when_full["deliveries"] == "drop_oldest":
            return False
        if len(held) < 2:
            return False
        left = 100 - self.settings.max_offline_share
        blocks = self.broker.messages.arena.blocks * left
        both = (len(held), self.limits.messages * left), (sum(held.values()), blocks)
        return any(n * 100 * self.limits.sessions > most for n, most in both)

    def exceeds(self, held, share):
        arena = self.broker.messages.arena
        slots = len(held) * 100 > self.limits.messages * share
        return slots or sum(held.values()) * 100 > arena.blocks * share

    def observe(self):
        self.note_reassembly_waiters()
        self.check_reassembly_holders()
        refusals = self.count_refusals()
        self.carried_refusals = refusals if self.being_routed else None
        self.detach_closed_links()
        for session in list(self.sessions):
            if session.link is None:
                self.check_expiry(session)
            else:
                self.check_keep_alive(session.link)
        self.close_finished_scans()
        self.end_window(refusals)

    def observe_during_turn(self):
        """In the midst of a turn: the model is to be as the tables are. To be trusted again."""
        published_now = self.published_now
        made_optional = self.make_routed_optional()
        self.observe()
        queue_check.reconcile(self, NO_REFUSALS)
        self.published_now = published_now
        return made_optional

    def make_routed_optional(self):
        """What is just going out is sure for nobody; it was for these."""
        found = []
        for session in self.sessions if self.being_routed else ():
            found += [
                (session, delivery)
                for delivery in session.queue
                if delivery.msg in self.being_routed
            ]
        for _, delivery in found:
            delivery.required = False
        self.groups += self.groups_being_routed
        self.groups_being_routed = [
            wanted for wanted in self.groups if wanted.msg in self.being_routed
        ]
        for wanted in self.groups_being_routed:
            wanted.is_being_routed = True
        return found

    def restore_required(self, made_optional):
        """It will go out to all."""
        for session, delivery in made_optional:
            delivery.required = True
            if delivery not in session.queue:
                delivery.state = QUEUED
                session.queue.append(delivery)
                session.finished.remove(delivery)
        self.groups_being_routed = [
            wanted for wanted in self.groups_being_routed if not wanted.is_assigned
        ]
        for wanted in self.groups_being_routed:
            wanted.is_being_routed = False

    def restart(self, broker):
        """After a reboot, before the broker has taken over what was kept."""
        self.broker = broker
        self.track_retained_slots()
        self.counts = NO_REFUSALS
        for session in self.sessions:
            session.slots_at_disconnect = session.deliveries_at_disconnect = None
        self.groups_being_routed = []
        self.being_routed = []

    def check_after_reboot(self):
        """What wills found no room, and what else is as it must be."""
        refusals = self.count_refusals()
        self.retained.learn(self.retained_changes, refusals)
        queue_check.reconcile(self, refusals)
        self.retained_changes = []
        self.end_window(refusals)

    def note_reassembly_waiters(self):
        """Does somebody wait for a reassembly buffer, or has somebody in this turn?"""
        conns = self.broker.conns
        waits = not conns.reassembly[3] and any(
            conns.waits_for_reassembly(conn) for conn in range(conns.top)
        )
        if waits or conns.reassembly[2] != self.buffer_refusals:
            self.buffer_wanted_ms = self.now()
        self.buffer_refusals = conns.reassembly[2]
        if not waits:
            self.buffer_unwanted_ms = self.now()

    def check_reassembly_holders(self):
        """Where somebody waits for a reassembly buffer, who is silent does not keep one."""
        for link in self.world.links:
            conn = tables.connection(self.world, link)
            if conn == tables.NONE or not self.broker.conns.has_reassembly(conn):
                link.without_buffer_ms = self.now()
                continue
            since = max(
                self.buffer_unwanted_ms,
                link.without_buffer_ms,
                link.last_activity_ms,
                link.wrote_ms,
            )
            if self.now() > since + 2100 + self.world.slack_ms:
                self.fail("link %d keeps a buffer for which others wait", link.number)

    def check_keep_alive(self, link):
        paused = self.world.loop.paused[link.conn] & IN
        if paused and link.was_paused and self.world.loop.next_tick != link.paused_tick:
            link.input_paused_ms = self.now()  # that is not its fault, and a tick has seen it
        link.was_paused, link.paused_tick = paused, self.world.loop.next_tick
        if not self.broker.conns.reassembly[3] and self.broker.conns.waits_for_reassembly(
            link.conn
        ):
            link.buffer_waited_ms = self.now()  # nor this
            return
        timeout = link.client.plan.keep_alive * 1500
        last_activity = max(link.last_activity_ms, link.wrote_ms, link.buffer_waited_ms)
        if timeout and self.now() > last_activity + timeout + 2 * self.world.slack_ms + 10000:
            self.fail("link %d is silent and still there", link.number)

    def check_expiry(self, session):
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
        if tables.session(self.broker, session.name) == tables.NONE:
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
