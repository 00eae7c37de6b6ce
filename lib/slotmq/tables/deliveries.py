# deliveries.py - queued messages, each on its way to one session.
#
# Owns the outgoing half of session state [4.3.2, 4.3.3]: one entry for each
# (message, receiver), from the moment it is queued until the last acknowledgement.
# The entries of a session form one list in message order, the sent ones first. So the first
# send, the resend after a reconnect and "writable again" all walk it from the session's cursor.
# fast/deliveries_*.py walks it: fan and append, send, acked, finish. Does not allocate after
# construction.
#
# A packet id is the entry's slot + 1: it is never in flight twice, is found without a search,
# and is known as soon as the message is queued. Free slots form a queue, so an id rests as
# long as possible before it is used again.
#
# state      sent last            waits for      next
# QUEUED     nothing              -              SENT_1, SENT_2
# SENT_1     PUBLISH QoS 1        PUBACK         done
# SENT_2     PUBLISH QoS 2        PUBREC         RELEASED
# RELEASED   PUBREL               PUBCOMP        done
from slotmq.constants import FREE, LAST_FREE, NONE, QUEUED
from slotmq.platform.arrays import chain, i32, u16

_BEGUN = 12  # in flags: QoS 2 and DUP


class Deliveries:
    def __init__(self, limits):
        n = limits.deliveries
        self.slots = n
        self.session = u16(n, NONE)
        self.msg = u16(n, NONE)
        self.prev = u16(n, NONE)
        self.next = chain(n)
        self.next[n - 1] = NONE
        self.state = bytearray(bytes((FREE,)) * n)
        # As in PUBLISH: DUP 8 once it was sent, QoS << 1, RETAIN 1; 32: dirty, for the journal;
        # OWN 16 and BY 64 are of version 5
        self.flags = bytearray(n)
        # 0  entries in use       1  the most so far
        # 2  first free slot      3  last free slot
        # 4  dirty, for the journal. Bit 1: one was queued or released, or one of QoS 2 ended
        #    without PUBCOMP; bit 2: one ended
        # 5  with more entries in use the quotas of sessions are checked
        # 6  so many more than window[1] may wait for a session, if max_queued_bytes allows it
        # 7  max_inflight_bytes
        self.count = i32(8)
        self.count[LAST_FREE] = n - 1
        self.refused = 0
        # 0  the most in flight of one session      1  the most that wait for one session
        # 2, 3  the quotas of sessions are checked with more message slots in use than [2], or with
        #    fewer free blocks than [3]
        self.window = i32(4)
        # Connected sessions with something to send: [how many, session ...]
        self.pending = u16(limits.sessions + 1)
        self.is_pending = bytearray(limits.sessions)

    def oldest_queued(self, sessions, session):
        """The first entry of a session that was never sent, or NONE."""
        entry = sessions.head[session]
        while entry != NONE and (self.state[entry] != QUEUED or self.may_be_known(entry)):
            entry = self.next[entry]
        return entry

    def find(self, session, packet_id):
        """The state of a packet id of the session; QUEUED: not sent, or not the session's."""
        entry = packet_id - 1
        if entry < self.slots and self.session[entry] == session:
            return self.state[entry]
        return QUEUED

    def may_be_known(self, entry):
        """May its client know it, as QoS 2 that was sent? Then no other message may get its packet
        id, so it is neither dropped nor does it expire."""
        return self.flags[entry] & _BEGUN == _BEGUN
