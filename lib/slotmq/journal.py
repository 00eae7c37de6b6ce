# journal.py - what was promised, written down before it leaves: rows of the tables that
# have changed, as records in a medium (journal_flash.py, journal_file.py).
#
# Tables mark what changes. commit() looks for marks and writes the present row of each
# slot that has one: a record says what a slot holds, not what was done, so the last one
# counts, and what came and went between two commits is never written. A commit ends with
# COMMIT and sync(); what follows the last COMMIT does not count. Compaction is a commit
# of all rows into a new generation of the medium. FORMAT.md has the records byte by byte,
# restore.py reads them.
#
# A message is written with the first row that holds it; its slot has KEPT then. What is
# held by sessions that end with their connection is not written at all, and QoS 0 never.
# Does not allocate after construction, if the medium does not.
from slotmq.encode import length_bytes, put_header, put_u16
from slotmq.runtime import const
from slotmq.runtime_journal import crc_add, crc_put, crc_start, crc_state, next_bit

_NONE = const(0xFFFF)
_FREE = const(4)
_RELEASED = const(3)
_CHANGED = const(32)  # in the flags of a delivery
_KEPT = const(16)  # in the flags of a message
_EXTRA = const(8)
_NEVER = const(0x3FFFFFFF)
_BODY = const(8)  # where a record's body begins in buf; its type and length stand before
_RETRY = const(10)  # tenths of a second between two attempts to write
VERSION = const(1)
# Types of records
_HEAD = const(1)
_SESSION = const(2)
_SESSION_GONE = const(3)
_SUBSCRIPTION = const(4)
_SUBSCRIPTION_GONE = const(5)
_MESSAGE = const(6)
_DELIVERY = const(7)
_DELIVERY_RELEASED = const(8)
_DELIVERY_GONE = const(9)
_RECEIVED = const(10)
_RETAINED = const(11)
_RETAINED_GONE = const(12)
_COMMIT = const(13)
# Flags of a session's row
_CLEAN = const(1)
_CONNECTED = const(2)
_WILL = const(4)
_MARKED = const(8)


def put_u32(buf, at, value):
    return put_u16(buf, put_u16(buf, at, value >> 16 & 0xFFFF), value & 0xFFFF)


