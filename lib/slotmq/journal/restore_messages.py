# restore_messages.py - puts back messages and deliveries: the base class of the Restorer in
# journal/restore_rows.py.
#
# A message is read when the first row that names it is put back. A delivery keeps its slot,
# because its packet id is slot + 1 and was promised. So the list of free slots is emptied first
# and chained anew at the end. Without version 5, messages lose their properties, and those that
# have not expired lose their expiry. A message whose topic is refused now (an older broker, or
# allow_control_characters, took it) is not kept: clients of mosquitto leave when they get it, each
# time anew, and nobody could clear it where it is retained. Allocates.
from struct import unpack_from

from slotmq.constants import DUP, EIO, EXTRA, FREE, NONE, QUEUED, RELEASED
from slotmq.fast import utf8_ok
from slotmq.journal import records
from slotmq.journal.reader import u16


def no_space(what, limits):
    """The error of a start whose tables are too small."""
    return OSError("the journal's %s find no space; raise the limit %s" % (what, limits))


class Messages:
    """What all rows need: the broker, its journal's reader, and what was put back."""

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
        deliveries.count[2] = deliveries.count[3] = NONE

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
        msg = messages.count[2]
        first = messages.arena.take(size) if msg != messages.slots else NONE
        if first == NONE:
            raise no_space("messages", "messages or message_bytes")
        if not utf8_ok(buf, records.MESSAGE_SIZE + 2, topic - 2, 0):
            self.odd.add(msg)
        messages.count[2] = messages.next[msg]
        messages.count[0] += 1
        messages.count[1] = max(messages.count[0], messages.count[1])
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
        deliveries.count[0] += 1
        deliveries.count[1] = max(deliveries.count[0], deliveries.count[1])
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
        count[2] = count[3] = NONE
        for slot in range(deliveries.slots):
            if deliveries.state[slot] == FREE:
                deliveries.next[slot] = NONE
                if count[3] == NONE:
                    count[2] = slot
                else:
                    deliveries.next[count[3]] = slot
                count[3] = slot
