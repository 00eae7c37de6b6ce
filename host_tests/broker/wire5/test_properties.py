"""The properties of a message: all are passed on, unchanged and in order."""

import pytest

from ..wire.scene import spec
from . import codec

QOS = [0, 1, 2]
VALUES = [
    ("payload-format-0", {"payload_format": 0}),
    ("payload-format-1", {"payload_format": 1}),
    ("content-type", {"content_type": "application/json; charset=Füße"}),
    ("content-type-empty", {"content_type": ""}),
    ("response-topic", {"response_topic": "answers/here"}),
    ("correlation-data", {"correlation_data": bytes(range(256))}),
    ("correlation-data-empty", {"correlation_data": b""}),
    ("user", {"user": (("name", "value"),)}),
    ("user-empty", {"user": (("", ""),)}),
    ("user-unicode", {"user": (("\ufeff主题", "😀"),)}),
    ("user-order", {"user": (("b", "1"), ("a", "2"), ("b", "1"), ("a", "0"), ("", "z"))}),
    ("user-many", {"user": tuple((f"{i}", f"{i * i}") for i in range(300))}),
    ("user-large", {"user": (("name", "v" * 60000), ("n" * 5000, "value"))}),
    (
        "all",
        {
            "user": (("x", "y"), ("x", "z")),
            "content_type": "text",
            "correlation_data": b"\0",
            "response_topic": "r",
            "payload_format": 1,
        },
    ),
]
EACH = pytest.mark.parametrize("properties", [pytest.param(p, id=name) for name, p in VALUES])


@spec(new="3.3.2-4 3.3.2-15 3.3.2-16 3.3.2-17 3.3.2-18 3.3.2-20 1.5.4-3")
@EACH
def test_properties_reach_a_connected_client(mqtt5, topic, properties):
    client = mqtt5.reader(topic, qos=2)
    for qos in QOS:
        client.publish(topic, b"x", qos, **properties)
        client.receive(topic, b"x", qos, **properties)


@spec(new="3.3.2-4 3.3.2-17 3.3.2-18 3.3.2-20")
@EACH
def test_properties_are_stored_with_their_message(mqtt5, topic, properties):
    """A retained message, a queued message, and a message that is sent again."""
    away = mqtt5.reader(topic, name="away", qos=1, session_expiry=60)
    away.disconnect()
    publisher = mqtt5.connect()
    publisher.publish(topic, b"x", 1, retain=True, **properties)
    mqtt5.reader(topic).receive(topic, b"x", retain=True, **properties)
    away = mqtt5.connect("away", session_expiry=60, clean=False)
    away.expect_publish(topic, b"x", 1, **properties)
    away.drop()
    away = mqtt5.connect("away", clean=False)
    away.receive(topic, b"x", 1, dup=True, **properties)
    publisher.publish(topic, b"", retain=True)


def test_each_message_has_only_its_own_properties(mqtt5, topic):
    client = mqtt5.reader(topic, qos=1)
    for properties in ({"content_type": "a"}, {}, {"user": (("b", "c"),)}, {}):
        client.publish(topic, b"x", 1, **properties)
        client.receive(topic, b"x", 1, **properties)


def test_a_payload_that_is_no_utf_8_is_passed_on(mqtt5, topic):
    """A server may check it, and need not: the peer may refuse it."""
    client = mqtt5.reader(topic, qos=1)
    client.send(codec.publish(topic, b"\xff\xfe", 1, 9, payload_format=1))
    if mqtt5.is_peer:
        assert getattr(client.next(), "code", 0) in (0, 0x99)
    else:
        client.expect_accepted(9, 1)
        client.receive(topic, b"\xff\xfe", 1, payload_format=1)


@spec(new="1.5.5-1 2.2.2-1")
@pytest.mark.parametrize("size", [0, 1, 119, 120, 121, 127, 128, 16370, 16374, 16375, 16384])
def test_properties_of_every_length_arrive(mqtt5, topic, size):
    client = mqtt5.reader(topic, qos=2)
    for qos in QOS:
        for payload in (b"", b"x" * (200 - size % 200)):
            client.publish(topic, payload, qos, content_type="t" * size)
            client.receive(topic, payload, qos, content_type="t" * size)
