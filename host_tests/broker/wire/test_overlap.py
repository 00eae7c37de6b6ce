"""Overlapping filters of one client: one delivery, with the highest QoS."""

import itertools

import pytest

from .scene import EACH_VERSION

MOSQUITTO_TAKES_THE_FIRST = pytest.mark.ours("mosquitto takes the first match it finds")


@EACH_VERSION
@MOSQUITTO_TAKES_THE_FIRST
@pytest.mark.spec("MQTT-3.3.5-1", "MQTT-3.8.4-6")
@pytest.mark.spec("MQTT-3.3.4-2", of="5.0")
def test_overlapping_filters_have_the_highest_qos(mqtt, topic):
    client = mqtt.connect()
    assert client.request((f"{topic}/#", 0), (f"{topic}/+", 2), (f"{topic}/b", 1)) == (0, 2, 1)
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    client.receive(f"{topic}/b", b"x", 2)
    client.expect_silence()


@MOSQUITTO_TAKES_THE_FIRST
@pytest.mark.spec("MQTT-3.3.5-1")
@pytest.mark.parametrize("filters", list(itertools.permutations(["#", "+", "b"])))
@pytest.mark.parametrize("granted", list(itertools.permutations([0, 1, 2])))
def test_the_order_of_the_subscriptions_does_not_matter(mqtt, topic, filters, granted):
    client = mqtt.connect()
    for name, qos in zip(filters, granted, strict=True):
        client.subscribe(f"{topic}/{name}", qos=qos)
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    client.receive(f"{topic}/b", b"x", 2)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.3.5-1", "MQTT-3.10.4-1")
def test_after_unsubscribing_the_highest_the_next_one_counts(mqtt, topic):
    client = mqtt.connect()
    client.request((f"{topic}/#", 0), (f"{topic}/+", 2), (f"{topic}/b", 1))
    publisher = mqtt.connect()
    for left, qos in ((f"{topic}/+", 1), (f"{topic}/b", 0)):
        client.unsubscribe(left)
        publisher.publish(f"{topic}/b", b"x", 2)
        client.receive(f"{topic}/b", b"x", qos)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.3.5-1", "MQTT-3.1.2-5")
def test_a_queued_message_is_queued_once(mqtt, topic):
    client = mqtt.connect("sub", clean=False)
    client.request((f"{topic}/#", 1), (f"{topic}/b", 2))
    client.disconnect()
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    client = mqtt.connect("sub", clean=False)
    client.receive(f"{topic}/b", b"x", 2)
    client.expect_silence()


@pytest.mark.spec("MQTT-3.3.5-1")
@pytest.mark.config("allow_duplicate_messages true")
def test_with_allow_duplicate_messages_there_is_one_for_each_filter(mqtt, topic):
    client = mqtt.connect()
    client.request((f"{topic}/#", 0), (f"{topic}/+", 2), (f"{topic}/b", 1))
    mqtt.connect().publish(f"{topic}/b", b"x", 2)
    assert sorted(m.qos for m in client.receive_all()) == [0, 1, 2]
    client.expect_silence()


@pytest.mark.config("upgrade_outgoing_qos true")
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_with_upgrade_outgoing_qos_the_qos_is_that_of_the_subscription(mqtt, topic, granted):
    client = mqtt.reader(topic, qos=granted)
    mqtt.connect().publish(topic, b"x", 0)
    client.receive(topic, b"x", granted)
