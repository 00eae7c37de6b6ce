# bridges.py - all bridges of a broker: what comes from their connections that no client may send,
# and their steps after each turn.
#
# Owns the list. Stands before the handlers of the packets that a server sends, before those that
# open a session or subscribe (the other broker must not), before the loop's poller for streams
# that map topics (bridge/mapping.py), before finish_turn and the loop's close. Allocates when
# something happens, not for each turn.
from slotmq.bridge.link import Bridge
from slotmq.constants import (BODY, BYTES_IN, DOLLAR, DROPPED, EMFILE, END, ENDING, FAILURE, FLAGS,
    LINGERING, LOST, MALFORMED, NEW, NONE, NOTICE, PACKET_ID, PUBACK, PUBLISH_TYPE, PUBREC, SERVED,
    SOON, START, TOO_BIG, TOPIC_LEN, TOTAL, TYPE)
from slotmq.delivery.outgoing import put_ack
from slotmq.fast import topic_matches
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import MICROPYTHON
from slotmq.protocol.dispatch import receive

if not MICROPYTHON:
    from slotmq.bridge.mapping_cpython import Polled

# Results that are no DISCONNECT of a client: a timeout, the end, RETAIN and QoS not supported
_OF_SERVERS = (8, 10, 0x9A, 0x9B)


class Skip:
    """A PUBLISH that is skipped while it comes."""

    def __init__(self, pkt):
        self.size = self.left = pkt[TOTAL]
        self.qos = pkt[FLAGS] >> 1 & 3
        self._at = pkt[START] - pkt[BODY]  # how far the next byte is behind the fixed header
        self._next = 0  # the same of the next byte that is needed
        self._bytes = bytearray()  # the topic's length, the packet id

    def take(self, buf, at, end):
        """Take bytes; -> how many belong to the packet."""
        n = min(self.left, end - at)
        while self._next < self._at + n and len(self._bytes) < 4:
            self._bytes.append(buf[at + self._next - self._at])
            self._next += 1
            if len(self._bytes) == 2:
                self._next += self._bytes[0] << 8 | self._bytes[1]
        self._at += n
        self.left -= n
        return n

    def is_malformed(self):
        return self.qos == 3 or self.qos and (len(self._bytes) < 4 or not self.packet_id())

    def packet_id(self):
        return self._bytes[2] << 8 | self._bytes[3]


