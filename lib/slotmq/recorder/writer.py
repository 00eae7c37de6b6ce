# writer.py - the recorder: writes records of messages and events into segments, a ring of files.
# FORMAT.md describes every byte.
#
# Owns the buffer, in which records wait until a block is full or flush() is called; the ids of
# topics; and which ids the segment has defined. recorder/interceptor.py passes messages and events
# to it. Rare tasks (the next segment, wall time, answers over MQTT) are in recorder/segments.py
# and recorder/remote.py, which are loaded on demand with the heap lock lifted. Nothing else
# allocates after construction, unless the file system does.
#
# Every record takes the next number (seq), even one that cannot be written: a missing seq is a
# loss.
import os

from slotmq.constants import (ENOSPC, FAILED, MOST_BYTES, NONE, OF_MESSAGE, REC_BEFORE, REC_BLOCK,
    REC_CLIENT, REC_FILL, REC_LENGTH, REC_SEQ, REC_SIZE, REC_SPACE, REC_THIS, REC_TOPIC_ID, SOON,
    UNWANTED)
from slotmq.fast import Names, copy, topic_matches
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.fast.record_viper import add, add_all, make
else:
    from slotmq.fast.record_cpython import add, add_all, make

_TOPICS_MOST = 512
_DEF = 1
_TOPIC_DEF = 0x101  # DEF, with its flags from bit 8 on
_ORIGIN = 16  # a flag of a message, and the length of an origin
_EDQUOT = 122
_PAUSE = 100  # tenths of a second
# Why records are lost, as in GAP
STOPPED = 2


