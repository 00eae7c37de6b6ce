# writer.py - stores what the broker promises before it leaves: writes the rows of tables that
# have changed, as records in a medium (journal/medium_flash.py, journal/medium_file.py).
#
# Tables set dirty bits. commit() writes the present row of each dirty slot: a record says what a
# slot contains, not what was done. So the last record counts, and what came and went between two
# commits is never written. A commit ends with COMMIT and sync(); what follows the last COMMIT
# does not count. journal/records.py has their fields, journal/restore_rows.py reads them.
#
# The end of a delivery waits for the next commit: sending it again breaks no promise, and a
# commit for each end would be expensive. But a QoS 2 delivery that ends without PUBCOMP is
# committed at once: a start infers from the deliveries in the window which may have been sent.
#
# A message is written before the first row that names it; its slot then has the flag HAS_ROW.
# Neither QoS 0 deliveries nor those of sessions that end with their connection are written.
#
# This file has what messages need. journal/compaction.py, which is loaded on demand with the
# heap lock lifted, has the rest: rows that CONNECT and SUBSCRIBE change, and compaction. Nothing
# else allocates after construction, unless the medium does.
from struct import pack_into

from slotmq.constants import (BODY_AT, BY, CHANGED, EXTRA, FREE, HAS_ROW, IDS_UNSAVED, MINUTE,
    NEVER, NONE, RELEASED, RETRY, ROW, UNSAVED)
from slotmq.delivery.encode import length_bytes, put_header, put_u16
from slotmq.fast.journal import crc_add, crc_put, crc_start, crc_state, next_bit
from slotmq.journal import records
from slotmq.platform import heap, ondemand


