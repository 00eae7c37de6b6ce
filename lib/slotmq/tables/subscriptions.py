# subscriptions.py - who subscribes to what: the subscription tree, in arrays.
#
# Owns the nodes (one for each level of a topic filter; filters that begin alike share nodes) and
# the subscriptions (session, node, QoS). A node is found by (parent, level text) in a hashed
# set, so a match costs by the depth of the topic and not by the number of subscriptions; the +
# and # children are linked directly. The root is the slot past the last node. A node without
# subscriptions and children is removed at once. Does not allocate after construction.
#
# match() writes the receivers of a topic name into the route pool: one 16-bit entry for each,
# session << 2 | QoS, with the highest QoS where filters overlap [3.3.5-1]. routes remembers which
# range of the pool that is; any change of the tree clears all routes. Sessions of version 3 come
# first, those of version 5 from routes.mid on. Where options of version 5 matter, the entries are
# subscription slots instead, of a route that is not remembered. A bridge's session has options,
# too, but they matter only for messages with RETAIN and for those that it has sent itself. The
# fast path leaves both, so it may use a remembered route; all other code matches anew while there
# are bridges (`asks`).
from slotmq.constants import NONE, OTHER
from slotmq.fast import Names, Routes, level_end
from slotmq.platform.arrays import chain, i32, u16

_SLASH = 47
_OF_5 = 1 | 4  # bits of kind: packets of version 5, or such that the fast path leaves


