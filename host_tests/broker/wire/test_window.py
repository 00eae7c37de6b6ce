"""The window of messages in flight, and the queue behind it."""

import pytest

from . import codec
from .codec import Ack, Publish

WINDOW_OF_3 = pytest.mark.config("max_inflight_messages 3")
QUEUE_OF_5 = pytest.mark.config("max_inflight_messages 2\nmax_queued_messages 5")


def numbered(topic, numbers, qos, dup=False):
    return [Publish(topic, b"%d" % i, qos, dup=dup) for i in numbers]


@WINDOW_OF_3
@pytest.mark.spec("MQTT-4.6.0-6")
@pytest.mark.parametrize("qos", [1, 2])
def test_no_more_are_sent_than_the_window_holds(mqtt, topic, qos):
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(topic, qos=qos)
    for i in range(8):
        publisher.publish(topic, b"%d" % i, qos)
    window = subscriber.publishes()
    assert window == numbered(topic, range(3), qos)
    for i in range(3, 8):
        subscriber.acknowledge(window.pop(0))
        window += subscriber.publishes()
        assert window[-1] == Publish(topic, b"%d" % i, qos)
        assert len(window) == 3


@WINDOW_OF_3
def test_a_qos_2_message_is_in_flight_until_pubcomp(mqtt, topic):
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(topic, qos=2)
    for i in range(4):
        publisher.publish(topic, b"%d" % i, 2)
    first = subscriber.publishes()[0].packet_id
    subscriber.send(codec.ack(codec.PUBREC, first))
    subscriber.expect(Ack(codec.PUBREL, first))
    subscriber.expect_silence()
    subscriber.send(codec.ack(codec.PUBCOMP, first))
    subscriber.expect_publish(topic, b"3", 2)


@WINDOW_OF_3
def test_qos_0_passes_a_window_that_is_full(mqtt, topic):
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(f"{topic}/+", qos=1)
    for i in range(5):
        publisher.publish(f"{topic}/1", b"%d" % i, 1)
    publisher.publish(f"{topic}/0", b"at once", 0)
    assert subscriber.publishes()[-1] == Publish(f"{topic}/0", b"at once", 0)


@WINDOW_OF_3
@pytest.mark.spec("MQTT-4.4.0-1", "MQTT-4.6.0-1", "MQTT-3.1.2-5")
def test_window_and_queue_survive_the_connection(mqtt, topic):
    subscriber, publisher = mqtt.connect("sub", clean=False), mqtt.connect()
    subscriber.subscribe(topic, qos=1)
    for i in range(6):
        publisher.publish(topic, b"%d" % i, 1)
    subscriber.publishes()
    subscriber.drop()
    publisher.publish(topic, b"6", 1)
    subscriber = mqtt.connect("sub", clean=False)
    window = subscriber.publishes()
    assert window == numbered(topic, range(3), 1, dup=True)
    for message in window:
        subscriber.acknowledge(message)
    rest = subscriber.publishes()
    assert rest == numbered(topic, range(3, 6), 1)
    subscriber.acknowledge(rest[0])
    subscriber.receive(topic, b"6", 1)


@QUEUE_OF_5
def test_a_full_queue_drops_the_newest(mqtt, topic):
    subscriber, publisher = mqtt.connect("sub", clean=False), mqtt.connect()
    subscriber.subscribe(topic, qos=1)
    subscriber.disconnect()
    for i in range(20):
        publisher.publish(topic, b"%d" % i, 1)
    subscriber = mqtt.connect("sub", clean=False)
    found = []
    while some := subscriber.receive_all():
        found += some
    assert found == numbered(topic, range(len(found)), 1)
    assert 5 <= len(found) <= 7  # the standard does not say whether the window counts


@QUEUE_OF_5
def test_a_full_queue_is_usable_again_once_it_is_read(mqtt, topic):
    subscriber, publisher = mqtt.connect("sub"), mqtt.connect()
    subscriber.subscribe(topic, qos=1)
    for i in range(20):
        publisher.publish(topic, b"%d" % i, 1)
    while subscriber.receive_all():
        pass
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


@pytest.mark.config("max_inflight_messages 1")
def test_a_window_of_one_still_moves(mqtt, topic):
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(topic, qos=2)
    for i in range(6):
        publisher.publish(topic, b"%d" % i, 2)
    for i in range(6):
        subscriber.receive(topic, b"%d" % i, 2)
    subscriber.expect_silence()
