# restore_rows.py - puts the records of a journal, which journal/writer.py wrote, back into
# empty tables.
#
# The last record of each slot counts. _collect() finds these, and only they are put back. So the
# tables never contain more than those of the broker that wrote them. Slots in the journal are that
# broker's: sessions, messages and groups may get other slots here, which dicts remember.
#
# A message is read when the first row that names it is put back. A delivery keeps its slot,
# because its packet id is slot + 1 and was promised. So the list of free slots is emptied first
# and chained anew at the end. Without version 5, messages lose their properties, and those that
# have not expired lose their expiry. A message whose topic is refused now (an older broker, or
# allow_control_characters, took it) is not kept: clients of mosquitto leave when they get it, each
# time anew, and nobody could clear it where it is retained. Allocates.
from struct import unpack_from

from slotmq.constants import (ANONYMOUS, DUP, EIO, EXTRA, FIRST_FREE, FREE, IN_USE, LAST_FREE,
    MOST_IN_USE, NONE, QUEUED, RELEASED)
from slotmq.fast import filter_ok, utf8_ok
from slotmq.journal import records
from slotmq.journal.reader import u16
from slotmq.tables import insertion

_SHARE = 8  # bytes of $share/ and the / behind the name
# The type of the row that a record removes
_ENDS = {
    records.SESSION_GONE: records.SESSION,
    records.SUBSCRIPTION_GONE: records.SUBSCRIPTION,
    records.DELIVERY_GONE: records.DELIVERY,
    records.RETAINED_GONE: records.RETAINED_ROW,
}


def no_space(what, limits):
    """The error of a start whose tables are too small."""
    return OSError("the journal's %s find no space; raise the limit %s" % (what, limits))


