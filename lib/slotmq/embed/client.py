# client.py - a client that is part of the broker's program. It is the stream of its own
# connection: the loop writes to it, into an inbox. What it sends goes to the handlers without a
# stream.
#
# Owns a slot of `connections`, an inbox for one packet of max_packet, and the acknowledgements
# that it still has to send. Speaks MQTT 3.1.1. Allocates, except in write(), which the loop calls
# with the heap locked.
from slotmq.constants import (ACCEPTED, ALL_BITS, BLOCKED, CONNECT_TYPE, EAGAIN, EMFILE, ENDING,
    FLAGS, FOR_THIS_PACKET, NONE, PACKET_ID, PAYLOAD, PUBACK, PUBCOMP, PUBLISH_TYPE, PUBREC,
    PUBREL_TYPE, TOPIC, TOPIC_LEN, TYPE)
from slotmq.embed import publishing
from slotmq.embed.client_packets import filter_of
from slotmq.embed.packets import field, packet_of
from slotmq.fast import copy, new_packet, next_packet, topic_matches
from slotmq.platform import heap, ondemand
from slotmq.protocol.dispatch import readable, receive

_LEAST = 8
_EACCES = 13
_ENOTCONN = 107


class Client:
    """A client: subscribe, unsubscribe, publish, disconnect; between turns, in callbacks, and in
    the hooks on_..."""

    polled = None  # for platform/poller.py

    def __init__(self, interceptor, user=None):
        broker = interceptor.broker
        self.user = user  # its user name as bytes
        self.interceptor = interceptor
        self._callbacks = []  # (filter, callback)
        self._inbox = bytearray(broker.limits.max_packet + 64)
        self._view = memoryview(self._inbox)
        self._pkt = new_packet(len(self._inbox))
        self._end = 0
        self.written = 0  # bytes, modulo 2^30
        self._acks = bytearray()
        self._received = []  # QoS 2 ids between PUBLISH and PUBREL
        self._packet_id = 0
        self.conn = conn = broker.conns.take(self, broker.now)
        if conn == NONE:
            raise OSError(EMFILE, "full: limit connections")
        self.quota = [NONE, 1, 0, None]
        broker.conns.quota[conn] = self.quota
        broker.loop.of_stream[self] = conn
        interceptor.clients.append(self)

    @property
    def is_connected(self):
        return self.conn is not None and self.interceptor.broker.conns.state[self.conn] != ENDING

    def subscribe(self, topic_filter, callback, qos=0):
        """Call callback(topic, payload, qos, retained) for what matches, topic a str.

        -> the granted QoS. ValueError: filter, callback or QoS is not valid. OSError:
        EACCES: a hook forbids it; EMFILE: a table is full; EAGAIN: not now."""
        broker = self.interceptor.broker
        name = filter_of(broker, topic_filter, callback, qos)
        subs = broker.subscriptions
        full = subs.refused + subs.nodes_refused
        code = self._request(0x82, field(name) + bytes((qos,)))
        if code is not None and code > 2:
            if full == subs.refused + subs.nodes_refused:
                raise OSError(_EACCES, "acl_file or may_subscribe forbids it")
            raise OSError(EMFILE, "full: limit subscriptions, limit nodes")
        self.hear(name, callback)
        return code

    def hear(self, topic_filter, callback):
        """Register a callback, as subscribe() does, for a subscription that the session has."""
        each = filter_of(self.interceptor.broker, topic_filter, callback, 0), callback
        if each not in self._callbacks:
            self._callbacks = self._callbacks + [each]  # deliver() may be walking the old list

    def unsubscribe(self, topic_filter):
        """Forget the filter and its callbacks."""
        name = filter_of(self.interceptor.broker, topic_filter, filter_of, 0)
        self._callbacks = [each for each in self._callbacks if each[0] != name]
        self._request(0xA2, field(name))

    def publish(self, topic, payload=b"", qos=0, retain=False):
        """Publish. False: acl_file or may_publish forbids it, or a table is full.

        ValueError: clients may not send this topic name, QoS, RETAIN or size."""
        broker = self.interceptor.broker
        if not self.is_connected:
            raise OSError(_ENOTCONN)
        publishing.check_idle(broker)
        if broker.asks:
            topic, payload = publishing.checked(broker, topic, payload, qos, retain)
            if not broker.asks(self.conn, topic, 0, len(topic)):
                return False
        return broker.publish(topic, payload, qos, retain)

    def disconnect(self):
        """Send DISCONNECT: the will is not published."""
        self.request(b"\xe0\0")

    # As a stream

    def write(self, buf, off, n):
        n = min(n, len(self._inbox) - self._end)
        copy(self._inbox, self._end, buf, off, n)
        self._end += n
        self.written = self.written + n & ALL_BITS
        return n

    def taken(self):
        """How many of the bytes that were written have left the inbox."""
        return self.written - self._end & ALL_BITS

    def send(self, data):
        return 0  # for fast/turn_cpython.py: the loop must write, so that callbacks are called

    def close(self):
        self.conn = None
        self.interceptor.clients.remove(self)

    # Packets

    def deliver(self):
        """Call the callbacks for packets in the inbox; True if there was one."""
        n = self._whole(0)
        if not n:
            return False
        inbox = self._inbox
        pkt = self._pkt
        has_raised = False
        try:
            while n and self.conn is not None:
                flags = pkt[FLAGS]
                packet_id = pkt[PACKET_ID]
                topic = b""
                if pkt[TYPE] == PUBLISH_TYPE and self._is_new(flags >> 1 & 3, packet_id):
                    topic = bytes(self._view[pkt[TOPIC] : pkt[TOPIC] + pkt[TOPIC_LEN]])
                    payload = bytes(self._view[pkt[PAYLOAD] : n])
                elif pkt[TYPE] == PUBREL_TYPE:
                    if packet_id in self._received:
                        self._received.remove(packet_id)
                    self._ack(PUBCOMP, packet_id)
                self._end -= n
                copy(inbox, 0, inbox, n, self._end)
                callbacks = self._callbacks
                for name, callback in callbacks if topic else ():
                    if topic_matches(name, 0, len(name), topic, 0, len(topic)):
                        try:
                            callback(topic.decode(), payload, flags >> 1 & 3, flags & 1)
                        except Exception:
                            has_raised = True
                            raise
                n = self._whole(0)
        finally:
            if self.conn is not None:
                self._reply()
            if has_raised:
                self.interceptor.broker.reading = None  # tells Broker.caught()
        return True

    def _is_new(self, qos, packet_id):
        # A message: acknowledge it. False: it was delivered before.
        if not qos:
            return True
        self._ack(PUBACK if qos == 1 else PUBREC, packet_id)
        if qos == 2:
            if packet_id in self._received:
                return False
            self._received.append(packet_id)
        return True

    def _ack(self, first, packet_id):
        self._acks += bytes((first, 2, packet_id >> 8, packet_id & 255))

    def _reply(self):
        # Flush what did not fit into the inbox, and send the acknowledgements.
        broker = self.interceptor.broker
        if broker.conns.out[self.conn] == BLOCKED:
            self.interceptor.broker.loop.writable(self.conn)
        while self._acks and self.is_connected and readable(broker, self.conn) >= 4:
            ack = bytes(self._acks[:4])
            self._acks = self._acks[4:]
            receive(broker, self.conn, ack, 0, 4)

    def _request(self, first, body):
        self._packet_id = self._packet_id % 65535 + 1
        return self.request(packet_of(first, self._packet_id.to_bytes(2, "big") + body))

    def request(self, packet):
        """Pass a packet to its handler; -> the last byte of the answer, or None: there is none
        yet.

        receive() is not called: a board's stack is too small, and a whole packet does not need
        it."""
        broker = self.interceptor.broker
        publishing.check_idle(broker)
        conns = broker.conns
        conn = self.conn
        if not self.is_connected:
            raise OSError(_ENOTCONN)
        pkt = new_packet(len(packet))
        next_packet(packet, 0, len(packet), pkt)
        kind = pkt[TYPE]
        heap.lift()
        try:
            if not conns.is_empty(conn):
                broker.flush(conn)
            if readable(broker, conn) < _LEAST:
                raise OSError(EAGAIN)  # no space for the answer: the inbox is not read yet
            start = self._end
            if broker.journal and broker.journal.limit:
                control = ondemand.take("journal.compaction", broker.now)
                control.weigh(broker.journal, kind, len(packet))
            broker.reading = conn
            broker.no_commit = 1
            handlers = broker.first_handlers if kind == CONNECT_TYPE else broker.handlers
            result = handlers[kind](broker, conn, pkt, packet)
            if result and result != ACCEPTED:
                broker.end(conn, result)
        finally:
            broker.no_commit = 0
            broker.reading = NONE
            if broker.journal_full == FOR_THIS_PACKET:
                broker.journal_full = broker.subscriptions.journal_full = False
            heap.drop()
        broker.resume(conn)
        if not conns.is_empty(conn):
            broker.flush(conn)
        broker.turn_soon = 1  # the next turn must not wait
        n = self._whole(start)
        if not n:
            return None
        code = self._inbox[start + n - 1]
        self._drop(start, n)
        return code

    def _whole(self, at):
        # The length of the packet at `at`, which is in _pkt, or 0 if it is incomplete.
        return next_packet(self._inbox, at, self._end, self._pkt) if at < self._end else 0

    def _drop(self, at, n):
        self._end -= n
        copy(self._inbox, at, self._inbox, at + n, self._end - at)
