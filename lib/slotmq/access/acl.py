# acl.py - the rules of acl_file: who may read and write which topics.
#
# Owns the rules in fixed slots (`limit acl_rules`, `limit acl_bytes`): a rule has its access (bits
# of READ, WRITE, SUBSCRIBE; 0: deny) and where its filter ends in `text`. They stand in the order
# of their owners, and those of one owner with the denials first:
#     rows of `first`   user of slot 0 | user of slot 1 | ... | clients without a user name | all
# `first` has each row's first rule, so that nobody is asked about the rules of others. Of a user's
# row, then of the row of patterns, which are for all clients, the first rule that says something
# about a topic decides, as in mosquitto; a topic about which none does is denied. The list begins
# at row `base`: 0, since there is one.
#
# The answers are not asked for each message. A route is made of the receivers that may read its
# topic (tables/subscriptions.py), and a publisher that may write has a bit with the route
# (fast/senders_*.py). While a route is made, `known` has what the row of each user says. Loaded
# and allocated only with acl_file; access/acl_file.py reads the file, access/filters.py checks
# SUBSCRIBE. Does not allocate after construction, except to log a denial.
from slotmq.constants import DOLLAR, NONE, PROGRAM, PUBLISH_IN, UNKNOWN
from slotmq.fast import copy, topic_matches
from slotmq.platform import heap, ondemand
from slotmq.platform.arrays import i32

_READ = 1
_WRITE = 2
_PERCENT = 37
_C = 99
_U = 117


