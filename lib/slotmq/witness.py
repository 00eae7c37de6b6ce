# witness.py - what happens in a broker beside its messages, for its Recorder: clients that
# come, go, are taken over, subscribe; wills; tables that are full; a heap that runs low.
#
# Stands in the way as taps.py does, where `record_events` asks for it. Owns what the tables
# had refused and how little heap was free at the last look. Does not allocate in the steady
# state.
import gc

from slotmq import heap, ondemand
from slotmq.runtime import MICROPYTHON, const

_NONE = const(0xFFFF)
_TYPE = const(0)
_BODY = const(3)
_END = const(4)
_ENDING = const(3)
_LEFT = const(1)
_TAKEN_OVER = const(7)
_CLIENT = const(6)  # of the Recorder's state
# EVENT, with its flags from bit 8 on
_CONNECTED = const(0x203)
_DISCONNECTED = const(0x303)
_WILL = const(0x403)
_TAKEOVER = const(0x503)
_LOW = const(0x803)
_HEAP = const(100)  # tenths of a second between two looks at it
_STEP = const(1024)  # bytes that it must have less for an event


class Witness:
    def __init__(self, taps):
        self.taps = taps
        self.rec = taps.rec
        self.broker = broker = taps.broker
        self.detail = bytearray(4)
        self.refused = self._refused()
        self.counts = []  # what each table had refused, see record_control.py
        self.heap_at = broker.now
        self.low = 0x3FFFFFFF  # bytes of heap that were free when there were fewest
        self.end_it = self.inner = self.inner5 = None  # what was called before, see record.py

    def event(self, kind, client, size):
        """An event with so many bytes of self.detail."""
        self.taps.clock()
        self.rec.o[_CLIENT] = client
        self.rec.put(kind, _NONE, self.detail, 0, size)

    # Clients

    def joined(self, session, level):
        """A client has been let in."""
        self.detail[0] = level
        self.event(_CONNECTED, session, 1)

    def end(self, conn, reason):
        """Broker.end(): a connection ends, and why."""
        broker = self.broker
        session = broker.conns.session[conn]
        if session != _NONE and broker.conns.state[conn] != _ENDING:
            self.detail[0] = reason
            self.event(_DISCONNECTED, session, 1)
            if reason == _TAKEN_OVER:
                self.event(_TAKEOVER, session, 0)
            if reason != _LEFT and broker.sessions.will[session] != _NONE:
                self.event(_WILL, session, 0)
        self.end_it(conn, reason)

    def subscribe(self, broker, conn, pkt, buf):
        """SUBSCRIBE and UNSUBSCRIBE."""
        kind = pkt[_TYPE]
        at = pkt[_BODY] + 2
        end = pkt[_END]
        inner = self.inner5 if broker.conns.level[conn] == 5 else self.inner
        result = inner[kind](broker, conn, pkt, buf)
        if not result:
            heap.lift()
            try:
                control = ondemand.take("record_control", broker.now)
                control.told_filters(self, conn, kind, buf, at, end)
            except MemoryError:
                pass
            heap.drop()
        return result

    # Tables and heap

    def look(self, now):
        """Once a second: is a table full that was not, is there less heap than ever?"""
        refused = self._refused()
        if refused != self.refused:
            self.refused = refused
            heap.lift()
            try:
                ondemand.take("record_control", now).tell_full(self)
            except MemoryError:
                pass
            heap.drop()
        if MICROPYTHON and now >= self.heap_at:
            self.heap_at = now + _HEAP
            free = gc.mem_free()
            if free < self.low - _STEP:
                gc.collect()
                free = gc.mem_free()
            if free < self.low - _STEP:
                self.low = free
                for i in range(4):
                    self.detail[i] = free >> 8 * i & 255
                self.event(_LOW, _NONE, 4)

    def _refused(self):
        b = self.broker
        count = b.conns.refused + b.sessions.refused + b.subscriptions.refused + b.messages.refused
        count += b.deliveries.refused + b.retained.refused + b.subscriptions.nodes_refused
        return count + b.sessions.ids_refused + b.conns.bigs[2]
