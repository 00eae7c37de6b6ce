"""Windows: how many QoS 1 and 2 messages are in flight, and the queue behind them.

The broker's own window is max_inflight_messages; a client of 5.0 has Receive Maximum, and so has
the broker for what it receives.
"""

import pytest

from ..wire5 import codec as codec5
from . import codec
from .scene import each_version, spec

WINDOW_OF_3 = pytest.mark.config("max_inflight_messages 3")
QUEUE_OF_5 = pytest.mark.config("max_inflight_messages 2\nmax_queued_messages 5")
# The configuration, the maximum that a client of 5.0 asks for, and the window
WINDOWS = [
    pytest.param("3.1.1", None, 3, marks=WINDOW_OF_3),
    pytest.param("3.1.1", None, 1, marks=pytest.mark.config("max_inflight_messages 1")),
    pytest.param("5.0", 2, 2, marks=WINDOW_OF_3),
    *(pytest.param("5.0", maximum, maximum) for maximum in (1, 2, 7, 20)),
]


def numbered(mqtt, topic, numbers, qos, dup=False):
    return [mqtt.codec.Publish(topic, b"%d" % i, qos, dup=dup) for i in numbers]


def fill(mqtt, topic, qos, count, **options):
    """A subscriber, and `count` messages for it."""
    subscriber = mqtt.reader(f"{topic}/{qos}", name="sub", qos=qos, clean=False, **options)
    subscriber.subscribe(f"{topic}/0")
    publisher = mqtt.connect("pub")
    for i in range(count):
        publisher.publish(f"{topic}/{qos}", b"%d" % i, qos)
    return subscriber, publisher


def payloads(messages):
    return [int(message.payload) for message in messages]


@spec("4.6.0-6", "3.3.4-9 4.9.0-1 4.9.0-2 4.3.2-3")
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize(("mqtt", "maximum", "window"), WINDOWS, indirect=["mqtt"])
def test_no_more_are_sent_than_the_window_holds(mqtt, topic, maximum, window, qos):
    subscriber, _ = fill(mqtt, topic, qos, 25, **({"receive_maximum": maximum} if maximum else {}))
    found = subscriber.publishes()
    assert found == numbered(mqtt, f"{topic}/{qos}", range(window), qos)
    for number in range(1, 26):
        subscriber.acknowledge(found.pop(0))
        found += subscriber.publishes()
        assert payloads(found) == list(range(number, min(25, number + window)))


ONE_AT_ONCE = [
    pytest.param("3.1.1", {}, marks=pytest.mark.config("max_inflight_messages 1")),
    ("5.0", {"receive_maximum": 1}),
]


@spec(new="3.3.4-9 4.3.3-3 4.3.3-5")
@pytest.mark.parametrize(("mqtt", "options"), ONE_AT_ONCE, indirect=["mqtt"])
def test_a_qos_2_message_counts_until_its_pubcomp(mqtt, topic, options):
    subscriber, _ = fill(mqtt, topic, 2, 3, **options)
    first = subscriber.expect_publish(f"{topic}/2", b"0", 2)
    subscriber.expect_silence()
    subscriber.send(codec.ack(codec.PUBREC, first.packet_id))
    subscriber.expect(mqtt.codec.Ack(codec.PUBREL, first.packet_id))
    subscriber.expect_silence()
    subscriber.send(codec.ack(codec.PUBCOMP, first.packet_id))
    subscriber.expect_publish(f"{topic}/2", b"1", 2)
    subscriber.expect_silence()


@spec(new="3.3.4-10 4.9.0-3")
@pytest.mark.parametrize(("mqtt", "options"), ONE_AT_ONCE, indirect=["mqtt"])
def test_other_packets_pass_a_full_window(mqtt, topic, options):
    subscriber, publisher = fill(mqtt, topic, 1, 3, **options)
    assert payloads(subscriber.publishes()) == [0]
    publisher.publish(f"{topic}/0", b"5", 0)
    subscriber.receive(f"{topic}/0", b"5", 0)
    subscriber.publish("elsewhere", b"x", 2)
    assert subscriber.request((f"{topic}/x", 1)) == (1,)
    subscriber.unsubscribe(f"{topic}/x")
    publisher.publish(f"{topic}/1", b"6", 0)
    subscriber.receive(f"{topic}/1", b"6", 0)
    subscriber.expect_silence()


@WINDOW_OF_3
@each_version("4.4.0-1 4.6.0-1 3.1.2-5")
def test_window_and_queue_survive_the_connection(mqtt, topic):
    subscriber, publisher = fill(mqtt, topic, 1, 6)
    subscriber.publishes()
    subscriber.drop()
    topic += "/1"
    publisher.publish(topic, b"6", 1)
    subscriber = mqtt.connect("sub", clean=False)
    window = subscriber.publishes()
    assert window == numbered(mqtt, topic, range(3), 1, dup=True)
    for message in window:
        subscriber.acknowledge(message)
    rest = subscriber.publishes()
    assert rest == numbered(mqtt, topic, range(3, 6), 1)
    subscriber.acknowledge(rest[0])
    subscriber.receive(topic, b"6", 1)


