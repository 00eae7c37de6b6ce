# bridges.py - all bridges of a broker: what comes from their connections that no client may send,
# and their steps after each turn.
#
# Owns the list. Stands before the handlers of the packets that a server sends, before those that
# open a session or subscribe (the other broker must not), before the loop's poller for streams
# that map topics (bridge/mapping.py), before finish_turn and the loop's close. Allocates when
# something happens, not for each turn.
from slotmq.bridge.link import Bridge
from slotmq.bridge.mapping import Mapped
from slotmq.delivery.outgoing import put_ack
from slotmq.platform import heap, ondemand
from slotmq.platform.runtime import const
from slotmq.protocol.ping_disconnect import handle_unexpected

_NONE = const(0xFFFF)
_TYPE = const(0)
_FLAGS = const(1)
_PACKET_ID = const(6)
_TOPIC_LEN = const(8)
_DROPPED = const(4)
_PUBACK = const(0x40)
_PUBREC = const(0x50)
_CONNACK_TYPE = const(2)


class Bridges:
    def __init__(self, broker):
        self.broker = broker
        self.every = []
        self.inner_first = self.inner_handlers = self.inner_poller = None
        self.inner_finish_turn = self.inner_close = None  # interceptors.py sets them
        ondemand.take("interceptors", broker.now).bridges(broker, self)
        loop = broker.loop
        loop.callbacks.insert(0, self.event)
        self.index = -len(loop.callbacks)  # in of_stream, of the socket of a Mapped

    def add(self, options):
        """Begin a bridge. ValueError: it is not possible with these limits; OSError: no space."""
        options.check(self.broker.limits, self.broker.settings)
        one = Bridge(self, options)
        if [each for each in self.every if each.local_id == one.local_id]:
            raise ValueError("a local client id that no other bridge has")
        one.begin()
        self.every.append(one)
        return one

    def used(self, session):
        """Is this the session of a bridge?"""
        return session != _NONE and session in [each.session for each in self.every]

    def count(self):
        """How many slots of connections bridges hold that are not connected."""
        return sum([each.is_held for each in self.every])

    def stream_of(self, bridge, socket):
        """The stream of a new connection."""
        if not bridge.is_mapped:
            return socket
        self.broker.loop.of_stream[socket] = self.index
        return Mapped(self.broker, bridge, socket)

    def _of(self, conn):
        for each in self.every:
            if each.conn == conn:
                return each
        return None

    # Before handlers

    def first(self, broker, conn, pkt, buf):
        """CONNECT, AUTH and CONNACK before a session is open."""
        bridge = self._of(conn)
        if not bridge:
            return self.inner_first[pkt[_TYPE]](broker, conn, pkt, buf)
        if pkt[_TYPE] != _CONNACK_TYPE:
            return handle_unexpected(broker, conn, pkt, buf)
        with heap.lifted:
            return bridge.connected(pkt, buf)

    def answer(self, broker, conn, pkt, buf):
        """SUBACK, UNSUBACK, PINGRESP: only a bridge's other broker may send them."""
        bridge = self._of(conn)
        if not bridge:
            return handle_unexpected(broker, conn, pkt, buf)
        with heap.lifted:
            return bridge.answer(pkt, buf)

    def subscribe(self, broker, conn, pkt, buf):
        """SUBSCRIBE, UNSUBSCRIBE: only clients may send them."""
        if self._of(conn):
            return handle_unexpected(broker, conn, pkt, buf)
        return self.inner_handlers[pkt[_TYPE]](broker, conn, pkt, buf)

    def publish(self, broker, conn, pkt, buf):
        """PUBLISH: drop what comes over a bridge with a topic that is too long. It would end a
        client, but the other broker would only send it again."""
        qos = pkt[_FLAGS] >> 1 & 3
        if pkt[_TOPIC_LEN] <= broker.limits.topic_bytes or qos == 3 or not self._of(conn):
            return self.inner_handlers[pkt[_TYPE]](broker, conn, pkt, buf)
        broker.stats[_DROPPED] += 1
        with heap.lifted:
            self._of(conn).dropped(pkt[_TOPIC_LEN])
        if qos:
            put_ack(broker, conn, _PUBACK if qos == 1 else _PUBREC, pkt[_PACKET_ID])
        return 0

    # As a poller: a Mapped is polled by its socket

    def event(self, socket):
        """The socket of a Mapped has an event."""
        for each in self.every:
            if getattr(each.stream, "socket", None) is socket:
                each.stream.event()
                return

    def register(self, stream, mask):
        self.inner_poller.register(getattr(stream, "socket", stream), mask)

    def modify(self, stream, mask):
        self.inner_poller.modify(getattr(stream, "socket", stream), mask)

    def unregister(self, stream):
        self.inner_poller.unregister(getattr(stream, "socket", stream))

    # Before the loop's functions

    def finish_turn(self):
        self.inner_finish_turn()
        if self.broker.loop.stopping:
            return
        heap.lift()
        for each in self.every:
            each.step()
            if each.is_mapped:
                each.stream.go_on()
        heap.drop()

    def close(self):
        """The loop ends: say DISCONNECT to the other brokers."""
        for each in self.every:
            each.stop()
        self.inner_close()
