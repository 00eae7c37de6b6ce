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
_SUBSCRIBE_TYPE = const(8)
_UNSUBSCRIBE_TYPE = const(10)
_ENDING = const(3)
_LEFT = const(1)
_TAKEN_OVER = const(7)
_CLIENT = const(6)  # of the Recorder's state
# EVENT, with its flags from bit 8 on
_CONNECTED = const(0x203)
_DISCONNECTED = const(0x303)
_WILL = const(0x403)
_TAKEOVER = const(0x503)
_SUBSCRIBED = const(0x603)
_LOW = const(0x803)
_UNSUBSCRIBED = const(0x903)
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
        self.end_it = broker.end
        broker.end = self.end
        self.inner = broker.handlers
        broker.handlers = _replaced(self.inner, self.subscribe)
        if broker.five:
            self.inner5 = broker.five.handlers
            broker.five.handlers = _replaced(self.inner5, self.subscribe5)
        taps.witness = self

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
        """SUBSCRIBE and UNSUBSCRIBE of version 3."""
        kind = pkt[_TYPE]
        at = pkt[_BODY] + 2
        end = pkt[_END]
        result = self.inner[kind](broker, conn, pkt, buf)
        if not result:
            self._filters(broker.conns.session[conn], kind, buf, at, end)
        return result

    def subscribe5(self, broker, conn, pkt, buf):
        """The same of version 5, whose filters stand behind properties."""
        kind = pkt[_TYPE]
        at = pkt[_BODY] + 2
        end = pkt[_END]
        result = self.inner5[kind](broker, conn, pkt, buf)
        if not result:
            n = shift = 0
            more = 128
            while more & 128:
                more = buf[at]
                n |= (more & 127) << shift
                shift += 7
                at += 1
            self._filters(broker.conns.session[conn], kind, buf, at + n, end)
        return result

    def _filters(self, session, kind, buf, at, end):
        self.taps.clock()
        o = self.rec.o
        while at + 2 <= end:
            n = buf[at] << 8 | buf[at + 1]
            o[_CLIENT] = session
            event = _SUBSCRIBED if kind == _SUBSCRIBE_TYPE else _UNSUBSCRIBED
            self.rec.put(event, _NONE, buf, at + 2, n)
            at += 2 + n + (1 if kind == _SUBSCRIBE_TYPE else 0)

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


def _replaced(handlers, subscribe):
    made = list(handlers)
    made[_SUBSCRIBE_TYPE] = made[_UNSUBSCRIBE_TYPE] = subscribe
    return tuple(made)
