"""SUBSCRIBE and UNSUBSCRIBE, and their acknowledgements."""

import pytest

from . import codec
from .codec import Ack, Suback
from .scene import EACH_VERSION


@pytest.mark.spec("MQTT-2.3.1-7", "MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT-3.9.3-2")
@pytest.mark.parametrize("packet_id", [1, 2, 255, 256, 65535])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_subscription_is_answered_with_its_packet_id_and_qos(mqtt, topic, qos, packet_id):
    client = mqtt.connect()
    client.send(codec.subscribe(packet_id, (topic, qos)))
    assert client.next() == Suback(packet_id, (qos,))
    client.expect_silence()


@EACH_VERSION
@pytest.mark.spec("MQTT-3.8.4-4", "MQTT-3.8.4-5", "MQTT-3.9.3-1")
@pytest.mark.spec(
    "MQTT-3.8.4-5", "MQTT-3.8.4-6", "MQTT-3.8.4-7", "MQTT-3.9.3-1", "MQTT-3.9.3-2", of="5.0"
)
def test_many_filters_in_one_packet_are_answered_in_order(mqtt, topic):
    filters = [(f"{topic}/{i}", qos) for i, qos in enumerate([2, 0, 1, 1, 0, 2, 2, 0])]
    client = mqtt.connect()
    assert client.request(*filters) == (2, 0, 1, 1, 0, 2, 2, 0)
    publisher = mqtt.connect()
    for name, qos in filters:
        publisher.publish(name, b"x", 2)
        client.receive(name, b"x", qos)


@pytest.mark.spec("MQTT-3.8.4-4")
def test_the_same_filter_twice_in_one_packet_is_one_subscription(mqtt, topic):
    client = mqtt.connect()
    assert client.request((topic, 2), (topic, 0)) == (2, 0)
    mqtt.connect().publish(topic, b"x", 2)
    client.receive(topic, b"x", 0)
    client.expect_silence()
    client.unsubscribe(topic)
    mqtt.connect().publish(topic)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.8.4-3")
@pytest.mark.parametrize(("first", "second"), [(0, 2), (2, 0), (1, 2), (2, 1), (1, 1)])
def test_subscribing_again_replaces_the_subscription(mqtt, topic, first, second):
    client = mqtt.connect()
    client.subscribe(topic, qos=first)
    client.subscribe(topic, qos=second)
    mqtt.connect().publish(topic, b"x", 2)
    client.receive(topic, b"x", second)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.8.4-3")
def test_subscribing_again_loses_no_message_in_flight(mqtt, topic):
    client = mqtt.connect()
    client.subscribe(topic, qos=2)
    publisher = mqtt.connect()
    publisher.publish(topic, b"before", 2)
    client.subscribe(topic, qos=1)
    publisher.publish(topic, b"after", 2)
    client.receive(topic, b"before", 2)
    client.receive(topic, b"after", 1)


@pytest.mark.spec("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-3.10.4-4")
@pytest.mark.parametrize("packet_id", [1, 256, 65535])
def test_after_unsubscribing_no_message_comes(mqtt, topic, packet_id):
    client = mqtt.connect()
    client.subscribe(topic, qos=1)
    client.send(codec.unsubscribe(packet_id, topic))
    assert client.next() == Ack(codec.UNSUBACK, packet_id)
    mqtt.connect().publish(topic, b"x", 1)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.10.4-1")
@pytest.mark.parametrize("other", ["a/+", "a/#", "#", "a", "a/b/", "A/b", "+/b"])
def test_unsubscribing_takes_the_filter_literally(mqtt, topic, other):
    client = mqtt.connect()
    client.subscribe(f"{topic}/a/b")
    client.unsubscribe(f"{topic}/{other}")
    mqtt.connect().publish(f"{topic}/a/b")
    client.receive(f"{topic}/a/b")


@pytest.mark.spec("MQTT-3.10.4-1")
def test_unsubscribing_a_wildcard_keeps_the_others(mqtt, topic):
    client = mqtt.connect()
    client.subscribe(f"{topic}/+", f"{topic}/#", f"{topic}/a")
    client.unsubscribe(f"{topic}/+")
    client.unsubscribe(f"{topic}/#")
    publisher = mqtt.connect()
    publisher.publish(f"{topic}/b")
    publisher.publish(f"{topic}/a")
    client.receive(f"{topic}/a")
    client.expect_silence()


@pytest.mark.spec("MQTT-3.10.4-5", "MQTT-3.10.4-4")
def test_unsubscribing_what_was_never_subscribed_is_answered(mqtt, topic):
    client = mqtt.connect()
    client.unsubscribe(topic)
    client.unsubscribe(topic)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.10.4-6")
def test_many_filters_in_one_unsubscribe(mqtt, topic):
    client = mqtt.connect()
    client.subscribe(*(f"{topic}/{i}" for i in range(5)))
    client.send(codec.unsubscribe(77, f"{topic}/0", f"{topic}/none", f"{topic}/3"))
    assert client.next() == Ack(codec.UNSUBACK, 77)
    publisher = mqtt.connect()
    for i in range(5):
        publisher.publish(f"{topic}/{i}")
    assert [message.topic[-1] for message in client.publishes()] == ["1", "2", "4"]


@EACH_VERSION
@pytest.mark.spec("MQTT-3.10.4-3")
@pytest.mark.spec("MQTT-3.10.4-3", of="5.0")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_delivery_begun_before_unsubscribing_is_finished(mqtt, topic, qos):
    client = mqtt.connect("sub", clean=False)
    client.subscribe(topic, qos=qos)
    client.publish(topic, b"begun", qos)
    message = client.expect_publish(topic, b"begun", qos)
    client.unsubscribe(topic)
    client.publish(topic, b"never", qos)
    client.drop()
    client = mqtt.connect("sub", clean=False)
    assert client.receive(topic, b"begun", qos, dup=True).packet_id == message.packet_id
    client.expect_silence()


def test_one_client_unsubscribing_leaves_the_other(mqtt, topic):
    leaving, staying = mqtt.connect(), mqtt.connect()
    for client in (leaving, staying):
        client.subscribe(topic)
    leaving.unsubscribe(topic)
    mqtt.connect().publish(topic)
    staying.receive(topic)
    leaving.expect_silence()


@EACH_VERSION
@pytest.mark.spec("MQTT-3.8.4-4")
@pytest.mark.spec("MQTT-3.8.3-1", "MQTT-4.7.3-2", of="5.0")
def test_a_subscribe_of_300_filters(mqtt, topic):
    filters = [(f"{topic}/{i}", i % 3) for i in range(300)]
    client = mqtt.connect()
    assert client.request(*filters) == tuple(qos for _, qos in filters)
    mqtt.connect().publish(f"{topic}/299", b"x", 2)
    client.receive(f"{topic}/299", b"x", 2)
    client.unsubscribe(*(name for name, _ in filters))
    mqtt.connect().publish(f"{topic}/299")
    client.expect_silence()
