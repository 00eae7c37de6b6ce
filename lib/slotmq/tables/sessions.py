# sessions.py - one slot for each client id; it outlives its connections.
#
# Owns what MQTT calls session state, except subscriptions and messages: the client id (hashed,
# in blocks of 16 bytes), whether it ends with its connection, its will, its QoS 2 receive list,
# and the heads of its lists in the subscriptions and deliveries tables. Does not allocate after
# construction.
#
# dirty, for the journal: bit 1: the session has changed; 2: its receive list has; 4: the journal
# has a row of it. changed: is bit 1 of any session set? ids_high[1]: the same for bit 2.
#
# Receive list: ids[session * received + i], i < id_count: packet ids between PUBLISH and PUBREL
# [4.3.3-2]; none is forgotten before PUBREL. With qos2_delivery release, id_msg has the message
# of each until then.
from slotmq.constants import IDS_UNSAVED, MOST_IDS, NONE
from slotmq.fast import Names, find_id
from slotmq.platform.arrays import i32, u16
from slotmq.platform.runtime import MICROPYTHON


class Sessions:
    def __init__(self, limits, holds_messages):
        n = limits.sessions
        self.slots = n
        self.names = Names(n, (limits.client_id_bytes + 15) // 16 * 16 * n)
        self.high = 0
        self.refused = 0
        self.conn = u16(n, NONE)
        self.clean = bytearray(n)  # ends with its connection [3.1.2-6]
        self.left = i32(n)  # tenths of a second: when its connection ended
        self.will = u16(n, NONE)  # message slot
        # Lists in other tables
        self.first_sub = u16(n, NONE)
        self.head = u16(n, NONE)  # deliveries in the order of their messages
        self.tail = u16(n, NONE)
        self.cursor = u16(n, NONE)  # the next delivery to be sent
        self.inflight = u16(n)
        self.queued = u16(n)
        self.blocks = None if MICROPYTHON else i32(n)  # blocks of the messages in its list
        self.progress = i32(n)  # tenths of a second: last send or acknowledgement
        self.scans = u16(n)  # how many subscriptions are still owed retained messages
        self.dirty = bytearray(n)
        self.changed = False
        # QoS 2 receive list
        self.received = limits.received
        self.ids = u16(n * limits.received)
        self.id_count = u16(n)
        self.id_msg = u16(n * limits.received, NONE) if holds_messages else None
        # [most ids of one session so far, is bit 2 of any dirty set?, what CONNACK announces: how
        # many a client of version 5 may have]
        self.ids_high = i32(3)
        self.ids_refused = 0

    def take(self, buf, off, n):
        """A slot for a client id that has none; NONE if the table is full."""
        session = self.names.add(0, buf, off, n)
        if session == NONE:
            return NONE
        self.high = max(self.high, self.names.count())
        self.touch(session)
        return session

    def touch(self, session):
        """Mark the session dirty for the journal."""
        self.dirty[session] |= 1
        self.changed = True

    def find(self, buf, off, n):
        return self.names.find(0, buf, off, n)

    def free(self, session):
        """Free the slot; its lists and its will must be empty."""
        assert self.conn[session] == NONE and self.will[session] == NONE
        assert self.first_sub[session] == NONE and self.head[session] == NONE
        assert self.id_count[session] == 0
        self.touch(session)
        self.names.remove(session)

    def used(self, session):
        return self.names.length[session] != 0

    def client_id(self, session):
        """The client id as bytes, for logs and dumps. Allocates."""
        text = bytearray(self.names.length[session])
        self.names.read(session, text, 0)
        return bytes(text)

    def find_received(self, session, packet_id):
        """Index in ids of a packet id that waits for PUBREL, or -1."""
        return find_id(self.ids, session * self.received, self.id_count[session], packet_id)

    def add_received(self, session, packet_id):
        """Remember a packet id; -> its index in ids, or -1 if the list is full."""
        count = self.id_count[session]
        if count == self.received:
            self.ids_refused += 1
            return -1
        at = session * self.received + count
        self._touch_ids(session)
        self.ids[at] = packet_id
        self.id_count[session] = count + 1
        if count >= self.ids_high[MOST_IDS]:
            self.ids_high[MOST_IDS] = count + 1
        return at

    def remove_received(self, session, at):
        """Forget ids[at]; -> the message that waited for its PUBREL, or NONE."""
        count = self.id_count[session] - 1
        assert 0 <= at - session * self.received <= count
        self._touch_ids(session)
        self.id_count[session] = count
        last = session * self.received + count
        self.ids[at] = self.ids[last]
        messages = self.id_msg
        if messages is None:
            return NONE
        msg = messages[at]
        messages[at] = messages[last]
        messages[last] = NONE
        return msg

    def _touch_ids(self, session):
        self.dirty[session] |= 2
        self.ids_high[IDS_UNSAVED] = 1