class Subscriptions:
    acl = None  # removes from a route who may not read its topic

    def __init__(self, limits, every):
        n = limits.subscriptions
        self.session = u16(n, NONE)
        self.node = u16(n)
        self.qos = bytearray(n)
        self.scan = u16(n)  # next slot of the table of retained messages + 1; 0: no scan
        self.dirty = bytearray(n)  # as in tables/sessions.py
        self.changed = False
        self.next_in_session = u16(n, NONE)
        self.next_in_node = chain(n)  # also chains the free slots
        self.next_in_node[n - 1] = NONE
        self.free = 0
        self.slots = n
        self.count = self.high = self.refused = 0
        # The tree
        n = limits.nodes
        self.root = n
        self.nodes = Names(n, limits.name_bytes)
        self.nodes_high = self.nodes_refused = 0
        self.first_sub = u16(n + 1, NONE)
        self.children = u16(n + 1)
        self.plus = u16(n + 1, NONE)
        self.hash = u16(n + 1, NONE)
        # The walk of match(): nodes to visit, and their offsets in the topic
        self._todo = u16(limits.levels + 2)
        self._todo_off = i32(limits.levels + 2)
        # Routes. every: one entry for each match (allow_duplicate_messages)
        self.every = every
        self.routes = Routes(limits.routes, limits.route_topic_bytes)
        self.pool = u16(limits.route_entries)
        self.most = limits.subscriptions if every else limits.sessions  # entries of one match
        self._known = False  # does routes remember any topic?
        self.top = 0  # past the last entry of the pool that is in use
        self.found = 0  # subscriptions that the last walk has found
        self.best = bytearray(limits.sessions)  # during a match: highest QoS + 1 of each session
        self.journal_full = False  # as Broker.journal_full: a session that stays gets no new one
        # Version 5
        self.share = None  # column: the group (slot of Shares) of a shared subscription
        self.kind = None  # column, of sessions: version 5, a bridge's? See v5/extension.py
        self.five = None  # the Version5
        self.asks = 0  # not 0: there are bridges, so only the fast path may use a route
        self.needs_options = 0  # has the pool of the last match subscriptions, not sessions?

    # The tree. It grows in tables/insertion.py.

    def prune(self, node):
        """Remove a node and then its parents, as long as they are empty."""
        while node != self.root and not self.children[node] and self.first_sub[node] == NONE:
            parent = self.nodes.scope[node]
            if self.plus[parent] == node:
                self.plus[parent] = NONE
            elif self.hash[parent] == node:
                self.hash[parent] = NONE
            self.nodes.remove(node)
            self.children[parent] -= 1
            node = parent

    def filter_text(self, node, buf, end):
        """Write the filter of a node so that it ends at buf[:end]; -> its offset."""
        nodes = self.nodes
        while True:
            end -= nodes.length[node]
            nodes.read(node, buf, end)
            node = nodes.scope[node]
            if node == self.root:
                return end
            end -= 1
            buf[end] = _SLASH

    # Subscriptions

    def touch(self, sub):
        """Mark a subscription dirty for the journal."""
        self.dirty[sub] |= 1
        self.changed = True

    def remove(self, sessions, sub):
        """Unsubscribe; remove nodes that are empty then."""
        assert self.count > 0 and self.session[sub] != NONE
        self.forget_routes()
        session = self.session[sub]
        node = self.node[sub]
        if self.five:
            self.five.unsubscribed(sub)
        if self.scan[sub]:
            self.scan[sub] = 0
            sessions.scans[session] -= 1
        self._unlink(self.first_sub, node, self.next_in_node, sub)
        self._unlink(sessions.first_sub, session, self.next_in_session, sub)
        self.session[sub] = NONE
        self.touch(sub)
        self.next_in_node[sub] = self.free
        self.free = sub
        self.count -= 1
        self.prune(node)

    def _unlink(self, heads, head, nexts, sub):
        at = heads[head]
        if at == sub:
            heads[head] = nexts[sub]
            return
        while nexts[at] != sub:
            at = nexts[at]
        nexts[at] = nexts[sub]

    # Matching

    def forget_routes(self):
        if self._known:
            self.routes.forget()
            self._known = False
            self.top = 0

    def match(self, buf, off, n):
        """Find the receivers of a topic name that routes does not know; -> its slot in routes.

        If a session of version 5 is among them, `needs_options` is true, and the slot is for once
        and has the slots of subscriptions. Remembered is a route of sessions, unless options of
        version 5 matter for each message. If one of its sessions is OTHER, mid is NONE."""
        self.needs_options = self.found = 0
        self._reserve(self.most)
        first = self.top
        self.walk(buf, off, n)
        self.acl and self.acl.cut_route(first, buf, off, n)
        mid = self._settle(first)
        if not self.needs_options:
            return self._remember(buf, off, n, first, mid)
        if self.needs_options & OTHER:
            mid = NONE
        end = self.top
        self._reserve(self.found)
        at = self.top
        self.walk(buf, off, n)
        self.acl and self.acl.cut_route(at, buf, off, n)
        routes = self.routes
        keeps = at == end and n <= routes.topic_bytes and routes.find(buf, off, n) < 0
        for i in range(at, self.top):
            keeps = keeps and not self.five.is_odd(self.pool[i])
        slot = routes.keep(buf, off, 0xFFFF, at, self.top)
        self.top = end
        if keeps:
            self._remember(buf, off, n, first, mid)
        else:
            self.top = min(first, at)
        return slot

    def _remember(self, buf, off, n, first, mid):
        self._known = True
        slot = self.routes.keep(buf, off, n, first, self.top)
        self.routes.mid[slot] = mid
        return slot

    def _reserve(self, n):
        if self.top + n > len(self.pool):
            self.forget_routes()
            self.top = 0

    def walk(self, buf, off, n):
        # Visits every node whose filter matches the topic name.
        end = off + n
        dollar = buf[off] == 36  # wildcards at the root do not see it [4.7.2-1]
        todo = self._todo
        offs = self._todo_off
        todo[0] = self.root
        offs[0] = off
        depth = 1
        while depth:
            depth -= 1
            node = todo[depth]
            at = offs[depth]
            hidden = dollar and node == self.root
            if self.hash[node] != NONE and not hidden:
                self._collect(self.hash[node])
            if at > end:
                self._collect(node)
                continue
            stop = level_end(buf, at, end)
            if not hidden:
                depth = self._visit(depth, self.plus[node], stop + 1)
            depth = self._visit(depth, self.nodes.find(node, buf, at, stop - at), stop + 1)

    def _visit(self, depth, node, at):
        if node == NONE:
            return depth
        self._todo[depth] = node
        self._todo_off[depth] = at
        return depth + 1

    def _collect(self, node):
        # Puts the node's subscriptions into the pool, each session once.
        best = self.best
        sub = self.first_sub[node]
        while sub != NONE:
            self.found += 1
            session = self.session[sub]
            qos = self.qos[sub]
            if self.needs_options:
                self.pool[self.top] = sub
                self.top += 1
            elif self.every or not best[session]:
                self.pool[self.top] = session << 2 | qos
                self.top += 1
            if qos >= best[session] and not self.needs_options:
                best[session] = qos + 1
            sub = self.next_in_node[sub]

    def _settle(self, first):
        # -> where the sessions of version 5 begin.
        kinds = self.kind
        pool = self.pool
        for i in range(first, self.top):
            session = pool[i] >> 2
            if not self.every:
                pool[i] = session << 2 | self.best[session] - 1
        mid = first
        for i in range(first, self.top):
            entry = pool[i]
            session = entry >> 2
            self.best[session] = 0
            kind = kinds[session] if kinds else 0
            self.needs_options |= kind
            if not kind & _OF_5:
                pool[i] = pool[mid]
                pool[mid] = entry
                mid += 1
        return mid
