# queues.py SEED COUNT - the life of deliveries: tables small enough to be full often. The
# client of session 1 has version 5.
#
# Prints every column of the four tables after each operation.
import sys

from seeded import Numbers, shown

from slotmq import Broker, Limits, Settings
from slotmq.fast import acked, append, fan, finish, put_ack, send, store, unref

NONE = 0xFFFF
LIMITS = Limits(
    connections=3,
    sessions=4,
    deliveries=9,
    inflight=2,
    queued=3,
    messages=4,
    message_bytes=512,
    message_block=32,
    max_packet=512,
    topic_bytes=64,
    tx_bytes=160,
    route_entries=8,
)


class Queue:
    """Sessions 0 to 2 have the connections of these numbers, session 3 has none."""

    def __init__(self, numbers):
        self.numbers = numbers
        settings = Settings()
        settings.sys_interval = 0
        settings.mqtt_versions = 3
        self.broker = broker = Broker(LIMITS, settings)
        self.held = []  # messages that the test has a reference to
        for number in range(4):
            name = b"s%d" % number
            assert broker.sessions.take(name, 0, 2) == number
            if number < 3:
                assert broker.conns.take(None, 0) == number
                broker.sessions.conn[number] = number
                broker.conns.session[number] = number
                broker.conns.level[number] = 5 if number == 1 else 4

    def step(self):
        numbers = self.numbers
        kind = numbers.choice(KINDS)
        result = getattr(self, kind)()
        print(kind, result)
        if numbers.one_in(8):
            self.forget_pending()
        self.tell()

    def store(self):
        numbers = self.numbers
        n, size = numbers.choice((1, 2, 20, 60)), numbers.choice((0, 1, 10, 70, 200))
        buf = bytes((0, n)) + numbers.bytes(n + size)
        msg = store(self.broker.tables, buf, 2, n, 2 + n, size, numbers.below(8))
        if msg != NONE:
            self.held.append(msg)
        return msg

    def unref(self):
        if self.held:
            unref(self.broker.tables, self.held.pop(self.numbers.below(len(self.held))))

    def append(self):
        if not self.held:
            return None
        msg = self.numbers.choice(self.held)
        return append(self.broker.tables, self.numbers.below(4), msg, self.numbers.below(32))

    def fan(self):
        """To a route of some sessions, each with the QoS granted to it."""
        numbers = self.numbers
        if not self.held:
            return None
        pool = self.broker.subscriptions.pool
        end = 0
        for session in range(4):
            if numbers.one_in(2):
                pool[end] = session << 2 | numbers.choice((0, 1, 1, 2, 2, 2))
                end += 1
        qos = numbers.choice((0, 1, 2, 2))
        return fan(self.broker.tables, pool, 0, end, numbers.choice(self.held), qos)

    def acked(self):
        numbers = self.numbers
        return acked(
            self.broker.tables, numbers.below(4), numbers.below(12), numbers.between(1, 3)
        )

    def finish(self):
        entry = self.numbers.below(9)
        if self.broker.deliveries.session[entry] != NONE:
            finish(self.broker.tables, entry)

    def send(self):
        session = self.numbers.below(3)
        return send(self.broker.tables, session, session, self.numbers.between(1, 3))

    def name(self):
        """A delivery that came by a group or with an identifier, which send() leaves."""
        entry = self.numbers.below(9)
        if self.broker.deliveries.session[entry] != NONE:
            self.broker.deliveries.flags[entry] |= 64

    def resend(self):
        """As after a reconnect: from the first entry on, with DUP if it was sent before."""
        session = self.numbers.below(3)
        sessions = self.broker.sessions
        sessions.cursor[session] = sessions.head[session]
        return self.send()

    def put_ack(self):
        conns = self.broker.conns
        conn = self.numbers.below(3)
        if conns.tx_end[conn] + 4 <= (conn + 1) * conns.tx_bytes:
            put_ack(self.broker.tables, conn, 0x40, self.numbers.below(65536))

    def flush(self):
        conns = self.broker.conns
        conn = self.numbers.below(3)
        base = conn * conns.tx_bytes
        print("sent", shown(conns.tx[base : conns.tx_end[conn]]))
        conns.tx_end[conn] = base
        conns.out[conn] = 0
        for i in range(conns.counts[0]):
            if conns.dirty[i] == conn:
                conns.counts[0] -= 1
                conns.dirty[i] = conns.dirty[conns.counts[0]]
                break

    def forget_pending(self):
        deliveries = self.broker.deliveries
        deliveries.pending[0] = 0
        for session in range(4):
            deliveries.is_pending[session] = 0

    def tell(self):
        broker = self.broker
        d, s, m, c = broker.deliveries, broker.sessions, broker.messages, broker.conns
        live = [entry for entry in range(d.slots) if d.session[entry] != NONE]
        for entry in live:
            row = (d.session, d.msg, d.prev, d.next, d.state, d.flags)
            print("delivery", entry, *[column[entry] for column in row])
        print("deliveries", list(d.count))
        for session in range(4):
            row = (s.head, s.tail, s.cursor, s.queued, s.inflight)
            print("session", *[column[session] for column in row])
        for msg in range(m.slots):
            if m.refs[msg]:
                print("message", msg, m.refs[msg], m.topic_len[msg], m.payload_len[msg])
        print("messages", list(m.count), m.arena.free_blocks())
        print("pending", list(d.pending[: d.pending[0] + 1]), list(d.is_pending))
        for conn in range(3):
            base = conn * c.tx_bytes
            print("conn", c.out[conn], shown(c.tx[base : c.tx_end[conn]]))
        print("dirty", list(c.dirty[: c.counts[0]]), c.counts[1])


KINDS = ("store", "store", "unref", "append", "append", "fan", "acked", "acked", "acked", "finish")
KINDS += ("send", "send", "send", "resend", "put_ack", "flush", "flush", "fan", "fan", "fan")
KINDS += ("name",)


def main(seed, count):
    numbers = Numbers(int(seed))
    for n in range(int(count)):
        if n % 400 == 0:
            queue = Queue(numbers)
        queue.step()


main(*sys.argv[1:])
