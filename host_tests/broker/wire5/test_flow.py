"""Receive Maximum in both directions: how many QoS 1 and 2 messages may be in flight."""

import pytest

from . import codec
from .codec import Ack


def fill(mqtt5, topic, maximum, qos, count):
    """A subscriber with that Receive Maximum, and `count` messages for it."""
    subscriber = mqtt5.connect("sub", receive_maximum=maximum, session_expiry=60)
    subscriber.subscribe(f"{topic}/{qos}", qos=qos)
    subscriber.subscribe(f"{topic}/0")
    publisher = mqtt5.connect("pub")
    for i in range(count):
        publisher.publish(f"{topic}/{qos}", b"%d" % i, qos)
    return subscriber, publisher


def payloads(messages):
    return [int(message.payload) for message in messages]


@pytest.mark.spec("MQTT-3.3.4-9", "MQTT-4.9.0-1", "MQTT-4.9.0-2", "MQTT-4.3.2-3", of="5.0")
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("maximum", [1, 2, 7, 20])
def test_no_more_are_sent_than_the_receive_maximum(mqtt5, topic, maximum, qos):
    subscriber, _ = fill(mqtt5, topic, maximum, qos, 25)
    found = subscriber.publishes()
    assert payloads(found) == list(range(maximum))
    for number in range(25):
        subscriber.acknowledge(found.pop(0))
        found += subscriber.publishes()
        assert payloads(found) == list(range(number + 1, min(25, number + 1 + maximum)))


@pytest.mark.spec("MQTT-3.3.4-9", "MQTT-4.3.3-3", "MQTT-4.3.3-5", of="5.0")
def test_a_qos_2_message_counts_until_its_pubcomp(mqtt5, topic):
    subscriber, _ = fill(mqtt5, topic, 1, 2, 3)
    first = subscriber.expect_publish(f"{topic}/2", b"0", 2)
    subscriber.expect_silence()
    subscriber.send(codec.ack(codec.PUBREC, first.packet_id))
    subscriber.expect(Ack(codec.PUBREL, first.packet_id))
    subscriber.expect_silence()
    subscriber.send(codec.ack(codec.PUBCOMP, first.packet_id))
    subscriber.expect_publish(f"{topic}/2", b"1", 2)
    subscriber.expect_silence()


@pytest.mark.ours("mosquitto goes on waiting for a PUBCOMP")
@pytest.mark.spec("MQTT-4.3.3-9", "MQTT-4.4.0-2", "MQTT-4.9.0-2", of="5.0")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_refused_message_counts_no_longer(mqtt5, topic, qos):
    subscriber, _ = fill(mqtt5, topic, 1, qos, 4)
    for i in range(4):
        message = subscriber.expect_publish(f"{topic}/{qos}", b"%d" % i, qos)
        subscriber.expect_silence()
        kind = codec.PUBACK if qos == 1 else codec.PUBREC
        subscriber.send(codec.ack(kind, message.packet_id, 0x80))
    subscriber.expect_silence()


@pytest.mark.spec("MQTT-3.3.4-10", "MQTT-4.9.0-3", of="5.0")
def test_other_packets_pass_a_full_window(mqtt5, topic):
    subscriber, publisher = fill(mqtt5, topic, 1, 1, 3)
    assert payloads(subscriber.publishes()) == [0]
    publisher.publish(f"{topic}/0", b"5", 0)
    subscriber.receive(f"{topic}/0", b"5", 0)
    subscriber.publish("elsewhere", b"x", 2)
    assert subscriber.request((f"{topic}/x", 1)) == (1,)
    subscriber.unsubscribe(f"{topic}/x")
    publisher.publish(f"{topic}/1", b"6", 0)
    subscriber.receive(f"{topic}/1", b"6", 0)
    subscriber.expect_silence()


@pytest.mark.ours("mosquitto sends all again, whatever the maximum is now")
@pytest.mark.spec("MQTT-3.3.4-9", "MQTT-4.4.0-1", of="5.0")
def test_each_connection_has_its_own_maximum(mqtt5, topic):
    subscriber, _ = fill(mqtt5, topic, 5, 1, 8)
    assert payloads(subscriber.publishes()) == [0, 1, 2, 3, 4]
    subscriber.drop()
    subscriber = mqtt5.connect("sub", clean=False, session_expiry=60, receive_maximum=2)
    found = subscriber.publishes()
    assert [(int(m.payload), m.dup) for m in found] == [(0, True), (1, True)]
    subscriber.drop()
    subscriber = mqtt5.connect("sub", clean=False, session_expiry=60)
    assert payloads(subscriber.receive_all()) == list(range(8))


@pytest.mark.spec("MQTT-3.3.4-9", of="5.0")
def test_retained_messages_respect_it(mqtt5, topic):
    publisher = mqtt5.connect()
    for i in range(6):
        publisher.publish(f"{topic}/{i}", b"%d" % i, 1, retain=True)
    subscriber = mqtt5.connect(receive_maximum=2)
    subscriber.subscribe(f"{topic}/+", qos=1)
    found: list[int] = []
    while len(found) < 6:
        batch = subscriber.publishes()
        assert 0 < len(batch) <= 2
        found += payloads(batch)
        for message in batch:
            subscriber.acknowledge(message)
    assert sorted(found) == list(range(6))
    for i in range(6):
        publisher.publish(f"{topic}/{i}", b"", 1, retain=True)


def quota(client):
    return client.connack.properties["receive_maximum"]


@pytest.mark.ours("mosquitto refuses the message with 0x97, and keeps the connection")
@pytest.mark.spec("MQTT-3.3.4-7", "MQTT-4.9.0-2", "MQTT-4.13.1-1", of="5.0")
def test_a_client_that_exceeds_it_is_disconnected(mqtt5, topic):
    client = mqtt5.connect()
    for i in range(1, quota(client) + 1):
        client.send(codec.publish(topic, b"x", 2, i))
        client.expect_accepted(i, 2)
    client.publish(topic, b"QoS 0 does not count", 0)
    client.send(codec.publish(topic, b"too many", 2, 65000))
    client.expect_disconnect(0x93)


@pytest.mark.spec("MQTT-3.3.4-7", "MQTT-4.3.3-12", of="5.0")
def test_a_released_message_counts_no_longer(mqtt5, topic):
    client = mqtt5.connect()
    maximum = quota(client)
    for i in range(1, maximum + 1):
        client.send(codec.publish(topic, b"x", 2, i))
        client.expect_accepted(i, 2)
    for i in range(1, 6):
        client.release(i)
        client.send(codec.publish(topic, b"next", 2, maximum + i))
        client.expect_accepted(maximum + i, 2)
    client.release(6)
    client.publish(topic, b"QoS 1", 1)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.3.4-7", of="5.0")
def test_a_burst_of_qos_1_up_to_the_maximum_is_acknowledged(mqtt5, topic):
    client = mqtt5.connect()
    numbers = range(1, min(quota(client), 200) + 1)
    client.send(b"".join(codec.publish(topic, b"x", 1, i) for i in numbers))
    for i in numbers:
        client.expect_accepted(i, 1)
