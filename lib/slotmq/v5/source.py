# source.py - the message that the code of MQTT 5.0 is publishing or sending; there is one at a
# time.
#
# Owns the Source: where topic, properties and payload are, in a message slot or in the packet that
# brought them. store() copies it into a slot. Does not allocate after construction.
from slotmq.constants import EXTRA, FIRST_FREE, IN_USE, MOST_IN_USE, NEAR, NONE
from slotmq.delivery.encode import put_u16
from slotmq.fast import copy


class Source:
    def __init__(self, limits):
        self.text = bytearray(limits.topic_bytes)
        self.scratch = bytearray(limits.topic_bytes + 2)
        self.msg = NONE  # the message slot; NONE: the message is only in a packet
        self.tbuf = self.text  # the topic: tbuf[topic:topic + topic_len]
        self.topic = self.topic_len = 0
        self.buf = None  # properties and payload: buf[at:at + size], if msg is NONE
        self.at = self.size = 0
        self.props = 0  # how many bytes of size are properties
        self.left = -1  # seconds until it expires; -1: it does not
        self.far = 0  # how many times 2 ** 25 seconds; at most NEAR of them are in left
        self.retain = 0
        self.own = False  # is the receiver the client that published it?

    def from_message(self, broker, msg):
        messages = broker.messages
        five = broker.five
        self.msg = msg
        self.tbuf = self.text
        self.topic = 0
        self.topic_len = messages.read_topic(msg, self.text, 0)
        self.size = messages.payload_len[msg]
        self.props = five.props[msg] if messages.flags[msg] & EXTRA else 0
        self.left = five.remaining(broker, msg)
        self.far = five.far[msg]
        self.retain = messages.flags[msg] & 1

    def from_packet(self, tbuf, topic, topic_len, buf, at, end):
        self.msg = NONE
        self.tbuf = tbuf
        self.topic = topic
        self.topic_len = topic_len
        self.buf = buf
        self.at = at
        self.size = end - at
        self.props = 0
        self.left = -1
        self.far = 0

    def set_expiry(self, buf, at):
        """Set the expiry interval: four bytes at buf[at], in seconds."""
        self.far = buf[at] >> 1
        low = (buf[at] & 1) << 24 | buf[at + 1] << 16 | buf[at + 2] << 8 | buf[at + 3]
        self.left = (min(self.far, NEAR) << 25) + low

    def put(self, broker, tx, at, off, n):
        """Copy n bytes of properties and payload, from their byte `off` on, to tx[at:]."""
        if self.msg == NONE:
            copy(tx, at, self.buf, self.at + off, n)
        else:
            messages = broker.messages
            off += 2 + self.topic_len
            messages.arena.move(messages.first[self.msg], off, tx, at, n, 1)


def store(broker, flags):
    """Store the Source's packet in a message slot, with one reference; NONE: no space."""
    source = broker.five.source
    messages = broker.messages
    count = messages.count
    msg = count[FIRST_FREE]
    if msg == messages.slots:
        return NONE
    arena = messages.arena
    n = source.topic_len
    first = arena.take(2 + n + source.size)
    if first == NONE:
        return NONE
    put_u16(source.scratch, 0, n)
    arena.move(first, 0, source.scratch, 0, 2, 0)
    arena.move(first, 2, source.tbuf, source.topic, n, 0)
    arena.move(first, 2 + n, source.buf, source.at, source.size, 0)
    count[FIRST_FREE] = messages.next[msg]
    count[IN_USE] += 1
    count[MOST_IN_USE] = max(count[IN_USE], count[MOST_IN_USE])
    messages.first[msg] = first
    messages.topic_len[msg] = n
    messages.payload_len[msg] = source.size
    messages.refs[msg] = 1
    if source.props or source.left >= 0:
        flags |= EXTRA
        if source.left >= 0:
            broker.five.to_sweep = True
        broker.five.props[msg] = source.props
        broker.five.far[msg] = source.far
        low = (source.left & 0x1FFFFFF) * 10
        broker.five.expires[msg] = max(1, broker.now + low) if source.left >= 0 else 0
    messages.flags[msg] = flags
    source.msg = msg
    return msg
