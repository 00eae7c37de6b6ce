"""Redelivery: what was not acknowledged is sent again after a reconnect, once, in order."""

import pytest

from . import codec
from .codec import Ack
from .scene import each_version, spec


def subscribed(mqtt, topic, qos):
    """A client with a persistent session, and a publisher for it."""
    subscriber = mqtt.reader(topic, name="sub", qos=qos, clean=False)
    return subscriber, mqtt.connect("pub")


def back(mqtt):
    client = mqtt.connect("sub", clean=False)
    assert client.connack.session_present
    return client


@each_version(
    "4.3.2-1 4.3.3-1 4.6.0-1 4.6.0-6 3.1.2-5 4.4.0-1 3.3.1-1",
    "3.3.1-1 4.4.0-1 4.6.0-1 4.3.2-3 4.3.3-3",
)
@pytest.mark.parametrize("qos", [1, 2])
def test_unacknowledged_messages_are_sent_again_in_order_before_newer_ones(mqtt, topic, qos):
    subscriber, publisher = subscribed(mqtt, topic, qos)
    for i in range(8):
        publisher.publish(topic, b"%d" % i, qos)
    first = subscriber.publishes()
    for i in (2, 1, 6):
        subscriber.acknowledge(first[i])
    subscriber.drop()
    publisher.publish(topic, b"while away", qos)
    subscriber = back(mqtt)
    publisher.publish(topic, b"live", qos)
    again, left = subscriber.receive_all(), (0, 3, 4, 5, 7)
    expected = [mqtt.codec.Publish(topic, b"%d" % i, qos, dup=True) for i in left]
    expected += [mqtt.codec.Publish(topic, text, qos) for text in (b"while away", b"live")]
    assert again == expected
    assert [m.packet_id for m in again[:5]] == [first[i].packet_id for i in left]
    subscriber.drop()
    back(mqtt).expect_silence()


@spec("4.4.0-1 3.3.1-1")
def test_a_message_is_sent_again_at_each_reconnect_until_it_is_acknowledged(mqtt, topic):
    subscriber, publisher = subscribed(mqtt, topic, 1)
    publisher.publish(topic, b"open", 1)
    subscriber.expect_publish(topic, b"open", 1)
    for _ in range(3):
        subscriber.drop()
        subscriber = back(mqtt)
        message = subscriber.expect_publish(topic, b"open", 1, dup=True)
    subscriber.acknowledge(message)
    subscriber.drop()
    back(mqtt).expect_silence()


@each_version("4.3.3-1 4.4.0-1 4.6.0-1 2.3.1-6", "4.3.3-5 4.3.3-6 4.4.0-1")
def test_after_pubrec_only_the_pubrel_is_sent_again(mqtt, topic):
    subscriber, publisher = subscribed(mqtt, topic, 2)
    for payload in (b"released", b"open", b"done"):
        publisher.publish(topic, payload, 2)
    released, opened, done = subscriber.publishes()
    again = mqtt.codec.Ack(codec.PUBREL, released.packet_id)
    subscriber.send(codec.ack(codec.PUBREC, released.packet_id))
    subscriber.expect(again)
    subscriber.acknowledge(done)
    subscriber.drop()
    subscriber = back(mqtt)
    assert subscriber.next() == again
    subscriber.send(codec.ack(codec.PUBCOMP, released.packet_id))
    message = subscriber.receive(topic, b"open", 2, dup=True)
    assert message.packet_id == opened.packet_id
    subscriber.expect_silence()
    subscriber.drop()
    back(mqtt).expect_silence()


@spec("2.3.1-4 4.3.2-1")
def test_a_new_message_does_not_take_an_id_that_is_in_use(mqtt, topic):
    subscriber, publisher = subscribed(mqtt, topic, 1)
    publisher.publish(topic, b"open", 1)
    held = subscriber.expect_publish(topic, b"open", 1).packet_id
    subscriber.drop()
    subscriber = back(mqtt)
    subscriber.expect_publish(topic, b"open", 1, dup=True)
    for i in range(5):
        publisher.publish(topic, b"%d" % i, 1)
        assert subscriber.receive(topic, b"%d" % i, 1).packet_id != held


@each_version("3.1.2-4 4.3.2-1", "4.4.0-1")
def test_nothing_is_sent_again_while_the_connection_lasts(mqtt, topic):
    subscriber, publisher = subscribed(mqtt, topic, 2)
    publisher.publish(topic, b"open", 2)
    subscriber.expect_publish(topic, b"open", 2)
    for i in range(3):
        publisher.publish(topic, b"%d" % i, 0)
        subscriber.receive(topic, b"%d" % i, 0)
    subscriber.expect_silence()


@pytest.mark.waits
@pytest.mark.ours("mosquitto 2 has no such timer")
@pytest.mark.config("retry_interval 1")
@spec(new="4.4.0-1")
def test_with_a_retry_interval_packets_are_sent_again_to_older_versions(mqtt5, topic):
    new, olds = mqtt5.reader(f"{topic}/+", qos=1), [mqtt5.older(level=level) for level in (3, 4)]
    for old in olds:
        assert old.request((f"{topic}/1", 1), (f"{topic}/2", 2)) == (1, 2)
    publisher = mqtt5.connect()
    publisher.publish(f"{topic}/1", b"one", 1)
    publisher.publish(f"{topic}/2", b"two", 2)
    assert len(new.publishes()) == 2
    sent = []
    for old in olds:
        one = old.expect_publish(f"{topic}/1", b"one", 1)
        two = old.expect_publish(f"{topic}/2", b"two", 2)
        old.send(codec.ack(codec.PUBREC, two.packet_id))
        old.expect(Ack(codec.PUBREL, two.packet_id))
        sent.append((one.packet_id, two.packet_id))
    for old, (one, two) in zip(olds, sent, strict=True):
        assert old.receive(f"{topic}/1", b"one", 1, dup=True).packet_id == one
        assert old.next() == Ack(codec.PUBREL, two)
        old.send(codec.ack(codec.PUBCOMP, two))
        old.expect_silence()
    new.expect_silence()
