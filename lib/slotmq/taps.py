# taps.py - the messages that pass through a broker, for its Recorder: behind the lane, behind
# the handlers of PUBLISH, and what the program itself publishes.
#
# Stands in the way of what the broker and its loop call, as hooks.py does, so that a broker
# that records nothing has no code for it. Owns when a flush is due. Events are witness.py's,
# what is told over MQTT record_remote.py's. Does not allocate in the steady state.
from slotmq import heap, ondemand
from slotmq.runtime import const, lane, new_packet, next_packet
from slotmq.runtime_record import names_table, tap

_NONE = const(0xFFFF)
_TYPE = const(0)
_FLAGS = const(1)
_END = const(4)
_TOPIC = const(7)
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)
_ACCEPTED = const(15)
# Of the Recorder's state
_FILL = const(0)
_TICKS = const(5)
_CLIENT = const(6)
_ORIGIN_FLAG = const(16)
_ORIGIN = b"\x26\0\x0dslotmq-origin\0\x20"
_SECOND = const(10)


class Taps:
    def __init__(self, broker, rec, flush_s, remote):
        self.broker = broker
        self.rec = rec
        self.o = rec.o
        self.names = names_table(rec.topics)
        self.remote = remote
        self.witness = None  # of events, see witness.py
        self.interval = flush_s * _SECOND
        self.due = self.flushed = broker.now  # tenths of a second
        self.pkt = new_packet(broker.limits.max_packet)
        self.is_forbidden = False  # has the hook said no to what is published?
        self.lock = None  # the open file that keeps others from this ring
        self.ticks_ms = broker.loop.ticks_ms
        self.began = broker.loop.ticks_ms()
        # What was called before: record.py fills it in
        self.joins = self.inner = self.inner5 = self.asked = self.apply = None
        self.finish = self.shut = None
        self.gate = self.may_publish

    def apply_settings(self):
        """Broker.apply_settings(); the hook that forbids is asked through here."""
        self.apply()
        asked = self.broker.may_publish
        if asked and asked is not self.gate:
            self.asked = asked
            self.broker.may_publish = self.gate

    def may_publish(self, client_id, topic):
        """The hook's answer, which is noted."""
        wanted = self.asked(client_id, topic)
        self.is_forbidden = not wanted
        return wanted

    def clock(self):
        """What comes is of now."""
        self.o[_TICKS] = (self.ticks_ms() - self.began) & 0x3FFFFFFF
        self.rec.now = self.broker.now

    # Messages

    def handle(self, columns, conn, buf, at, end):
        """The lane, and behind it what it has taken."""
        stop = lane(columns, conn, buf, at, end)
        if stop != at:
            self.clock()
            o = self.o
            o[_CLIENT] = client = self.broker.conns.session[conn]
            at = tap(at, 0, 0, o, self.names, buf, stop)
            while at < stop:
                o[_CLIENT] = client
                n = next_packet(buf, at, stop, self.pkt)
                self._message(client, self.pkt, buf)
                o[_CLIENT] = client
                at = tap(at + n, 0, 0, o, self.names, buf, stop)
        return stop

    def _message(self, client, pkt, buf):
        flags = pkt[_FLAGS]
        flags = flags >> 1 & 3 | (flags & 1) << 2 | flags & 8
        at = pkt[_PAYLOAD]
        topic = pkt[_TOPIC]
        self.rec.message(client, buf, topic, pkt[_TOPIC_LEN], flags, buf, at, pkt[_END] - at)

    def _is_let_through(self, size):
        limit = self.broker.size_limit
        return not self.is_forbidden and not (limit and size > limit)

    def publish(self, broker, conn, pkt, buf):
        """PUBLISH of version 3."""
        client = broker.conns.session[conn]
        self.is_forbidden = False
        result = self.inner(broker, conn, pkt, buf)
        if not result and self._is_let_through(pkt[_END] - pkt[_PAYLOAD]):
            self.clock()
            self._message(client, pkt, buf)
            at = pkt[_PAYLOAD]
            if buf[pkt[_TOPIC]] == 36:
                self._control(buf, pkt[_TOPIC], pkt[_TOPIC_LEN], at, pkt[_END] - at)
        return result

    def publish5(self, broker, conn, pkt, buf):
        """PUBLISH of version 5, whose topic an alias may stand for."""
        client = broker.conns.session[conn]
        flags = pkt[_FLAGS]
        self.is_forbidden = False
        result = self.inner5(broker, conn, pkt, buf)
        source = broker.five.source
        size = source.size - source.props
        if not result and self._is_let_through(size):
            self.clock()
            flags = flags >> 1 & 3 | (flags & 1) << 2 | flags & 8
            if source.props > 48 and self._find_origin(source):
                flags |= _ORIGIN_FLAG
            at = source.at + source.props
            self.rec.message(
                client, source.tbuf, source.topic, source.topic_len, flags, source.buf, at, size
            )
            if source.tbuf[source.topic] == 36:
                self._control(source.tbuf, source.topic, source.topic_len, at, size, source.buf)
        return result

    def _find_origin(self, source):
        # The user property that tells which board has recorded the message before.
        buf = source.buf
        end = source.at + source.props
        at = buf.find(_ORIGIN, source.at, end)
        if at < 0 or at + 50 > end:
            return False
        at += 18
        for i in range(16):
            high = _digit(buf[at + 2 * i])
            low = _digit(buf[at + 2 * i + 1])
            if high < 0 or low < 0:
                return False
            # the board as it stands, the numbers with their lowest byte first
            self.rec.origin[i if i < 8 else (i | 3) - (i & 3)] = high << 4 | low
        return True

    def publish_own(self, topic, payload=b"", qos=0, retain=False):
        """What the program itself publishes."""
        from slotmq import local

        local.publish(self.broker, topic, payload, qos, retain)
        self.clock()
        self._remote().published(self, topic, payload, qos | (4 if retain else 0))

    def _control(self, buf, topic, n, at, size, data=None):
        if self.remote and n > 8 and buf[topic + 1] == 83 and buf[topic + 2] == 76:
            heap.lift()
            try:
                data = data or buf
                name = bytes(buf[topic : topic + n])
                self._remote().told(self, name, bytes(data[at : at + size]), False)
            except MemoryError:
                pass  # it will ask again
            heap.drop()

    def _remote(self):
        return ondemand.take("record_remote", self.broker.now)

    # Clients

    def let_in(self, broker, conn, pkt, buf):
        """CONNECT, and AUTH before it is accepted."""
        result = self.joins[pkt[_TYPE]](broker, conn, pkt, buf)
        session = broker.conns.session[conn]
        if result == _ACCEPTED and session != _NONE:
            self.rec.forget_client(session)
            if self.witness:
                self.witness.joined(session, broker.conns.level[conn])
        return result

    # Time

    def finish_turn(self):
        """The loop's, and what is due."""
        self.finish()
        if self.broker.now >= self.due:
            self.due = self.broker.now + _SECOND
            self._look(self.broker.now)

    def _look(self, now):
        self.clock()
        if self.witness:
            self.witness.look(now)
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
        self.shut()
        ondemand.take("record_control", self.broker.now).close(self.rec)
        if self.lock:
            self.lock.close()
            self.lock = None


def _digit(c):
    # A hexadecimal digit's value, or -1.
    if 48 <= c < 58:
        return c - 48
    c |= 32
    return c - 87 if 97 <= c < 103 else -1