class Bridges:
    def __init__(self, broker):
        self.broker = broker
        self.every = []
        # Connections that the fast path must not see: of what may come back; with the Skip of a
        # packet that is larger than max_packet
        self.slow = {}
        self.inner_first = self.inner_handlers = None
        self.inner_5 = self.inner_goodbye = self.inner_fast = self.inner_end = None
        self.inner_finish_turn = self.inner_close = None  # interceptors.py sets them
        ondemand.take("interceptors", broker.now).bridges(broker, self)
        broker.subscriptions.asks = 0x10000
        loop = broker.loop
        loop.callbacks.insert(0, self.event)
        self.index = -len(loop.callbacks)  # in of_stream, of the socket of a probe

    def add(self, options):
        """Begin a bridge. ValueError: its client id is another's; OSError: no space."""
        limits = self.broker.limits
        topics = sum([len(each.options.topics) for each in self.every])
        if len(self.every) >= limits.bridges:
            raise OSError(EMFILE, "full: limit bridges")
        if topics + len(options.topics) > limits.bridge_topics:
            raise OSError(EMFILE, "full: limit bridge_topics")
        one = Bridge(self, options)
        if [each for each in self.every if each.local_id == one.local_id]:
            raise ValueError("a local client id that no other bridge has")
        one.begin()
        self.every.append(one)
        return one

    def used(self, session):
        """Is this the session of a bridge?"""
        return session != NONE and session in [each.session for each in self.every]

    def count(self):
        """How many slots of connections bridges hold that are not connected."""
        return sum([each.is_held for each in self.every])

    def stream_of(self, bridge, socket):
        """The stream of a new connection."""
        pipe = socket
        if bridge.options.context:
            pipe = bridge.module("bridge.secure").Secure(bridge, socket)
        elif not bridge.is_mapped or not MICROPYTHON and hasattr(socket, "fileno"):
            return Polled(self.broker, bridge, socket) if bridge.is_mapped else socket
        if bridge.is_mapped:
            from slotmq.bridge.mapping import Mapped  # most bridges do not need it

            pipe = Mapped(self.broker, bridge, pipe)
        return pipe

    def _of(self, conn):
        for each in self.every:
            if each.conn == conn:
                return each
        return None

    def wants(self, conn, buf, topic, n):
        """May this come over the connection? Of another broker, a topic with $ only where one that
        comes in names it."""
        bridge = self._of(conn)
        if not bridge or buf[topic] != DOLLAR:
            return True
        ins = [each.filters[0] for each in bridge.ins]
        return any([topic_matches(name, 0, len(name), buf, topic, n) for name in ins])

    # Before handlers

    def handle(self, broker, conn, pkt, buf):
        """What only servers send, and CONNECT, SUBSCRIBE, UNSUBSCRIBE and AUTH, which they must
        not."""
        bridge = self._of(conn)
        if not bridge:
            return self._inner(conn)[pkt[TYPE]](broker, conn, pkt, buf)
        with heap.lifted:
            return bridge.handle(pkt, buf)

    def _inner(self, conn):
        conns = self.broker.conns
        if conns.state[conn] == NEW:
            return self.inner_first
        return self.inner_5 if conns.level[conn] == 5 else self.inner_handlers

    def acknowledged(self, broker, conn, pkt, buf):
        """PUBACK, PUBREC of version 5: with such a reason code the other broker has refused it."""
        at = pkt[BODY] + 2
        bridge = self._of(conn) if at < pkt[END] and buf[at] >= FAILURE else None
        if bridge:
            broker.stats[DROPPED] += 1
            with heap.lifted:
                why = bridge.module("bridge.version5").reason(buf[at])
                bridge.refuse("out/refused", "refused there (%s)" % why)
        return self.inner_5[pkt[TYPE]](broker, conn, pkt, buf)

    def goodbye(self, broker, conn, result):
        """DISCONNECT of version 5, unless only servers may send the reason code."""
        if result not in _OF_SERVERS or not self._of(conn):
            self.inner_goodbye(broker, conn, result)

    def refused(self, session):
        """A message was not kept for this session, or dropped for a newer one."""
        for each in self.every:
            if each.session == session:
                each.has_dropped = True
                with heap.lifted:
                    each.refuse("out/full", "limits queued, deliveries, or its quota")

    # What connections allow

    def leaves(self, conn, first, size):
        """A PUBLISH of so many bytes is about to leave: -> its first byte, perhaps without RETAIN.
        One that is larger than the other broker accepts will not leave."""
        bridge = self._of(conn)
        if not bridge:
            return first
        most = self.broker.five.packet_max[conn]
        if 0 < most < size:
            with heap.lifted:
                found = size + bridge.growth, most + bridge.growth
                bridge.refuse("out/size", "%d bytes, and there at most %d" % found)
        return first & bridge.mask()

    # Before the fast path, and the end of a connection

    def handle_fast(self, columns, conn, buf, at, end):
        """The fast path gets nothing of what is skipped, nor messages that may come back."""
        if conn not in self.slow:
            return self.inner_fast(columns, conn, buf, at, end) if columns else at
        skip = self.slow[conn]
        if skip:
            with heap.lifted:
                at += self._skip(conn, skip, buf, at, end)
        return at

    def end(self, conn, reason):
        """A PUBLISH that is larger than max_packet is skipped. It would end a client, but the
        other broker would only send it again."""
        broker = self.broker
        pkt = broker.pkt
        bridge = self._of(conn)
        is_skipped = reason == TOO_BIG and pkt[TYPE] == PUBLISH_TYPE
        if not bridge or not is_skipped or not bridge.is_up():
            self._ended(bridge, conn, reason)
            return
        at = pkt[START]
        conns = self.broker.conns
        is_cut = conns.buffered[conn]
        buf = conns.partial if is_cut else self.broker.rx
        end = pkt[END]
        with heap.lifted:
            skip = self.slow[conn] = Skip(pkt)
            at += self._skip(conn, skip, buf, at, end)
        if at < end:
            receive(self.broker, conn, buf, at, end)

    def _ended(self, bridge, conn, reason):
        # The log says more of a bridge's connection than of a client's.
        broker = self.broker
        number = broker.loop.errno
        broker.loop.errno = 0
        mask = broker._log_mask
        if bridge and broker.conns.state[conn] not in (ENDING, LINGERING):
            with heap.lifted:
                bridge.ended(reason, number)
            broker._log_mask = mask & ~NOTICE
        self.inner_end(conn, reason)
        broker._log_mask = mask

    def _skip(self, conn, skip, buf, at, end):
        # -> how many bytes belong to the packet. At its end it is acknowledged.
        broker = self.broker
        n = skip.take(buf, at, end)
        broker.stats[BYTES_IN] += n
        if skip.left:
            return n
        bridge = self._of(conn)
        del self.slow[conn]
        if bridge.echoes:
            self.slow[conn] = None
        broker.stats[DROPPED] += 1
        bridge.refuse("in/size", "a packet of %d bytes, limit max_packet" % skip.size)
        if skip.is_malformed():
            self.inner_end(conn, MALFORMED)
        elif skip.qos:
            bridge.acknowledge(PUBACK if skip.qos == 1 else PUBREC, skip.packet_id())
        return n

    # Before handlers

    def publish(self, broker, conn, pkt, buf):
        """PUBLISH: drop what comes over a bridge with a topic that is too long. It would end a
        client, but the other broker would only send it again."""
        qos = pkt[FLAGS] >> 1 & 3
        if pkt[TOPIC_LEN] <= broker.limits.topic_bytes or qos == 3 or not self._of(conn):
            return self._inner(conn)[pkt[TYPE]](broker, conn, pkt, buf)
        broker.stats[DROPPED] += 1
        with heap.lifted:
            text = "a topic of %d bytes, limit topic_bytes" % pkt[TOPIC_LEN]
            self._of(conn).refuse("in/topic", text)
        if qos:
            put_ack(broker, conn, PUBACK if qos == 1 else PUBREC, pkt[PACKET_ID])
        return 0

    def event(self, socket):
        """The socket of a probe has an event."""
        counts = self.broker.conns.counts
        for each in self.every:
            counts[SERVED] = each.conn
            if each.probe is socket:
                each.probed()
                return

    # Before the loop's functions

    def finish_turn(self):
        self.inner_finish_turn()
        if self.broker.loop.stopping:
            return
        heap.lift()
        counts = self.broker.conns.counts
        for each in self.every:
            counts[SERVED] = each.conn
            if self.broker.now >= each.wake or not each.is_up():
                try:
                    each.step()
                except MemoryError:  # a moment later there may be heap
                    each.due = self.broker.now + SOON
                    self.broker.end(each.conn, LOST)
            if each.is_mapped:
                each.stream.go_on()
        counts[SERVED] = -1
        heap.drop()

    def close(self):
        """The loop ends: say DISCONNECT to the other brokers."""
        for each in self.every:
            each.stop()
        self.inner_close()
