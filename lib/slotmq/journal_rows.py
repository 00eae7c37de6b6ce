# journal_rows.py - the rows of the tables as records: for each slot that is marked, what it
# holds now. FORMAT.md has them byte by byte, restore_rows.py reads them.
#
# A message is written with the first row that holds it; its slot has KEPT then. What is
# held by sessions that end with their connection is not written at all, and QoS 0 never.
# Does not allocate after construction.
from slotmq.encode import put_u16
from slotmq.journal_records import Records, put_u32
from slotmq.runtime import const
from slotmq.runtime_journal import next_bit

_NONE = const(0xFFFF)
_FREE = const(4)
_RELEASED = const(3)
_CHANGED = const(32)  # in the flags of a delivery
_KEPT = const(16)  # in the flags of a message
_EXTRA = const(8)
_NEVER = const(0x3FFFFFFF)
_FIELDS = const(8)
# Types of records
_SESSION = const(2)
_SESSION_GONE = const(3)
_SUBSCRIPTION = const(4)
_SUBSCRIPTION_GONE = const(5)
_MESSAGE = const(6)
_DELIVERY = const(7)
_DELIVERY_RELEASED = const(8)
_DELIVERY_GONE = const(9)
_RECEIVED = const(10)
_RETAINED_ROW = const(11)
_RETAINED_GONE = const(12)
# Flags of a session's row
_IS_CLEAN = const(1)
_CONNECTED = const(2)
_WILL = const(4)
_MARKED = const(8)


