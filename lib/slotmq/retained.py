# retained.py - one retained message for each topic name [3.3.1-5].
#
# Owns the set of topics that have one and the message slot of each; no part of any
# session. Does not allocate after construction.
from slotmq.arrays import u16
from slotmq.runtime import Names, const

_NONE = const(0xFFFF)


class Retained:
    def __init__(self, limits):
        self.slots = limits.retained
        self.names = Names(limits.retained, limits.retained_name_bytes)
        self.msg = u16(limits.retained, _NONE)
        self.mark = bytearray(limits.retained)  # as in sessions.py
        self.changed = False  # has any?
        self.top = 0  # past the last slot that was ever used
        self.high = 0
        self.refused = 0

    def find(self, buf, off, n):
        return self.names.find(0, buf, off, n)

    def add(self, buf, off, n, msg):
        """Keep msg (its reference too) for a new topic; NONE where the table is full."""
        slot = self.names.add(0, buf, off, n)
        if slot != _NONE:
            self.put(slot, msg)
            self.top = max(self.top, slot + 1)
            self.high = max(self.high, self.names.count())
        return slot

    def put(self, slot, msg):
        """Another message for a topic that has one; -> that one, now the caller's."""
        before = self.msg[slot]
        self.msg[slot] = msg
        self.mark[slot] |= 1
        self.changed = True
        return before

    def remove(self, slot):
        """Forget the topic; -> its message, whose reference is now the caller's."""
        self.names.remove(slot)
        return self.put(slot, _NONE)
