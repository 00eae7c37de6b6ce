# interceptor.py - what passes through a broker, for its Recorder: messages behind the fast path,
# behind the handlers of PUBLISH, and what the program itself publishes; and events.
#
# Where it stands: interceptors.py. Owns when a flush is due. How events are
# written is recorder/segments.py's, what is told over MQTT recorder/remote.py's. Does not allocate
# in the steady state.
from slotmq.delivery.lifecycle import publish_stored
from slotmq.fast import fast_path, next_packet
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const
from slotmq.protocol.publish import is_wanted

_NONE = const(0xFFFF)
_PUBLISH_TYPE = const(3)
_TYPE = const(0)
_BODY = const(3)
_FLAGS = const(1)
_END = const(4)
_ENDING = const(3)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_ACCEPTED = const(15)
# Of the Recorder's state
_FILL = const(0)
_BLOCK = const(1)
_SEQ = const(4)
_TICKS = const(5)
_CLIENT = const(8)
_BEGAN = const(17)
_ORIGIN_FLAG = const(16)
_ORIGIN = b"\0\x0dslotmq-origin\0\x20"
_FORMAT = const(1)  # Payload Format Indicator; the others are texts
_USER_PROPERTY = const(0x26)
_EACH = const(10)
_LOOK_AGAIN = const(6)  # tenths of a second: with the longest turn less than one
_PACKET_ID = const(6)
_HEAP = const(600)  # tenths of a second between two looks at it
_STAY = const(2592000)  # 3 days: four looks before the ticks are what they were


