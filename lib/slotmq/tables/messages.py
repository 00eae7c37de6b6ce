# messages.py - application messages, stored once however many clients receive them.
#
# refs counts the holders of a slot: deliveries, retained topics, wills, receive lists, chunked
# sends. store() of fast/ takes a slot, unref() releases one reference. The text is in blocks of
# the arena: topic length (2 bytes), topic, payload. Does not allocate after construction.
from slotmq.constants import NONE
from slotmq.fast import Arena
from slotmq.platform.arrays import chain, i32, u16


class Messages:
    def __init__(self, limits):
        n = limits.messages
        self.slots = n
        self.arena = Arena(limits.message_bytes // limits.message_block, limits.message_block)
        self.first = u16(n)
        self.refs = u16(n)
        self.topic_len = u16(n)
        self.payload_len = i32(n)
        # As in PUBLISH: QoS << 1, RETAIN 1; 8: v5/extension.py has more columns of it; 16: the
        # journal has its row
        self.flags = bytearray(n)
        self.next = chain(n)
        self.count = i32(3)  # [live, most live so far, first free slot]
        self.refused = 0

    def blocks(self, msg):
        """How many of the arena's blocks a message takes; 0 for NONE."""
        if msg == NONE:
            return 0
        size = self.arena.size
        return (self.topic_len[msg] + self.payload_len[msg] + size + 1) // size

    def read_topic(self, msg, buf, off):
        """Copy the topic to buf[off:]; -> its length in bytes."""
        n = self.topic_len[msg]
        self.arena.move(self.first[msg], 2, buf, off, n, 1)
        return n
