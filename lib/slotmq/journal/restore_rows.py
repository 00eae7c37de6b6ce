# restore_rows.py - puts the records of a journal, which journal/writer.py wrote, back into
# empty tables.
#
# The last record of each slot counts. _collect() finds these, and only they are put back. So the
# tables never contain more than those of the broker that wrote them. Slots in the journal are that
# broker's: sessions, messages and groups may get other slots here, which dicts remember. A
# delivery keeps its slot, because its packet id was promised. Allocates.
from slotmq.fast import filter_ok
from slotmq.journal.reader import signed, u16, u32
from slotmq.journal.restore_messages import Messages, no_space
from slotmq.platform.runtime import const
from slotmq.tables import insertion

_NONE = const(0xFFFF)
_IS_CLEAN = const(1)
_CONNECTED = const(2)
_WILL = const(4)
_V5 = const(8)
_OWNED = const(16)
_ANONYMOUS = const(0xFFFD)  # of access/owners.py
_SHARE = const(8)  # bytes of $share/ and the / behind the name
# Types of records
_HEAD = const(1)
_SESSION = const(2)
_SESSION_GONE = const(3)
_SUBSCRIPTION = const(4)
_SUBSCRIPTION_GONE = const(5)
_DELIVERY = const(7)
_DELIVERY_RELEASED = const(8)
_DELIVERY_GONE = const(9)
_RECEIVED = const(10)
_RETAINED_ROW = const(11)
_RETAINED_GONE = const(12)
_COMMIT = const(13)
# The type of the row that a record removes
_ENDS = {_SESSION_GONE: 2, _SUBSCRIPTION_GONE: 4, _DELIVERY_GONE: 7, _RETAINED_GONE: 11}


