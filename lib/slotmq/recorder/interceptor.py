# interceptor.py - passes to the Recorder what a broker handles: messages after the fast path and
# after the handlers of PUBLISH, what the program itself publishes, and events.
#
# interceptors.py declares which functions it replaces. Owns when a flush is due.
# recorder/segments.py writes events, recorder/remote.py answers over MQTT. Does not allocate in
# the steady state.
from slotmq.constants import (ACCEPTED, BODY, END, ENDING, FLAGS, NONE, PACKET_ID, PAYLOAD,
    PUBLISH_TYPE, REC_BEGAN, REC_BLOCK, REC_CLIENT, REC_FILL, REC_SEQ, REC_SKIP, REC_TICKS, TOPIC,
    TOPIC_LEN, TYPE)
from slotmq.delivery.lifecycle import publish_stored
from slotmq.fast import fast_path, next_packet
from slotmq.platform import heap, ondemand
from slotmq.protocol.publish import is_wanted

_ORIGIN_FLAG = 16
_ORIGIN = b"\0\x0dslotmq-origin\0\x20"
_PAYLOAD_FORMAT = 1  # Payload Format Indicator: one byte; the others have a length first
_USER_PROPERTY = 0x26
_EACH = 10
_LOOK_AGAIN = 6  # tenths of a second; plus the longest turn, less than a second
_HEAP = 600  # tenths of a second between two looks at it
_TIME_EVERY = 2592000  # 3 days; the ticks wrap after some four times that


