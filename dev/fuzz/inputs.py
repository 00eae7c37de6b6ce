"""Inputs from a seed: random bytes, packets with random fields, sessions, damaged ones, floods.

An input is everything that a client sends on a connection; every second one uses MQTT 5.0. The
same seed gives the same inputs. Only undamaged packets have topics that start with $ ($SYS), so
that a client that subscribes to # finds every retained message that inputs leave.
"""

import random
from collections.abc import Callable, Iterator

from slotmq_tools.codec import (
    BINARY,
    FLAG,
    FOUR,
    IDENTIFIER,
    PAIR,
    PROPERTIES,
    TEXT,
    TWO,
    VARINT,
    length,
    packet,
    section,
    string,
)

CLEAN, WILL, PASSWORD, USER_NAME = 2, 4, 64, 128
_NAMES = {3: b"MQIsdp", 4: b"MQTT"}
# Few ids, topics and filters, so that inputs affect each other.
CLIENT_IDS = [b"f1", b"f2", b"f3", b"f" * 23, b"", b"f\xc3\xa4"]
_TOPICS = [b"f", b"f/a", b"f/a/b", b"f//", b"/", b"f/" + b"x" * 90, b"$SYS/broker/f"]
_BAD_TOPICS = [b"", b"f/+", b"f/#", b"f\x00", b"\xff", b"\xed\xa0\x80", b"f" * 3000]
_FILTERS = [*_TOPICS, b"#", b"f/#", b"+", b"f/+/b", b"+/+", b"f/+/#", b"$SYS/#"]
_SHARED = [b"$share/g/f", b"$share/g/#", b"$share/h/f/+", b"$share/" + b"n" * 30 + b"/f/a"]
_BAD_SHARED = [b"$share/g", b"$share//f", b"$share/+/f", b"$share/g/"]
_BAD_FILTERS = [*_BAD_TOPICS[3:], b"", b"f#", b"#/f", b"f+", b"f/+x", b"++"]
_PACKET_IDS = [1, 1, 2, 3, 65535]
_REASONS = [0, 0, 0, 4, 0x10, 0x80, 0x82, 0x92, 0x97, 0xFF]
_SINGLY = 300  # bytes that are sent one by one; then in pieces of
_ODD = 61  # bytes
_LENGTHS = [0, 1, 2, 127, 128, 16383, 16384, 2097151, 2097152, 268435455]
# Of properties
_NUMBERS = {
    FLAG: [0, 1, 1, 2],
    TWO: [0, 1, 1, 2, 3, 4, 20, 65535],
    FOUR: [0, 1, 1, 2, 20, 60, 2000, 100_000_000, 100_000_001, 0x3FFFFFFF, 0xFFFFFFFF],
}
_IDENTIFIERS = [1, 127, 128, 16384, 268435455, 0]
_TEXTS = [b"", b"f", b"f/a", b"SCRAM-SHA-256", b"\xff", b"x" * 150]
_METHOD, _DATA = b"\x15", b"\x16"
_FIRST_MESSAGE = b"n,,n=user,r=fuzz"  # of SCRAM-SHA-256


def _legal(where: str) -> list[int]:
    """The properties that a client may put there, but those of authentication()."""
    found = [name for name, (_, _, places) in PROPERTIES.items() if where in places]
    kept = {0x15, 0x16} if where != "p" else {IDENTIFIER}
    return [name for name in found if name not in kept]


# By the places of the codec's table
LEGAL = {where: _legal(where) for where in "cwpasuDx"}


def connect(
    client_id: bytes,
    flags: int = CLEAN,
    payload: bytes = b"",
    level: int = 4,
    properties: bytes = b"\0",
) -> bytes:
    """A CONNECT; `properties` is the section of level 5."""
    head = string(_NAMES.get(level, b"MQTT")) + bytes([level, flags, 0, 60])
    head += properties if level == 5 else b""
    return packet(0x10, head + string(client_id) + payload)


