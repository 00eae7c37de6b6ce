# shared_subscriptions.py - shared subscriptions [5.0, 4.8.2]: the groups, and the choice of
# a member for each message.
#
# Owns the groups. A group is a share name at a node of the subscription tree. refs is the number
# of its subscriptions, last its last receiver. Its members are the subscriptions of the node that
# have its slot in subscriptions.share. Does not allocate after construction.
from slotmq.constants import NONE
from slotmq.delivery import routing
from slotmq.fast import Names
from slotmq.platform.arrays import u16


class Shares:
    def __init__(self, limits):
        n = limits.shares
        self.names = Names(n, n * 32)
        self.refs = u16(n)
        self.last = u16(n, NONE)
        self.picked = bytearray(n)
        self.high = self.refused = 0

    def find(self, node, buf, off, n):
        return self.names.find(node, buf, off, n)

    def take(self, node, buf, off, n):
        """The group of that name at a node, made if it is missing; NONE: no space."""
        slot = self.names.find(node, buf, off, n)
        if slot == NONE:
            if n < 256:  # the journal has a byte for it
                slot = self.names.add(node, buf, off, n)
            if slot == NONE:
                self.refused += 1
            self.high = max(self.high, self.names.count())
        return slot

    def joined(self, slot, had_space):
        """Count a new subscription of the group. had_space False: it was refused, so remove the
        group if it has no other."""
        self.refs[slot] += 1
        if not had_space:
            self.left(slot)

    def left(self, slot):
        """A subscription was removed; remove the group with its last one."""
        self.refs[slot] -= 1
        if not self.refs[slot]:
            self.last[slot] = NONE
            self.names.remove(slot)

    def choose(self, broker, slot, qos, but=NONE, msg=NONE, size=0):
        """Choose the subscription that receives a message, or NONE; `but`: a session to leave out.

        Space for the message counts first, then a connection (at QoS 0 the other way round). Among
        equals the members take turns."""
        subs = broker.subscriptions
        node = self.names.scope[slot]
        chosen = NONE
        rank = 0
        after = self.last[slot]
        sub = subs.first_sub[node]
        while sub != NONE:
            session = subs.session[sub]
            if (
                subs.share[sub] == slot
                and session != but
                and (not broker.acl or broker.acl.may_read(session, msg))
            ):
                fit = 1 if after == NONE or sub < after else 0
                if broker.sessions.conn[session] != NONE:
                    fit += 2 if qos else 8
                if routing.has_space(broker, session, msg, 0, size):
                    fit += 4
                # The turns go from the last receiver's slot down, and wrap around at the lowest
                # one.
                if chosen == NONE or fit > rank or fit == rank and sub > chosen:
                    chosen = sub
                    rank = fit
            sub = subs.next_in_node[sub]
        if chosen != NONE:
            self.last[slot] = chosen
        return chosen
