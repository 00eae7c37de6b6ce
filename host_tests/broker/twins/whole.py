# whole.py SEED COUNT - the whole broker with its loop, on fake streams: random clients of 3.1.1
# and 5.0.
#
# Prints after each step what every client has received and what every table contains.
import sys

import packets5
from fakes import MOST, Client, Stream, World
from invariants import broken
from packets import DISCONNECT, PINGREQ, ack, connect, packet, publish, subscribe, text
from seeded import Numbers, shown
from tables import counts

from slotmq import Limits, Settings
from slotmq.broker import Broker

TOPICS = ("a", "a/b", "a/c", "b", "a/b/c", "$x", "a" * 17, "b" * 64, "c/" * 8)
FILTERS = ("a", "a/+", "a/#", "#", "+", "+/b", "a/b/c/#", "$x", "x/y/z", "+/+/+")
ACKS = (0x40, 0x50, 0x62, 0x70)
# Receive Maximum, Maximum Packet Size, Topic Alias Maximum
CONNECTS = (b"", b"", b"\x21\0\1", b"\x27\0\0\0\x50", b"\x22\0\2")
PROPERTIES = (b"", b"", b"", b"\1\0", b"\x26\0\1a\0\2bc", b"\2\0\0\0\3", b"\x23\0\1")


def limits(numbers):
    """Tables that are often full, and buffers that are smaller than some packets."""
    return Limits(
        connections=4,
        sessions=numbers.between(4, 6),
        subscriptions=8,
        nodes=10,
        name_bytes=160,
        retained=3,
        retained_name_bytes=64,
        messages=10,
        message_bytes=1536,
        message_block=numbers.choice((16, 32, 64)),
        deliveries=12,
        inflight=3,
        queued=5,
        max_packet=512,
        topic_bytes=64,
        tx_bytes=numbers.choice((68, 160, 161, 600)),
        rx_bytes=numbers.choice((64, 200, 700)),
        tail_bytes=numbers.choice((16, 64)),
        reassembly=numbers.between(1, 2),
        routes=4,
        route_topic_bytes=16,
        route_entries=8,
    )


def settings(numbers):
    """One configuration of the broker."""
    found = Settings()
    found.sys_interval = 0
    found.qos2_delivery = numbers.choice(("receive", "release"))
    found.upgrade_outgoing_qos = numbers.one_in(5)
    found.queue_qos0_messages = numbers.one_in(3)
    found.retry_interval = numbers.choice((0, 0, 5))
    found.max_qos = numbers.choice((2, 2, 2, 1))
    for table in ("messages", "deliveries", "sessions"):
        if numbers.one_in(2):
            found.when_full[table] = "drop_oldest"
    return found


class Play:
    def __init__(self, numbers):
        self.numbers = numbers
        self.world = World(Broker(limits(numbers), settings(numbers)))
        self.clients = []

    def step(self):
        numbers = self.numbers
        for _ in range(numbers.between(1, 3)):
            if len(self.clients) < 3 or (numbers.one_in(12) and len(self.clients) < 7):
                self.come()
            getattr(self, numbers.choice(KINDS))(numbers.choice(self.clients))
        self.world.turn(ms=numbers.choice((1, 1, 10, 1500)))
        self.tell()

    def come(self):
        numbers = self.numbers
        client = Client(Stream())
        will = (numbers.choice(TOPICS), b"gone", numbers.below(3)) if numbers.one_in(3) else None
        name = numbers.choice(("x", "y", "z", "v", "w", "u"))
        clean = numbers.one_in(2)
        client.level = numbers.choice((4, 4, 5, 5))
        if client.level == 5:
            properties = numbers.choice(CONNECTS)
            will = will and will + (b"",)  # noqa: RUF005 - MicroPython has no stars in a tuple
            client.send(packets5.connect(name, properties, will, clean, numbers.choice((0, 9))))
        else:
            client.send(connect(name, clean, will, numbers.choice((0, 0, 30))))
        self.world.listener.waiting.append(client.stream)
        self.clients.append(client)

    def publish(self, client):
        numbers = self.numbers
        size = numbers.choice((0, 1, 10, 10, 60, 150, 300, 440))
        qos = numbers.below(3)
        topic = numbers.choice(TOPICS)
        packet_id = numbers.between(1, 6) if qos else 0
        retain = numbers.one_in(4)
        data = numbers.bytes(size)
        if client.level == 5:
            properties = numbers.choice(PROPERTIES)
            client.send(packets5.publish(topic, data, qos, packet_id, properties, retain))
        else:
            client.send(publish(topic, data, qos, packet_id, retain))

    def subscribe(self, client):
        numbers = self.numbers
        name = numbers.choice(FILTERS)
        if client.level == 5:
            name = numbers.choice(("", "", "", "$share/g/")) + name
            identifier = numbers.choice((b"", b"", b"", b"\x0b\5"))
            options = numbers.below(3) | numbers.choice((0, 0, 8, 0 if name[0] == "$" else 4))
            client.send(packets5.subscribe(9, name, options, identifier))
        else:
            client.send(subscribe(9, name, numbers.below(3)))

    def unsubscribe(self, client):
        properties = b"\0" if client.level == 5 else b""
        client.send(packet(0xA2, b"\0\7" + properties + text(self.numbers.choice(FILTERS))))

    def acknowledge(self, client):
        client.answer()

    def acknowledge_anything(self, client):
        client.send(ack(self.numbers.choice(ACKS), self.numbers.between(1, 13)))

    def ping(self, client):
        client.send(PINGREQ)

    def noise(self, client):
        client.send(self.numbers.bytes(self.numbers.below(6)))

    def slow_down(self, client):
        """Each read and write takes at most this much, or nothing."""
        numbers = self.numbers
        most = numbers.choice((None, 1, 7, 100, MOST, MOST, MOST))
        client.stream.write_some = lambda n: most and min(n, most)
        part = numbers.choice((1, 50, MOST, MOST))
        client.stream.read = lambda n: min(n, part)

    def leave(self, client):
        if self.numbers.one_in(2):
            client.send(DISCONNECT)
        client.stream.ended = True

    def tell(self):
        for client in self.clients:
            stream = client.stream
            print("client", len(stream.received), shown(stream.received), stream.closed)
        self.clients = [client for client in self.clients if not client.stream.closed]
        found = counts(self.world.broker)
        print("counts", *[found[name] for name in sorted(found)])
        for wrong in broken(self.world.broker):
            print("broken", wrong)


KINDS = ("publish",) * 6 + ("subscribe",) * 3 + ("acknowledge",) * 4
KINDS += ("unsubscribe", "acknowledge_anything", "ping", "slow_down", "leave", "noise")


def main(seed, count):
    numbers = Numbers(int(seed))
    for n in range(int(count)):
        if n % 200 == 0:
            play = Play(numbers)
        play.step()
    print("stats", *play.world.broker.stats)


main(*sys.argv[1:])