class Recorder:
    def __init__(
        self, folder, size, most, clients, sessions, limits, filters, stops=False, block=0
    ):
        self.folder = folder  # ends with /
        self.lock = None  # the open file that keeps other brokers from this ring
        self.size = size  # of a segment
        self.most = most  # segments
        self.first = self.newest = -1  # as of the last look
        self.segment = -1  # the one that is written, or was written last
        self.file = None
        self.written = self.synced = 0  # bytes of it
        self.board = None  # 8 bytes
        self.boot = 0
        self.stops = stops  # when the ring is full; else the oldest segment is removed
        self.clients = clients  # Names of the sessions
        self.filters = filters
        # pages of flash, or of a disk
        block = block or (65536 if limits.rx_bytes > 8192 else limits.rx_bytes & 0xF000 or 256)
        # after the block, there is space for most records and all definitions
        self.out = bytearray(block + max(limits.topic_bytes, limits.client_id_bytes) + REC_BEFORE)
        self.origin = bytearray(_ORIGIN)
        n = min(limits.routes * 3 // 2, _TOPICS_MOST)
        # the longest topic must fit when all others are removed
        size = max(n // 2 * limits.route_topic_bytes, limits.topic_bytes + 15)
        self.topics = Names(n, size)
        self.defined = bytearray(self.topics.slots), bytearray(clients.slots)
        self.add_all = add_all
        self.o, self.kept = make(self.out, block, *self.defined, sessions)
        self.hand = 0  # the topic that is removed next, if there is no space for another one
        self.done = 0  # bytes of the buffer's block that are written
        self.is_open = False  # is there a segment that takes records?
        # The longest record with its definitions: a segment may also have its header, two GAPs and
        # an ANCHOR, and if the ring stops when full, one GAP at its end
        self.longest = min(MOST_BYTES, self.size - 134 - (36 if stops else 0))
        self.gap = 0  # why records are being lost
        self.lost_from = self.lost = 0  # lost: how many before this gap
        self.is_full = 0  # has the file system become so? see recorder/segments.py
        self.gaps = []  # GAPs still to be written: reason, boot, seq, number, segment
        self.retry_at = 0  # tenths of a second
        self.now = 0
        self.wall = None  # what recorder/segments.py knows of the time
        self.head_is_current = True  # does the retained message `head` have the present state?

    def message(self, client, name, topic, n, flags, buf, at, size):
        """Record a message if a filter wants its topic. _ORIGIN in flags: self.origin is set."""
        slot = self.topic(name, topic, n)
        if self.defined[0][slot] != UNWANTED:
            self.o[REC_CLIENT] = client
            self.put(OF_MESSAGE | flags << 8, slot, buf, at, size)

    def put(self, kind, topic, buf, at, size):
        """Write a record; its client is in the state. kind has the flags from bit 8 on."""
        o = self.o
        missed = 1
        total = REC_BEFORE + size
        if kind >> 8 & _ORIGIN and kind & 255 == OF_MESSAGE:
            total += _ORIGIN
        try:
            if self.fits(total, topic):
                self._define(topic)
                self._start(kind, total, topic)
                if total - size > REC_BEFORE:
                    add(0, 0, o, self.origin, 0, _ORIGIN, 1)
                    add(0, 0, o, buf, at, size, 0)
                else:
                    add(0, 0, o, buf, at, size, 1)
                missed = 0  # its seq is taken
                o[REC_FILL] += REC_BEFORE
                if total - size > REC_BEFORE:
                    self._append(self.origin, 0, _ORIGIN)
                self._append(buf, at, size)
                return True
        except OSError as error:
            self.failed(error)
        o[REC_SEQ] += missed
        return False

    def topic(self, buf, off, n):
        """The id of a topic name; `defined` says whether it is wanted."""
        topics = self.topics
        slot = topics.find(0, buf, off, n)
        if slot != NONE:
            return slot
        slot = topics.add(0, buf, off, n)
        while slot == NONE:  # no space: remove topics in turn
            hand = self.hand
            if topics.length[hand]:
                topics.remove(hand)
            self.hand = (hand + 1) % topics.slots
            slot = topics.add(0, buf, off, n)
        self.defined[0][slot] = UNWANTED
        for text in self.filters:
            if topic_matches(text, 0, len(text), buf, off, n):
                self.defined[0][slot] = 0
        return slot

    def fits(self, total, topic):
        # Is there space for the record and its definitions, in a new segment if need be? A new
        # segment has no definitions, so they always count.
        client = self.o[REC_CLIENT]
        if topic != NONE:
            total += REC_BEFORE + self.topics.length[topic]
        if client != NONE:
            total += REC_BEFORE + self.clients.length[client]
        if total > self.longest:
            return False
        if self.o[REC_SPACE] >= total:
            return True
        if self.now < self.retry_at:
            return False
        heap.lift()
        try:
            return ondemand.take("recorder.segments", self.now).next_segment(self, total)
        except MemoryError:
            self.retry_at = self.now + SOON
            return False
        finally:
            heap.drop()

    def _define(self, topic):
        client = self.o[REC_CLIENT]
        if client != NONE and self.defined[1][client] != self.o[REC_THIS]:
            self.defined[1][client] = self.o[REC_THIS]
            self._text(_DEF, NONE, self.clients, client)
        if topic != NONE and self.defined[0][topic] != self.o[REC_THIS]:
            self.defined[0][topic] = self.o[REC_THIS]
            self.o[REC_CLIENT] = NONE
            self._text(_TOPIC_DEF, topic, self.topics, topic)
            self.o[REC_CLIENT] = client
        self._settle()

    def _text(self, kind, topic, names, slot):
        self._settle()
        o = self.o
        at = o[REC_FILL] + REC_BEFORE
        n = names.read(slot, self.out, at)
        self._start(kind, REC_BEFORE + n, topic)
        add(0, 0, o, self.out, at, n, 1)
        o[REC_FILL] += REC_BEFORE + n

    # Bytes

    def _start(self, kind, total, topic):
        # Sets the fields of a record's header.
        o = self.o
        o[REC_LENGTH] = kind << 16 | total
        o[REC_TOPIC_ID] = topic
        o[REC_SPACE] -= total

    def _append(self, buf, at, n):
        o = self.o
        while n:
            self._settle()
            piece = min(n, o[REC_SIZE] - o[REC_FILL])
            copy(self.out, o[REC_FILL], buf, at, piece)
            o[REC_FILL] += piece
            at += piece
            n -= piece

    def _settle(self):
        # Writes whole blocks to the file: two if the longest topic is as long as one.
        o = self.o
        block = o[REC_BLOCK]
        while o[REC_FILL] >= block:
            self._write(self.done, block - self.done)
            o[REC_FILL] -= block
            copy(self.out, 0, self.out, block, o[REC_FILL])
            self.done = 0

    def settle(self, rest=False):
        """Write whole blocks to the file; with `rest` all. False: that failed."""
        if not self.is_open:
            return False  # nothing is written after a torn record
        try:
            self._settle()
            n = self.o[REC_FILL] - self.done
            if rest and n:
                self._write(self.done, n)
                self.done += n
        except OSError as error:
            self.failed(error)
        return self.is_open

    def _write(self, off, n):
        # Writes bytes of the buffer to the file.
        if MICROPYTHON:
            done = self.file.write(self.out, off, n)
        else:
            done = self.file.write(memoryview(self.out)[off : off + n])
        if done != n:
            raise OSError(ENOSPC, "write")
        self.written += n

    def flush(self):
        """Write what waits, and sync it; False: that failed."""
        if not self.settle(True):
            return False
        try:
            self.file.flush()
            if not MICROPYTHON:
                os.fsync(self.file.fileno())
            self.synced = self.written
            self.head_is_current = False
            return True
        except OSError as error:
            self.failed(error)
            return False

    def failed(self, error):
        """Give the segment up: its last record may be torn."""
        # On a full file system the next record takes the oldest segment's space, at once.
        is_full = error.args[0] == ENOSPC or error.args[0] == _EDQUOT
        if is_full:
            self.is_full |= 1
        if not self.gap:
            self.gap = FAILED
            if not self.is_open:  # else from the segment's first seq on, see _first_lost()
                self.lost_from = self.o[REC_SEQ]
        self.is_open = False
        self.retry_at = self.now
        if not is_full or self.stops or self.most == 2 and not self.written:
            self.retry_at += _PAUSE
        self.o[REC_SPACE] = 0
