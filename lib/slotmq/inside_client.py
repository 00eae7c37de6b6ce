# inside_client.py - one client that is part of the broker's program: its stream, which
# takes what the loop writes into an inbox, and the few packets that it says itself.
#
# Owns one slot of `connections`, the inbox of one packet of max_packet, and what it still
# has to acknowledge. Speaks MQTT 3.1.1. Allocates, but for write(), which runs in the loop
# with the heap locked.
from slotmq import heap
from slotmq.intake import readable, receive
from slotmq.runtime import const, copy, filter_ok, topic_matches

_NONE = const(0xFFFF)
_ENDING = const(3)
_BLOCKED = const(2)
_PUBACK = const(0x40)
_PUBREC = const(0x50)
_PUBCOMP = const(0x70)
_EMFILE = const(24)
_ENOTCONN = const(107)
_EAGAIN = const(11)


class Client:
    """A client: subscribe, unsubscribe, publish, disconnect; between turns or in callbacks."""

    def __init__(self, house, client_id, clean, will):
        broker = house.broker
        self.house = house
        self._callbacks = []  # (filter, callback)
        self._inbox = bytearray(broker.limits.max_packet + 64)
        self._end = 0
        self._acks = bytearray()
        self._received = []  # QoS 2 ids between PUBLISH and PUBREL
        self._packet_id = 0
        self.conn = conn = broker.opened(self)
        if conn == _NONE:
            raise OSError(_EMFILE)  # limit connections
        self.share = [_NONE, 1, 0]
        broker.conns.share[conn] = self.share
        house.loop.of_stream[self] = conn
        house.clients.append(self)
        self._connect(client_id, clean, will)

    @property
    def is_connected(self):
        return self.conn is not None and self.house.broker.conns.state[self.conn] != _ENDING

    def subscribe(self, topic_filter, callback, qos=0):
        """Call callback(topic, payload, qos, retained) for what matches, topic a str."""
        name = _bytes(topic_filter)
        if not filter_ok(name, 0, len(name)):
            raise ValueError("topic filter")
        self._callbacks.append((name, callback))
        code = self._ask(0x82, len(name).to_bytes(2, "big") + name + bytes((qos,)))
        if code is not None and code > 2:
            self._callbacks.pop()
            raise OSError(_EMFILE)  # a table is full, or a hook forbids it

    def hear(self, topic_filter, callback):
        """Call back as subscribe() does, for a session that has subscribed before."""
        self._callbacks.append((_bytes(topic_filter), callback))

    def unsubscribe(self, topic_filter):
        """Forget the filter and its callbacks."""
        name = _bytes(topic_filter)
        self._callbacks = [each for each in self._callbacks if each[0] != name]
        self._ask(0xA2, len(name).to_bytes(2, "big") + name)

    def publish(self, topic, payload=b"", qos=0, retain=False):
        """Publish; ValueError: the topic name or the size is not legal."""
        self.house.broker.publish(topic, payload, qos, retain)

    def disconnect(self):
        """Leave in order: the will is not published."""
        self._send(b"\xe0\0")

    # As a stream

    def write(self, buf, off, n):
        n = min(n, len(self._inbox) - self._end)
        copy(self._inbox, self._end, buf, off, n)
        self._end += n
        return n

    def send(self, data):
        return 0  # the loop is to do it, so that callbacks are called

    def close(self):
        self.conn = None
        self.house.clients.remove(self)

    # Packets

    def deliver(self):
        """Call back for what has come; True if there was anything."""
        n = self._whole(0)
        if not n:
            return False
        try:
            while n and self.conn is not None:
                packet = bytes(memoryview(self._inbox)[:n])
                self._drop(0, n)
                self._handle(packet)
                n = self._whole(0)
        finally:
            if self.conn is not None:
                self._go_on()
        return True

    def _handle(self, packet):
        kind = packet[0] >> 4
        at = 2
        while packet[at - 1] & 128:
            at += 1
        if kind == 3:
            self._message(packet, at)
        elif kind == 6:
            packet_id = packet[at] << 8 | packet[at + 1]
            if packet_id in self._received:
                self._received.remove(packet_id)
            self._ack(_PUBCOMP, packet_id)

    def _message(self, packet, at):
        qos = packet[0] >> 1 & 3
        end = at + 2 + (packet[at] << 8 | packet[at + 1])
        topic = packet[at + 2 : end]
        packet_id = packet[end] << 8 | packet[end + 1] if qos else 0
        if qos:
            self._ack(_PUBACK if qos == 1 else _PUBREC, packet_id)
            end += 2
        if qos == 2:
            if packet_id in self._received:
                return
            self._received.append(packet_id)
        payload = packet[end:]
        for name, callback in list(self._callbacks):
            if topic_matches(name, 0, len(name), topic, 0, len(topic)):
                callback(topic.decode(), payload, qos, packet[0] & 1)

    def _ack(self, first, packet_id):
        self._acks += bytes((first, 2, packet_id >> 8, packet_id & 255))

    def _go_on(self):
        # What was acknowledged, and what did not fit the inbox.
        broker = self.house.broker
        if broker.conns.out[self.conn] == _BLOCKED:
            self.house.loop.writable(self.conn)
        while self._acks and self.is_connected and readable(broker, self.conn) >= 4:
            ack = bytes(self._acks[:4])
            self._acks = self._acks[4:]
            receive(broker, self.conn, ack, 0, 4)

    def _connect(self, client_id, clean, will):
        # Whoever is part of the program need not say who it is.
        broker = self.house.broker
        name = _bytes(client_id)
        flags = 2 if clean or not name else 0
        body = _field(name)
        if will:
            topic, payload, qos, retain = will
            flags |= 4 | qos << 3 | (32 if retain else 0)
            body += _field(_bytes(topic)) + _field(_bytes(payload))
        body = b"\0\4MQTT\4" + bytes((flags, 0, 0)) + body
        asked = broker.may_connect
        settings = broker.settings
        anonymous = settings.allow_anonymous, settings.max_keepalive
        broker.may_connect = None
        settings.allow_anonymous, settings.max_keepalive = True, 65535
        try:
            code = self._answer(b"\x10" + _length(len(body)) + body)
        finally:
            broker.may_connect = asked
            settings.allow_anonymous, settings.max_keepalive = anonymous
        if code:
            raise OSError(_EMFILE)

    def _ask(self, first, body):
        self._packet_id = self._packet_id % 65535 + 1
        body = self._packet_id.to_bytes(2, "big") + body
        return self._answer(bytes((first,)) + _length(len(body)) + body)

    def _answer(self, packet):
        # Sends it; -> the last byte of the answer, or None where that did not come yet.
        broker = self.house.broker
        heap.lift()
        try:
            if not broker.conns.is_empty(self.conn):
                broker.flush(self.conn)
            start = self._end
            self._send(packet)
            conn = self.conn
            if not broker.conns.is_empty(conn):
                broker.flush(conn)
            n = self._whole(start)
            if not n:
                return None
            code = self._inbox[start + n - 1]
            self._drop(start, n)
            return code
        finally:
            heap.drop()

    def _send(self, packet):
        if not self.is_connected:
            raise OSError(_ENOTCONN)
        at = 0
        while at < len(packet):
            n = min(readable(self.house.broker, self.conn), len(packet) - at)
            if n <= 0 or not self.is_connected:
                raise OSError(_EAGAIN)
            receive(self.house.broker, self.conn, packet[at : at + n], 0, n)
            at += n

    def _whole(self, at):
        # The length of the packet at `at`, if all of it is there, or 0.
        inbox = self._inbox
        body = shift = 0
        for i in range(at + 1, min(at + 5, self._end)):
            body |= (inbox[i] & 127) << shift
            shift += 7
            if inbox[i] < 128:
                n = i + 1 - at + body
                return n if at + n <= self._end else 0
        return 0

    def _drop(self, at, n):
        self._end -= n
        copy(self._inbox, at, self._inbox, at + n, self._end - at)


def _bytes(text):
    return text.encode() if isinstance(text, str) else text


def _field(value):
    return len(value).to_bytes(2, "big") + value


def _length(n):
    length = b""
    while n > 127:
        length += bytes((n & 127 | 128,))
        n >>= 7
    return length + bytes((n,))
