# extension.py - Version5: the columns that MQTT 5.0 adds to the tables, their steps in a session's
# life, and access to the rest of v5/.
#
# Broker.five is a Version5, or None with `mqtt_versions 3`: then no code of version 5
# is loaded and none of its RAM is used. Owns the columns that extend the slots of the
# other tables:
#
#   subscriptions  share (slot of Shares), options (No Local 4, or 16 of a bridge to another
#                  broker, which the fast path need not see; Retain As Published 8), identifier
#   messages       props: bytes of properties between topic and payload; expires and far.
#                  Valid if the message's flags have EXTRA
#   deliveries     group: slot of the Shares by which the message came, or NONE; ident: its
#                  subscription identifier, 0: none, SEVERAL: more than one. Valid if the
#                  delivery's flags have BY
#   sessions       expiry in seconds, will_delay in seconds, will_at in tenths
#   connections    receive_max, packet_max, chunked_ident
#
# subscriptions.kind says of a session: 0: none of version 5; PLAIN: its client has version 5, and
# gets QoS 0 as the fast path makes it; OTHER: it has topic aliases or accepts no large packets, or
# now has version 3. BRIDGE, alone or with one of these: a bridge has it. The state FIVE is of a
# client that may send AUTH, and is read by the handlers.
# Does not allocate after construction.
from slotmq.constants import (BY, EXTRA, HAS_ROW, LINGERING, LONGEST, LOST, NEAR, NEVER, NONE,
    NO_LOCAL, OTHER, PLAIN, REFUSED, TICK)
from slotmq.delivery import lifecycle
from slotmq.net import closing
from slotmq.platform import heap, ondemand
from slotmq.platform.arrays import i32, u16
from slotmq.v5 import dispatch, outgoing_acks, routing, send
from slotmq.v5.properties import make
from slotmq.v5.shared_subscriptions import Shares
from slotmq.v5.source import Source
from slotmq.v5.topic_aliases import Aliases

_EXPIRED = 26  # index in stats
_LINGER = 10  # tenths of a second


