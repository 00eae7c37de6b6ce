"""Settings that change the packets on the wire."""

import pytest

from . import codec
from .codec import Connack, Publish

OURS = pytest.mark.ours("mosquitto does it otherwise below version 5")


@OURS
@pytest.mark.config("max_qos 1")
def test_max_qos_lowers_what_is_granted(mqtt, topic):
    client = mqtt.connect()
    assert client.request((topic, 2), (f"{topic}/a", 0)) == (1, 0)
    mqtt.connect().publish(topic, b"x", 1)
    client.receive(topic, b"x", 1)


@OURS
@pytest.mark.config("max_qos 1")
def test_a_publish_above_max_qos_ends_the_connection(mqtt, topic):
    client = mqtt.connect()
    client.send(codec.publish(topic, b"x", 2, 1))
    client.expect_closed()


@pytest.mark.config("retain_available false")
def test_without_retained_messages_a_publish_that_asks_for_it_ends_the_connection(mqtt, topic):
    client = mqtt.connect()
    client.send(codec.publish(topic, b"x", 1, 1, retain=True))
    client.expect_closed()
    subscriber = mqtt.connect()
    subscriber.subscribe(topic)
    subscriber.expect_silence()


@pytest.mark.config("message_size_limit 100")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_payload_over_the_limit_is_acknowledged_and_not_delivered(mqtt, topic, qos):
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(topic, qos=2)
    publisher.publish(topic, b"x" * 101, qos)
    publisher.publish(topic, b"x" * 100, qos)
    subscriber.receive(topic, b"x" * 100, qos)
    subscriber.expect_silence()


@pytest.mark.ours("mosquitto counts only what follows the fixed header")
@pytest.mark.config("max_packet_size 60")
def test_a_packet_over_the_limit_ends_the_connection(mqtt, topic):
    client = mqtt.connect()
    client.publish(topic, b"x" * (60 - 2 - 2 - len(topic)), 0)
    client.send(codec.publish(topic, b"x" * (61 - 2 - 2 - len(topic))))
    client.expect_closed()


@pytest.mark.config("max_keepalive 10")
@pytest.mark.parametrize(("keep_alive", "code"), [(10, 0), (1, 0), (11, 2), (65535, 2), (0, 2)])
def test_a_keep_alive_over_the_limit_is_refused(mqtt, keep_alive, code):
    client = mqtt.socket()
    assert client.connect(mqtt.packet(keep_alive=keep_alive)) == Connack(False, code)


@pytest.mark.config("auto_id_prefix robot-")
def test_auto_id_prefix_is_accepted(mqtt, topic):
    client = mqtt.socket()
    assert client.connect(codec.connect("")) == Connack(False, 0)
    client.subscribe(topic)
    client.publish(topic)
    assert client.next() == Publish(topic, b"x")


@pytest.mark.config("set_tcp_nodelay false")
def test_without_tcp_nodelay_everything_arrives(mqtt, topic):
    subscriber, publisher = mqtt.connect(), mqtt.connect()
    subscriber.subscribe(topic, qos=1)
    for i in range(5):
        publisher.publish(topic, b"%d" % i, 1)
        subscriber.receive(topic, b"%d" % i, 1)
