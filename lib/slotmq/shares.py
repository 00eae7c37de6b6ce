# shares.py - shared subscriptions [5.0, 4.8.2]: the groups, and whose turn it is.
#
# A group is a share name at a node of the subscription tree; refs are its
# subscriptions, last the one that was served last. Its members are the subscriptions of
# the node that have its slot. Does not allocate after construction.
from slotmq import deliver
from slotmq.arrays import u16
from slotmq.runtime import Names, const, finish, unref

_NONE = const(0xFFFF)
_QUEUED = const(0)
_SENT_1 = const(1)
_RAP = const(8)


class Shares:
    def __init__(self, limits):
        n = limits.shares
        self.names = Names(n, n * 32)
        self.refs = u16(n)
        self.last = u16(n, _NONE)
        self.picked = bytearray(n)
        self.high = self.refused = 0

    def find(self, node, buf, off, n):
        return self.names.find(node, buf, off, n)

    def take(self, node, buf, off, n):
        """The group of that name at a node, made where it is missing; NONE: no room."""
        slot = self.names.find(node, buf, off, n)
        if slot == _NONE:
            slot = self.names.add(node, buf, off, n)
            if slot == _NONE:
                self.refused += 1
            self.high = max(self.high, self.names.count())
        return slot

    def joined(self, slot, was_room):
        """A subscription more; where there was no room for it, perhaps none at all."""
        self.refs[slot] += 1
        if not was_room:
            self.left(slot)

    def left(self, slot):
        """A subscription less; the last one takes the group with it."""
        self.refs[slot] -= 1
        if not self.refs[slot]:
            self.last[slot] = _NONE
            self.names.remove(slot)

    def choose(self, broker, slot, qos, but=_NONE):
        """The subscription whose turn it is, or NONE; one that can have it goes first.

        `but` is the session that may not have it."""
        subs = broker.subscriptions
        node = self.names.scope[slot]
        chosen = _NONE
        rank = 0
        after = self.last[slot]
        sub = subs.first_sub[node]
        while sub != _NONE:
            session = subs.session[sub]
            if subs.share[sub] == slot and session != but:
                fit = 1 if after == _NONE or sub < after else 0
                if broker.sessions.conn[session] != _NONE:
                    fit += 2 if qos else 8
                if deliver.has_room(broker, session):
                    fit += 4
                # of those behind the last one the highest, then from the highest again
                if chosen == _NONE or fit > rank or fit == rank and sub > chosen:
                    chosen = sub
                    rank = fit
            sub = subs.next_in_node[sub]
        if chosen != _NONE:
            self.last[slot] = chosen
        return chosen

    def pass_on(self, broker, session):
        """What a session that ends has of its groups' messages goes to other members.

        A QoS 2 message that was sent once does not [4.8.2-5]. A session of version 3 has
        none, and in its entries `group` is what it was for whoever had them before."""
        if not broker.five.marked[session]:
            return
        deliveries = broker.deliveries
        group = broker.five.group
        entry = broker.sessions.head[session]
        while entry != _NONE:
            after = deliveries.next[entry]
            if group[entry] != _NONE and deliveries.state[entry] in (_QUEUED, _SENT_1):
                self._pass(broker, session, entry, group[entry])
            entry = after

    def _pass(self, broker, session, entry, slot):
        # It leaves this session first, so that there is room for it in a table that is full.
        subs = broker.subscriptions
        sub = self.choose(broker, slot, 1, session)
        if sub == _NONE:
            return
        flags = min(broker.deliveries.flags[entry] & 6, subs.qos[sub] << 1)
        msg = broker.deliveries.msg[entry]
        if broker.five.options[sub] & _RAP:
            flags |= broker.messages.flags[msg] & 1
        broker.messages.refs[msg] += 1
        finish(broker.queue, entry)
        made = deliver.enqueue(broker, subs.session[sub], msg, flags)
        if made != _NONE:
            broker.five.came_by(made, slot, broker.five.identifier[sub])
        unref(broker.queue, msg)
