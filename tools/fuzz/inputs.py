"""Inputs from a seed: noise, packets with senseless fields, sessions, damaged sessions.

An input is what one client sends on one connection. The same seed gives the same
inputs. No topic starts with $, but for $SYS in undamaged packets, so that what
they leave in the broker can be found again by a client that subscribes to #.
"""

import random
from collections.abc import Callable, Iterator

CLEAN, WILL, PASSWORD, USER_NAME = 2, 4, 64, 128
_NAMES = {3: b"MQIsdp", 4: b"MQTT"}
# The same few ids, topics and filters again and again: they are to meet.
_CLIENT_IDS = [b"f1", b"f2", b"f3", b"f" * 23, b"", b"f\xc3\xa4"]
_TOPICS = [b"f", b"f/a", b"f/a/b", b"f//", b"/", b"f/" + b"x" * 90, b"$SYS/broker/f"]
_BAD_TOPICS = [b"", b"f/+", b"f/#", b"f\x00", b"\xff", b"\xed\xa0\x80", b"f" * 3000]
_FILTERS = [*_TOPICS, b"#", b"f/#", b"+", b"f/+/b", b"+/+", b"f/+/#", b"$SYS/#"]
_BAD_FILTERS = [*_BAD_TOPICS[3:], b"", b"f#", b"#/f", b"f+", b"f/+x", b"++"]
_PACKET_IDS = [1, 1, 2, 3, 65535]
_LENGTHS = [0, 1, 2, 127, 128, 16383, 16384, 2097151, 2097152, 268435455]


def string(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def length(value: int) -> bytes:
    """A remaining length, seven bits to a byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def packet(first: int, body: bytes = b"") -> bytes:
    return bytes([first]) + length(len(body)) + body


def connect(client_id: bytes, flags: int = CLEAN, payload: bytes = b"", level: int = 4) -> bytes:
    head = string(_NAMES.get(level, b"MQTT")) + bytes([level, flags, 0, 60])
    return packet(0x10, head + string(client_id) + payload)


class Inputs:
    """An endless row of inputs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._kinds: list[Callable[[], bytes]] = [
            self._noise,
            self._connected_noise,
            self._session,
            self._damaged,
            self._damaged,
            self._damaged,
        ]
        self._packets: list[Callable[[], bytes]] = [
            self._publish,
            self._publish,
            self._publish,
            self._acknowledgement,
            self._subscribe,
            self._unsubscribe,
            self._other,
        ]

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield self.random.choice(self._kinds)()

    def cut(self, data: bytes) -> list[bytes]:
        """The same bytes in pieces: whole, byte by byte, or cut anywhere."""
        way = self.random.randrange(3)
        if way == 0:
            return [data]
        if way == 1:
            return [data[i : i + 1] for i in range(len(data))]
        count = self.random.randint(1, 4)
        cuts = sorted(self.random.randint(0, len(data)) for _ in range(count))
        edges = zip([0, *cuts], [*cuts, len(data)], strict=True)
        return [data[start:end] for start, end in edges if start < end]

    # Kinds of inputs.

    def _noise(self) -> bytes:
        return self._bytes(80)

    def _connected_noise(self) -> bytes:
        kinds = [self._noise, self._headed_noise, self._headed_noise]
        noise = [self.random.choice(kinds)() for _ in range(self.random.randint(1, 3))]
        return self._connect() + b"".join(noise)

    def _session(self) -> bytes:
        count = self.random.randint(0, 8)
        packets = [self.random.choice(self._packets)() for _ in range(count)]
        return self._connect() + b"".join(packets)

    def _damaged(self) -> bytes:
        data = bytearray(self._session())
        damages = [self._flip, self._overwrite, self._delete, self._insert, self._lengthen]
        for _ in range(self.random.randint(1, 3)):
            self.random.choice(damages)(data, self.random.randint(0, len(data)))
        return bytes(data).replace(b"$", b"S")

    # Packets, each mostly legal.

    def _connect(self) -> bytes:
        flags = self.random.choice([CLEAN, CLEAN, 0])
        payload = b""
        if self._now_and_then():
            flags |= WILL | self.random.choice([0, 8, 16, 24, 32, 40])
            payload += string(self._topic()) + string(self._bytes(20))
        if self._now_and_then():
            flags |= USER_NAME | PASSWORD
            payload += string(b"user") + string(self._bytes(8))
        level = self.random.choice([4, 4, 4, 4, 3, 3, 5, self.random.randrange(256)])
        return connect(self.random.choice(_CLIENT_IDS), flags, payload, level)

    def _publish(self) -> bytes:
        qos = self.random.choice([0, 0, 1, 1, 2, 2, 2, 3])
        first = 0x30 | qos << 1 | self.random.choice([0, 0, 1, 8 * bool(qos)])
        payload = self._bytes(self.random.choice([0, 10, 200, 1500]))
        return packet(first, string(self._topic()) + (self._id() if qos else b"") + payload)

    def _acknowledgement(self) -> bytes:
        return packet(self.random.choice([0x40, 0x50, 0x62, 0x70]), self._id())

    def _subscribe(self) -> bytes:
        filters = [self._filter() for _ in range(self.random.randint(1, 4))]
        qos = [bytes([self.random.choice([0, 1, 2, 2])]) for _ in filters]
        asked = [string(name) + q for name, q in zip(filters, qos, strict=True)]
        return packet(0x82, self._id() + b"".join(asked))

    def _unsubscribe(self) -> bytes:
        filters = [string(self._filter()) for _ in range(self.random.randint(1, 4))]
        return packet(0xA2, self._id() + b"".join(filters))

    def _other(self) -> bytes:
        return self.random.choice([packet(0xC0), packet(0xC0), packet(0xE0), self._headed_noise()])

    def _headed_noise(self) -> bytes:
        body = self._bytes(30)
        size = length(self.random.choice([len(body), len(body), *_LENGTHS]))
        return bytes([self.random.randrange(256)]) + size + body

    # Fields.

    def _now_and_then(self) -> bool:
        return self.random.random() < 0.15

    def _bytes(self, most: int) -> bytes:
        return self.random.randbytes(self.random.randint(0, most))

    def _id(self) -> bytes:
        known = self.random.choice(_PACKET_IDS)
        return (0 if self._now_and_then() else known).to_bytes(2, "big")

    def _topic(self) -> bytes:
        return self.random.choice(_BAD_TOPICS if self._now_and_then() else _TOPICS)

    def _filter(self) -> bytes:
        return self.random.choice(_BAD_FILTERS if self._now_and_then() else _FILTERS)

    # Damages: each changes the bytes around one place.

    def _flip(self, data: bytearray, at: int) -> None:
        if at < len(data):
            data[at] ^= 1 << self.random.randrange(8)

    def _overwrite(self, data: bytearray, at: int) -> None:
        noise = self._bytes(4)
        data[at : at + len(noise)] = noise

    def _delete(self, data: bytearray, at: int) -> None:
        del data[at : at + self.random.randint(1, 9)]

    def _insert(self, data: bytearray, at: int) -> None:
        data[at:at] = self.random.choice([self._bytes(9), self._publish(), b"\xff" * 5])

    def _lengthen(self, data: bytearray, at: int) -> None:
        data[at : at + 1] = length(self.random.choice(_LENGTHS))
