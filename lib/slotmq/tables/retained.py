# retained.py - one retained message for each topic name [3.3.1-5].
#
# Owns the set of topics that have one, and the message slot of each. Sets the numbers from which
# the quotas of sessions are checked, because quotas are parts of what retained messages leave.
# Does not allocate after construction.
from slotmq.constants import NONE, QUOTA_BLOCKS, QUOTA_SLOTS
from slotmq.fast import Names
from slotmq.platform.arrays import u16


class Retained:
    scan_slots = None  # that of delivery/storms_cpython.py

    def __init__(self, limits, messages, window):
        self.slots = limits.retained
        self.names = Names(limits.retained, limits.retained_name_bytes)
        self.msg = u16(limits.retained, NONE)
        self.dirty = bytearray(limits.retained)  # as in tables/sessions.py
        self.changed = False  # is any slot dirty?
        self.top = 0  # past the last slot that was ever used
        self.high = 0
        self.refused = 0
        self.messages = messages
        self.window = window  # that of deliveries
        self.blocks = 0  # of all retained messages
        self.quota = 100  # the smaller of max_session_share and max_offline_share

    def find(self, buf, off, n):
        return self.names.find(0, buf, off, n)

    def add(self, buf, off, n, msg):
        """Take over msg and its reference for a new topic; NONE if the table is full."""
        slot = self.names.add(0, buf, off, n)
        if slot != NONE:
            self.put(slot, msg)
            self.top = max(self.top, slot + 1)
            self.high = max(self.high, self.names.count())
        return slot

    def put(self, slot, msg):
        """Replace the message of a topic; -> the one before, whose reference is the caller's."""
        before = self.msg[slot]
        self.msg[slot] = msg
        self.dirty[slot] |= 1
        self.changed = True
        messages = self.messages
        more = messages.blocks(msg) - messages.blocks(before)
        if more:
            self.set_quotas(more)
        return before

    def set_quotas(self, more):
        """`more` blocks more are retained: set in `window` how much may be in use before quotas
        are checked. Below that no session can have more than its quota of the rest."""
        self.blocks += more
        messages = self.messages
        count = self.names.count()
        left = messages.arena.blocks - self.blocks
        self.window[QUOTA_SLOTS] = count + (messages.slots - count) * self.quota // 100
        self.window[QUOTA_BLOCKS] = left - left * self.quota // 100

    def remove(self, slot):
        """Forget the topic; -> its message, whose reference is now the caller's."""
        self.names.remove(slot)
        return self.put(slot, NONE)
