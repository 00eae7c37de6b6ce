"""Clients of MQTT 5.0 that keep a Pico W busy, and one of an older version."""

from typing import Any

from host_tests.broker.wire import client as older
from host_tests.broker.wire import codec as codec3
from host_tests.broker.wire5 import codec
from host_tests.broker.wire5.client import Client
from host_tests.broker.wire5.codec import Ack

PROPERTIES: dict[str, Any] = {
    "content_type": "text/plain",
    "correlation_data": b"\x01\x02",
    "user": (("a", "b"), ("a", "c")),
}
ERRORS = (0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99)
ABOUT = {"reason_string": "because", "user": (("a", "b"),)}
FLOOD, BURST = 400, 11
LARGE = b"L" * 430  # with the rest of its packet about a buffer
SIZES = (600, 700, 1300, 1900)  # around and beyond a buffer, within a packet


def connect(address: tuple[str, int], name: str, **options: Any) -> Client:
    terms = {"topic_alias_maximum": 2, "receive_maximum": 8, **options}
    client = Client(address)
    client.terms = terms
    assert client.connect(codec.connect(name, **terms)).code == 0
    return client


class Traffic:
    """A publisher with aliases, a reader with identifiers, a group of one, and an old client."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.publisher, self.reader, self.member = (connect(address, name) for name in "prm")
        self.old = older.Client(address)
        assert self.old.connect(codec3.connect("old")).code == 0
        self.reader.subscribe("some/#", qos=2, subscription_id=300)
        self.reader.subscribe("some/+", qos=1, subscription_id=7)
        self.member.subscribe("$share/group/some/topic", qos=2)
        self.old.subscribe("some/topic", qos=2)
        self.publisher.publish("some/topic", b"first", topic_alias=1)
        self.read(b"first", 0)

    def read(self, payload: bytes, qos: int) -> None:
        """Each reader has got this message, and no other."""
        for client in (self.reader, self.member, self.old):
            (message,) = client.receive_all()
            assert (message.topic, message.payload, message.qos) == ("some/topic", payload, qos)

    def message(self, n: int) -> None:
        """A message with an alias, and in turn with expiry and other properties."""
        payload = b"%d" % n
        properties: dict[str, Any] = {"topic_alias": 1}
        if n % 2:
            properties["message_expiry"] = 100
        if n % 3:
            properties.update(PROPERTIES)
        self.publisher.publish("", payload, n % 3, **properties)
        self.read(payload, n % 3)

    def in_chunks(self, n: int) -> None:
        """A message larger than an outgoing buffer, for all three kinds of readers."""
        payload = bytes([n % 251]) * SIZES[n % len(SIZES)]
        self.publisher.publish("some/topic", payload, n % 3, message_expiry=100, **PROPERTIES)
        self.read(payload, n % 3)

    def refused(self, n: int) -> None:
        """Acknowledgements with an error, and of unknown packet ids."""
        code = ERRORS[n % len(ERRORS)]
        about = ABOUT if n % 2 else None
        self.publisher.publish("some/topic", b"no", 1)
        for client in (self.reader, self.member):
            (message,) = client.publishes()
            client.send(codec.ack(codec.PUBACK, message.packet_id, code, about))
        self.old.receive_all()
        self.publisher.publish("some/topic", b"no", 2)
        for client in (self.reader, self.member):
            (message,) = client.publishes()
            client.send(codec.ack(codec.PUBREC, message.packet_id, code, about))
        self.old.receive_all()
        self._unknown(about)
        self.publisher.send(codec.publish("nobody/reads", b"", 1, 999))
        assert self.publisher.next() == Ack(codec.PUBACK, 999, codec.NO_SUBSCRIBERS)

    def _unknown(self, about: dict[str, Any] | None) -> None:
        self.reader.send(codec.ack(codec.PUBREC, 999, 0, about))
        assert self.reader.next() == Ack(codec.PUBREL, 999, 0x92)
        self.publisher.send(codec.ack(codec.PUBREL, 999, 0x92, about))
        assert self.publisher.next() == Ack(codec.PUBCOMP, 999, 0x92)
        self.reader.send(codec.ack(codec.PUBCOMP, 999, 0x92, about))

    def close(self) -> None:
        for client in (self.publisher, self.reader, self.member, self.old):
            client.sock.close()


class Crowd:
    """A publisher, a reader that is slow, and a group of two."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.publisher, self.slow, *self.members = (connect(address, name) for name in "psmn")
        self.slow.subscribe("slow/#", qos=1, subscription_id=5)
        self.slow.subscribe("slow/+", qos=1, subscription_id=6)
        for member in self.members:
            member.subscribe("$share/group/shared/+", qos=2, subscription_id=70_000)
        self.got = [0, 0]

    def block(self) -> None:
        """Send the slow client more than it and all socket buffers take in, then let it read."""
        self.publisher.send(codec.publish("slow/0", LARGE, **PROPERTIES) * FLOOD)
        for n in range(BURST):
            lives: dict[str, Any] = {"message_expiry": 100} if n % 2 else {}
            self.publisher.publish("slow/1", LARGE, 1, **lives)
        found: list[Any] = []
        while batch := self.slow.receive_all():
            found += batch
        assert [message.qos for message in found].count(1) == BURST
        assert found[0].properties["subscription_id"] in ((5, 6), (6, 5))

    def shared(self, n: int) -> None:
        """One message for the group; each fourth time so many that both members queue some."""
        count = 1 if n % 4 else BURST
        for _ in range(count):
            self.publisher.publish("shared/topic", b"%d" % n, n % 3, **PROPERTIES)
        found = [list(member.receive_all()) for member in self.members]
        assert sum(map(len, found)) == count
        for at, messages in enumerate(found):
            assert all(message.payload == b"%d" % n for message in messages)
            self.got[at] += len(messages)

    def expire(self, n: int) -> None:
        """Messages that are queued, half of them retained, until they expire."""
        for i in range(BURST):
            kept = {"retain": True} if i % 2 else {}
            self.publisher.publish(f"slow/{i}", b"%d" % n, 1, message_expiry=1, **kept)
        seen = self.slow.publishes()
        assert len(seen) == 8  # its Receive Maximum; the others are queued
        self.slow.wait(2)  # two rounds of the expiry scan
        for message in seen:
            self.slow.acknowledge(message)
        self.slow.expect_silence()

    def close(self) -> None:
        for client in (self.publisher, self.slow, *self.members):
            client.sock.close()
