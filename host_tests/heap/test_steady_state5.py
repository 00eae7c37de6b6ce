"""MQTT 5.0 allocates nothing either: properties, aliases, identifiers, groups, expiry."""

from collections.abc import Iterator
from typing import Any

import pytest

from host_tests.wire import client as older
from host_tests.wire import codec as codec3
from host_tests.wire5 import codec
from host_tests.wire5.client import Client

from .test_steady_state import Watched

ROUNDS = 300
PROPERTIES = {
    "content_type": "text/plain",
    "correlation_data": b"\x01\x02",
    "user": (("a", "b"), ("a", "c")),
}


class Traffic:
    """A publisher with aliases, a reader with identifiers, a group of one, and an old client."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.publisher, self.reader, self.member = (Client(address) for _ in range(3))
        self.old = older.Client(address)
        for client, name in ((self.publisher, "p"), (self.reader, "r"), (self.member, "m")):
            packet = codec.connect(name, topic_alias_maximum=2, receive_maximum=8)
            client.terms = {"topic_alias_maximum": 2, "receive_maximum": 8}
            assert client.connect(packet).code == 0
        assert self.old.connect(codec3.connect("old")).code == 0
        self.reader.subscribe("some/#", qos=2, subscription_id=300)
        self.reader.subscribe("some/+", qos=1, subscription_id=7)
        self.member.subscribe("$share/group/some/topic", qos=2)
        self.old.subscribe("some/topic", qos=2)
        self.publisher.publish("some/topic", b"first", topic_alias=1)
        self.read(b"first", 0)

    def read(self, payload: bytes, qos: int) -> None:
        """What the last message must have brought to everybody."""
        for client in (self.reader, self.member, self.old):
            (message,) = client.receive_all()
            assert (message.topic, message.payload, message.qos) == ("some/topic", payload, qos)

    def message(self, n: int) -> None:
        """One message by its alias, with all that may go with it."""
        payload = b"%d" % n
        properties: dict[str, Any] = {"topic_alias": 1}
        if n % 2:
            properties["message_expiry"] = 100
        if n % 3:
            properties.update(PROPERTIES)
        self.publisher.publish("", payload, n % 3, **properties)
        self.read(payload, n % 3)

    def close(self) -> None:
        for client in (self.publisher, self.reader, self.member, self.old):
            client.sock.close()


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched() as process:
        yield process


def test_messages_with_properties_allocate_nothing(watched: Watched) -> None:
    traffic = Traffic(watched.address)
    with watched.locked() as seen:
        for n in range(ROUNDS):
            traffic.message(n)
    assert seen["changed"] == 0
    assert seen["turns"] > ROUNDS
    traffic.close()


def test_and_leave_every_table_as_it_was(watched: Watched) -> None:
    traffic = Traffic(watched.address)
    before = watched.counts()
    for n in range(30):
        traffic.message(n)
    after = watched.counts()
    for counts in (before, after):
        del counts["used"], counts["loaded"]
    assert after == before
    traffic.close()