class Rows(Records):
    def __init__(self, broker, medium, generation):
        limits = broker.limits
        longest = max(limits.topic_bytes, limits.client_id_bytes, 4 * limits.received)
        Records.__init__(self, medium, generation, longest)
        self.broker = broker
        # Of which slots has the journal a row?
        self.session_rows = bytearray(limits.sessions)
        self.subscription_rows = bytearray(limits.subscriptions)
        self.delivery_rows = bytearray(limits.deliveries)
        self.retained_rows = bytearray(limits.retained)

    def forget(self):
        """Nothing is written yet: every used slot has changed."""
        broker = self.broker
        for i in range(broker.sessions.slots):
            self.session_rows[i] = 0
            broker.sessions.mark[i] = 3 if broker.sessions.used(i) else 0
        for i in range(broker.subscriptions.slots):
            self.subscription_rows[i] = 0
            broker.subscriptions.mark[i] = 1
        for i in range(broker.retained.slots):
            self.retained_rows[i] = 0
            broker.retained.mark[i] = 1
        for i in range(broker.deliveries.slots):
            self.delivery_rows[i] = 0
            broker.deliveries.flags[i] |= _CHANGED
        for i in range(broker.messages.slots):
            broker.messages.flags[i] &= ~_KEPT
        broker.sessions.changed = broker.subscriptions.changed = broker.retained.changed = True
        broker.deliveries.count[4] = 1

    def write(self):
        """The rows of all slots that have changed."""
        broker = self.broker
        if broker.sessions.changed or broker.sessions.ids_high[1]:
            self._sessions(broker.sessions)
        if broker.subscriptions.changed:
            self._subscriptions(broker.subscriptions)
        if broker.deliveries.count[4]:
            self._deliveries(broker.deliveries)
        if broker.retained.changed:
            self._retained(broker.retained)

    def _sessions(self, sessions):
        at = next_bit(sessions.mark, 0, sessions.slots, 3)
        while at < sessions.slots:
            kept = sessions.used(at) and not sessions.clean[at]
            if not sessions.used(at) or not kept and sessions.will[at] == _NONE:
                self.gone(_SESSION_GONE, self.session_rows, at)
            elif sessions.mark[at] & 1:
                self._session(sessions, at)
            if kept and sessions.mark[at] & 2:
                self._received(sessions, at)
            sessions.mark[at] = 0
            at = next_bit(sessions.mark, at + 1, sessions.slots, 3)
        sessions.changed = False
        sessions.ids_high[1] = 0

    def _session(self, sessions, session):
        # slot, flags, when it was left, expiry, will: message, delay, when it is due, since
        # when it is there; client id
        buf = self.buf
        five = self.broker.five
        will = sessions.will[session]
        flags = _IS_CLEAN if sessions.clean[session] else 0
        if sessions.conn[session] != _NONE:
            flags |= _CONNECTED
        if will != _NONE:
            flags |= _WILL
            self._message(will)
        if five and five.marked[session]:
            flags |= _MARKED
        at = put_u16(buf, _FIELDS, session)
        buf[at] = flags
        at = put_u32(buf, at + 1, sessions.left[session])
        at = put_u32(buf, at, five.expiry[session] if five else _NEVER)
        at = put_u16(buf, at, will)
        at = put_u32(buf, at, five.will_delay[session] if five else 0)
        at = put_u32(buf, at, five.will_at[session] if five else 0)
        at = put_u32(buf, at, five.will_since[session] if five else 0)
        at += sessions.names.read(session, buf, at)
        self.record(_SESSION, at)
        self.session_rows[session] = 1

    def _received(self, sessions, session):
        # slot, then the packet ids; with qos2_delivery release the message after each.
        buf = self.buf
        held = sessions.id_msg
        first = session * sessions.received
        end = first + sessions.id_count[session]
        if held is not None:
            for i in range(first, end):
                self._message(held[i])
        at = put_u16(buf, _FIELDS, session)
        for i in range(first, end):
            at = put_u16(buf, at, sessions.ids[i])
            at = put_u16(buf, at, _NONE if held is None else held[i])
        self.record(_RECEIVED, at)

    def _subscriptions(self, subs):
        at = next_bit(subs.mark, 0, subs.slots, 1)
        while at < subs.slots:
            session = subs.session[at]
            if session == _NONE or self.broker.sessions.clean[session]:
                self.gone(_SUBSCRIPTION_GONE, self.subscription_rows, at)
            else:
                self._subscription(subs, at, session)
            subs.mark[at] = 0
            at = next_bit(subs.mark, at + 1, subs.slots, 1)
        subs.changed = False

    def _subscription(self, subs, sub, session):
        # slot, session, QoS, options, identifier, length of the share name, it, the filter
        buf = self.buf
        five = self.broker.five
        at = put_u16(buf, _FIELDS, sub)
        at = put_u16(buf, at, session)
        buf[at] = subs.qos[sub]
        buf[at + 1] = five.options[sub] if five else 0
        at = put_u32(buf, at + 2, five.identifier[sub] if five else 0)
        share = five.share[sub] if five else _NONE
        buf[at] = 0
        if share != _NONE:
            buf[at] = five.shares.names.read(share, buf, at + 1)
        at += 1 + buf[at]
        start = subs.filter_text(subs.node[sub], buf, len(buf))
        self.record(_SUBSCRIPTION, at, len(buf) - start)
        self.put(start, len(buf) - start)
        self.close_record()
        self.subscription_rows[sub] = 1

    def _deliveries(self, deliveries):
        at = next_bit(deliveries.flags, 0, deliveries.slots, _CHANGED)
        while at < deliveries.slots:
            if not self._is_kept(deliveries, at):
                self.gone(_DELIVERY_GONE, self.delivery_rows, at)
                deliveries.flags[at] &= ~_CHANGED
            else:
                self._queue_with(deliveries, at)
            at = next_bit(deliveries.flags, at + 1, deliveries.slots, _CHANGED)
        deliveries.count[4] = 0

    def _is_kept(self, deliveries, entry):
        state = deliveries.state[entry]
        if state == _FREE or self.broker.sessions.clean[deliveries.session[entry]]:
            return False
        return state == _RELEASED or deliveries.flags[entry] & 6 != 0

    def _queue_with(self, deliveries, entry):
        # What is new stands at the end of its session's list, and is written in its order.
        before = deliveries.prev[entry]
        while before != _NONE and deliveries.flags[before] & _CHANGED:
            entry = before
            before = deliveries.prev[entry]
        while entry != _NONE and deliveries.flags[entry] & _CHANGED:
            if self._is_kept(deliveries, entry):
                self._delivery(deliveries, entry)
            else:
                self.gone(_DELIVERY_GONE, self.delivery_rows, entry)
            deliveries.flags[entry] &= ~_CHANGED
            entry = deliveries.next[entry]

    def _delivery(self, deliveries, entry):
        # slot, session, message, flags, group, identifier
        buf = self.buf
        msg = deliveries.msg[entry]
        if msg != _NONE:
            self._message(msg)
        at = put_u16(buf, _FIELDS, entry)
        if self.delivery_rows[entry] and deliveries.state[entry] == _RELEASED:
            self.record(_DELIVERY_RELEASED, at)
            return
        session = deliveries.session[entry]
        five = self.broker.five
        if five and not five.marked[session]:
            five = None
        at = put_u16(buf, at, session)
        at = put_u16(buf, at, msg)
        buf[at] = deliveries.flags[entry] & 31
        at = put_u16(buf, at + 1, five.group[entry] if five else _NONE)
        at = put_u32(buf, at, five.ident[entry] if five else 0)
        self.record(_DELIVERY, at)
        self.delivery_rows[entry] = 1

    def _retained(self, retained):
        at = next_bit(retained.mark, 0, retained.slots, 1)
        while at < retained.slots:
            msg = retained.msg[at]
            if msg == _NONE:
                self.gone(_RETAINED_GONE, self.retained_rows, at)
            else:
                self._message(msg)
                self.record(_RETAINED_ROW, put_u16(self.buf, put_u16(self.buf, _FIELDS, at), msg))
                self.retained_rows[at] = 1
            retained.mark[at] = 0
            at = next_bit(retained.mark, at + 1, retained.slots, 1)
        retained.changed = False

    def _message(self, msg):
        # slot, flags, when it expires, bytes of properties, then topic length, topic,
        # properties and payload as they lie in the slot. Once for each message.
        messages = self.broker.messages
        flags = messages.flags[msg]
        if flags & _KEPT:
            return
        messages.flags[msg] = flags | _KEPT
        buf = self.buf
        five = self.broker.five
        extra = flags & _EXTRA
        at = put_u16(buf, _FIELDS, msg)
        buf[at] = flags & 15
        at = put_u32(buf, at + 1, five.expires[msg] if extra else 0)
        at = put_u32(buf, at, five.props[msg] if extra else 0)
        n = 2 + messages.topic_len[msg] + messages.payload_len[msg]
        self.record(_MESSAGE, at, n)
        off = 0
        while off < n:
            piece = min(n - off, len(buf))
            messages.arena.move(messages.first[msg], off, buf, 0, piece, 1)
            self.put(0, piece)
            off += piece
        self.close_record()