class Restorer(Messages):
    """Puts rows into the empty tables of a broker."""

    def __init__(self, broker, reader):
        Messages.__init__(self, broker, reader)
        # Offsets in the journal, by the slots there:
        self.since = {}  # session: where its first row is; earlier rows of the slot do not count
        self.left = {}  # session: its first row without a connection, after which none has one
        self.window = _NONE  # the most QoS 2 deliveries that were sent without a row that says so
        self.always = False  # was the journal written with persistence_sync always?
        self.connected = {}  # session here: was it connected?
        # (session here, message) that waited for PUBREL, although qos2_delivery is receive now
        self.due = []

    def take_over(self, end):
        """Put back what counts of the records before `end`."""
        self._collect(end)
        self._each(_SESSION, self._session)
        self._each(_SUBSCRIPTION, self._subscription)
        for at in sorted([self.rows[key] for key in self._keys(_DELIVERY)]):
            self._put_back(at, self.delivery)
        self.chain_free()
        self._each(_RECEIVED, self._received)
        self._each(_RETAINED_ROW, self._retained)

    # Which records count

    def _collect(self, end):
        reader = self.reader
        ids = {}
        at = 0
        while at < end:
            at = reader.after(at)
            reader.find(at, True)
            kind = reader.kind
            n = reader.read_body(0, None if kind == _SESSION else 8)
            buf = reader.buf
            slot = u16(buf, 0)
            if kind == _COMMIT:
                self.now = u32(buf, 0)
            elif kind in _ENDS:
                self.rows.pop(_ENDS[kind] << 16 | slot, None)
            elif kind == _HEAD:
                self._head(buf, n)
            else:
                self.rows[kind << 16 | slot] = at
            if kind == _SESSION_GONE or kind == _SESSION and self._is_new(ids, slot, buf, n):
                self.since[slot] = at
                self.left.pop(slot, None)
            if kind == _SESSION and buf[2] & _CONNECTED:
                self.left.pop(slot, None)
            elif kind == _SESSION:
                self.left.setdefault(slot, at)
            at = reader.next

    def _head(self, buf, n):
        if n > 5:  # version 2
            self.window = u16(buf, 5)
            self.always = buf[7] & 1

    def _is_new(self, ids, slot, buf, n):
        # Has the slot another session than before? One that ends with its connection counts as
        # such: the rows that follow an earlier session of the slot are not its.
        name = bytes(buf[25:n])
        is_new = buf[2] & _IS_CLEAN or ids.get(slot) != name
        ids[slot] = name
        return is_new

    def counts(self, slot, at):
        """Does the row at `at` belong to the last session of the slot?"""
        return slot in self.sessions and at > self.since[slot]

    def may_be_known(self, slot, at):
        """May a delivery have been sent to the slot's session though its row does not say so?

        Not if it came while the session had no connection, and has had none since."""
        return not self.always or self.left.get(slot, at) >= at

    def _keys(self, kind):
        return sorted([key for key in self.rows if key >> 16 == kind])

    def _each(self, kind, step):
        for key in self._keys(kind):
            self._put_back(self.rows[key], step)

    def _put_back(self, at, step):
        reader = self.reader
        reader.find(at, True)
        step(reader.buf, reader.read_body(), at)

    # Rows

    def _session(self, buf, n, at):
        broker = self.broker
        sessions = broker.sessions
        flags = buf[2]
        name = 0  # bytes of the user's
        start = 25
        if flags & _OWNED:
            name = u16(buf, 25)
            start = 27 + name
        self.must_fit(self.reader.size - start, "client id of %d bytes", "client_id_bytes")
        here = sessions.take(buf, start, n - start)
        if here == _NONE:
            raise no_space("sessions", "sessions")
        if broker.owners and flags & _OWNED:
            self._owner(here, bytes(buf[27:start]), bytes(buf[start:n]))
        self.sessions[u16(buf, 0)] = here
        self.connected[here] = flags & _CONNECTED
        sessions.clean[here] = flags & _IS_CLEAN
        sessions.left[here] = signed(u32(buf, 3))
        five = broker.five
        if five:
            five.expiry[here] = u32(buf, 7)
            five.will_delay[here] = u32(buf, 13)
            five.will_at[here] = signed(u32(buf, 17))
            five.will_since[here] = signed(u32(buf, 21))
            if flags & _V5:
                five.take(broker, here)
        if flags & _WILL:
            sessions.will[here] = self.message(u16(buf, 11))

    def _owner(self, session, name, client_id):
        owners = self.broker.owners
        self.must_fit(len(name), "user's name of %d bytes", "client_id_bytes")
        user = owners.add(name) if name else _ANONYMOUS
        if user == _NONE:
            raise no_space("users", "users")
        owners.set(session, user, client_id)

    def _received(self, buf, n, at):
        slot = u16(buf, 0)
        if not self.counts(slot, at):
            return
        sessions = self.broker.sessions
        ids = (self.reader.size - 2) // 4
        self.must_fit(ids, "client with %d ids between PUBLISH and PUBREL", "received")
        for packet_id, msg in [(u16(buf, i), u16(buf, i + 2)) for i in range(2, n, 4)]:
            i = sessions.add_received(self.sessions[slot], packet_id)
            if msg != _NONE and sessions.id_msg is None:
                self.due.append((self.sessions[slot], self.message(msg)))
            elif msg != _NONE:
                sessions.id_msg[i] = self.message(msg)

    def _subscription(self, buf, n, at):
        if not self.counts(u16(buf, 2), at):
            return
        broker = self.broker
        subs = broker.subscriptions
        session = self.sessions[u16(buf, 2)]
        share = buf[12]
        start = 13 + share
        n = self.reader.size - start
        more = share and share + _SHARE  # the limits apply to $share/name/filter
        self.must_fit(n + more, "filter of %d bytes", "topic_bytes")
        levels = filter_ok(buf, start, n) + (2 if share else 0)
        self.must_fit(levels, "filter of %d levels", "levels")
        node = insertion.add_node(subs, buf, start, n)
        if node == _NONE:
            raise no_space("filters", "nodes or name_bytes")
        five = broker.five
        group = _NONE
        if share:
            if not five:
                raise OSError("the journal needs mqtt_versions 5: it has shared subscriptions")
            group = five.shares.take(node, buf, 13, share)
            if group == _NONE:
                raise no_space("shared subscriptions", "shares")
            self.groups[u16(buf, 10)] = group
        sub = insertion.add(subs, broker.sessions, session, node, buf[4], group)
        if sub == _NONE:
            raise no_space("subscriptions", "subscriptions")
        if five:
            if group != _NONE:
                five.shares.joined(group, True)
            five.options[sub] = buf[5]
            five.identifier[sub] = u32(buf, 6)

    def _retained(self, buf, n, at):
        broker = self.broker
        msg = self.message(u16(buf, 2))
        size = broker.messages.read_topic(msg, buf, 0)
        if broker.retained.add(buf, 0, size, msg) == _NONE:
            raise no_space("retained messages", "retained or retained_name_bytes")