class Journal:
    def __init__(self, broker, medium, generation):
        limits = broker.limits
        self.broker = broker
        self.medium = medium
        self.generation = generation
        longest = max(limits.topic_bytes, limits.client_id_bytes, 4 * limits.received)
        self.buf = bytearray(_BODY + 64 + longest)
        self.seed = bytearray(4)  # the generation, with which each CRC begins
        self.crc = crc_state()
        # Of which slots has the journal a row?
        self.session_rows = bytearray(limits.sessions)
        self.subscription_rows = bytearray(limits.subscriptions)
        self.delivery_rows = bytearray(limits.deliveries)
        self.retained_rows = bytearray(limits.retained)
        self.records = 0  # since the last COMMIT
        self.commits = self.failures = 0
        self.snapshot = 0  # bytes of the last compaction
        self.whole = False  # is the current generation all that was promised until now?
        self.retry_at = 0

    def pending(self):
        """Has anything changed that must be written before packets may leave?"""
        broker = self.broker
        changed = broker.sessions.changed or broker.subscriptions.changed
        changed = changed or broker.retained.changed or broker.sessions.ids_high[1]
        return changed or broker.deliveries.count[4] & 1 or not self.whole

    def commit(self):
        """Write what has changed; True: all is durable, and packets may leave."""
        if not self.pending():
            return True
        if self.broker.held or not self.whole and self.broker.now < self.retry_at:
            return False
        medium = self.medium
        try:
            if not self.whole or medium.end > self._most():
                self.compact()
            else:
                self._write()
        except OSError:
            self.whole = False
            self.failures += 1
            self.retry_at = self.broker.now + _RETRY
            return False
        return True

    def _most(self):
        # A compaction pays when the journal is several times what it would write.
        return min(self.medium.capacity, 65536 + 4 * self.snapshot)

    def compact(self):
        """Write all there is into a new generation, and switch to it. OSError: no room."""
        self.whole = False
        self.generation += 1
        put_u32(self.seed, 0, self.generation)
        self.medium.begin(self.generation)
        self._forget_rows()
        buf = self.buf
        buf[_BODY] = VERSION
        self._record(_HEAD, put_u32(buf, _BODY + 1, self.generation))
        self._write()
        self.medium.switch()
        self.snapshot = self.medium.end
        self.whole = True

    def _forget_rows(self):
        # Nothing is written yet: every used slot has changed.
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
        self.records = 0

    def _write(self):
        broker = self.broker
        self._sessions(broker.sessions)
        self._subscriptions(broker.subscriptions)
        self._deliveries(broker.deliveries)
        self._retained(broker.retained)
        if self.records:
            self._record(_COMMIT, put_u32(self.buf, _BODY, broker.now))
            self.medium.sync()
            self.records = 0
            self.commits += 1

    # Records

    def _record(self, kind, end, more=0):
        # buf[_BODY:end] is the body, or its beginning: so many bytes more will follow.
        n = end - _BODY + more
        start = _BODY - 1 - length_bytes(n)
        put_header(self.buf, start, kind, n)
        crc_start(self.crc)
        crc_add(self.crc, self.seed, 0, 4)
        self._put(start, end - start)
        if not more:
            self._close()

    def _put(self, off, n):
        crc_add(self.crc, self.buf, off, n)
        self.medium.append(self.buf, off, n)

    def _close(self):
        crc_put(self.crc, self.buf, 0)
        self.medium.append(self.buf, 0, 4)
        self.records += 1

    def _gone(self, kind, rows, slot):
        if rows[slot]:
            self._record(kind, put_u16(self.buf, _BODY, slot))
            rows[slot] = 0

    # Rows

    def _sessions(self, sessions):
        at = next_bit(sessions.mark, 0, sessions.slots, 3)
        while at < sessions.slots:
            kept = sessions.used(at) and not sessions.clean[at]
            if not sessions.used(at) or not kept and sessions.will[at] == _NONE:
                self._gone(_SESSION_GONE, self.session_rows, at)
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
        flags = _CLEAN if sessions.clean[session] else 0
        if sessions.conn[session] != _NONE:
            flags |= _CONNECTED
        if will != _NONE:
            flags |= _WILL
            self._message(will)
        if five and five.marked[session]:
            flags |= _MARKED
        at = put_u16(buf, _BODY, session)
        buf[at] = flags
        at = put_u32(buf, at + 1, sessions.left[session])
        at = put_u32(buf, at, five.expiry[session] if five else _NEVER)
        at = put_u16(buf, at, will)
        at = put_u32(buf, at, five.will_delay[session] if five else 0)
        at = put_u32(buf, at, five.will_at[session] if five else 0)
        at = put_u32(buf, at, five.will_since[session] if five else 0)
        at += sessions.names.read(session, buf, at)
        self._record(_SESSION, at)
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
        at = put_u16(buf, _BODY, session)
        for i in range(first, end):
            at = put_u16(buf, at, sessions.ids[i])
            at = put_u16(buf, at, _NONE if held is None else held[i])
        self._record(_RECEIVED, at)

    def _subscriptions(self, subs):
        if not subs.changed and self.whole:
            return
        at = next_bit(subs.mark, 0, subs.slots, 1)
        while at < subs.slots:
            session = subs.session[at]
            if session == _NONE or self.broker.sessions.clean[session]:
                self._gone(_SUBSCRIPTION_GONE, self.subscription_rows, at)
            else:
                self._subscription(subs, at, session)
            subs.mark[at] = 0
            at = next_bit(subs.mark, at + 1, subs.slots, 1)
        subs.changed = False

    def _subscription(self, subs, sub, session):
        # slot, session, QoS, options, identifier, length of the share name, it, the filter
        buf = self.buf
        five = self.broker.five
        at = put_u16(buf, _BODY, sub)
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
        self._record(_SUBSCRIPTION, at, len(buf) - start)
        self._put(start, len(buf) - start)
        self._close()
        self.subscription_rows[sub] = 1

    def _deliveries(self, deliveries):
        if not deliveries.count[4] and self.whole:
            return
        at = next_bit(deliveries.flags, 0, deliveries.slots, _CHANGED)
        while at < deliveries.slots:
            if not self._is_kept(deliveries, at):
                self._gone(_DELIVERY_GONE, self.delivery_rows, at)
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
                self._gone(_DELIVERY_GONE, self.delivery_rows, entry)
            deliveries.flags[entry] &= ~_CHANGED
            entry = deliveries.next[entry]

    def _delivery(self, deliveries, entry):
        # slot, session, message, flags, group, identifier
        buf = self.buf
        msg = deliveries.msg[entry]
        if msg != _NONE:
            self._message(msg)
        at = put_u16(buf, _BODY, entry)
        if self.delivery_rows[entry] and deliveries.state[entry] == _RELEASED:
            self._record(_DELIVERY_RELEASED, at)
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
        self._record(_DELIVERY, at)
        self.delivery_rows[entry] = 1

    def _retained(self, retained):
        if not retained.changed and self.whole:
            return
        at = next_bit(retained.mark, 0, retained.slots, 1)
        while at < retained.slots:
            msg = retained.msg[at]
            if msg == _NONE:
                self._gone(_RETAINED_GONE, self.retained_rows, at)
            else:
                self._message(msg)
                self._record(_RETAINED, put_u16(self.buf, put_u16(self.buf, _BODY, at), msg))
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
        at = put_u16(buf, _BODY, msg)
        buf[at] = flags & 15
        at = put_u32(buf, at + 1, five.expires[msg] if extra else 0)
        at = put_u32(buf, at, five.props[msg] if extra else 0)
        n = 2 + messages.topic_len[msg] + messages.payload_len[msg]
        self._record(_MESSAGE, at, n)
        off = 0
        while off < n:
            piece = min(n - off, len(buf))
            messages.arena.move(messages.first[msg], off, buf, 0, piece, 1)
            self._put(0, piece)
            off += piece
        self._close()
