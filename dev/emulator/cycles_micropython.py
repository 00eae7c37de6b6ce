"""Runs on the emulated board: sends single packets through the broker, with marks for cycles.py.

Sockets and the poller are stand-ins, so that lwIP is not counted; the time in them lies between
the marks 1 and 2. The time of packet n of the printed list lies between marks 100 + n and 200 + n.
"""

import gc
import sys
import time

import machine

_MARK = 0x4005800C
_ENTER, _LEAVE = 1, 2
_ROUNDS = 7
mem32 = machine.mem32
EVENTS = []


class Stream:
    def __init__(self):
        self.data = b""
        self.sent = bytearray(512)  # in the last turn
        self.size = 0
        self.event = (self, 1)

    def readinto(self, buf, n):
        mem32[_MARK] = _ENTER
        data = self.data
        for i in range(len(data)):
            buf[i] = data[i]
        self.data = b""
        n = len(data) or None
        mem32[_MARK] = _LEAVE
        return n

    def write(self, buf, off, n):
        mem32[_MARK] = _ENTER
        sent, size = self.sent, self.size
        for i in range(n):
            sent[size + i] = buf[off + i]
        self.size = size + n
        mem32[_MARK] = _LEAVE
        return n

    def close(self):
        pass

    def setblocking(self, on):
        pass

    def setsockopt(self, *options):
        pass


class Listener(Stream):
    def __init__(self, *_):
        super().__init__()
        self.waiting = []

    def bind(self, address):
        LISTENERS.append(self)

    def listen(self, backlog):
        pass

    def accept(self):
        if not self.waiting:
            raise OSError(11)
        return self.waiting.pop(), None


LISTENERS = []


class Poll:
    def register(self, stream, mask):
        pass

    modify = register

    def unregister(self, stream):
        pass

    def ipoll(self, timeout):
        mem32[_MARK] = _ENTER
        events = EVENTS
        mem32[_MARK] = _LEAVE
        return events


class Socket:
    AF_INET = SOCK_STREAM = SOL_SOCKET = SO_REUSEADDR = 1
    socket = Listener

    @staticmethod
    def getaddrinfo(host, port, *_):
        return [(1, 1, 0, "", (host, port))]


class Select:
    poll = Poll
    POLLIN, POLLOUT = 1, 4


sys.modules["socket"], sys.modules["select"] = Socket, Select

from slotmq import Broker  # noqa: E402
from slotmq_boards.RPI_PICO_W.limits import LIMITS  # noqa: E402


def field(text):
    return len(text).to_bytes(2, "big") + text


def packet(first, body):
    assert len(body) < 128
    return bytes((first, len(body))) + body


def publish(topic, qos, properties=b""):
    more = (b"\0\1" if qos else b"") + properties
    return packet(0x30 | qos << 1, field(topic) + more + bytes(64))


def ack(first, packet_id):
    return packet(first, packet_id.to_bytes(2, "big"))


# As lwIP is not counted, the check of its memory before each write is off too.
broker = Broker(LIMITS.replaced({"tcp_bytes": 0}))
broker.listen("any", 1883)
names = []


def turn(stream, data):
    """Run one turn, in which the client sends this."""
    stream.data = data
    for each in clients:
        each.size = 0
    EVENTS[:] = [stream.event] if data else []
    broker.turn(0)
    EVENTS[:] = []


def cache_route(name):
    """Put the topic's route into the cache, where that of any topic in use is."""
    turn(clients[3], publish(name, 0))


def measure(name, stream, data):
    """Run the same turn between two marks."""
    if name not in names:
        names.append(name)
    number = names.index(name)
    # A turn before does what is due five times a second. The pause differs by round, so that
    # the chip's own timers interrupt only some of the rounds.
    time.sleep_ms(300 + 7 * ROUND[0])
    turn(stream, b"")
    stream.data = data
    for each in clients:
        each.size = 0
    EVENTS[:] = [stream.event] if data else []
    gc.collect()
    mem32[_MARK] = 100 + number
    broker.turn(0)
    mem32[_MARK] = 200 + number
    EVENTS[:] = []


