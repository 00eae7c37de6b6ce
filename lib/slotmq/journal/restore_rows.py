# restore_rows.py - puts the records of a journal, which journal/writer.py wrote, back into
# empty tables.
#
# The last record of each slot counts. _collect() finds these, and only they are put back. So the
# tables never contain more than those of the broker that wrote them. Slots in the journal are that
# broker's: sessions, messages and groups may get other slots here, which dicts remember. A
# delivery keeps its slot, because its packet id was promised. Allocates.
from struct import unpack_from

from slotmq.constants import ANONYMOUS, NONE
from slotmq.fast import filter_ok
from slotmq.journal import records
from slotmq.journal.reader import u16
from slotmq.journal.restore_messages import Messages, no_space
from slotmq.tables import insertion

_SHARE = 8  # bytes of $share/ and the / behind the name
# The type of the row that a record removes
_ENDS = {
    records.SESSION_GONE: records.SESSION,
    records.SUBSCRIPTION_GONE: records.SUBSCRIPTION,
    records.DELIVERY_GONE: records.DELIVERY,
    records.RETAINED_GONE: records.RETAINED_ROW,
}


class Restorer(Messages):
    """Puts rows into the empty tables of a broker."""

    def __init__(self, broker, reader):
        Messages.__init__(self, broker, reader)
        # Offsets in the journal, by the slots there:
        self.since = {}  # session: where its first row is; earlier rows of the slot do not count
        self.left = {}  # session: its first row without a connection, after which none has one
        self.window = NONE  # the most QoS 2 deliveries that were sent without a row that says so
        self.always = False  # was the journal written with persistence_sync always?
        self.connected = {}  # session here: was it connected?
        # (session here, message) that waited for PUBREL, although qos2_delivery is receive now
        self.due = []

    def take_over(self, end):
        """Put back what counts of the records before `end`."""
        self._collect(end)
        self._each(records.SESSION, self._session)
        self._each(records.SUBSCRIPTION, self._subscription)
        for at in sorted([self.rows[key] for key in self._keys(records.DELIVERY)]):
            self._put_back(at, self.delivery)
        self.chain_free()
        self._each(records.RECEIVED, self._received)
        self._each(records.RETAINED_ROW, self._retained)

    # Which records count

    def _collect(self, end):
        reader = self.reader
        ids = {}
        at = 0
        while at < end:
            at = reader.after(at)
            reader.find(at, True)
            kind = reader.kind
            n = reader.read_body(0, None if kind == records.SESSION else 8)
            buf = reader.buf
            slot = u16(buf, 0)
            if kind == records.COMMIT:
                self.now = unpack_from(records.COMMIT_LAYOUT, buf, 0)[0]
            elif kind in _ENDS:
                self.rows.pop(_ENDS[kind] << 16 | slot, None)
            elif kind == records.HEAD:
                self._head(buf, n)
            else:
                self.rows[kind << 16 | slot] = at
            is_session = kind == records.SESSION
            if kind == records.SESSION_GONE or is_session and self._is_new(ids, slot, buf, n):
                self.since[slot] = at
                self.left.pop(slot, None)
            if is_session and buf[2] & records.WAS_CONNECTED:
                self.left.pop(slot, None)
            elif is_session:
                self.left.setdefault(slot, at)
            at = reader.next

    def _head(self, buf, n):
        if n >= records.HEAD_SIZE:  # version 2
            _, _, self.window, flags = unpack_from(records.HEAD_LAYOUT, buf, 0)
            self.always = flags & 1

    def _is_new(self, ids, slot, buf, n):
        # Has the slot another session than before? One that ends with its connection counts as
        # such: the rows that follow an earlier session of the slot are not its.
        name = bytes(buf[records.SESSION_SIZE:n])
        is_new = buf[2] & records.IS_CLEAN or ids.get(slot) != name
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
        fields = unpack_from(records.SESSION_LAYOUT, buf, 0)
        slot, flags, left, expiry, will, delay, due, since = fields
        start = name = records.SESSION_SIZE
        if flags & records.OWNED:
            name += 2
            start = name + u16(buf, records.SESSION_SIZE)
        self.must_fit(self.reader.size - start, "client id of %d bytes", "client_id_bytes")
        here = sessions.take(buf, start, n - start)
        if here == NONE:
            raise no_space("sessions", "sessions")
        if broker.owners and flags & records.OWNED:
            self._owner(here, bytes(buf[name:start]), bytes(buf[start:n]))
        self.sessions[slot] = here
        self.connected[here] = flags & records.WAS_CONNECTED
        sessions.clean[here] = flags & records.IS_CLEAN
        sessions.left[here] = left
        five = broker.five
        if five:
            five.expiry[here] = expiry
            five.will_delay[here] = delay
            five.will_at[here] = due
            five.will_since[here] = since
            if flags & records.OF_VERSION_5:
                five.take(broker, here)
        if flags & records.HAS_WILL:
            sessions.will[here] = self.message(will)

    def _owner(self, session, name, client_id):
        owners = self.broker.owners
        self.must_fit(len(name), "user's name of %d bytes", "client_id_bytes")
        user = owners.add(name) if name else ANONYMOUS
        if user == NONE:
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
            if msg != NONE and sessions.id_msg is None:
                self.due.append((self.sessions[slot], self.message(msg)))
            elif msg != NONE:
                sessions.id_msg[i] = self.message(msg)

    def _subscription(self, buf, n, at):
        fields = unpack_from(records.SUBSCRIPTION_LAYOUT, buf, 0)
        _, there, qos, options, ident, shared, share = fields
        if not self.counts(there, at):
            return
        broker = self.broker
        subs = broker.subscriptions
        session = self.sessions[there]
        start = records.SUBSCRIPTION_SIZE + share
        n = self.reader.size - start
        more = share and share + _SHARE  # the limits apply to $share/name/filter
        self.must_fit(n + more, "filter of %d bytes", "topic_bytes")
        levels = filter_ok(buf, start, n) + (2 if share else 0)
        self.must_fit(levels, "filter of %d levels", "levels")
        node = insertion.add_node(subs, buf, start, n)
        if node == NONE:
            raise no_space("filters", "nodes or name_bytes")
        five = broker.five
        group = NONE
        if share:
            if not five:
                raise OSError("the journal needs mqtt_versions 5: it has shared subscriptions")
            group = five.shares.take(node, buf, records.SUBSCRIPTION_SIZE, share)
            if group == NONE:
                raise no_space("shared subscriptions", "shares")
            self.groups[shared] = group
        sub = insertion.add(subs, broker.sessions, session, node, qos, group)
        if sub == NONE:
            raise no_space("subscriptions", "subscriptions")
        if five:
            if group != NONE:
                five.shares.joined(group, True)
            five.options[sub] = options
            five.identifier[sub] = ident

    def _retained(self, buf, n, at):
        broker = self.broker
        msg = self.message(unpack_from(records.RETAINED_LAYOUT, buf, 0)[1])
        size = broker.messages.read_topic(msg, buf, 0)
        if broker.retained.add(buf, 0, size, msg) == NONE:
            raise no_space("retained messages", "retained or retained_name_bytes")
