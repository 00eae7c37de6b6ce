# witness.py - what happens in a broker beside its messages, for its Recorder: clients that
# come, go, are taken over, subscribe; wills; tables that are full; a heap that runs low.
#
# Stands in the way as taps.py does, where `record_events` asks for it. Owns what the tables
# had refused and how little heap was free at the last look. Does not allocate in the steady
# state.
from slotmq import heap, ondemand
from slotmq.runtime import const

_NONE = const(0xFFFF)
_TYPE = const(0)
_BODY = const(3)
_END = const(4)
_ENDING = const(3)
_SEQ = const(4)  # of the Recorder's state
_HEAP = const(600)  # tenths of a second between two looks at it


class Witness:
    def __init__(self, taps):
        self.taps = taps
        self.rec = taps.rec
        self.broker = broker = taps.broker
        self.refused = 0
        self.counts = []  # what each table had refused, see record_control.py
        self.heap_at = broker.now
        self.low = 0x3FFFFFFF  # bytes of heap that were free when there were fewest
        self.buf = None  # where the filters of a SUBSCRIBE are, buf[at:to]
        self.at = self.to = 0
        self.end_it = self.inner = self.inner5 = None  # what was called before, see record.py

    def tell(self, what, conn, about):
        """Record an event; without heap for what does that it is a hole."""
        self.taps.clock()
        heap.lift()
        try:
            getattr(ondemand.take("record_control", self.broker.now), what)(self, conn, about)
        except MemoryError:
            self.rec.o[_SEQ] += 1
        heap.drop()

    def end(self, conn, reason):
        """Broker.end(): a connection ends, and why."""
        conns = self.broker.conns
        if conns.session[conn] != _NONE and conns.state[conn] != _ENDING:
            self.tell("ended", conn, reason)
        self.end_it(conn, reason)

    def subscribe(self, broker, conn, pkt, buf):
        """SUBSCRIBE and UNSUBSCRIBE."""
        kind = pkt[_TYPE]
        at = pkt[_BODY] + 2
        end = pkt[_END]
        inner = self.inner5 if broker.conns.level[conn] == 5 else self.inner
        result = inner(broker, conn, pkt, buf)
        if not result:
            self.buf = buf
            self.at = at
            self.to = end
            self.tell("asked", conn, kind)
        return result

    # Tables and heap

    def look(self, now):
        """Once a second: is a table full that was not, is there less heap than ever?"""
        b = self.broker
        s = b.subscriptions
        refused = b.conns.refused + b.sessions.refused + s.refused + b.messages.refused
        refused += b.deliveries.refused + b.retained.refused + s.nodes_refused
        refused += b.sessions.ids_refused
        if refused != self.refused or now >= self.heap_at:
            self.refused = refused
            self.heap_at = now + _HEAP
            self.tell("look", 0, now)
