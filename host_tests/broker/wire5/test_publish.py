"""PUBLISH in MQTT 5.0: retained messages, retries, large messages."""

import pytest

from . import codec

QOS = [0, 1, 2]


def back(mqtt5, **options):
    client = mqtt5.connect("sub", clean=False, session_expiry=60, **options)
    assert client.connack.session_present
    return client


@pytest.fixture
def subscriber(mqtt5, topic):
    client = mqtt5.connect("sub", session_expiry=60)
    client.subscribe(f"{topic}/#", qos=2)
    return client


@pytest.fixture
def publisher(mqtt5):
    return mqtt5.connect("pub")


@pytest.mark.config("retry_interval 1")
@pytest.mark.waits
@pytest.mark.ours("mosquitto has no such key any more")
@pytest.mark.spec("MQTT-4.4.0-1", of="5.0")
def test_retry_interval_is_for_older_versions_only(mqtt5, subscriber, publisher, topic):
    old = mqtt5.older()
    old.subscribe(topic, qos=1)
    publisher.publish(topic, b"x", 1)
    old.expect_publish(topic, b"x", 1)
    subscriber.expect_publish(topic, b"x", 1)
    old.expect_publish(topic, b"x", 1, dup=True)
    subscriber.expect_silence()


@pytest.mark.spec("MQTT-3.3.1-5", "MQTT-3.3.1-8", "MQTT-3.3.1-6", "MQTT-3.3.1-7", of="5.0")
@pytest.mark.parametrize("qos", QOS)
def test_retained_messages_are_stored_replaced_and_cleared(mqtt5, publisher, topic, qos):
    def kept():
        reader = mqtt5.connect()
        reader.subscribe(topic, qos=2)
        return [(m.payload, m.qos, m.retain, m.properties) for m in reader.receive_all()]

    publisher.publish(topic, b"one", qos, retain=True, content_type="first")
    assert kept() == [(b"one", qos, True, {"content_type": "first"})]
    publisher.publish(topic, b"passing", qos)
    publisher.publish(topic, b"", qos, user=(("not", "retained"),))
    assert kept() == [(b"one", qos, True, {"content_type": "first"})]
    publisher.publish(topic, b"two", qos, retain=True)
    assert kept() == [(b"two", qos, True, {})]
    publisher.publish(topic, b"", qos, retain=True, content_type="last")
    assert kept() == []


@pytest.mark.spec("MQTT-3.3.1-6", of="5.0")
def test_an_empty_retained_message_is_passed_on(subscriber, publisher, topic):
    publisher.publish(topic, b"", 1, retain=True, content_type="gone")
    subscriber.receive(topic, b"", 1, content_type="gone")


@pytest.mark.config("retain_available false")
@pytest.mark.spec("MQTT-3.2.2-14", of="5.0")
def test_with_retain_available_false_retain_is_refused(mqtt5, topic):
    client = mqtt5.connect()
    assert client.connack.properties["retain_available"] == 0
    client.publish(topic, b"x", 1)
    client.send(codec.publish(topic, b"x", retain=True))
    client.expect_disconnect(0x9A)


@pytest.mark.parametrize("size", [20_000, 100_000, 1_000_000])
@pytest.mark.parametrize("qos", QOS)
def test_large_messages_with_properties(subscriber, publisher, topic, size, qos):
    payload = bytes(i * 7 & 255 for i in range(251)) * (size // 251)
    properties = {"user": (("name", "v" * 1000),), "content_type": "bytes"}
    publisher.publish(topic, payload, qos, **properties)
    subscriber.receive(topic, payload, qos, **properties)