class Inputs:
    """An infinite sequence of inputs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._is_5 = False  # whether the current input uses MQTT 5.0
        self._kinds: list[Callable[[], bytes]] = [
            self._noise,
            self._connected_noise,
            self._session,
            self._damaged,
            self._damaged,
            self._damaged,
            self._flood,
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
        self._packets_5 = [*self._packets, self._auth, self._disconnect]

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self._is_5 = not self._is_5
            kinds = self._kinds if self._now_and_then() else self._kinds[:-1]
            yield self.random.choice(kinds)()

    def cut(self, data: bytes) -> list[bytes]:
        """Split it: not at all, anywhere, or byte by byte (of a long one only the first)."""
        how = self.random.randrange(3)
        if how == 0:
            return [data]
        if how == 1:
            singly = [data[i : i + 1] for i in range(min(len(data), _SINGLY))]
            return singly + [data[i : i + _ODD] for i in range(_SINGLY, len(data), _ODD)]
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
        some = self._packets_5 if self._is_5 else self._packets
        packets = [self.random.choice(some)() for _ in range(count)]
        return self._connect() + b"".join(packets)

    def _flood(self) -> bytes:
        # As many small packets as fit a read; the buffer must have space for their answers.
        small = [packet(0xC0), packet(0x62, b"\0\x09"), packet(0x50, b"\0\x09")]
        if self._is_5:
            small.append(packet(0xF0, b"\x19" + self._authentication()))
        first = self.random.choice([b"", self._subscribe(), small[-1]])
        one = self.random.choice(small)
        return self._connect() + first + one * self.random.randint(100, 1200)

    def _damaged(self) -> bytes:
        data = bytearray(self._session())
        damages = [self._flip, self._overwrite, self._delete, self._insert, self._lengthen]
        for _ in range(self.random.randint(1, 3)):
            self.random.choice(damages)(data, self.random.randint(0, len(data)))
        return bytes(data).replace(b"$", b"S")

    # Packets, mostly legal.

    def _connect(self) -> bytes:
        flags = self.random.choice([CLEAN, CLEAN, 0])
        payload = b""
        if self._now_and_then():
            flags |= WILL | self.random.choice([0, 8, 16, 24, 32, 40])
            payload += self._section("w")
            payload += string(self._topic()) + string(self._bytes(20))
        if self._now_and_then():
            flags |= USER_NAME | PASSWORD
            payload += string(b"user") + string(self._bytes(8))
        level = self.random.choice([4, 4, 4, 4, 3, 3, self.random.randrange(256)])
        properties = b""
        if self._is_5:
            level = 5
            properties = self._section("c")
            if self.random.random() < 0.1:
                properties = self._authentication()
        client_id = self.random.choice(CLIENT_IDS)
        return connect(client_id, flags, payload, level, properties)

    def _publish(self) -> bytes:
        qos = self.random.choice([0, 0, 1, 1, 2, 2, 2, 3])
        first = 0x30 | qos << 1 | self.random.choice([0, 0, 1, 8 * bool(qos)])
        payload = self._bytes(self.random.choice([0, 10, 200, 1500]))
        topic = b"" if self._is_5 and self.random.random() < 0.3 else self._topic()
        head = string(topic) + (self._id() if qos else b"")
        return packet(first, head + self._section("p") + payload)

    def _acknowledgement(self) -> bytes:
        body = self._id() + self._reason("a")
        return packet(self.random.choice([0x40, 0x50, 0x62, 0x70]), body)

    def _disconnect(self) -> bytes:
        return packet(0xE0, self._reason("D"))

    def _auth(self) -> bytes:
        code = bytes([self.random.choice([0x18, 0x18, 0x19, 0x19, *_REASONS])])
        return packet(0xF0, code + self._authentication())

    def _subscribe(self) -> bytes:
        filters = [self._filter() for _ in range(self.random.randint(1, 4))]
        qos = [bytes([self._options()]) for _ in filters]
        entries = [string(name) + q for name, q in zip(filters, qos, strict=True)]
        return packet(0x82, self._id() + self._section("s") + b"".join(entries))

    def _unsubscribe(self) -> bytes:
        filters = [string(self._filter()) for _ in range(self.random.randint(1, 4))]
        return packet(0xA2, self._id() + self._section("u") + b"".join(filters))

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
        bad, good = _BAD_FILTERS, _FILTERS
        if self._is_5:
            bad, good = bad + _BAD_SHARED, good + _SHARED * 2
        return self.random.choice(bad if self._now_and_then() else good)

    def _options(self) -> int:
        qos = self.random.choice([0, 1, 2, 2])
        if not self._is_5 or self.random.random() < 0.5:
            return qos
        return qos | self.random.choice([0, 4, 8, 12]) | self.random.choice([0, 16, 32, 48])

    def _section(self, where: str) -> bytes:
        if not self._is_5:
            return b""
        names = self.random.choices(LEGAL[where], k=self.random.choice([0, 0, 1, 1, 2, 4]))
        if self.random.random() < 0.05:
            names.append(self.random.randrange(256))
        elif self.random.random() < 0.9:
            names = list(dict.fromkeys(names))
        properties = b"".join(map(self._property, names))
        if self.random.random() < 0.02:
            return length(self.random.choice([len(properties) + 1, 268435455])) + properties
        return section(properties)

    def _property(self, name: int) -> bytes:
        _, kind, _ = PROPERTIES.get(name, ("", TEXT, ""))
        texts = [string(self.random.choice(_TEXTS)) for _ in range(2)]
        if kind in (TEXT, BINARY):
            value = texts[0]
        elif kind == PAIR:
            value = b"".join(texts)
        elif kind == VARINT:
            value = length(self.random.choice(_IDENTIFIERS))
        else:
            value = self.random.choice(_NUMBERS[kind]).to_bytes(kind, "big")
        return bytes([name]) + value

    def _authentication(self) -> bytes:
        """Authentication method and optional data, for CONNECT and AUTH."""
        method = self.random.choice([b"SCRAM-SHA-256"] * 3 + _TEXTS)
        data = self.random.choice([_FIRST_MESSAGE, _FIRST_MESSAGE, b"c=biws,r=fuzz,p=AA==", b""])
        return section(_METHOD + string(method) + (_DATA + string(data) if data else b""))

    def _reason(self, where: str) -> bytes:
        # The optional reason code and properties of an acknowledgement.
        if not self._is_5 or self.random.random() < 0.4:
            return b""
        code = bytes([self.random.choice(_REASONS)])
        return code + self.random.choice([b"", self._section(where)])

    # Damages: each changes bytes around a position.

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