class Version5:
    def __init__(self, broker):
        limits = broker.limits
        n = limits.connections + 1
        self.broker = broker
        # Functions of v5/ for modules that may not import it
        self.handlers = dispatch.HANDLERS
        self.first = dispatch.FIRST
        self.goodbye = outgoing_acks.goodbye
        self.drain = routing.drain
        self.publish_packet = routing.publish_packet
        self.fan_out = routing.fan_out
        self.send = send.send
        self.put_middle = send.put_middle
        self.values = make()
        self.props = u16(limits.messages)
        self.expires = i32(limits.messages)  # tenths of a second
        self.far = bytearray(limits.messages)  # how many times 2 ** 25 seconds later
        self.group = u16(limits.deliveries, NONE)
        self.ident = i32(limits.deliveries)
        self.expiry = i32(limits.sessions)
        self.will_delay = i32(limits.sessions)
        self.will_at = i32(limits.sessions)
        self.will_since = i32(limits.sessions)  # tenths of a second: when the will was stored
        self.receive_max = u16(n)
        self.packet_max = i32(n)
        self.chunked_ident = i32(n)  # ident of the message in a chunked send
        self.options = bytearray(limits.subscriptions)
        self.identifier = i32(limits.subscriptions)
        self.shares = Shares(limits)
        broker.subscriptions.share = self.share = u16(limits.subscriptions, NONE)
        broker.subscriptions.kind = bytearray(limits.sessions)
        broker.subscriptions.five = self
        self.source = Source(limits)  # the message that is being published or sent
        self.aliases = Aliases(limits, self.source.scratch)
        self.next_due = NEVER  # tenths of a second: when a session or will is due at the earliest
        self.to_sweep = False  # is any message stored that expires?
        self.looks = True  # may v5/expired_slots.py look for those that have? Once a tick.
        # During a fan-out: the subscription identifier for each session
        self.idents = i32(limits.sessions)
        self.publisher = NONE  # the session whose message is being published, for No Local
        self.exchanges = {}  # connections that authenticate by AUTH, see v5/auth.py
        self.scram = None
        if broker.users:
            from slotmq.v5.scram import Scram

            self.scram = Scram(broker.users, n)
        self.next_ident = 0  # the identifier for the next outgoing.send_message()

    def opened_3(self, broker, session, clean, kind=0):
        """A client of version 3 has opened a session: it expires as late as any may."""
        if kind or broker.subscriptions.kind[session]:
            self.take(broker, session, kind or OTHER)
        most = broker.settings.persistent_client_expiration
        self.set_expiry(broker, session, 0 if clean else most or NEVER)
        self.will_delay[session] = 0

    def set_expiry(self, broker, session, seconds):
        """Set how long the session outlives its connection."""
        self.expiry[session] = seconds if seconds < LONGEST else NEVER
        broker.sessions.clean[session] = 0 if seconds else 1
        broker.sessions.touch(session)

    def take(self, broker, session, kind=PLAIN):
        """Set subscriptions.kind. A route depends on it."""
        subs = broker.subscriptions
        if subs.kind[session] != kind:
            subs.kind[session] = kind
            if broker.sessions.first_sub[session] != NONE:
                subs.forget_routes()

    def set_subscription(self, broker, entry, group, ident):
        """Note by which subscription a delivery came: its group and its identifier."""
        if group != NONE or ident:
            broker.deliveries.flags[entry] |= BY
            self.group[entry] = group
            self.ident[entry] = ident

    def is_odd(self, sub):
        """Does each message for this subscription need its options? RETAIN alone does not need
        Retain As Published."""
        odd = self.options[sub] & NO_LOCAL or self.identifier[sub]
        return odd or self.share[sub] != NONE

    def attached(self, broker, session):
        """The session has a connection again: drop the will that waited [3.1.3-9]."""
        lifecycle.drop_will(broker, session)
        self.will_at[session] = 0

    def will_goes(self, broker, session, will):
        """A will is about to be published: its sender is the session, its expiry begins now."""
        self.publisher = session
        if broker.messages.flags[will] & EXTRA and self.expires[will]:
            later = broker.now - self.will_since[session]
            self.expires[will] = self.expires[will] + later or -1  # 0 would be never
            broker.messages.flags[will] &= ~HAS_ROW  # the journal has the old time

    def keeps_will(self, broker, session):
        """Does the will of a session that has just lost its connection wait?"""
        delay = min(self.will_delay[session], self.expiry[session], LONGEST)
        if delay == 0:
            return False
        self.will_at[session] = broker.now + delay * 10
        return True

    def unsubscribed(self, sub):
        """A subscription was removed: clear its slot."""
        self.options[sub] = 0
        self.identifier[sub] = 0
        group = self.share[sub]
        if group == NONE:
            return
        broker = self.broker
        self.shares.left(group)
        self.share[sub] = NONE
        entry = broker.sessions.head[broker.subscriptions.session[sub]]
        while entry != NONE:
            if broker.deliveries.flags[entry] & BY and self.group[entry] == group:
                self.group[entry] = NONE
            entry = broker.deliveries.next[entry]

    def session_ends(self, broker, session):
        """A session is about to be discarded: publish its will, and pass messages of shared
        subscriptions on."""
        lifecycle.publish_will(broker, session)
        kinds = broker.subscriptions.kind
        if kinds[session] and broker.sessions.head[session] != NONE:
            heap.lift()
            try:
                ondemand.take("v5.shared_session_end", broker.now).handle(broker, session)
            except MemoryError:
                pass  # the messages are discarded with their session
            heap.drop()
        kinds[session] = 0

    def lingers(self, broker, conn):
        """Must an ended connection linger, so that its last packet arrives?"""
        conns = broker.conns
        was_sent = conns.tx_limit[conn] == 0 or conns.reason[conn] == REFUSED
        was_sent = was_sent and conns.reason[conn] != LOST  # its socket has failed since
        if conns.level[conn] != 5 or not was_sent or conns.chunked_msg[conn] != NONE:
            return False
        lifecycle.detach(broker, conn)
        conns.drop_buffered(conn)
        conns.state[conn] = LINGERING
        conns.opened[conn] = broker.now
        return True

    def hook(self, broker):
        """The object that decides AUTH: the application's hooks, or else the Scram, or None."""
        return broker.hooks if hasattr(broker.hooks, "auth") else self.scram

    def connection_ends(self, broker, conn):
        """Drop the connection's aliases and its exchange of AUTH."""
        self.aliases.forget(conn)
        if conn in self.exchanges:
            del self.exchanges[conn]
            forget = self.hook(broker).forget
            ondemand.take("embed.asking", broker.now).answer(broker, forget, conn)

    def tick(self, broker):
        """Called several times a second: end sessions and lingers that are due, publish wills."""
        conns = broker.conns
        for conn in range(conns.top):
            if conns.state[conn] == LINGERING and broker.now - conns.opened[conn] >= _LINGER:
                closing.hang_up(broker.loop, conn)
        if broker.now >= self.next_due:
            self._end_what_is_due(broker)
        self.looks = True
        if broker.now & 7 < TICK:  # every 0.8 seconds
            self.reclaim()

    def note_due(self, broker, session):
        """A session has lost its connection: see whether its end or its will is due before
        next_due."""
        due = NEVER
        if self.expiry[session] < NEVER:
            due = broker.sessions.left[session] + self.expiry[session] * 10
        if broker.sessions.will[session] != NONE:
            due = min(due, self.will_at[session])
        self.next_due = min(self.next_due, due)

    def _end_what_is_due(self, broker):
        sessions = broker.sessions
        self.next_due = NEVER
        for session in range(sessions.slots):
            if sessions.used(session) and sessions.conn[session] == NONE:
                gone = (broker.now - sessions.left[session]) // 10
                if gone >= self.expiry[session] < NEVER:
                    broker.stats[_EXPIRED] += 1
                    lifecycle.end_session(broker, session)
                    continue
                if sessions.will[session] != NONE and broker.now >= self.will_at[session]:
                    lifecycle.publish_will(broker, session)
                self.note_due(broker, session)

    def reclaim(self):
        """A table or a queue is full, its count is wanted, or time has passed: drop all that has
        expired, once a tick at most; -> was there any?"""
        broker = self.broker
        if not self.to_sweep or not self.looks:
            return 0
        self.looks = False
        heap.lift()
        try:
            found = ondemand.take("v5.expired_slots", broker.now).forget(broker)
        except MemoryError:
            found = 0
        heap.drop()
        return found

    def remaining(self, broker, msg):
        """Seconds until a message expires; 0: it has, -1: it never does [3.3.2.3.3].

        As in Source.left, at most NEAR times 2 ** 25 seconds of `far` are counted."""
        if not broker.messages.flags[msg] & EXTRA or not self.expires[msg]:
            return -1
        left = (self.expires[msg] - broker.now + 9) // 10
        return max(0, left + (min(self.far[msg], NEAR) << 25))