def connect(name, level=4):
    stream = Stream()
    clients.append(stream)
    LISTENERS[0].waiting.append(stream)
    EVENTS[:] = [LISTENERS[0].event]
    broker.turn(0)
    head = field(b"MQTT") + bytes((level, 2, 0, 0)) + NO_PROPERTIES[: level - 4]
    turn(stream, packet(0x10, head + field(name)))
    assert stream.sent[0] == 0x20 and not stream.sent[3]
    return stream


def subscribe(stream, name, qos, properties=b""):
    turn(stream, packet(0x82, b"\0\1" + properties + field(name) + bytes((qos,))))


def packet_id_sent(stream):
    """The packet id of the PUBLISH that the broker sent to this client."""
    at = 0
    while stream.sent[at] >> 4 != 3:
        at += 2 + stream.sent[at + 1]
    at += 4 + stream.sent[at + 3]
    return stream.sent[at] << 8 | stream.sent[at + 1]


def cached(name, qos):
    """A PUBLISH to a topic whose route is in the cache."""
    cache_route(name)
    return publish(name, qos)


def uncached(name):
    """A PUBLISH to a topic whose route is not in the cache."""
    turn(clients[3], packet(0xA2, b"\0\1" + field(b"nothing")))
    subscribe(clients[3], b"nothing", 0)  # any change of the tree empties the cache
    return publish(name, 0)


def every_kind(use):
    """Send a packet of each kind by turn() or measure()."""
    a, b = clients[0], clients[1]
    use("a turn without events", a, b"")
    use("PINGREQ", a, b"\xc0\0")
    use("QoS 0: PUBLISH to nobody", a, cached(b"none/0", 0))
    use("QoS 0: PUBLISH to 1 subscriber", a, cached(b"one/0", 0))
    assert b.size
    use("QoS 0: the same, a topic that was forgotten", a, uncached(b"one/0"))
    use("QoS 0: PUBLISH to 4 subscribers", a, cached(b"four/0", 0))
    use("QoS 1: PUBLISH to nobody, PUBACK", a, cached(b"none/1", 1))
    use("QoS 1: PUBLISH to 1 subscriber, PUBACK", a, cached(b"one/1", 1))
    use("QoS 1: PUBACK of a subscriber", b, ack(0x40, packet_id_sent(b)))
    use("QoS 1: PUBLISH to 4 subscribers, PUBACK", a, cached(b"four/1", 1))
    for each, packet_id in [(each, packet_id_sent(each)) for each in clients]:
        turn(each, ack(0x40, packet_id))
    use("QoS 2: PUBLISH to 1 subscriber, PUBREC", a, cached(b"one/2", 2))
    packet_id = packet_id_sent(b)
    use("QoS 2: PUBREL of the publisher, PUBCOMP", a, ack(0x62, 1))
    use("QoS 2: PUBREC of a subscriber, PUBREL", b, ack(0x50, packet_id))
    use("QoS 2: PUBCOMP of a subscriber", b, ack(0x70, packet_id))


def every_kind_of_5(use):
    """The same with packets of MQTT 5.0 without properties, between clients of MQTT 5.0."""
    a, b = clients[-2:]
    for qos in (0, 1):
        turn(a, publish(b"five/%d" % qos, 0, NO_PROPERTIES))
        data = publish(b"five/%d" % qos, qos, NO_PROPERTIES)
        use(f"5.0, QoS {qos}: PUBLISH to 1 subscriber" + ", PUBACK" * qos, a, data)
        assert b.size
    use("5.0, QoS 1: PUBACK of a subscriber", b, ack(0x40, packet_id_sent(b)))


clients = []
ROUND = [0]
NO_PROPERTIES = b"\0"
for n in range(4):
    connect(b"c%d" % n)
for qos in (0, 1, 2):
    subscribe(clients[1], b"one/%d" % qos, qos)
    for one in clients:
        subscribe(one, b"four/%d" % qos, qos)


def rounds(each):
    """Let all kinds come several times before they are measured."""
    for _ in range(3):
        each(lambda _, stream, data: turn(stream, data))
    for ROUND[0] in range(_ROUNDS):
        each(measure)


rounds(every_kind)
for n in range(2):  # they take the sessions of two others over
    connect(b"c%d" % n, 5)
for qos in (0, 1):
    subscribe(clients[-1], b"five/%d" % qos, qos, NO_PROPERTIES)
rounds(every_kind_of_5)
print("\n".join(names))
