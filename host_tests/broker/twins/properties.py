# properties.py SEED COUNT [BY] - properties and topic aliases of MQTT 5.0 in the handlers: random
# packets, some of them wrong, to receivers of both versions. BY quick: fast/properties_cpython.py
# takes those that it can.
#
# Prints after each step what every client has received and what every table contains.
import sys

import packets5
from fakes import Client, Stream, World
from invariants import broken
from packets import connect, publish, subscribe
from seeded import Numbers, shown
from tables import counts

from slotmq import Limits, Settings
from slotmq.broker import Broker
from slotmq.platform import ondemand

TOPICS = ("a", "a/b", "temp/1", "temp/2", "temp/3", "t" * 40, "n" * 15, "b")
UTF8 = (b"", b"a", b"text", "\u00e9\u20ac".encode(), b"x" * 40, b"x" * 130)
WRONG = (b"\0", b"\xc3", b"\xff", b"a\0b", b"\xed\xa0\x80")


def limits(numbers):
    return Limits(
        connections=9,
        sessions=9,
        messages=numbers.choice((24, 200)),
        message_bytes=32768,
        message_block=numbers.choice((16, 64)),
        deliveries=numbers.choice((64, 400)),
        inflight=6,
        queued=12,
        max_packet=2048,
        topic_bytes=64,
        tx_bytes=numbers.choice((600, 4096)),
        rx_bytes=numbers.choice((600, 4096)),
        routes=16,
        route_topic_bytes=48,
        route_entries=64,
    )


class Play:
    def __init__(self, numbers, by):
        self.numbers = numbers
        settings = Settings()
        settings.sys_interval = 0
        settings.qos2_delivery = numbers.choice(("receive", "receive", "release"))
        self.world = World(Broker(limits(numbers), settings))
        if by == "quick":
            ondemand.take("v5.quick_properties_cpython", 0).begin(self.world.broker)
        self.world.broker.stats[0] = 0
        self.clients = []
        self.with_options = numbers.one_in(2)
        # Three that publish, of both versions, then receivers: with aliases, with a largest packet
        for n in range(3):
            self.come(5 if n else 4, b"")
        with_all = b"\x22\0\2\x27\0\0\0\x60"
        for level, more in ((4, b""), (5, b""), (5, with_all[:3]), (5, with_all[3:]), (5, b"")):
            self.come(level, more)
            self.subscribe(self.clients[-1])
        self.world.turn()

    def come(self, level, properties):
        client = Client(Stream())
        client.level = level
        name = "c%d" % len(self.clients)  # noqa: UP031
        client.send(
            packets5.connect(name, properties, clean=True) if level == 5 else connect(name)
        )
        self.world.listener.waiting.append(client.stream)
        self.clients.append(client)
        self.world.turn(2)

    def subscribe(self, client):
        """Where options count: some with an identifier, twice, as a member of a group."""
        numbers = self.numbers
        name = numbers.choice(("#", "temp/+", "a/#"))
        if client.level == 4:
            client.send(subscribe(9, name, numbers.below(3)))
        elif not self.with_options:
            client.send(packets5.subscribe(9, name, numbers.below(3)))
        else:
            for more in numbers.choice((("",), ("", ""), ("", "$share/g/"), ("$share/g/",))):
                name = more + numbers.choice(("#", "temp/+", "a/#", "temp/1"))
                number = numbers.choice((b"", b"", b"\x0b\7", b"\x0b\xff\x7f"))
                client.send(packets5.subscribe(9, name, numbers.choice((0, 1, 2, 2)), number))

    def text(self):
        numbers = self.numbers
        data = numbers.choice(WRONG if numbers.one_in(150) else UTF8)
        return bytes((len(data) >> 8, len(data) & 255)) + data

    def section(self):
        """The properties of a PUBLISH; seldom wrong ones."""
        numbers = self.numbers
        made = b""
        for _ in range(numbers.choice((0, 1, 1, 1, 2, 3))):
            name = numbers.choice((1, 3, 8, 9, 0x26, 0x26, 0x23, 0x23, 0x23))
            made += bytes((name,))
            if name == 1:
                made += bytes((2 if numbers.one_in(60) else numbers.below(2),))
            elif name == 0x23:
                made += bytes((0, numbers.choice((1, 1, 2, 3, 0 if numbers.one_in(50) else 1))))
            elif name == 8:
                made += b"\0\3a/" + (b"#" if numbers.one_in(50) else b"b")
            else:
                made += self.text() + (self.text() if name == 0x26 else b"")
        if numbers.one_in(8):
            made = numbers.choice((b"\2\0\0\0\5", b"\2\0\0\1\5", b"\2\0\0\0\0")) + made
        if numbers.one_in(60):
            made += numbers.choice((b"\x0b\1", b"\x23", b"\x26\0", b"\xff"))
        return made

    def step(self):
        numbers = self.numbers
        client = self.clients[numbers.below(3)]
        data = b""
        for _ in range(numbers.between(1, 4)):
            topic = numbers.choice(TOPICS)
            qos = numbers.choice((0, 0, 1, 2))
            packet_id = numbers.between(1, 30) if qos else 0
            payload = numbers.bytes(numbers.choice((0, 1, 16, 70, 130, 300)))
            if client.level == 5:
                section = self.section()
                if b"\x23\0" in section and numbers.one_in(2):
                    topic = ""
                data += packets5.publish(topic, payload, qos, packet_id, section)
            else:
                data += publish(topic, payload, qos, packet_id)
        client.send(data)
        if numbers.one_in(40):
            slow = numbers.choice(self.clients[3:])
            some = numbers.choice((None, 7))
            slow.stream.write_some = lambda n: some and min(n, some)
        elif numbers.one_in(5):
            for each in self.clients:
                each.stream.write_some = lambda n: n
        self.world.turn(numbers.between(1, 3))
        if self.with_options and numbers.one_in(30):
            self.subscribe(numbers.choice(self.clients[3:]))
        if numbers.one_in(2):
            for each in self.clients:
                each.answer()
        self.world.turn()
        self.tell()
        for at in range(3):
            if self.clients[at].stream.closed:
                first = self.clients[at]
                self.come(first.level, b"")
                self.clients[at] = self.clients.pop()

    def tell(self):
        for client in self.clients:
            stream = client.stream
            print("client", len(stream.received), shown(stream.received), stream.closed)
        found = counts(self.world.broker)
        print("counts", *[found[name] for name in sorted(found)])
        for wrong in broken(self.world.broker):
            print("broken", wrong)


def main(seed, count, by=""):
    numbers = Numbers(int(seed))
    for n in range(int(count)):
        if n % 150 == 0:
            play = Play(numbers, by)
        play.step()
    broker = play.world.broker
    broker.stats[3] += broker.conns.counts[1]  # what the fast path has placed since the last tick
    print("stats", *broker.stats)


main(*sys.argv[1:])