@QUEUE_OF_5
def test_a_full_queue_drops_the_newest_and_is_usable_again(mqtt, topic):
    subscriber, publisher = fill(mqtt, topic, 1, 0)
    subscriber.disconnect()
    topic += "/1"
    for i in range(20):
        publisher.publish(topic, b"%d" % i, 1)
    subscriber, found = mqtt.connect("sub", clean=False), []
    while some := subscriber.receive_all():
        found += some
    assert found == numbered(mqtt, topic, range(len(found)), 1)
    assert 5 <= len(found) <= 7  # the standard does not say whether the window counts
    publisher.publish(topic, b"again", 1)
    subscriber.receive(topic, b"again", 1)


@QUEUE_OF_5
def test_a_full_queue_of_one_client_does_not_affect_another(mqtt, topic):
    slow, quick, publisher = mqtt.connect(), mqtt.connect(), mqtt.connect()
    for client in (slow, quick):
        client.subscribe(topic, qos=1)
    for i in range(20):
        publisher.publish(topic, b"%d" % i, 1)
        quick.receive(topic, b"%d" % i, 1)
    assert len(slow.publishes()) == 2


@pytest.mark.ours("mosquitto goes on waiting for a PUBCOMP")
@spec(new="4.3.3-9 4.4.0-2 4.9.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_refused_message_counts_no_longer(mqtt5, topic, qos):
    subscriber, _ = fill(mqtt5, topic, qos, 4, receive_maximum=1, session_expiry=60)
    for i in range(4):
        message = subscriber.expect_publish(f"{topic}/{qos}", b"%d" % i, qos)
        subscriber.expect_silence()
        kind = codec5.PUBACK if qos == 1 else codec5.PUBREC
        subscriber.send(codec5.ack(kind, message.packet_id, 0x80))
    subscriber.expect_silence()


@pytest.mark.ours("mosquitto sends all again, whatever the maximum is now")
@spec(new="3.3.4-9 4.4.0-1")
def test_each_connection_has_its_own_maximum(mqtt5, topic):
    subscriber, _ = fill(mqtt5, topic, 1, 8, receive_maximum=5, session_expiry=60)
    assert payloads(subscriber.publishes()) == [0, 1, 2, 3, 4]
    subscriber.drop()
    subscriber = mqtt5.connect("sub", clean=False, session_expiry=60, receive_maximum=2)
    found = subscriber.publishes()
    assert [(int(m.payload), m.dup) for m in found] == [(0, True), (1, True)]
    subscriber.drop()
    subscriber = mqtt5.connect("sub", clean=False, session_expiry=60)
    assert payloads(subscriber.receive_all()) == list(range(8))


@spec(new="3.3.4-9")
def test_retained_messages_respect_it(mqtt5, topic):
    publisher = mqtt5.connect()
    for i in range(6):
        publisher.publish(f"{topic}/{i}", b"%d" % i, 1, retain=True)
    subscriber = mqtt5.reader(f"{topic}/+", qos=1, receive_maximum=2)
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
@spec(new="3.3.4-7 4.9.0-2 4.13.1-1")
def test_a_client_that_exceeds_it_is_disconnected(mqtt5, topic):
    client = mqtt5.connect()
    for i in range(1, quota(client) + 1):
        client.send(codec5.publish(topic, b"x", 2, i))
        client.expect_accepted(i, 2)
    client.publish(topic, b"QoS 0 does not count", 0)
    client.send(codec5.publish(topic, b"too many", 2, 65000))
    client.expect_disconnect(0x93)


@spec(new="3.3.4-7 4.3.3-12")
def test_a_released_message_counts_no_longer(mqtt5, topic):
    client = mqtt5.connect()
    maximum = quota(client)
    for i in range(1, maximum + 1):
        client.send(codec5.publish(topic, b"x", 2, i))
        client.expect_accepted(i, 2)
    for i in range(1, 6):
        client.release(i)
        client.send(codec5.publish(topic, b"next", 2, maximum + i))
        client.expect_accepted(maximum + i, 2)
    client.release(6)
    client.publish(topic, b"QoS 1", 1)
    client.expect_silence()


@spec(new="3.3.4-7")
def test_a_burst_of_qos_1_up_to_the_maximum_is_acknowledged(mqtt5, topic):
    client = mqtt5.connect()
    numbers = range(1, min(quota(client), 200) + 1)
    client.send(b"".join(codec5.publish(topic, b"x", 1, i) for i in numbers))
    for i in numbers:
        client.expect_accepted(i, 1)