class Acl:
    """The rules. ConfError: a file is bad."""

    def __init__(self, broker, files):
        limits = broker.limits
        n = limits.acl_rules
        self.broker = broker
        self.files = files
        self.owners = broker.owners
        self.slots = n
        self.count = 0
        self.base = 0
        self.rows = rows = limits.users + 2  # of a list
        self.first = i32(len(files) * rows + 1)
        self.known = bytearray(len(files) * rows)  # 0: not asked yet; else the answer + 2
        self.no_known = bytearray(len(files) * rows)
        self.is_walking = False
        self.access = bytearray(n)
        self.end = i32(n)
        self.text = bytearray(limits.acl_bytes)
        # A pattern with names for %c and %u. If it is longer than this, the names alone are longer
        # than topic_bytes, so it matches no topic.
        self.scratch = bytearray(2 * limits.topic_bytes)
        self.hook = None  # what asks may_publish, if there is such a hook; control.py sets it
        self.denied = 0  # PUBLISH and wills
        self.counted = -1  # the PUBLISH that was counted last
        broker.subscriptions.acl = self
        ondemand.take("access.acl_file", 0).load(self)

    def may_read(self, session, msg):
        """May a stored message be sent to the session? NONE: the Source of v5/source.py."""
        if msg == NONE:
            source = self.broker.five.source
            return self.reads(session, source.tbuf, source.topic, source.topic_len)
        work = self.broker.work  # if its caller has a topic there, it is this one
        return self.reads(session, work, 0, self.broker.messages.read_topic(msg, work, 0))

    def reads(self, session, buf, off, n):
        """May a message of this topic be sent to the session?"""
        user = self.owners.user[session]
        if user == UNKNOWN:  # asked again when its client has come and is known
            return True
        return self.allows(session, buf, off, n, _READ)

    def cut_route(self, first, buf, off, n):
        """Remove from a new route, the pool from `first` on, who may not read its topic."""
        subs = self.broker.subscriptions
        top = first
        if not subs.needs_options:  # else the same topic is walked once more
            copy(self.known, 0, self.no_known, 0, len(self.known))
        self.is_walking = True
        for i in range(first, subs.top):
            entry = subs.pool[i]
            session = subs.session[entry] if subs.needs_options else entry >> 2
            if self.reads(session, buf, off, n):
                subs.pool[top] = entry
                top += 1
            else:
                subs.best[session] = 0
        self.is_walking = False
        subs.top = top

    def may_write(self, session, buf, off, n):
        return self.allows(session, buf, off, n, _WRITE)

    def allows(self, session, buf, off, n, access):
        """Does the first rule that matches the topic allow this access?"""
        user = self.owners.user[session]
        if user == PROGRAM:
            return True
        found = -1
        if user != UNKNOWN:
            row = self.base + min(user, self.rows - 2)
            if self.is_walking and self.known[row]:
                found = self.known[row] - 2
            else:
                found = self.search(row, -1, buf, off, n, access)
                if self.is_walking:
                    self.known[row] = found + 2
        if found < 0 and not self.owners.is_odd[session]:
            found = self.search(self.base + self.rows - 1, session, buf, off, n, access)
        return found > 0

    def search(self, row, session, buf, off, n, access):
        """What the first rule of a row that matches says: 1, or 0: deny; -1: none matches.
        session: of the client whose names a pattern gets; -1: it is no pattern."""
        text = self.text
        first = self.first[row]
        at = self.end[first - 1] if first else 0
        for i in range(first, self.first[row + 1]):
            end = self.end[i]
            bits = self.access[i]
            if (bits & access or not bits) and (buf[off] != DOLLAR or text[at] == DOLLAR):
                if session < 0:
                    found = topic_matches(text, at, end - at, buf, off, n)
                else:
                    size = self.expand(at, end, session)
                    found = size > 0 and topic_matches(self.scratch, 0, size, buf, off, n)
                if found:
                    return 1 if bits else 0
            at = end
        return -1

    def expand(self, at, end, session):
        """Put the filter of a pattern into scratch, with names for %c and %u; -> its length.

        -1: it matches nothing, since it is too long or the client has no user name."""
        text = self.text
        out = self.scratch
        n = 0
        while at < end:
            c = text[at]
            kind = text[at + 1] if c == _PERCENT and at + 1 < end else 0
            if kind == _C or kind == _U:
                ids = self.broker.sessions.names
                name = self.owners.name(session) or b""
                size = ids.length[session] if kind == _C else len(name)
                if not size or n + size > len(out):
                    return -1
                if kind == _C:
                    ids.read(session, out, n)
                else:
                    copy(out, n, name, 0, size)
                n += size
                at += 2
            else:
                if n == len(out):
                    return -1
                out[n] = c
                n += 1
                at += 1
        return n

    # PUBLISH and wills

    def asks(self, conn, buf, topic, n):
        """Broker.asks: may the client publish this? The hook is asked after the rules."""
        session = self.broker.conns.session[conn]
        if not self.may_publish(session, buf, topic, n):
            return False
        if self.hook:
            return self.hook(conn, buf, topic, n)
        self.broker.subscriptions.routes.senders.add(conn, buf, topic, n)
        return True

    def may_publish(self, session, buf, topic, n):
        """May the session publish this? Asked for each PUBLISH, and when a will goes out or a
        message that waited for PUBREL. If not, that is counted and logged."""
        if self.may_write(session, buf, topic, n):
            return True
        broker = self.broker
        packet = broker.stats[PUBLISH_IN]
        if packet == self.counted and broker.record:
            return False  # the recorder asks once more about the same PUBLISH
        self.counted = packet
        self.denied += 1
        heap.lift()
        try:
            denials = ondemand.take("access.denials", broker.now)
            denials.log(self, session, bytes(buf[topic : topic + n]))
        except MemoryError:
            pass
        heap.drop()
        return False

    # SUBSCRIBE, and new rules; the heap is not locked

    def may_subscribe(self, session, topic_filter):
        """May anything under this filter ever be read by the session? access/filters.py."""
        filters = ondemand.take("access.filters", self.broker.now)
        return filters.may_subscribe(self, session, topic_filter)

    def reload(self):
        """Read the files again, and apply them to all clients. A bad one changes nothing."""
        ondemand.take("access.acl_file", self.broker.now).reload(self)
