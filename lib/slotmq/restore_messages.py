# restore_messages.py - restore_rows.py's part for messages and for their deliveries.
#
# A delivery keeps its slot, since that is its packet id, which was promised; so free slots
# are taken from their list first and chained again at the end. Allocates.
from slotmq.journal_reader import signed, u16, u32
from slotmq.runtime import const, finish, unref

_NONE = const(0xFFFF)
_QUEUED = const(0)
_RELEASED = const(3)
_FREE = const(4)
_DUP = const(8)
_EXTRA = const(8)
_TEXT = const(11)  # where the text begins in a message's body


class Messages:
    """What is common to all rows: the broker, its journal's reader, and messages by slot."""

    def __init__(self, broker, reader):
        self.broker = broker
        self.reader = reader
        self.sessions = {}  # slot in the journal: slot here
        self.messages = {}
        deliveries = broker.deliveries
        deliveries.count[2] = deliveries.count[3] = _NONE

    def message(self, buf, n):
        broker = self.broker
        messages = broker.messages
        slot = u16(buf, 0)
        flags = buf[2]
        expires = u32(buf, 3)
        props = u32(buf, 7)
        size = self.reader.size - _TEXT
        msg = messages.count[2]
        first = messages.arena.take(size) if msg != messages.slots else _NONE
        if first == _NONE:
            raise OSError("its messages find no room; raise the limits messages and message_bytes")
        if slot in self.messages:
            unref(broker.queue, self.messages[slot])
        self.messages[slot] = msg
        messages.count[2] = messages.next[msg]
        messages.count[0] += 1
        messages.count[1] = max(messages.count[0], messages.count[1])
        messages.first[msg] = first
        messages.topic_len[msg] = u16(buf, _TEXT)
        messages.payload_len[msg] = size - 2 - messages.topic_len[msg]
        messages.refs[msg] = 1
        messages.flags[msg] = flags
        if flags & _EXTRA and broker.five:
            broker.five.props[msg] = props
            broker.five.expires[msg] = signed(expires)
        off = 0
        while off < size:
            n = self.reader.read_body(_TEXT + off)
            messages.arena.move(first, off, self.reader.buf, 0, n, 0)
            off += n

    def held(self, slot):
        msg = self.messages[slot]
        self.broker.messages.refs[msg] += 1
        return msg

    def delivery(self, buf, n):
        # At the end of its session's list, in the slot that is its packet id.
        broker = self.broker
        deliveries = broker.deliveries
        sessions = broker.sessions
        slot = u16(buf, 0)
        if slot >= deliveries.slots:
            raise OSError("its packet ids find no room; raise the limit deliveries")
        msg = u16(buf, 4)
        msg = _NONE if msg == _NONE else self.held(msg)
        self.delivery_gone(buf, n)
        session = self.sessions[u16(buf, 2)]
        tail = sessions.tail[session]
        deliveries.session[slot] = session
        deliveries.msg[slot] = msg
        deliveries.state[slot] = _RELEASED if msg == _NONE else _QUEUED
        deliveries.flags[slot] = buf[6] | _DUP  # it may have been sent
        deliveries.prev[slot] = tail
        deliveries.next[slot] = _NONE
        if tail == _NONE:
            sessions.head[session] = sessions.cursor[session] = slot
        else:
            deliveries.next[tail] = slot
        sessions.tail[session] = slot
        if msg == _NONE:
            sessions.inflight[session] += 1
        else:
            sessions.queued[session] += 1
        deliveries.count[0] += 1
        deliveries.count[1] = max(deliveries.count[0], deliveries.count[1])
        if broker.five:
            broker.five.came_by(slot, u16(buf, 7), u32(buf, 9))

    def delivery_released(self, buf, n):
        deliveries = self.broker.deliveries
        slot = u16(buf, 0)
        session = deliveries.session[slot]
        self.broker.sessions.queued[session] -= 1
        self.broker.sessions.inflight[session] += 1
        deliveries.state[slot] = _RELEASED
        unref(self.broker.queue, deliveries.msg[slot])
        deliveries.msg[slot] = _NONE

    def delivery_gone(self, buf, n):
        slot = u16(buf, 0)
        if self.broker.deliveries.state[slot] != _FREE:
            finish(self.broker.queue, slot)

    def chain_free(self):
        # Packet ids decided which deliveries are in use; the others are free, in turn.
        deliveries = self.broker.deliveries
        count = deliveries.count
        count[2] = count[3] = _NONE
        for slot in range(deliveries.slots):
            if deliveries.state[slot] == _FREE:
                deliveries.next[slot] = _NONE
                if count[3] == _NONE:
                    count[2] = slot
                else:
                    deliveries.next[count[3]] = slot
                count[3] = slot
