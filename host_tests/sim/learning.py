# learning.py - what the model learns from the broker's tables: who has gone, and why; whose
# time has come; who went because a table was full; all of it before a commit, and anew after
# a reboot.
from slotmq_tools.sim.machine import IN

from . import peek, queues
from .session import QUEUED

NOTHING = peek.Growth()
_WAITED_MS = 1500  # that count as held for who has waited for a reassembly buffer


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
        """May half of a QoS 0 packet have found no slot for its rest?

        In the turn before, where that one ran out of heap before it could close."""
        return self.world.turns - self.refused_in <= 1

    def is_late(self, link):
        now = self.now()
        keep_alive = link.client.plan.keep_alive * 1500
        silent = now - link.partial_ms + self.world.early_ms
        if now - link.waited_ms < self.world.slack_ms:
            return True
        if keep_alive and silent >= keep_alive:
            return True
        if not link.ends:
            return False
        self.look_for_waiting()
        cut = now - link.begun_ms + self.world.early_ms
        if now - self.wanted_ms < self.world.slack_ms:
            return cut >= 2000
        waited = _WAITED_MS if link.waited_ms + self.world.slack_ms >= link.unread_ms else 0
        return min(cut, now - link.unread_ms + waited + self.world.early_ms) >= 10000

    def look_for_evicted(self, grown, name):
        """A full table of sessions: who left first may go."""
        if not grown.sessions:
            return
        for session in list(self.sessions):
            if session.link or session.name == name:
                continue
            if peek.session(self.broker, session.name) == peek.NONE:
                policy = self.broker.settings.when_full["sessions"]
                lost = grown.deliveries + grown.messages  # perhaps the last that it held
                if policy == "refuse" or (policy == "drop_empty" and self.holds(session, lost)):
                    self.fail("%s was discarded", session.name)
                self.world.seen["evicted"] += 1
                self.check_oldest(session, policy == "drop_empty")
                self.end(session)

    def check_oldest(self, evicted, empty):
        for session in self.sessions:
            earlier = session.link is None and session.left < evicted.left
            if earlier and not (empty and peek.holds(self.broker, session.name)):
                self.fail("%s went before %s, who left earlier", evicted.name, session.name)

    def holds(self, session, lost):
        """Must it have a message to be delivered, if some were lost in this window, or an id?"""
        gone = self.retained.has_expired
        waiting = [one for one in session.queue if one.sure and not gone(one.msg)]
        return len(waiting) > lost or bool(session.received)

    def staying(self):
        """Sessions that outlive their connections, and how many of them there may be."""
        connections, slots = self.limits.connections, self.limits.sessions
        most = slots - min(connections, max(0, slots - connections))
        there = [one for one in self.sessions if peek.session(self.broker, one.name) != peek.NONE]
        return len([one for one in there if not one.clean]), most

    def check_refused(self, stays):
        """A session found no slot: was there none for it, and none to be had?"""
        if self.broker.settings.when_full["sessions"] != "drop_empty" or self.broker.journal_full:
            return  # full: the journal can keep nothing new
        staying, most = self.staying()
        if (not stays or staying < most) and len(self.sessions) < self.limits.sessions:
            self.fail("refused, though %d of %d sessions stay", staying, most)
        for session in self.sessions:
            there = peek.session(self.broker, session.name) != peek.NONE
            if there and session.link is None and not peek.holds(self.broker, session.name):
                self.fail("refused, though %s holds nothing", session.name)

    def check_staying(self, name):
        """A new session is there: are not too many of those that stay?"""
        if self.broker.settings.when_full["sessions"] == "drop_empty":
            staying, most = self.staying()
            if staying > most:
                self.fail("%s has come, and %d of %d sessions stay", name, staying, most)

    def turn_ends(self):
        """After a turn: who has gone, whose time has come."""
        self.go_on()
        self.look_around()
        self.look_at_shares()

    def watch_retained(self):
        """Which message slots were retained: what a session holds of these is no part of its
        share, also when another message is retained since. After a reboot nobody knows which
        these were: then none that was kept counts."""
        retained = self.broker.retained
        put = retained.put
        marks = self.were_retained = bytearray(b"\1" * self.broker.messages.slots)

        def note(slot, msg):
            if msg != peek.NONE:
                marks[msg] = 1
            return put(slot, msg)

        retained.put = note

    def look_at_shares(self):
        """No session holds more than its share of the messages, but for one; nor do those that
        are offline, of what has come since they are, and those that hold much together."""
        share = self.settings.max_session_share
        crowd = {}
        refs = self.broker.messages.refs
        for msg in range(len(refs)):
            self.were_retained[msg] &= refs[msg] > 0
        for session in self.sessions:
            held = peek.messages_of(self.broker, session.name)
            swapped = self.may_swap(session, len(held))
            held = {msg: held[msg] for msg in held if not self.were_retained[msg]}
            if len(held) > 1 and self.is_beyond(held, share):
                self.fail("%s holds more than %d percent: %r", session.name, share, held)
            if session.link or session.brought is None:
                session.brought = set() if self.is_much(held) else set(held)
            elif swapped:
                session.brought |= set(held)
            crowd.update({msg: held[msg] for msg in held if msg not in session.brought})
        if self.is_beyond(crowd, self.settings.max_offline_share):
            self.fail("sessions that hold much, or are offline, hold %r", crowd)
        self.look_at_entries()

    def look_at_entries(self):
        """The same of the deliveries, which have no need of names: what one drops for another, or
        what ends, makes these fewer than they were when it left."""
        slots = self.broker.deliveries.slots
        share = self.settings.max_session_share
        left = (100 - self.settings.max_offline_share) * slots
        crowd = 0
        for session in self.sessions:
            held = peek.deliveries_of(self.broker, session.name)
            if held > 1 and held * 100 > slots * share:
                self.fail("%s holds %d of %d deliveries", session.name, held, slots)
            if session.link or session.entries is None:
                is_much = held > 1 and held * 100 * self.limits.sessions > left
                session.entries = 0 if is_much else held
            crowd += max(0, held - session.entries)
        if crowd * 100 > slots * self.settings.max_offline_share:
            self.fail("sessions that hold much, or are offline, hold %d deliveries", crowd)

    def may_swap(self, session, count):
        """With drop_oldest a session may have a new message for one that was retained."""
        before, session.had = session.had, count
        return count <= before and self.settings.when_full["deliveries"] == "drop_oldest"

    def is_much(self, held):
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

    def is_beyond(self, held, share):
        arena = self.broker.messages.arena
        slots = len(held) * 100 > self.limits.messages * share
        return slots or sum(held.values()) * 100 > arena.blocks * share

    def look_around(self):
        self.look_for_waiting()
        self.look_at_holders()
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
        self.watch_retained()
        self.counts = NOTHING
        for session in self.sessions:
            session.brought = session.entries = None
        self.later = []
        self.going = []

    def look_after_reboot(self):
        """What wills found no room, and what else is as it must be."""
        grown = self.count()
        self.retained.learn(self.touched, grown)
        queues.reconcile(self, grown)
        self.touched = []
        self.settle(grown)

    def look_for_waiting(self):
        """Does somebody wait for a reassembly buffer, or has somebody in this turn?"""
        conns = self.broker.conns
        waits = not conns.reassembly[3] and any(
            conns.waits_for_reassembly(conn) for conn in range(conns.top)
        )
        if waits or conns.reassembly[2] != self.buffers_refused:
            self.wanted_ms = self.now()
        self.buffers_refused = conns.reassembly[2]
        if not waits:
            self.unwanted_ms = self.now()

    def look_at_holders(self):
        """Where somebody waits for a reassembly buffer, who is silent does not keep one."""
        for link in self.world.links:
            conn = peek.connection(self.world, link)
            if conn == peek.NONE or not self.broker.conns.has_reassembly(conn):
                link.without_ms = self.now()
                continue
            since = max(self.unwanted_ms, link.without_ms, link.last_activity_ms, link.wrote_ms)
            if self.now() > since + 2100 + self.world.slack_ms:
                self.fail("link %d keeps a buffer for which others wait", link.number)

    def look_at_silence(self, link):
        paused = self.world.loop.paused[link.conn] & IN
        if paused and link.was_paused and self.world.loop.next_tick != link.paused_tick:
            link.unread_ms = self.now()  # that is not its fault, and a tick has seen it
        link.was_paused, link.paused_tick = paused, self.world.loop.next_tick
        if not self.broker.conns.reassembly[3] and self.broker.conns.waits_for_reassembly(
            link.conn
        ):
            link.waited_ms = self.now()  # nor this
            return
        timeout = link.client.plan.keep_alive * 1500
        last_activity = max(link.last_activity_ms, link.wrote_ms, link.waited_ms)
        if timeout and self.now() > last_activity + timeout + 2 * self.world.slack_ms + 10000:
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
