# topic_aliases.py - topic aliases [5.0, 3.3.2.3.4], of each connection in both directions.
#
# Owns an arena with the topic of each alias, and columns with its first block and length (0: the
# alias is not set). `inward` are aliases that the client has set, `outward` those that the broker
# has set, for the first topics that are long enough. The arena has space for every alias that the
# broker has offered, with topics of up to 1,024 bytes. If longer topics take more, all outward
# aliases are dropped first; then the client whose aliases take most is disconnected. Does not
# allocate after construction.
from slotmq.constants import NONE
from slotmq.fast import Arena
from slotmq.platform.arrays import i32, u16

_LONG_TOPIC = 1024  # bytes of a topic for which there is space in any case
_SHORTEST = 4  # bytes of a topic that is worth an alias


class Aliases:
    def __init__(self, limits, text):
        n = limits.connections + 1
        self.most = limits.aliases
        block = limits.message_block
        each = (min(limits.topic_bytes, _LONG_TOPIC) + block - 1) // block
        self.arena = Arena(n * self.most * each, block)
        self.inward = u16(n * self.most, NONE)
        self.outward = u16(n * self.most, NONE)
        self.inward_len = u16(n * self.most)
        self.outward_len = u16(n * self.most)
        self.offered = u16(n)  # how many aliases the client accepts, at most `most`
        self.allowed = u16(n)  # how many it may use, as CONNACK said
        self.count = self.high = self.refused = 0
        self._text = text
        self.found = i32(1)

    def set(self, conn, alias, buf, off, n):
        """Set the client's alias, 1 to most, to a topic. False: no space."""
        at = conn * self.most + alias - 1
        self._drop(self.inward, self.inward_len, at)
        if not self._keep(self.inward, self.inward_len, at, buf, off, n):
            for other in range(len(self.outward)):
                self._drop(self.outward, self.outward_len, other)
            if not self._keep(self.inward, self.inward_len, at, buf, off, n):
                self.refused += 1
                return False
        return True

    def _keep(self, firsts, lengths, at, buf, off, n):
        first = self.arena.take(n)
        if first == NONE:
            return False
        self.arena.move(first, 0, buf, off, n, 0)
        firsts[at] = first
        lengths[at] = n
        self.count += 1
        self.high = max(self.high, self.count)
        return True

    def get(self, conn, alias, buf, off):
        """Copy the topic of the client's alias to buf[off:]; -> its length, 0: it has none."""
        at = conn * self.most + alias - 1
        n = self.inward_len[at]
        if n:
            self.arena.move(self.inward[at], 0, buf, off, n, 1)
        return n

    def outgoing(self, conn, buf, off, n):
        """The alias that a topic has or may get, or 0. found[0]: does the client know it?"""
        self.found[0] = 0
        if n < _SHORTEST:
            return 0
        base = conn * self.most
        text = self._text
        for at in range(base, base + self.offered[conn]):
            if not self.outward_len[at]:
                return at - base + 1
            if self.outward_len[at] == n:
                self.arena.move(self.outward[at], 0, text, 0, n, 1)
                i = n - 1
                while i >= 0 and text[i] == buf[off + i]:
                    i -= 1
                if i < 0:
                    self.found[0] = 1
                    return at - base + 1
        return 0

    def give(self, conn, alias, buf, off, n):
        """Set an outward alias, which the client is about to be sent."""
        at = conn * self.most + alias - 1
        return self._keep(self.outward, self.outward_len, at, buf, off, n)

    def forget(self, conn):
        """The connection has ended: drop its aliases."""
        self.offered[conn] = 0
        if not self.count:
            return
        for at in range(conn * self.most, (conn + 1) * self.most):
            self._drop(self.inward, self.inward_len, at)
            self._drop(self.outward, self.outward_len, at)

    def _drop(self, firsts, lengths, at):
        if lengths[at]:
            self.arena.drop(firsts[at])
            lengths[at] = 0
            self.count -= 1