class RecordInterceptor:
    def __init__(self, broker, rec, flush_s, remote):
        self.broker = broker
        self.rec = rec
        self.o = rec.o
        self.add_all = rec.add_all
        self.topics = rec.topics
        self.remote = remote
        # Looked at before that, so that nothing waits longer
        self.interval = (flush_s - 1) * _EACH
        self.due = self.flushed = self.stayed = broker.now  # tenths of a second
        self.ticks_ms = broker.loop.at_hand[4]
        self.o[_BEGAN] = self.ticks_ms()
        # What it stands before: interceptors.py fills it in
        self.inner_first = self.inner_handlers = self.inner_handlers5 = None
        self.inner_finish_turn = self.inner_close = None
        self.inner_end = None  # only where events are recorded, too
        self.refused = 0  # of all tables at the last look
        self.counts = []  # of each, see recorder/segments.py
        self.heap_at = broker.now
        self.ask = self._once  # stands for the hook while a packet is handled
        self.answer = None
        self.low = 0x3FFFFFFF  # bytes of heap that were free when there were fewest
        self.buf = None  # where the filters of a SUBSCRIBE are, buf[at:to]
        self.at = self.to = 0

    def clock(self):
        """What comes is of now."""
        self.o[_TICKS] = (self.ticks_ms() - self.o[_BEGAN]) & 0x3FFFFFFF
        self.rec.now = self.broker.now

    # Messages

    def handle(self, columns, conn, buf, at, end):
        """The fast path, and behind it what it has taken."""
        stop = fast_path(columns, conn, buf, at, end)
        if stop != at:
            at = self.add_all(self.ticks_ms(), conn, self.o, self.topics, buf, at, stop)
            if at < stop:
                self._rest(conn, buf, at, stop)
        return stop

    def _rest(self, conn, buf, at, end):
        # What takes more than that.
        o = self.o
        pkt = self.broker.pkt
        while at < end:
            if o[_FILL] >= o[_BLOCK]:
                self.rec.settle()
            done = self.add_all(self.ticks_ms(), conn, o, self.topics, buf, at, end)
            if done == at:
                done += next_packet(buf, at, end, pkt)
                self._packet(conn, o[_CLIENT], pkt, buf)
            at = done

    def _packet(self, conn, client, pkt, buf):
        at = pkt[_PAYLOAD]
        size = pkt[_END] - at
        self._message(conn, client, pkt[_FLAGS], buf, pkt[_TOPIC], pkt[_TOPIC_LEN], buf, at, size)

    def _message(self, conn, client, flags, name, topic, n, buf, at, size):
        # One that was handled. flags: of the packet, and _ORIGIN_FLAG
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
                self._remote().handle(self, name, topic, n, buf, at, size)
            except MemoryError:
                pass  # it will ask again
            heap.drop()

    def publish(self, broker, conn, pkt, buf):
        """PUBLISH; what may_publish has answered to the handler is not asked once more."""
        client = broker.conns.session[conn]
        flags = pkt[_FLAGS]
        is_5 = broker.conns.level[conn] == 5
        # what the receive list suppresses is acknowledged once more, and no message
        is_new = not flags & 4 or broker.sessions.find_received(client, pkt[_PACKET_ID]) < 0
        hook = broker.may_publish
        if hook:
            self.answer = None
            broker.may_publish = self.ask
        try:
            handlers = self.inner_handlers5 if is_5 else self.inner_handlers
            result = handlers[_PUBLISH_TYPE](broker, conn, pkt, buf)
            if not result and is_new:
                if is_5:
                    self._packet5(conn, client, flags)
                else:
                    self._packet(conn, client, pkt, buf)
        finally:
            broker.may_publish = hook
        return result

    def _packet5(self, conn, client, flags):
        # Of version 5, where an alias may stand for the topic.
        s = self.broker.five.source
        n = s.props
        if n > 48 and self._find_origin(s.buf, s.at, s.at + n):
            flags |= _ORIGIN_FLAG
        at = s.at + n
        n = s.size - n
        self._message(conn, client, flags, s.tbuf, s.topic, s.topic_len, s.buf, at, n)

    def _once(self, client_id, topic):
        if self.answer is None:
            self.answer = self.broker.hooks.may_publish(client_id, topic)
        return self.answer

    def _find_origin(self, buf, at, end):
        # The user property that tells which board has recorded the message before, among
        # properties that were checked: 32 hexadecimal digits, the board as it stands, the
        # numbers with their lowest byte first.
        while at < end:
            n = buf[at]
            at += 1
            if n == _USER_PROPERTY:
                if buf.find(_ORIGIN, at, at + 17) == at:
                    break
                at += 2 + (buf[at] << 8 | buf[at + 1])
            at += 1 if n == _FORMAT else 2 + (buf[at] << 8 | buf[at + 1])
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
        """A will goes out."""
        publish_stored(broker, msg, session)
        self.tell("said", msg, session)

    def publish_own(self, topic, payload=b"", qos=0, retain=False):
        """What the program itself publishes."""
        self.clock()
        return self._remote().publish(self, topic, payload, qos, retain)

    def _remote(self):
        return ondemand.take("recorder.remote", self.broker.now)

    # Clients

    def connect(self, broker, conn, pkt, buf):
        """CONNECT, and AUTH before it is accepted."""
        result = self.inner_first[pkt[_TYPE]](broker, conn, pkt, buf)
        session = broker.conns.session[conn]
        if result == _ACCEPTED and session != _NONE:
            self.rec.defined[1][session] = 0  # somebody else may have the id now
            if self.inner_end:
                self.tell("joined", conn, broker.conns.level[conn])
        return result

    # Events, which recorder/segments.py writes

    def tell(self, what, conn, about):
        """Record an event; without heap for what does that it is a hole."""
        self.clock()
        heap.lift()
        try:
            getattr(ondemand.take("recorder.segments", self.broker.now), what)(self, conn, about)
        except MemoryError:
            self.rec.o[_SEQ] += 1
        heap.drop()

    def end(self, conn, reason):
        """Broker.end(): a connection ends, and why."""
        conns = self.broker.conns
        if conns.session[conn] != _NONE and conns.state[conn] != _ENDING:
            self.tell("ended", conn, reason)
        self.inner_end(conn, reason)

    def subscribe(self, broker, conn, pkt, buf):
        """SUBSCRIBE and UNSUBSCRIBE."""
        kind = pkt[_TYPE]
        at = pkt[_BODY] + 2
        end = pkt[_END]
        is_5 = broker.conns.level[conn] == 5
        handlers = self.inner_handlers5 if is_5 else self.inner_handlers
        result = handlers[kind](broker, conn, pkt, buf)
        if not result:
            self.buf = buf
            self.at = at
            self.to = end
            self.tell("asked", conn, kind)
        return result

    def look(self, now):
        """At each look: is a table full that was not, is there less heap than ever?"""
        b = self.broker
        s = b.subscriptions
        refused = b.conns.refused + b.sessions.refused + s.refused + b.messages.refused
        refused += b.deliveries.refused + b.retained.refused + s.nodes_refused
        refused += b.sessions.ids_refused
        if refused != self.refused or now >= self.heap_at:
            self.refused = refused
            self.heap_at = now + _HEAP
            self.tell("look", 0, now)

    # Time

    def finish_turn(self):
        """The loop's, and what is due."""
        self.inner_finish_turn()
        if self.broker.now >= self.due:
            self.due = self.broker.now + _LOOK_AGAIN
            self._look(self.broker.now)

    def _look(self, now):
        self.clock()
        if self.inner_end:
            self.look(now)
        if now - self.stayed >= _STAY:
            self.stayed = now
            self.tell("stay", 0, now)
        if now - self.flushed < self.interval:
            return
        self.flushed = now
        rec = self.rec
        if self.o[_FILL] != rec.done or rec.written != rec.synced:
            rec.flush()
        if self.remote and not rec.is_told:
            heap.lift()
            try:
                self._remote().tell(self)
            except MemoryError:
                pass  # the next time
            heap.drop()

    def close(self):
        """Loop.close(), and then the segment is whole."""
        self.inner_close()
        ondemand.take("recorder.segments", self.broker.now).close(self.rec)
        lock = self.rec.lock
        if lock:
            lock.close()
            self.rec.lock = None
