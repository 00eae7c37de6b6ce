# deliveries.py - QoS 1 and 2 messages on their way to one client each.
#
# Owns the outgoing half of session state [4.3.2, 4.3.3]: one entry for each
# (message, receiver), from the moment it is queued until the last acknowledgement.
# The entries of a session form one list in message order, the sent ones first, so
# that the first send, the resend after a reconnect and "writable again" all walk
# it from the session's cursor. Does not allocate after construction.
#
# A packet id is the entry's slot + 1: never twice in flight, found without a
# search, known as soon as the message is queued. Free slots are used in turn, so
# that an id rests as long as possible before it comes back.
#
# state      sent last            waits for      next
# QUEUED     nothing              -              SENT_1, SENT_2
# SENT_1     PUBLISH QoS 1        PUBACK         done
# SENT_2     PUBLISH QoS 2        PUBREC         RELEASED
# RELEASED   PUBREL               PUBCOMP        done
from slotmq.arrays import chain, u16
from slotmq.runtime import const

_NONE = const(0xFFFF)
_QUEUED = const(0)
_SENT_2 = const(2)
_RELEASED = const(3)
_FREE = const(4)


class Deliveries:
    def __init__(self, limits):
        n = limits.deliveries
        self.slots = n
        self.session = u16(n, _NONE)
        self.msg = u16(n, _NONE)
        self.prev = u16(n, _NONE)
        self.next = chain(n)
        self.next[n - 1] = _NONE
        self.state = bytearray((_FREE for _ in range(n)))
        self.flags = bytearray(n)  # as in PUBLISH: DUP 8 once it was sent, QoS << 1, RETAIN 1
        self._first_free = 0
        self._last_free = n - 1
        self.count = 0
        self.high = 0
        self.refused = 0

    def add(self, sessions, session, msg, flags):
        """Queue msg (its reference is the caller's) at the session's end; NONE where full."""
        entry = self._first_free
        if entry == _NONE:
            return _NONE
        self._first_free = self.next[entry]
        if self._first_free == _NONE:
            self._last_free = _NONE
        self.session[entry] = session
        self.msg[entry] = msg
        self.flags[entry] = flags
        self.state[entry] = _QUEUED
        self.next[entry] = _NONE
        tail = sessions.tail[session]
        self.prev[entry] = tail
        if tail == _NONE:
            sessions.head[session] = entry
        else:
            self.next[tail] = entry
        sessions.tail[session] = entry
        if sessions.cursor[session] == _NONE:
            sessions.cursor[session] = entry
        sessions.queued[session] += 1
        self.count += 1
        if self.count > self.high:
            self.high = self.count
        return entry

    def remove(self, sessions, entry):
        """Take an entry out of its session's list and free it; its message is the caller's."""
        session = self.session[entry]
        before = self.prev[entry]
        after = self.next[entry]
        if before == _NONE:
            sessions.head[session] = after
        else:
            self.next[before] = after
        if after == _NONE:
            sessions.tail[session] = before
        else:
            self.prev[after] = before
        if sessions.cursor[session] == entry:
            sessions.cursor[session] = after
        if self.state[entry] == _QUEUED:
            sessions.queued[session] -= 1
        else:
            sessions.inflight[session] -= 1
        self.state[entry] = _FREE
        self.session[entry] = _NONE
        self.next[entry] = _NONE
        if self._last_free == _NONE:
            self._first_free = entry
        else:
            self.next[self._last_free] = entry
        self._last_free = entry
        self.count -= 1

    def find(self, session, packet_id):
        """The entry of a packet id in flight to that session, or NONE."""
        entry = packet_id - 1
        if (
            0 <= entry < self.slots
            and self.session[entry] == session
            and self.state[entry] != _QUEUED
        ):
            return entry
        return _NONE

    def oldest_queued(self, sessions, session):
        """The first entry of a session that was never sent, or NONE."""
        entry = sessions.head[session]
        while entry != _NONE and self.state[entry] != _QUEUED:
            entry = self.next[entry]
        return entry
