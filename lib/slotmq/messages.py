# messages.py - application messages, stored once however many will receive them.
#
# A slot counts its holders: deliveries, retained topics, wills, held QoS 2
# messages, a message that leaves in parts. The text lies in blocks: two bytes of
# topic length, topic, payload, as on the wire. Does not allocate after construction.
from slotmq.arrays import chain, i32, u16
from slotmq.runtime import Arena, const

_NONE = const(0xFFFF)


class Messages:
    def __init__(self, limits):
        n = limits.messages
        self.slots = n
        self.arena = Arena(limits.message_bytes // limits.message_block, limits.message_block)
        self.first = u16(n)
        self.refs = u16(n)
        self.topic_len = u16(n)
        self.payload_len = i32(n)
        self.flags = bytearray(n)  # as in PUBLISH: QoS << 1, RETAIN 1
        self._next = chain(n)
        self._free = 0
        self.count = 0
        self.high = 0
        self.refused = 0

    def store(self, buf, topic, topic_len, payload, payload_len, flags):
        """A slot that holds the message, with one reference; NONE where there is no room.

        buf[topic - 2:topic] is the topic's length, as on the wire."""
        msg = self._free
        size = topic_len + 2
        if msg == self.slots:
            return _NONE
        arena = self.arena
        first = arena.take(size + payload_len)
        if first == _NONE:
            return _NONE
        self._free = self._next[msg]
        arena.move(first, 0, buf, topic - 2, size, 0)
        arena.move(first, size, buf, payload, payload_len, 0)
        self.first[msg] = first
        self.refs[msg] = 1
        self.topic_len[msg] = topic_len
        self.payload_len[msg] = payload_len
        self.flags[msg] = flags
        self.count += 1
        if self.count > self.high:
            self.high = self.count
        return msg

    def ref(self, msg):
        self.refs[msg] += 1

    def unref(self, msg):
        """One holder less; the last one frees the slot."""
        refs = self.refs[msg] - 1
        assert refs >= 0
        self.refs[msg] = refs
        if refs == 0:
            self.arena.drop(self.first[msg])
            self._next[msg] = self._free
            self._free = msg
            self.count -= 1

    def read_topic(self, msg, buf, off):
        """Copy the topic to buf[off:]; -> its length in bytes."""
        n = self.topic_len[msg]
        self.arena.move(self.first[msg], 2, buf, off, n, 1)
        return n
