"""What is written to a stream is whole packets, at sizes around every buffer, and each receiver
gets each message once: from clients of each version to clients of each version, directly, by a
bridge or a group, from a queue, as a retained message. support/watch.py reads the streams.
"""

import watch
from bridge_case import BridgeCase
from fakes import MOST, Listener, Stream, anything
from stream_case import at_most, every
from web_client import frame, frames_of, request

from slotmq import Limits
from slotmq_tools import codec

TAIL, BLOCK, RX = 16, 32, 200
TEXT = b"\x03\0\4text"  # Content Type
EXPIRY = b"\x02\0\0\xff\xff"
# The level of the publisher (0: the program itself), and its properties
SENDERS = ((3, b""), (4, b""), (5, b""), (5, TEXT), (5, EXPIRY), (5, TEXT + EXPIRY), (0, b""))
FORGED = codec.publish(b"home/door", b"OPEN")
IDENTIFIER = b"\x0b\xc8\1"  # 200
ALIASES = b"\x22\0\1"


def sizes(tx, step=1):
    """Bytes of a PUBLISH: around each buffer, each length of the remaining length, each chunk."""
    found = set()
    for middle in (TAIL, 2 * BLOCK, RX, 128, tx, tx + 20, 2 * tx):
        found.update(range(max(8, middle - 11), middle + 9, step))
    return sorted(found)


