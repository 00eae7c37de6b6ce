# fakes.py - what a Loop is given instead of sockets: a clock, a poller, streams.
#
# The loop is the real one. Before each read and write a stream calls its function `read` or
# `write_some`, which returns how many bytes may pass at most, or None for "nothing now", or raises
# OSError.
#
# The loop runs with MicroPython's heap locked. These fakes allocate, so they lift the lock as an
# application's callback does.
import watch
from invariants import left, surface
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, read_publish, split

from slotmq.net.loop import Loop
from slotmq.platform import heap
from slotmq_tools.sim import machine
from slotmq_tools.sim.machine import ERR, HUP, IN, OUT

__all__ = "ERR", "HUP", "IN", "OUT", "Client", "Listener", "Stream", "World"

MOST = 1 << 20
PEER = ("192.0.2.7", 50123)


def anything(n):
    return n


class Clock:
    def __init__(self):
        self.ms = 0

    def ticks_ms(self):
        return self.ms

    def ticks_diff(self, now, before):
        return now - before


class Stream:
    """One end is the broker's: readinto, write, close. The other is the test's."""

    def __init__(self, read=anything, write=anything):
        self.read = read
        self.write_some = write
        self.sent = bytearray()  # by the client, not read yet
        self.received = bytearray()  # by the client, all of it
        self.ended = False
        self.closed = False
        self.sock = self  # for half_close() on CPython
        self.extra = 0  # events that the poller reports in any case
        self.writes = 0
        self.watch = watch.Watch()

    def readinto(self, buf, n=None):
        heap.lift()
        try:
            return self._read(buf, len(buf) if n is None else n)
        finally:
            heap.drop()

    def _read(self, buf, n):
        assert not self.closed
        n = self.read(min(n, len(self.sent)))
        if not n:
            return 0 if self.ended and n == 0 else None
        buf[:n] = self.sent[:n]
        self.watch.read(self.sent[:n])
        self.sent = self.sent[n:]
        return n

    def write(self, buf, off, n):
        heap.lift()
        try:
            return self._write(buf, off, n)
        finally:
            heap.drop()

    def _write(self, buf, off, n):
        assert not self.closed
        self.writes += 1
        n = self.write_some(n)
        if n:
            self.received += buf[off : off + n]
            self.watch.written(buf[off : off + n])
        return n

    def shutdown(self, how):
        pass

    def close(self):
        self.closed = True

    def events(self, mask):
        readable = IN if self.sent or self.ended else 0
        return (readable | OUT) & mask | self.extra


class Poller(machine.Poller):
    def __init__(self):
        super().__init__(None)

    def unregister(self, stream):
        if stream in self.masks:  # on a board it need not be there
            super().unregister(stream)


def lock():
    """Lock the heap as a turn does; heap.unlock() ends that."""
    heap.heap_lock()
    heap._state[2] = 1
    heap._state[0] += 1


class Listener(machine.Listener):
    """Streams that wait to be accepted."""

    def __init__(self):
        super().__init__(None)

    def accept(self):
        stream = self.waiting.pop(0) if self.waiting else None
        return stream and (stream, getattr(stream, "peer", PEER))


class World:
    """A broker, its loop, and the clients of one test."""

    def __init__(self, broker):
        self.broker = broker
        self.clock = Clock()
        self.poller = Poller()
        self.listener = Listener()
        self.exhausted = 0  # allocations with the heap locked that a test causes; None: any number
        broker.loop = self.loop = Loop(broker, self.poller, self.clock)
        surface(broker)
        self.loop.listeners.add(self.listener, self.listener.accept)
        watch.begin(broker)

    def turn(self, times=1, ms=1):
        for _ in range(times):
            self.clock.ms += ms
            self.loop.turn(0)
            watch.check()
            if self.exhausted is not None:
                assert self.loop.exhausted == self.exhausted, "an allocation with the heap locked"
                wrong = list(left(self.broker))
                assert not wrong, wrong

    def come(self, first, turns=3, stream=None, listener=None):
        """A new connection that sends these bytes."""
        client = Client(stream or Stream())
        (listener or self.listener).waiting.append(client.stream)
        client.send(first)
        self.turn(turns)
        return client

    def client(self, name, stream=None, **options):
        """A connected client of version 3.1.1."""
        client = self.come(connect(name, **options), 2, stream)
        assert client.packets() == [b"\x20\x02\0\0"]
        return client


class Client:
    def __init__(self, stream):
        self.stream = stream
        self._read = 0
        self.messages = []  # (topic, payload, QoS) in the order of arrival

    def send(self, data):
        self.stream.sent += data

    def packets(self):
        """The whole packets that have come since the last call."""
        found, size = split(self.stream.received[self._read :])
        self._read += size
        return found

    def answer(self):
        """Acknowledge the messages that have come; return the other packets."""
        rest = []
        for data in self.packets():
            if data[0] >> 4 == 3:
                topic, payload, qos, packet_id = read_publish(data)
                self.messages.append((topic, payload, qos))
                if qos:
                    self.send(ack(PUBACK if qos == 1 else PUBREC, packet_id))
            elif data[0] == PUBREL:
                self.send(ack(PUBCOMP, data[2] << 8 | data[3]))
            elif data[0] == PUBREC:
                self.send(ack(PUBREL, data[2] << 8 | data[3]))
            else:
                rest.append(data)
        return rest

    def leave(self):
        self.stream.ended = True
