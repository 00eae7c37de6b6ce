# storms.py SEED COUNT - retained messages to a new subscriber: how many of them a call puts into
# its buffer, and the bytes there. Prints "broken" where these are not what MQTT asks for. Client 0
# has version 3, client 1 version 5.
import sys

from seeded import Numbers, shown

from slotmq import Broker, Limits, Settings
from slotmq.delivery.storms_cpython import put_retained
from slotmq.fast import store, topic_matches, unref

NONE = 0xFFFF
SLOTS = 12
LIMITS = Limits(
    connections=2,
    sessions=2,
    messages=SLOTS,
    message_bytes=2048,
    message_block=32,
    max_packet=1024,
    topic_bytes=64,
    tx_bytes=640,
)
LEVELS = (b"a", b"b", b"c+", b"a.c", b"", b"$a", b"a" * 30)
FILTERS = (b"#", b"+", b"+/#", b"a/#", b"a/+", b"+/b", b"a/+/c+", b"/+", b"$a/#", b"a.c/+/#")


class Storm:
    def __init__(self, numbers):
        self.numbers = numbers
        settings = Settings()
        settings.sys_interval = 0
        settings.mqtt_versions = 3
        self.broker = broker = Broker(LIMITS, settings)
        self.msgs = broker.retained.msg
        self.texts = [None] * SLOTS
        for conn in range(2):
            broker.conns.take(None, 0)
            broker.conns.level[conn] = 4 + conn

    def retain(self):
        """Another message in a slot, or none."""
        numbers = self.numbers
        slot = numbers.below(SLOTS)
        if self.msgs[slot] != NONE:
            unref(self.broker.tables, self.msgs[slot])
            self.msgs[slot] = NONE
        topic = b"/".join([numbers.choice(LEVELS) for _ in range(numbers.between(1, 3))]) or b"x"
        payload = numbers.bytes(numbers.choice((0, 1, 10, 20, 100, 130)))
        flags = numbers.choice((0, 0, 0, 2, 4, 8, 16))
        text = bytes((0, len(topic))) + topic + payload
        n = len(topic)
        msg = store(self.broker.tables, bytearray(text), 2, n, 2 + n, len(payload), flags)
        if msg != NONE:
            self.msgs[slot] = msg
            self.texts[slot] = topic, payload, flags

    def put(self):
        numbers = self.numbers
        conns = self.broker.conns
        conn = numbers.below(2)
        if numbers.one_in(2):
            conns.tx_end[conn] = conn * conns.tx_bytes
            conns.out[conn] = conns.counts[0] = 0
        name = numbers.choice(FILTERS)
        ident = numbers.choice((0, 0, 1, 127, 128, 268435455)) if conn else 0
        most = numbers.choice((0, 0, 0, 20, 60, 150))
        look_at = numbers.choice((8, 14))
        first = numbers.below(SLOTS)
        before = conns.tx_end[conn]
        buf = b"xx" + name
        wanted = self.packets(
            name, first, conns.tx_limit[conn] - before, conn, ident, most, look_at
        )
        at = put_retained(
            *(self.broker.tables, self.msgs, first, SLOTS, conn, buf, 2, len(name)),
            *(ident, most, look_at),
        )
        data = bytes(conns.tx[before : conns.tx_end[conn]])
        print("put", conn, name, at, conns.out[conn], conns.counts[1], shown(data))
        if (at, data) != wanted:
            print("broken", wanted, data)

    def packets(self, name, first, space, conn, ident, most, look_at):
        own = b""
        if conn:
            own = b"\x0b" + number(ident) if ident else b""
            own = number(len(own)) + own
        put = b""
        for slot in range(first, SLOTS):
            if self.msgs[slot] == NONE:
                continue
            topic, payload, flags = self.texts[slot]
            n = len(topic)
            if n + 2 > LIMITS.message_block:
                return slot, put
            if not topic_matches(name, 0, len(name), topic, 0, n):
                continue
            body = bytes((0, n)) + topic + own + payload
            packet = b"\x31" + number(len(body)) + body
            if flags & look_at or len(put) + len(packet) > space or 0 < most < len(packet):
                return slot, put
            put += packet
        return SLOTS, put


def number(n):
    """A variable byte integer [5.0, 1.5.5]."""
    more = number(n >> 7) if n >> 7 else b""
    return bytes((n & 127 | (128 if more else 0),)) + more


def main(seed, count):
    numbers = Numbers(int(seed))
    storm = Storm(numbers)
    for _ in range(int(count)):
        storm.retain()
        storm.put()


main(*sys.argv[1:])