def shapes(size):
    """(length of the topic, length of the payload) of packets of about that size."""
    most = size - 4
    return [(1, most - 1), (most - most // 2, most // 2), (most, 0), (max(1, most - 17), 17)]


def shown(packet):
    found = [packet.topic, packet.payload, packet.qos, packet.retain]
    if packet.props is not None:
        found += [packet.passed, codec.EXPIRY in packet.props, list(packet.identifiers)]
    return found


class Receiver:
    """A client, or another broker, that acknowledges everything."""

    def __init__(self, stream, level, identifiers=()):
        self.stream = stream
        self.level = level
        self.identifiers = list(identifiers)
        self.got = []
        stream.watch.packets = []

    def answer(self):
        """Acknowledge what has come."""
        for packet in self.take():
            if packet.kind == codec.PUBLISH:
                self.got.append(packet)
                if packet.qos:
                    kind = codec.PUBACK if packet.qos == 1 else codec.PUBREC
                    self.send(codec.ack(kind, packet.packet_id))
            elif packet.kind == codec.PUBREL:
                self.send(codec.ack(codec.PUBCOMP, packet.packet_id))

    def send(self, data):
        self.stream.sent += data

    def take(self):
        found, self.stream.watch.packets = self.stream.watch.packets, []
        return found


class WebReceiver(Receiver):
    """A client over WebSocket: a watch reads what its frames have brought."""

    def __init__(self, stream, level):
        super().__init__(stream, level)
        self.inner = watch.Watch()
        self.inner.packets = []
        self.rest = b""
        stream.sent += request()

    def send(self, data):
        self.inner.read(data)
        self.stream.sent += frame(data)

    def take(self):
        self.rest += bytes(self.stream.received)
        self.stream.received = bytearray()
        if self.rest[:5] == b"HTTP/" and b"\r\n\r\n" in self.rest:
            self.rest = self.rest.partition(b"\r\n\r\n")[2]
        if self.rest[:5] != b"HTTP/":
            found, self.rest = frames_of(self.rest)
            for _, data in found:
                self.inner.written(data)
        found, self.inner.packets = self.inner.packets, []
        return found


class StreamsCase(BridgeCase):
    def begin(self, tx, largest=2048, **more):
        """A broker with clients that publish, and none that receives."""
        limits = Limits(
            connections=14,
            sessions=20,
            tx_bytes=tx,
            rx_bytes=RX,
            tail_bytes=TAIL,
            reassembly=2,
            max_packet=largest,
            topic_bytes=largest - 8,
            message_bytes=24 * max(largest, 2048),
            message_block=BLOCK,
            retained_name_bytes=2 * largest,
            **more,
        )
        self.start(limits)
        watch.forget()
        self.receivers = []
        self.count = 0
        self.senders = {}
        for level in (3, 4, 5):
            stream = self.senders[level] = Stream()
            self.world.come(codec.connect(b"from%d" % level, level=level), 3, stream)

    def receiver(self, level, filters=(b"#",), props=b"", write=None, name=None, clean=True):
        self.count += 1
        stream = Stream(write=write or anything)
        name = name or b"to%d" % self.count
        lasts = b"" if clean or level < 5 else b"\x11\0\0\1\0"
        one = Receiver(stream, level, (200,) if props else ())
        self.world.come(
            codec.connect(name, clean, level=level, properties=lasts + ALIASES), 3, stream
        )
        for text in filters:
            stream.sent += codec.subscribe(1, (text, 2), properties=codec.of(level, props))
        self.receivers.append(one)
        self.settle()
        return one

    def settle(self):
        """Until no bytes move any more."""
        quiet = came = 0
        streams = list(self.senders.values()) + [one.stream for one in self.receivers]
        while quiet < 3:
            self.world.turn()
            before = came
            came = sum([len(one.received) for one in streams])
            for one in self.receivers:
                one.answer()
            waits = [one for one in streams if one.sent and not one.closed]
            quiet = 0 if waits or came != before else quiet + 1
        for one in streams:
            one.received = bytearray()  # watch.py has read it

    def message(self, shape, sender, qos, retain=0):
        """Publish one; -> what its receivers get."""
        level, props = SENDERS[sender]
        self.count += 1
        topic = (b"%d" % self.count + b"x" * shape[0])[: shape[0]]
        data = (b"%d" % self.count + b"y" * shape[1] + FORGED)[-shape[1] :] if shape[1] else b""
        if level:
            packet = codec.publish(topic, data, qos, 1, retain, 0, codec.of(level, props))
            if qos == 2:
                packet += codec.ack(codec.PUBREL, 1)
            self.senders[level].sent += packet
        else:
            self.broker.publish(topic.decode(), data, qos, retain=bool(retain))
        return topic, data, qos, props

    def check(self, one, sent, retain=0, topic=None, may_be_lost=False):
        """The receiver has got this and nothing else."""
        if may_be_lost and not one.got:
            return
        found = [shown(packet) for packet in one.got]
        wanted = [topic or sent[0], sent[1], sent[2], retain]
        if one.level == 5:
            has_text, expires = TEXT in sent[3], EXPIRY in sent[3]
            wanted += [TEXT if has_text else b"", expires, one.identifiers]
        if found != [wanted]:
            self.fail(f"{self.case}: a client of {one.level} got {found}, not {wanted}")
        one.got = []

    def combinations(self, every_one, number):
        """(sender, QoS): all of them, or another few each time."""
        every = [(sender, qos) for sender in range(len(SENDERS)) for qos in range(3)]
        return every if every_one else [every[(number * 2 + k * 10) % len(every)] for k in (0, 1)]


class TestStreams(StreamsCase):
    def send_all(self, tx, every_one=False, may_be_lost=False, step=1):
        for size in sizes(tx, step):
            for number, shape in enumerate(shapes(size)):
                for sender, qos in self.combinations(every_one, size + number):
                    self.case = tx, shape, sender, qos
                    watch.forget()
                    sent = self.message(shape, sender, qos)
                    self.settle()
                    for one in self.receivers:
                        self.check(one, sent, may_be_lost=may_be_lost and qos == 0)

    def test_each_version_to_each_version(self):
        for levels in ((4,), (3, 5), (5, 5), (3, 4, 5)):
            for tx in (64, 192, 640):
                self.begin(tx)
                for number, level in enumerate(levels):
                    self.receiver(level, props=IDENTIFIER if number == 1 else b"")
                is_small = tx == 64 and levels == (3, 5)
                self.send_all(tx, is_small, step=1 if is_small else 3)
                self.tearDown()

    def test_streams_that_take_little(self):
        for levels in ((4, 3), (4, 5), (5, 5)):
            for piece, k in ((1, 0), (63, 0), (50, 2), (65, 2), (MOST, 3)):
                self.begin(64)
                for level in levels:
                    write = every(k, None, piece) if k else at_most(piece)
                    self.receiver(level, write=write)
                self.send_all(64, False, True, 5)
                self.tearDown()

    def test_a_remaining_length_of_three_bytes(self):
        for tx in (64, 640, 4096):
            self.begin(tx, 17000)
            for level in (3, 4, 5):
                self.receiver(level)
            for number, size in enumerate(range(16374, 16394)):
                for sender, qos in self.combinations(False, number):
                    self.case = shape = shapes(size)[number % 4]
                    sent = self.message(shape, sender, qos)
                    self.settle()
                    for one in self.receivers:
                        self.check(one, sent)
            self.tearDown()

    def test_clients_over_websocket(self):
        for tx in (64, 192):
            self.begin(tx)
            listener = Listener()
            options = {"protocol": "websockets"}
            self.world.loop.listeners.add(listener, listener.accept, 0, options)
            self.at_first["streams"] += 1
            for level in (3, 4, 5):
                one = WebReceiver(Stream(), level)
                listener.waiting.append(one.stream)
                self.receivers.append(one)
                self.world.turn(4)
                one.send(codec.connect(b"web%d" % level, level=level, properties=ALIASES))
                one.send(codec.subscribe(1, (b"#", 2), properties=codec.of(level)))
                self.settle()
            self.send_all(tx, False, step=4)
            self.tearDown()

    def test_a_group_beside_other_clients(self):
        for levels in ((), (4,), (5, 3)):
            self.begin(192)
            for level in levels:
                self.receiver(level)
            self.receiver(5, (b"$share/g/#",))
            self.send_all(192, False, step=2)
            self.tearDown()

    def test_bridges_of_both_versions(self):
        of_5 = {"bridge_protocol_version": "mqttv50", "bridge_max_topic_alias": 1}
        for options in ({}, of_5):
            for prefix in (b"", b"far/"):
                self.begin(192)
                line = "#", "out", 2, "", prefix.decode()
                self.bridge(line, **options)
                stream = self.network.streams[-1]
                is_5 = len(options) > 0
                stream.sent += b"\x20\6\0\0\3\x22\0\1" if is_5 else codec.CONNECTED
                self.world.turn(4)
                self.receiver(4)
                self.receivers.append(Receiver(stream, 5 if is_5 else 4))
                for size in sizes(192, 2):
                    for number, shape in enumerate(shapes(size)):
                        for sender, qos in self.combinations(False, size + number):
                            self.case = options, prefix, shape, sender, qos
                            sent = self.message(shape, sender, qos)
                            self.settle()
                            self.check(self.receivers[0], sent)
                            self.check(self.receivers[1], sent, 0, prefix + sent[0])
                stream.ended = True
                self.world.turn(3)
                self.tearDown()

    def test_retained_messages(self):
        for tx in (64, 192):
            self.begin(tx)
            for level in (3, 4, 5):
                self.receiver(level, ())
            for size in sizes(tx, 4):
                for number, shape in enumerate(shapes(size)):
                    if not shape[1]:
                        continue  # it would be none
                    for sender, qos in self.combinations(False, size + number):
                        self.case = tx, shape, sender, qos
                        sent = self.message(shape, sender, qos, 1)
                        self.settle()
                        for one in self.receivers:
                            asked = codec.subscribe(
                                1, (sent[0], 2), properties=codec.of(one.level)
                            )
                            one.stream.sent += asked
                        self.settle()
                        for one in self.receivers:
                            self.check(one, sent, 1)
                            one.stream.sent += codec.unsubscribe(
                                1, sent[0], properties=codec.of(one.level)
                            )
                        self.settle()
                        self.broker.publish(sent[0].decode(), b"", retain=True)
                        self.settle()
            self.tearDown()

    def test_queued_messages(self):
        for tx in (64, 640):
            self.begin(tx, queued=40, deliveries=200)
            everything = [(size, shape) for size in sizes(tx, 5) for shape in shapes(size)]
            for start in range(0, len(everything), 20):
                for level in (3, 4, 5):
                    one = self.receiver(level, name=b"kept%d" % level, clean=False)
                    one.stream.ended = True
                self.receivers = []
                self.world.turn(4)
                sent = []
                for number, (size, shape) in enumerate(everything[start : start + 20]):
                    sender = (size + number) % len(SENDERS)
                    sent.append(self.message(shape, sender, 1 + number % 2))
                    self.settle()
                for level in (3, 4, 5):
                    one = self.receiver(level, (), name=b"kept%d" % level, clean=False)
                    got, one.got = one.got, []
                    self.assertEqual(len(got), len(sent))
                    for packet, each in zip(got, sent):  # noqa: B905
                        self.case = level, each
                        one.got = [packet]
                        self.check(one, each)
                self.receivers = []
            self.tearDown()
