"""SUBSCRIBE and UNSUBSCRIBE in MQTT 5.0: reason codes and Maximum QoS."""

import pytest

from . import codec
from .codec import Suback, Unsuback
from .refusals import refuse_filter


@pytest.mark.spec("MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT-2.2.1-6", "MQTT-3.8.4-7", of="5.0")
@pytest.mark.parametrize("packet_id", [1, 127, 256, 65535])
def test_acknowledgements_carry_the_packet_id(mqtt5, topic, packet_id):
    client = mqtt5.connect()
    client.send(codec.subscribe(packet_id, (topic, 1)))
    assert client.next() == Suback(packet_id, (1,))
    client.send(codec.unsubscribe(packet_id, topic))
    assert client.next() == Unsuback(packet_id, (0,))


@pytest.mark.spec(
    "MQTT-3.10.4-4", "MQTT-3.10.4-5", "MQTT-3.10.4-6", "MQTT-3.11.3-1", "MQTT-3.11.3-2", of="5.0"
)
def test_unsuback_has_a_code_for_each_filter(mqtt5, topic):
    client = mqtt5.connect()
    client.subscribe(f"{topic}/a", f"{topic}/+", f"{topic}/#")
    wanted = [f"{topic}/b", f"{topic}/+", f"{topic}/a", f"{topic}/a", f"{topic}/c/#"]
    assert client.withdraw(*wanted) == (0x11, 0, 0, 0x11, 0x11)
    client.publish(f"{topic}/a")
    client.receive(f"{topic}/a")
    assert client.withdraw(f"{topic}/#", user=(("a", "b"),)) == (0,)
    client.publish(f"{topic}/a")
    client.expect_silence()


@pytest.mark.spec("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-4.7.3-4", of="5.0")
def test_unsubscribe_compares_filters_literally(mqtt5, topic):
    client = mqtt5.connect()
    client.subscribe(f"{topic}/A")
    others = [f"{topic}/a", f"{topic}/+", f"{topic}/#", f"{topic}/A/", f"/{topic}/A"]
    assert set(client.withdraw(*others)) == {0x11}
    client.publish(f"{topic}/A")
    client.receive(f"{topic}/A")


@pytest.mark.spec("MQTT-4.7.1-1", "MQTT-4.7.1-2", "MQTT-4.7.3-1", of="5.0")
@pytest.mark.parametrize(
    "name",
    ["", "a#", "#/a", "a/#/b", "a+", "+a", "a/+b", "##", "++", "+#", "#/", "/a#", "#+", "a/++/b"],
)
def test_an_invalid_filter_is_refused(mqtt5, name):
    """The peer may send a code of its own in SUBACK."""
    for packet in (
        codec.subscribe(1, (name, 0)),
        codec.subscribe(1, ("t", 1), (name, 3)),  # malformed counts first
        codec.unsubscribe(1, "t", name),
    ):
        refuse_filter(mqtt5, mqtt5.connect(), packet)


@pytest.mark.spec("MQTT-3.2.2-9", "MQTT-3.2.2-10", "MQTT-3.2.2-11", of="5.0")
@pytest.mark.parametrize(
    "maximum", [pytest.param(qos, marks=pytest.mark.config(f"max_qos {qos}")) for qos in (0, 1)]
)
def test_a_lower_maximum_qos(mqtt5, topic, maximum):
    client = mqtt5.connect()
    assert client.connack.properties["maximum_qos"] == maximum
    assert client.request((topic, 2), (f"{topic}/b", 0)) == (maximum, 0)
    client.publish(topic, b"x", maximum)
    client.receive(topic, b"x", maximum)
    client.send(codec.publish(topic, b"x", maximum + 1, 1))
    client.expect_disconnect(0x9B)


@pytest.mark.spec("MQTT-4.7.3-3", of="5.0")
@pytest.mark.parametrize("size", [1, 127, 128, 20_000, 65_535])
def test_topics_of_every_length(mqtt5, topic, size):
    name = (f"{topic}/" + "x" * size)[-size:]
    client = mqtt5.connect(topic_alias_maximum=1)
    client.subscribe(name, qos=1)
    for _ in range(3):
        client.publish(name, b"x", 1, content_type="text")
        client.receive(name, b"x", 1, content_type="text")
