# turn_cpython.py - the commonest turn, on CPython: one client has sent one QoS 0 PUBLISH to
# one subscriber, whose socket accepts it. The loop would cost more than the message. So the
# poller forwards the packet itself, without a copy, and polls again. The results are those of
# fast_path() and flush(). A broker with one message at a time takes 1.1 times mosquitto's CPU
# with this file and 1.6 times without it (dev.bench, round-trip).
#
# ipoll() returns for any other event, and after a tenth of a second at the latest, since the loop
# keeps the time. No other code of the broker runs until then: cached facts about a client or a
# topic stay valid, and the counters are updated at the end.
from os import read
from time import monotonic

from slotmq.constants import (BYTES_IN, BYTES_OUT, FAST_MAX, IN, NONE, PACKETS_IN, PUBLISHES,
    PUBLISH_IN)
from slotmq.fast.path_cpython import fast_path, may_read
from slotmq.fast.properties_cpython import Quick
from slotmq.platform.sockets_cpython import MOST_EVENTS, Poller

_STAY_S = 0.1
_SHORT = 479  # bytes: CPython allocates objects of this size from pools, without malloc
_NOTHING = ()


class Turns(Poller):
    """A poller that handles the events that it can, and returns the others."""

    def __init__(self, broker):
        super().__init__()
        self._broker = broker

    def ipoll(self, timeout_ms):
        wait = self.wait
        wait_s = timeout_ms / 1000
        if not self._broker.fast_path or not _is_own(self._before()):
            return self.with_streams(wait(wait_s, MOST_EVENTS))
        end = monotonic() + (wait_s if wait_s < _STAY_S else _STAY_S)
        # descriptor: bytes of the first read, is it version 5, and the ways of its topic names:
        # send() of the only receiver, space in its buffer, its connection
        readers = {}
        count = size = 0
        try:
            while True:
                events = wait(wait_s, MOST_EVENTS)
                if len(events) != 1:
                    return self.with_streams(events)
                ((fd, event),) = events
                reader = readers.get(fd) if event == IN else None
                if not reader:
                    most = min(_SHORT, self._may_read(fd, event))
                    if not most:
                        return self.with_streams(events)
                    reader = readers[fd] = most, self._is_5(fd), {}
                most, five, ways = reader
                try:
                    data = read(fd, most)
                except BlockingIOError:
                    return _NOTHING
                except OSError as error:
                    self._broker.loop.errno = error.errno
                    return self._handle(fd, b"")
                n = len(data)
                if n == most:
                    data = self._read_on(fd, data)
                    n = len(data)
                topic = _topic(data, n, five)
                if topic is None:
                    return self._handle(fd, data)
                way = ways.get(topic)
                if not way:
                    way = ways[topic] = self._way(topic, fd, five)
                send, space, conn = way
                try:
                    done = send(data) if n <= space else 0
                except OSError:
                    done = 0  # the loop gets the error again
                if not done:
                    return self._handle(fd, data)
                count += 1
                size += n
                if done < n:
                    return self._wait_for(conn, data[done:])
                now = monotonic()
                if now >= end:
                    return _NOTHING
                wait_s = end - now
        finally:
            if count:
                self._add(count, size)

    def _before(self):
        # What handles packets first; bridges only look at their own ones there.
        bridges = self._broker.bridges
        return bridges.inner_fast if bridges else self._broker.handle_fast

    def _may_read(self, fd, event):
        # may_read() of the fast path; 0: the loop must handle the event.
        stream = self.streams[fd]
        conn = self._broker.loop.of_stream[stream]
        bridges = self._broker.bridges
        is_ours = event == IN and conn >= 0 and stream.is_plain
        is_ours = is_ours and not (bridges and conn in bridges.slow)
        return may_read(self._broker, conn) if is_ours else 0

    def _is_5(self, fd):
        broker = self._broker
        return broker.conns.level[broker.loop.of_stream[self.streams[fd]]] == 5

    def _read_on(self, fd, data):
        # The first read was full: read all that may be read.
        try:
            return data + read(fd, self._may_read(fd, IN) - len(data))
        except OSError:
            return data

    def _way(self, topic, fd, five):
        broker = self._broker
        routes = broker.subscriptions.routes
        slot_of = routes.slot_of
        if routes.senders:
            slot_of = routes.senders.of(broker.loop.of_stream[self.streams[fd]])
        slot = slot_of.get(topic, -1)
        if slot < 0 or topic[0] == 36 or routes.end[slot] != routes.first[slot] + 1:
            return None, 0, NONE
        if routes.mid[slot] != (routes.first[slot] if five else routes.end[slot]):
            return None, 0, NONE  # its receiver has the other version
        conns = broker.conns
        entries, conn_of, _, _, _, _, _, _ = conns.columns
        conn = conn_of[entries[routes.first[slot]] >> 2]
        queue = broker.sessions.cursor[entries[routes.first[slot]] >> 2]
        if conn == NONE or conns.out[conn] or broker.queue_qos0 and queue != NONE:
            return None, 0, NONE
        space = conns.tx_limit[conn] - conns.tx_end[conn]
        return conns.attached[conn].send, min(space, broker.pkt[FAST_MAX]), conn

    def _handle(self, fd, data):
        # Handle what was read in the ordinary way.
        stream = self.streams[fd]
        n = len(data)
        broker = self._broker
        at = broker.handle_fast(broker, broker.loop.of_stream[stream], data, 0, n) if n else 0
        if n and at == n:
            return _NOTHING
        stream.give_back(data[at:])
        return ((stream, IN),)

    def _wait_for(self, conn, rest):
        # The socket took only a part: the rest waits in the outgoing buffer for the loop.
        conns = self._broker.conns
        n = len(rest)
        at = conns.reserve(conn, n)
        conns.tx[at : at + n] = rest
        self._broker.stats[BYTES_OUT] -= n
        return _NOTHING

    def _add(self, count, size):
        stats = self._broker.stats
        stats[PACKETS_IN] += count
        stats[PUBLISH_IN] += count
        stats[BYTES_IN] += size
        stats[BYTES_OUT] += size
        self._broker.conns.counts[PUBLISHES] += count


def _is_own(path):
    # Is it the fast path itself? A recorder must see each packet.
    return path is fast_path or isinstance(getattr(path, "__self__", None), Quick)


def _topic(data, n, five):
    # The topic name if data is exactly one QoS 0 PUBLISH without properties, else None.
    if n < 5 or data[0] != 0x30:
        return None
    length = data[1]
    at = 4
    if length > 127:
        length = length & 127 | data[2] << 7
        at = 5
        if length < 128 or length > 16383:
            return None
    end = at + (data[at - 2] << 8 | data[at - 1])
    if at + length != n + 2 or end + five > n or five and data[end]:
        return None
    return data[at:end]


make_poller = Turns
