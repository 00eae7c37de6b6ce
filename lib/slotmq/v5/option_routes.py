# option_routes.py - remembers routes for which options of version 5 count: identifiers of
# subscriptions, shared subscriptions. Only fast/properties_*.py can use them. Loaded by
# v5/quick_properties.py, so not where the heap is small. Allocates at construction only.
#
# Subscriptions.match() does not remember such a route. match() here does, so that all other code
# leaves it: for the fast path it has one receiver with QoS 0, which gets no QoS 1 or 2 and, as mid
# is ODD, no QoS 0 either; the handlers' find() does not find it, so they match anew.
#
#   pool    [routes.first: 0] [routes.end: session << 2 | QoS, for each receiver]
#   data    [receivers] [where groups begin] [end] [record of each receiver] record ... group ...
#           from at[slot] on
#   record  [session << 2 | QoS] [subscription, or MANY] [n] [n bytes in words]
#   group   [its slot in Shares] [which receiver it is] [end] record of each member, the last
#           subscription first
#
# The n bytes are the identifiers of all matches of the receiver, as properties. The subscription
# is the one that has the identifier, of a member its own; MANY: it has several identifiers.
# The member that gets a message is noted where its group's receiver is, in the pool too.
from slotmq.delivery.encode import put_length
from slotmq.platform.arrays import u16
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_ODD = const(0xFFFE)  # mid of such a route
_MANY_IDENTS = const(0xFFFE)
_GROUP = const(0xFFFF)
_MEMBER = const(128)  # of best[session] here: a member, several matches
_MANY = const(64)
_NOT_OWN = const(4 | 16)  # No Local of a client, of a bridge
_ITEM = const(10)  # most cells for a subscription: a group, a record, an identifier
_WORK = const(4096)  # steps that may be spent on one route, beside those for each subscription


class OptionRoutes:
    def __init__(self, broker):
        self.broker = broker
        self.subs = subs = broker.subscriptions
        self.data = u16(min(65000, 8 * broker.limits.route_entries + 64))
        self.at = u16(len(subs.routes.first))  # of each route: where it begins in data
        self.top = 0
        self.bytes = bytearray(4)  # of a number
        self.inner_match, self.inner_find = subs.match, subs.routes.find
        subs.match, subs.routes.find = self.match, self.find

    def find(self, buf, off, n):
        """Routes.find(), for all but the fast path."""
        slot = self.inner_find(buf, off, n)
        return -1 if slot >= 0 and self.subs.routes.mid[slot] == _ODD else slot

    def match(self, buf, off, n):
        """Subscriptions.match(); remembers a route of subscriptions too, if it can."""
        subs = self.subs
        slot = self.inner_match(buf, off, n)
        routes = subs.routes
        if not subs.needs_options or n > routes.topic_bytes or self.inner_find(buf, off, n) >= 0:
            return slot
        # The pool has the sessions, from its top on, and then the subscriptions, which the caller
        # needs. There are at most as many receivers as sessions, beside the one with QoS 0.
        at = subs.top
        first = routes.first[slot]
        end = routes.end[slot]
        if at == first:
            return slot
        if end == len(subs.pool):
            subs.forget_routes()  # there is space when the topic is matched the next time
        elif self._may_keep(first, end) and self._has_space((end - first) * _ITEM + 3):
            for i in range(end, first, -1):
                subs.pool[i] = subs.pool[i - 1]
            routes.first[slot] = first = first + 1
            routes.end[slot] = end = end + 1
            known = routes.keep(buf, off, n, at, at + 1)
            routes.mid[known] = _ODD
            self.at[known] = self.top
            subs.pool[at] = 0
            subs.top = at + 1
            subs._known = True
            self._write(first, end)
        for i in range(first, end):
            subs.best[subs.session[subs.pool[i]]] = 0
        return slot

    def _has_space(self, most):
        if not self.subs._known:  # all routes were forgotten
            self.top = 0
        if self.top + most > len(self.data):
            self.subs.routes.forget()
            self.top = 0
        return most <= len(self.data)

    def _may_keep(self, first, end):
        # Note the highest QoS + 1 of each session in best, MANY, or MEMBER. False: No Local
        # counts, a session is a member and subscribes besides, rules decide about members, or it
        # takes too long.
        subs = self.subs
        best = subs.best
        work = 0
        for i in range(first, end):
            sub = subs.pool[i]
            session = subs.session[sub]
            found = best[session]
            if self.broker.five.options[sub] & _NOT_OWN or found & _MEMBER:
                return False
            if subs.share[sub] != _NONE:
                if found or self.broker.acl:
                    return False
                best[session] = _MEMBER
                work += 1
            else:
                work += found > 0
                best[session] = max(found & 3, subs.qos[sub] + 1) | (_MANY if found else 0)
        return work * (end - first) <= _WORK

    def _write(self, first, end):
        subs = self.subs
        data = self.data
        start = self.top
        at = start + 3
        self.top = at + end - first
        base = subs.top
        for i in range(first, end):
            session = subs.session[subs.pool[i]]
            if subs.best[session] & 63:
                data[at] = self.top
                at += 1
                subs.pool[subs.top] = session << 2 | (subs.best[session] & 3) - 1
                self._add_record(subs.pool[subs.top], i, end)
                subs.top += 1
                subs.best[session] = 0
        data[start + 1] = self.top
        shares = self.broker.five.shares
        for i in range(first, end):
            share = subs.share[subs.pool[i]]
            if share != _NONE and not shares.picked[share]:
                shares.picked[share] = 1
                self._add_group(share, subs.top - base, i, end)
                subs.top += 1
        for i in range(first, end):
            if subs.share[subs.pool[i]] != _NONE:
                shares.picked[subs.share[subs.pool[i]]] = 0
        data[start] = subs.top - base
        data[start + 2] = self.top

    def _add_group(self, share, which, i, end):
        subs = self.subs
        start = self.top
        self.data[start] = share
        self.data[start + 1] = which
        self.top += 3
        below = _NONE
        while True:
            found = end
            for k in range(i, end):
                sub = subs.pool[k]
                if subs.share[sub] == share and sub < below:
                    if found == end or sub > subs.pool[found]:
                        found = k
            if found == end:
                break
            below = subs.pool[found]
            at = self.top
            self._add_record(subs.session[below] << 2 | subs.qos[below], found, end)
            self.data[at + 1] = below
        self.data[start + 2] = self.top

    def _add_record(self, entry, i, end):
        # One whose matches are at pool[i:end], among those of others if it has MANY.
        subs = self.subs
        data = self.data
        session = entry >> 2
        if not subs.best[session] & _MANY:
            end = i + 1
        start = self.top
        data[start] = entry
        data[start + 1] = _NONE
        n = 0
        for k in range(i, end):
            sub = subs.pool[k]
            number = self.broker.five.identifier[sub]
            if subs.session[sub] == session and number:
                data[start + 1] = _MANY_IDENTS if n else sub
                n = self._add_byte(start, n, 0x0B)
                for j in range(put_length(self.bytes, 0, number)):
                    n = self._add_byte(start, n, self.bytes[j])
        data[start + 2] = n
        self.top = start + 3 + (n + 1) // 2

    def _add_byte(self, start, n, byte):
        # Bytes are in words, the lower one first.
        at = start + 3 + n // 2
        self.data[at] = self.data[at] | byte << 8 if n & 1 else byte
        return n + 1