class Journal:
    def __init__(self, broker, medium, generation, always=True, interval_s=1800):
        limits = broker.limits
        self.broker = broker
        self.medium = medium
        self.generation = generation
        self.seed = bytearray(4)  # the generation: each CRC begins with it
        # The longest rows that are put here as a whole are a session and a receive list.
        self.buf = bytearray(BODY_AT + 40 + max(limits.client_id_bytes, 4 * limits.received))
        self.crc = crc_state()
        self.delivery_rows = bytearray(limits.deliveries)  # 1: the journal has a row of the slot
        self.window = 0  # the largest window of this generation, as HEAD says
        self.records = 0  # since the last COMMIT
        self.commits = self.failures = 0
        self.snapshot = 0  # bytes of the last compaction
        self.whole = False  # does the current generation have all that was promised so far?
        # The generation may grow to this length before the next look for space
        self.spare_until = 0
        # Only while there is little space: limit is the length to which the generation may grow,
        # else 0; pending are bytes that the packets since the last COMMIT may need.
        self.limit = self.pending = 0
        self.retry_at = 0  # tenths of a second, as the next ones
        self.pause = RETRY - getattr(medium, "blocks", 0)
        self.always = always  # persistence_sync always: no packet leaves before a commit
        self.interval = min(interval_s * 10, NEVER) or NEVER
        self.saved = broker.now  # when the last COMMIT was written
        # While something can expire, the present time is committed after so long without COMMIT
        self.time_interval = MINUTE if always else max(MINUTE, self.interval)

    def commit(self):
        """Write what has changed, if it is due; True: packets may leave."""
        broker = self.broker
        now = broker.now
        if broker.journal_full and self.whole and now >= self.retry_at and not broker.no_commit:
            self._reserve()
        if not self._is_due(now):
            return True
        if broker.no_commit or not self.whole and now < self.retry_at:
            return not self.always
        medium = self.medium
        # A compaction pays when the journal is several times as long as what it would write.
        pays = not self.whole or medium.end > min(medium.capacity, 65536 + 4 * self.snapshot)
        self.whole = False  # if write() fails, part of a batch may be there: compact then
        if not pays:
            try:
                self.write()
                self.whole = True
            except OSError:
                pass
        if not self.whole:
            return self.try_compaction() or not self.always
        if medium.end >= self.spare_until and not broker.journal_full:
            self._reserve()
        return True

    def try_compaction(self):
        """Try to write all rows into a new generation; did that succeed?"""
        self.retry_at = self.broker.now + RETRY  # in case its code cannot be loaded
        with heap.lifted:
            self._compaction().compact(self)
        return self.whole

    def _reserve(self):
        with heap.lifted:
            self._compaction().spare(self)

    def _compaction(self):
        return ondemand.take("journal.compaction", self.broker.now)

    def _is_due(self, now):
        # The end of a delivery may wait; anything else only with persistence_sync interval.
        broker = self.broker
        ended = broker.deliveries.count[UNSAVED]
        changed = broker.sessions.changed or broker.subscriptions.changed or ended & 1
        changed = changed or broker.retained.changed or broker.sessions.ids_high[IDS_UNSAVED]
        if changed and self.always or not self.whole:
            return True
        waited = now - self.saved
        return (changed or ended) and waited >= self.interval or self._is_late(waited)

    def _is_late(self, waited):
        # A start knows the time of the last COMMIT only: what expires counts on from there.
        five = self.broker.five
        return waited >= self.time_interval and five and (five.to_sweep or five.next_due < NEVER)

    def close(self):
        """Write what has waited, and close the medium."""
        self.interval = self.retry_at = self.time_interval = 0
        self.commit()
        self.medium.close()

    def write(self):
        """Write the rows of all slots that have changed, and COMMIT."""
        broker = self.broker
        if broker.sessions.changed or broker.subscriptions.changed:
            with heap.lifted:
                self._compaction().write(self)
        if broker.sessions.ids_high[IDS_UNSAVED]:
            self._received(broker.sessions)
        if broker.deliveries.count[UNSAVED]:
            self._deliveries(broker.deliveries)
        if broker.retained.changed:
            self._retained(broker.retained)
        if self.records or self._is_late(broker.now - self.saved):
            pack_into(records.COMMIT_LAYOUT, self.buf, BODY_AT, broker.now)
            self.record(records.COMMIT, records.COMMIT_SIZE)
            self.saved = broker.now
            self.medium.sync()
            self.records = self.pending = 0
            self.commits += 1

    def _received(self, sessions):
        # The message of a packet id is NONE without qos2_delivery release.
        buf = self.buf
        messages = sessions.id_msg
        session = next_bit(sessions.dirty, 0, sessions.slots, 2)
        while session < sessions.slots:
            sessions.dirty[session] &= ~2
            if sessions.used(session) and not sessions.clean[session]:
                first = session * sessions.received
                end = first + sessions.id_count[session]
                if messages is not None:
                    for i in range(first, end):
                        if messages[i] != NONE:  # it went nowhere
                            self.message(messages[i])
                at = put_u16(buf, BODY_AT, session)
                for i in range(first, end):
                    at = put_u16(buf, at, sessions.ids[i])
                    at = put_u16(buf, at, NONE if messages is None else messages[i])
                self.record(records.RECEIVED, at - BODY_AT)
            session = next_bit(sessions.dirty, session + 1, sessions.slots, 2)
        sessions.ids_high[IDS_UNSAVED] = 0

    def _deliveries(self, deliveries):
        # New deliveries stand at the end of their session's list; their rows keep that order.
        flags = deliveries.flags
        at = next_bit(flags, 0, deliveries.slots, CHANGED)
        while at < deliveries.slots:
            entry = at
            is_free = deliveries.state[at] == FREE  # it is in no list
            before = NONE if is_free else deliveries.prev[at]
            while before != NONE and flags[before] & CHANGED:
                entry = before
                before = deliveries.prev[entry]
            while entry != NONE and flags[entry] & CHANGED:
                flags[entry] &= ~CHANGED
                if self._needs_row(deliveries, entry):
                    self._delivery(deliveries, entry)
                elif self.delivery_rows[entry]:
                    self.delivery_rows[entry] = 0
                    self.of_slot(records.DELIVERY_GONE, entry)
                entry = NONE if is_free else deliveries.next[entry]
            at = next_bit(flags, at, deliveries.slots, CHANGED)
        deliveries.count[UNSAVED] = 0

    def _needs_row(self, deliveries, entry):
        state = deliveries.state[entry]
        if state == FREE or self.broker.sessions.clean[deliveries.session[entry]]:
            return False
        return state == RELEASED or deliveries.flags[entry] & 6 != 0

    def _delivery(self, deliveries, entry):
        msg = deliveries.msg[entry]
        if msg != NONE:
            self.message(msg)
        # With `interval`, the row may be of a delivery that had the slot before.
        if self.always and self.delivery_rows[entry] and deliveries.state[entry] == RELEASED:
            self.of_slot(records.DELIVERY_RELEASED, entry)
            return
        session = deliveries.session[entry]
        flags = deliveries.flags[entry]
        five = self.broker.five if flags & BY else None
        group = five.group[entry] if five else NONE
        ident = five.ident[entry] if five else 0
        row = records.DELIVERY_LAYOUT
        flags &= 31  # in a packed board two values in one line would be a tuple
        pack_into(row, self.buf, BODY_AT, entry, session, msg, flags, group, ident)
        self.record(records.DELIVERY, records.DELIVERY_SIZE)
        self.delivery_rows[entry] = 1

    def _retained(self, retained):
        at = next_bit(retained.dirty, 0, retained.slots, 1)
        while at < retained.slots:
            msg = retained.msg[at]
            if msg == NONE:
                self.gone(records.RETAINED_GONE, retained.dirty, at)
            else:
                self.message(msg)
                pack_into(records.RETAINED_LAYOUT, self.buf, BODY_AT, at, msg)
                self.record(records.RETAINED_ROW, records.RETAINED_SIZE)
                retained.dirty[at] = ROW
            at = next_bit(retained.dirty, at + 1, retained.slots, 1)
        retained.changed = False

    def message(self, msg):
        """Write the row of a message, if there is none yet."""
        # Topic, properties and payload follow as they lie in the slot.
        messages = self.broker.messages
        flags = messages.flags[msg]
        if flags & HAS_ROW:
            return
        messages.flags[msg] = flags | HAS_ROW
        buf = self.buf
        five = self.broker.five
        expires = far = props = 0
        if flags & EXTRA:
            expires = five.expires[msg]
            far = five.far[msg]
            props = five.props[msg]
        flags &= 15
        low = props & 0xFFFF
        pack_into(records.MESSAGE_LAYOUT, buf, BODY_AT, msg, flags, expires, far, props >> 16, low)
        n = 2 + messages.topic_len[msg] + messages.payload_len[msg]
        self.record(records.MESSAGE, records.MESSAGE_SIZE, n)
        off = 0
        while off < n:
            piece = min(n - off, len(buf))
            messages.arena.move(messages.first[msg], off, buf, 0, piece, 1)
            self.put(buf, 0, piece)
            off += piece
        self.close_record()

    # Bytes

    def record(self, kind, size, more=0):
        """`size` bytes of buf from BODY_AT are the body, or its beginning; `more` follow."""
        start = BODY_AT - 1 - length_bytes(size + more)
        put_header(self.buf, start, kind, size + more)
        crc_start(self.crc)
        crc_add(self.crc, self.seed, 0, 4)
        self.put(self.buf, start, BODY_AT - start + size)
        if not more:
            self.close_record()

    def put(self, buf, off, n):
        crc_add(self.crc, buf, off, n)
        self.medium.append(buf, off, n)

    def close_record(self):
        crc_put(self.crc, self.buf, 0)
        self.medium.append(self.buf, 0, 4)
        self.records += 1

    def of_slot(self, kind, slot):
        """A record that has the number of a slot only."""
        self.record(kind, put_u16(self.buf, BODY_AT, slot) - BODY_AT)

    def gone(self, kind, dirty, slot):
        """A slot has nothing that must survive: remove its row, if the journal has one."""
        if dirty[slot] & ROW:
            self.of_slot(kind, slot)
        dirty[slot] = 0
