"""Message Expiry Interval: passed on less the time waited; expired messages are dropped."""

import time

import pytest

from ..wire.scene import spec
from . import codec
from .codec import Ack

QOS = [0, 1, 2]


def left(message):
    """The seconds that a message says it has left."""
    return message.properties.get("message_expiry")


@spec(new="3.3.2-6")
@pytest.mark.parametrize("seconds", [10, 256, 65536, 0xFFFFFFFF])
@pytest.mark.parametrize("qos", QOS)
def test_a_connected_client_gets_nearly_all_of_it(mqtt5, topic, qos, seconds):
    client = mqtt5.reader(topic, qos=qos)
    client.publish(topic, b"x", qos, message_expiry=seconds)
    assert left(client.next_message()) in (seconds, seconds - 1)


def published(mqtt5, topic, retain):
    """Messages with a short, a long and no expiry in each QoS."""
    publisher = mqtt5.connect()
    for qos in QOS:
        for name, life in (("short", 1), ("long", 100), ("endless", None)):
            properties = {} if life is None else {"message_expiry": life}
            where = f"{topic}/{'kept' if retain else 'live'}/{name}/{qos}"
            publisher.publish(where, b"x", qos, retain=retain, **properties)
    return publisher


def names(messages, qos):
    """These have not expired, and their expiry is less by the time waited."""
    found = sorted(m.topic.split("/", 2)[2] for m in messages)
    assert found == sorted(f"{name}/{q}" for name in ("long", "endless") for q in qos), found
    for message in messages:
        assert ("long" in message.topic and 95 < left(message) < 100) or left(message) is None


@pytest.mark.waits
@spec(new="3.3.2-5 3.3.2-6")
def test_queued_and_retained_messages_expire(mqtt5, topic):
    away = mqtt5.connect("away", session_expiry=60)
    old = mqtt5.older("old", clean=False)
    for client in (away, old):
        client.subscribe(f"{topic}/live/#", qos=2)
    away.disconnect()
    old.disconnect()
    published(mqtt5, topic, retain=False)
    publisher = published(mqtt5, topic, retain=True)
    time.sleep(2.1)
    away = mqtt5.connect("away", clean=False)
    names(away.receive_all(), (1, 2))
    waited = mqtt5.older("old", clean=False).receive_all()
    found = sorted(message.topic.split("/", 2)[2] for message in waited)
    assert found == ["endless/1", "endless/2", "long/1", "long/2"]
    late = mqtt5.reader(f"{topic}/kept/#", qos=2)
    names(late.receive_all(), QOS)
    for name in ("short", "long", "endless"):
        for qos in QOS:
            publisher.publish(f"{topic}/kept/{name}/{qos}", b"", retain=True)


@pytest.mark.waits
@pytest.mark.ours("mosquitto lets what was sent expire too")
@spec(new="4.3.3-7 4.3.3-13 4.4.0-1")
def test_messages_in_flight_do_not_expire(mqtt5, topic):
    client = mqtt5.reader(f"{topic}/#", name="sub", qos=2, session_expiry=60)
    publisher = mqtt5.connect()
    publisher.publish(f"{topic}/sent", b"x", 2, message_expiry=1)
    publisher.publish(f"{topic}/received", b"x", 2, message_expiry=1)
    sent, received = client.publishes()
    client.send(codec.ack(codec.PUBREC, received.packet_id))
    client.expect(Ack(codec.PUBREL, received.packet_id))
    publisher.send(codec.publish(f"{topic}/held", b"x", 2, 77, message_expiry=1))
    publisher.expect_accepted(77, 2)
    client.drop()
    time.sleep(2.1)
    publisher.release(77)
    client = mqtt5.connect("sub", clean=False)
    found = {packet.packet_id for packet in (client.next(), client.next())}
    assert found == {sent.packet_id, received.packet_id}


@pytest.mark.waits
@pytest.mark.ours("mosquitto sends nothing more behind what has expired")
@spec(new="3.3.2-5 3.3.2-6")
def test_messages_that_wait_for_the_window_expire(mqtt5, topic):
    client = mqtt5.reader(f"{topic}/live/#", qos=2, receive_maximum=1)
    client.publish(f"{topic}/live/first", b"blocks", 1)
    blocking = client.expect_publish(f"{topic}/live/first", b"blocks", 1)
    published(mqtt5, topic, retain=False)
    assert [message.qos for message in client.publishes()] == [0, 0, 0]
    time.sleep(2.1)
    client.acknowledge(blocking)
    found = []
    while batch := client.receive_all():
        found += batch
    names(found, (1, 2))
