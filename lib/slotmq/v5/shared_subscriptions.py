# shared_subscriptions.py - shared subscriptions [5.0, 4.8.2]: the groups, and the choice of
# a member for each message.
#
# A group is a share name at a node of the topic tree. refs counts its subscriptions, last
# is the last receiver. Its members are the subscriptions of the node that have its slot. Does
# not allocate after construction.
from slotmq.delivery import routing
from slotmq.fast import Names
from slotmq.platform.arrays import u16
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)


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
        """The group of that name at a node, made if it is missing; NONE: no space."""
        slot = self.names.find(node, buf, off, n)
        if slot == _NONE:
            if n < 256:  # the journal has a byte for it
                slot = self.names.add(node, buf, off, n)
            if slot == _NONE:
                self.refused += 1
            self.high = max(self.high, self.names.count())
        return slot

    def joined(self, slot, had_space):
        """Count a new subscription; if it had no space, remove a group without any."""
        self.refs[slot] += 1
        if not had_space:
            self.left(slot)

    def left(self, slot):
        """A subscription was removed; remove the group with its last one."""
        self.refs[slot] -= 1
        if not self.refs[slot]:
            self.last[slot] = _NONE
            self.names.remove(slot)

    def choose(self, broker, slot, qos, but=_NONE, msg=_NONE, size=0):
        """Choose the subscription that receives a message, or NONE; `but`: not this session.

        Priority: space for the message, then a connection (at QoS 0 the connection comes first),
        then the turn."""
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
                if routing.has_space(broker, session, msg, 0, size):
                    fit += 4
                # Turns go down from the last receiver and wrap around to the highest slot.
                if chosen == _NONE or fit > rank or fit == rank and sub > chosen:
                    chosen = sub
                    rank = fit
            sub = subs.next_in_node[sub]
        if chosen != _NONE:
            self.last[slot] = chosen
        return chosen