class Restorer:
    """Puts rows into the empty tables of a broker."""

    def __init__(self, broker, reader):
        self.broker = broker
        self.reader = reader
        self.rows = {}  # record type << 16 | slot: where the last such record begins
        # Slot in the journal: slot here
        self.sessions = {}
        self.messages = {}
        self.groups = {}
        self.released = {}  # session here: its last delivery whose PUBREC had come
        self.begun = {}  # session here: how many of its QoS 2 deliveries may have been sent
        self.now = 0  # the time of the last COMMIT
        self.expired = set()  # expired messages; only without version 5, which finds them itself
        self.odd = set()  # messages with control characters or noncharacters in their topics
        deliveries = broker.deliveries
        deliveries.count[FIRST_FREE] = deliveries.count[LAST_FREE] = NONE
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

    # Messages and deliveries

    def must_fit(self, n, what, name):
        """OSError: a text or list is longer than its limit.

        Call it before the copy: the buffer is as large as the limit says."""
        if n > getattr(self.broker.limits, name):
            raise OSError(("the journal has a %s; raise the limit %s" % (what, name)) % n)

    def message(self, slot):
        """The message of a journal's slot, with one more holder. Changes reader.buf."""
        msg = self.messages.get(slot, NONE)
        if msg == NONE:
            msg = self.messages[slot] = self._read(self.rows[records.MESSAGE << 16 | slot])
        self.broker.messages.refs[msg] += 1
        return msg

    def _read(self, at):
        broker = self.broker
        messages = broker.messages
        reader = self.reader
        reader.find(at, True)
        reader.read_body()
        buf = reader.buf
        _, flags, expires, far, high, low = unpack_from(records.MESSAGE_LAYOUT, buf, 0)
        props = high << 16 | low
        topic = u16(buf, records.MESSAGE_SIZE) + 2
        self.must_fit(topic - 2, "topic of %d bytes", "topic_bytes")
        size = reader.size - records.MESSAGE_SIZE - (0 if broker.five else props)
        msg = messages.count[FIRST_FREE]
        first = messages.arena.take(size) if msg != messages.slots else NONE
        if first == NONE:
            raise no_space("messages", "messages or message_bytes")
        if not utf8_ok(buf, records.MESSAGE_SIZE + 2, topic - 2, 0):
            self.odd.add(msg)
        messages.count[FIRST_FREE] = messages.next[msg]
        messages.count[IN_USE] += 1
        messages.count[MOST_IN_USE] = max(messages.count[IN_USE], messages.count[MOST_IN_USE])
        messages.first[msg] = first
        messages.topic_len[msg] = topic - 2
        messages.payload_len[msg] = size - topic
        messages.flags[msg] = flags if broker.five else flags & ~EXTRA
        if flags & EXTRA:
            self._expires(msg, expires, far, props)
        self._copy(first, 0, records.MESSAGE_SIZE, topic)
        off = records.MESSAGE_SIZE + topic + (0 if broker.five else props)
        self._copy(first, topic, off, size - topic)
        return msg

    def _expires(self, msg, expires, far, props):
        five = self.broker.five
        if five:
            five.props[msg] = props
            five.far[msg] = far
            five.expires[msg] = expires
        elif expires and (expires - self.now + 9) // 10 + (far << 25) <= 0:
            self.expired.add(msg)

    def _copy(self, first, to, off, n):
        # Copies n bytes of the body, from `off` on, to the text of a message.
        reader = self.reader
        while n:
            part = reader.read_body(off, n)
            if not part:
                raise OSError(EIO, "read")
            self.broker.messages.arena.move(first, to, reader.buf, 0, part, 0)
            to += part
            off += part
            n -= part

    def delivery(self, buf, n, at):
        """Put a delivery into its own slot, at its place in its session's list."""
        broker = self.broker
        deliveries = broker.deliveries
        sessions = broker.sessions
        slot, there, msg, flags, group, ident = unpack_from(records.DELIVERY_LAYOUT, buf, 0)
        if not self.counts(there, at):
            return
        if slot >= deliveries.slots:
            raise no_space("packet ids", "deliveries")
        session = self.sessions[there]
        before = sessions.tail[session]
        if msg == NONE:  # PUBREC has come: it stands before all others
            before = self.released.get(session, NONE)
            self.released[session] = slot
        after = sessions.head[session] if before == NONE else deliveries.next[before]
        deliveries.session[slot] = session
        deliveries.flags[slot] = flags & ~DUP
        begun = flags & DUP or self.may_be_known(there, at)
        deliveries.prev[slot] = before
        deliveries.next[slot] = after
        if before == NONE:
            sessions.head[session] = sessions.cursor[session] = slot
        else:
            deliveries.next[before] = slot
        if after == NONE:
            sessions.tail[session] = slot
        else:
            deliveries.prev[after] = slot
        count = deliveries.count
        count[IN_USE] += 1
        count[MOST_IN_USE] = max(count[IN_USE], count[MOST_IN_USE])
        if broker.five:
            broker.five.set_subscription(broker, slot, self._group(session, group), ident)
        if msg == NONE or self.rows.get(records.DELIVERY_RELEASED << 16 | slot, 0) > at:
            deliveries.state[slot] = RELEASED
            sessions.inflight[session] += 1
        else:
            self._queue(session, slot, msg, begun)

    def _queue(self, session, slot, msg, begun):
        # begun: DUP if it was sent, True if it may have been sent. The latter counts as sent,
        # unless it has QoS 2 and a whole window of such deliveries precedes it.
        deliveries = self.broker.deliveries
        deliveries.state[slot] = QUEUED
        deliveries.msg[slot] = msg = self.message(msg)
        sessions = self.broker.sessions
        sessions.queued[session] += 1
        if sessions.blocks:
            messages = self.broker.messages
            size = messages.arena.size
            n = messages.topic_len[msg] + messages.payload_len[msg]
            sessions.blocks[session] += (n + size + 1) // size
        before = self.begun.get(session, 0)
        is_counted = deliveries.flags[slot] & 2 == 0
        if begun == DUP or begun and not (is_counted and before >= self.window):
            deliveries.flags[slot] |= DUP
            self.begun[session] = before + is_counted

    def _group(self, session, slot):
        # The group by which a delivery came, if the session is still a member of it.
        group = self.groups.get(slot, NONE)
        subs = self.broker.subscriptions
        sub = self.broker.sessions.first_sub[session] if group != NONE else NONE
        while sub != NONE and subs.share[sub] != group:
            sub = subs.next_in_session[sub]
        return group if sub != NONE else NONE

    def chain_free(self):
        """Chain the free slots of deliveries, in order, when all packet ids are restored."""
        deliveries = self.broker.deliveries
        count = deliveries.count
        count[FIRST_FREE] = count[LAST_FREE] = NONE
        for slot in range(deliveries.slots):
            if deliveries.state[slot] == FREE:
                deliveries.next[slot] = NONE
                if count[LAST_FREE] == NONE:
                    count[FIRST_FREE] = slot
                else:
                    deliveries.next[count[LAST_FREE]] = slot
                count[LAST_FREE] = slot
