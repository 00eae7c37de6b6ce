"""Settings that change the packets on the wire."""

import pytest

from . import codec
from .codec import Connack, Publish
from .scene import EACH_VERSION


@EACH_VERSION
@pytest.mark.ours("mosquitto does it otherwise below version 5")
@pytest.mark.spec("MQTT-3.2.2-9", "MQTT-3.2.2-10", "MQTT-3.2.2-11", of="5.0")
@pytest.mark.parametrize(
    "maximum", [pytest.param(qos, marks=pytest.mark.config(f"max_qos {qos}")) for qos in (0, 1)]
)
def test_a_lower_maximum_qos(mqtt, topic, maximum):
    client = mqtt.connect()
    assert getattr(client.connack, "properties", {}).get("maximum_qos", maximum) == maximum
    assert client.request((topic, 2), (f"{topic}/b", 0)) == (maximum, 0)
    client.publish(topic, b"x", maximum)
    client.receive(topic, b"x", maximum)
    client.send(mqtt.codec.publish(topic, b"x", maximum + 1, 1))
    client.expect_disconnect(0x9B)


@EACH_VERSION
@pytest.mark.config("retain_available false")
@pytest.mark.spec("MQTT-3.2.2-14", of="5.0")
def test_with_retain_available_false_retain_is_refused(mqtt, topic):
    client = mqtt.connect()
    assert getattr(client.connack, "properties", {}).get("retain_available", 0) == 0
    client.publish(topic, b"x", 1)
    client.send(mqtt.codec.publish(topic, b"x", 1, 9, retain=True))
    client.expect_disconnect(0x9A)
    mqtt.reader(topic).expect_silence()


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