class RecordInterceptor:
    def __init__(self, broker, rec, flush_s, remote):
        self.broker = broker
        self.rec = rec
        self.o = rec.o
        self.add_all = rec.add_all
        self.topics = rec.topics
        self.remote = remote
        # One second early, so that no record waits longer than flush_s
        self.interval = (flush_s - 1) * _EACH
        self.due = self.flushed = self.time_at = broker.now  # tenths of a second
        self.ticks_ms = broker.loop.ticks_ms
        self.o[REC_BEGAN] = self.ticks_ms()
        # The functions that it wraps; interceptors.py sets them
        self.inner_first = self.inner_handlers = self.inner_handlers5 = None
        self.inner_finish_turn = self.inner_close = None
        self.inner_end = None  # set only if events are recorded
        self.refused = 0  # the refusals of all tables at the last look
        self.counts = []  # those of each table, see recorder/segments.py
        self.heap_at = broker.now  # when free heap is looked at next
        # Replaces the hook while a PUBLISH is handled, so that it is asked only once
        self.may_publish_once = self._may_publish_once
        self.answer = None  # the hook's
        self.low = 0x3FFFFFFF  # the least free heap so far, in bytes
        self.buf = None  # where the filters of a SUBSCRIBE are, buf[at:to]
        self.at = self.to = 0

    def clock(self):
        """Set the time of the records that follow."""
        self.o[REC_TICKS] = (self.ticks_ms() - self.o[REC_BEGAN]) & 0x3FFFFFFF
        self.rec.now = self.broker.now

    # Messages

    def handle_fast(self, columns, conn, buf, at, end):
        """Call the fast path, and record what it has handled: of version 5 no properties."""
        stop = fast_path(columns, conn, buf, at, end)
        if stop != at:
            self.o[REC_SKIP] = 1 if self.broker.conns.level[conn] == 5 else 0
            at = self.add_all(self.ticks_ms(), conn, self.o, self.topics, buf, at, stop)
            if at < stop:
                self._rest(conn, buf, at, stop)
        return stop

    def _rest(self, conn, buf, at, end):
        # Records what add_all() leaves: an unknown topic, the end of a segment, a full buffer.
        o = self.o
        pkt = self.broker.pkt
        while at < end:
            if o[REC_FILL] >= o[REC_BLOCK]:
                self.rec.settle()
            done = self.add_all(self.ticks_ms(), conn, o, self.topics, buf, at, end)
            if done == at:
                done += next_packet(buf, at, end, pkt)
                self._packet(conn, o[REC_CLIENT], pkt, buf, pkt[PAYLOAD] + o[REC_SKIP])
            at = done

    def _packet(self, conn, client, pkt, buf, at):
        size = pkt[END] - at
        self._message(conn, client, pkt[FLAGS], buf, pkt[TOPIC], pkt[TOPIC_LEN], buf, at, size)

    def _message(self, conn, client, flags, name, topic, n, buf, at, size):
        # Records a message that was handled. flags: those of the packet, and _ORIGIN_FLAG
        broker = self.broker
        plain = broker.plain and name[topic] != 36
        if not (plain or is_wanted(broker, conn, name, topic, n, size)):
            return
        self.clock()
        flags = flags >> 1 & 3 | (flags & 1) << 2 | flags & 24
        self.rec.message(client, name, topic, n, flags, buf, at, size)
        if self.remote and n > 8 and name[topic] == 36 and name[topic + 2] == 76:
            heap.lift()
            try:
                self._remote().handle(self, client, name, topic, n, buf, at, size)
            except MemoryError:
                pass  # the client will ask again
            heap.drop()

    def publish(self, broker, conn, pkt, buf):
        """PUBLISH: call the handler, then record the message."""
        client = broker.conns.session[conn]
        flags = pkt[FLAGS]
        is_5 = broker.conns.level[conn] == 5
        # If its id is in the receive list, it is acknowledged again, but is no new message.
        is_new = not flags & 4 or broker.sessions.find_received(client, pkt[PACKET_ID]) < 0
        hook = broker.may_publish
        if hook:
            self.answer = None
            broker.may_publish = self.may_publish_once
        try:
            handlers = self.inner_handlers5 if is_5 else self.inner_handlers
            result = handlers[PUBLISH_TYPE](broker, conn, pkt, buf)
            if not result and is_new:
                if is_5:
                    self._packet5(conn, client, flags)
                else:
                    self._packet(conn, client, pkt, buf, pkt[PAYLOAD])
        finally:
            broker.may_publish = hook
        return result

    def _packet5(self, conn, client, flags):
        # Version 5: the Source has the topic, also if the packet has only an alias.
        s = self.broker.five.source
        n = s.props
        if n > 48 and self._find_origin(s.buf, s.at, s.at + n):
            flags |= _ORIGIN_FLAG
        at = s.at + n
        n = s.size - n
        self._message(conn, client, flags, s.tbuf, s.topic, s.topic_len, s.buf, at, n)

    def _may_publish_once(self, *asked):
        if self.answer is None:
            self.answer = self.broker.hooks.may_publish(*asked)
        return self.answer

    def _find_origin(self, buf, at, end):
        # Is there a user property that says which board recorded the message before? It has 32
        # hexadecimal digits; copy board, boot and seq to rec.origin, the numbers with their lowest
        # byte first. The properties have been checked.
        while at < end:
            n = buf[at]
            at += 1
            if n == _USER_PROPERTY:
                if buf.find(_ORIGIN, at, at + 17) == at:
                    break
                at += 2 + (buf[at] << 8 | buf[at + 1])
            at += 1 if n == _PAYLOAD_FORMAT else 2 + (buf[at] << 8 | buf[at + 1])
        for i in range(32 if at < end else 0):
            n = buf[at + 17 + i]
            n = (n & 31 or 9) + 9 if n >> 6 == 1 else n - 48 if n < 58 else 16
            if not 0 <= n < 16:
                return False
            i >>= 1
            if i > 7:
                i = (i | 3) - (i & 3)
            self.rec.origin[i] = self.rec.origin[i] << 4 & 240 | n
        return at < end

    def publish_will(self, broker, msg, session):
        """A will is published."""
        if publish_stored(broker, msg, session):
            self.record_event("will", msg, session)

    def publish_own(self, topic, payload=b"", qos=0, retain=False):
        """What the program itself publishes."""
        self.clock()
        return self._remote().publish(self, topic, payload, qos, retain)

    def _remote(self):
        return ondemand.take("recorder.remote", self.broker.now)

    # Clients

    def connect(self, broker, conn, pkt, buf):
        """CONNECT, and AUTH before it is accepted."""
        result = self.inner_first[pkt[TYPE]](broker, conn, pkt, buf)
        session = broker.conns.session[conn]
        if result == ACCEPTED and session != NONE:
            self.rec.defined[1][session] = 0  # the slot may have another client id now
            if self.inner_end:
                level = broker.conns.level[conn]
                self.record_event("connected", conn, level if level < 6 else 4)  # of a bridge
        return result

    # Events, which recorder/segments.py writes

    def record_event(self, what, conn, about):
        """Record an event by that function of recorder/segments.py; without heap its seq is
        missing."""
        self.clock()
        heap.lift()
        try:
            getattr(ondemand.take("recorder.segments", self.broker.now), what)(self, conn, about)
        except MemoryError:
            self.rec.o[REC_SEQ] += 1
        heap.drop()

    def end(self, conn, reason):
        """Broker.end(): a connection ends, and why."""
        conns = self.broker.conns
        if conns.session[conn] != NONE and conns.state[conn] != ENDING:
            self.record_event("ended", conn, reason)
        self.inner_end(conn, reason)

    def subscribe(self, broker, conn, pkt, buf):
        """SUBSCRIBE and UNSUBSCRIBE."""
        kind = pkt[TYPE]
        at = pkt[BODY] + 2
        end = pkt[END]
        is_5 = broker.conns.level[conn] == 5
        handlers = self.inner_handlers5 if is_5 else self.inner_handlers
        result = handlers[kind](broker, conn, pkt, buf)
        if not result:
            self.buf = buf
            self.at = at
            self.to = end
            self.record_event("subscribe", conn, kind)
        return result

    def look(self, now):
        """Record an event if a table has refused something, or free heap is lower than ever."""
        b = self.broker
        s = b.subscriptions
        refused = b.conns.refused + b.sessions.refused + s.refused + b.messages.refused
        refused += b.deliveries.refused + b.retained.refused + s.nodes_refused
        refused += b.sessions.ids_refused
        if refused != self.refused or now >= self.heap_at:
            self.refused = refused
            self.heap_at = now + _HEAP
            self.record_event("look", 0, now)

    # Time

    def finish_turn(self):
        """Call the loop's finish_turn(), then do what is due."""
        self.inner_finish_turn()
        if self.broker.now >= self.due:
            self.due = self.broker.now + _LOOK_AGAIN
            self._look(self.broker.now)

    def _look(self, now):
        self.clock()
        if self.inner_end:
            self.look(now)
        if now - self.time_at >= _TIME_EVERY:
            self.time_at = now
            self.record_event("time", 0, now)
        if now - self.flushed < self.interval:
            return
        self.flushed = now
        rec = self.rec
        if self.o[REC_FILL] != rec.done or rec.written != rec.synced:
            rec.flush()
        if self.remote and not rec.head_is_current:
            heap.lift()
            try:
                self._remote().update(self)
            except MemoryError:
                pass  # the next look tries again
            heap.drop()

    def close(self):
        """Call Loop.close(), then complete the segment."""
        self.inner_close()
        ondemand.take("recorder.segments", self.broker.now).close(self.rec)
        lock = self.rec.lock
        if lock:
            lock.close()
            self.rec.lock = None
