"""MQTT 3.1 (`MQIsdp`, level 3): its differences from 3.1.1."""

import pytest

from . import codec
from .codec import Ack, Connack, Suback, Will
from .vectors import case


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_level_3_is_served(mqtt, topic, qos):
    subscriber = mqtt.connect("sub", level=3)
    subscriber.subscribe(topic, qos=2)
    mqtt.connect("pub", level=3).publish(topic, b"x", qos)
    subscriber.receive(topic, b"x", qos)
    subscriber.unsubscribe(topic)
    subscriber.disconnect()


def test_clients_of_levels_3_and_4_get_each_others_messages(mqtt, topic):
    old, new = mqtt.connect(level=3), mqtt.connect(level=4)
    for client in (old, new):
        client.subscribe(topic, qos=2)
    old.publish(topic, b"from 3", 2)
    new.publish(topic, b"from 4", 2)
    for client in (old, new):
        client.receive(topic, b"from 3", 2)
        client.receive(topic, b"from 4", 2)


def test_connack_has_no_session_present_at_level_3(mqtt):
    mqtt.connect("sub", clean=False, level=3).disconnect()
    again = mqtt.connect("sub", clean=False, level=3)
    assert again.connack == Connack(False, 0)


def test_a_session_of_level_3_is_resumed_at_level_4(mqtt, topic):
    old = mqtt.connect("sub", clean=False, level=3)
    old.subscribe(topic, qos=1)
    old.disconnect()
    mqtt.connect().publish(topic, b"kept", 1)
    new = mqtt.connect("sub", clean=False, level=4)
    assert new.connack == Connack(True, 0)
    new.receive(topic, b"kept", 1)


def test_the_will_works_at_level_3(mqtt, topic):
    witness = mqtt.connect()
    witness.subscribe(topic)
    mqtt.connect(level=3, will=Will(topic)).drop()
    witness.receive(topic, b"gone")


def test_an_empty_client_id_is_refused_at_level_3(mqtt):
    mqtt.socket().expect_refused(codec.connect("", level=3), 2)


@pytest.mark.ours("mosquitto has no such limit")
@pytest.mark.config("mqtt31_client_id_max 23")
@pytest.mark.parametrize(("length", "code"), [(1, 0), (23, 0), (24, 2), (60, 2)])
def test_client_ids_of_level_3_can_be_limited_to_23_characters(mqtt, length, code):
    client = mqtt.socket()
    assert client.connect(codec.connect("i" * length, level=3)) == Connack(False, code)
    if code:
        client.expect_closed()
    assert mqtt.socket().connect(codec.connect("i" * length, level=4)) == Connack(False, 0)


@pytest.mark.ours("mosquitto 2 closes at a DUP in SUBSCRIBE or PUBREL")
def test_dup_is_allowed_in_subscribe_unsubscribe_and_pubrel(mqtt, topic):
    client = mqtt.connect(level=3)
    for dup in (False, True):
        client.send(codec.subscribe(5, (topic, 2), dup=dup))
        assert client.next() == Suback(5, (2,))
    client.send(codec.publish(topic, b"x", 2, 6))
    client.expect(Ack(codec.PUBREC, 6))
    for dup in (False, True):
        client.send(codec.ack(codec.PUBREL, 6, dup=dup))
        client.expect(Ack(codec.PUBCOMP, 6))
    client.receive(topic, b"x", 2)
    for dup in (False, True):
        client.send(codec.unsubscribe(7, topic, dup=dup))
        assert client.next() == Ack(codec.UNSUBACK, 7)
    client.expect_silence()


@pytest.mark.parametrize(
    "packet",
    [
        case("subscribe-flags", "81 [ 0001 't' 00 ]"),
        case("pubrel-flags", "61 [ 0001 ]", ours="mosquitto does not look at them in level 3"),
        case("unsubscribe-flags", "a1 [ 0001 't' ]"),
        case("pingreq-flags", "c1 [ ]"),
        case("qos-3", "36 [ 't' 0001 ]"),
        case("illegal-filter", "82 [ 0001 'a+' 00 ]"),
    ],
)
def test_other_violations_end_the_connection_at_level_3_too(mqtt, packet):
    client = mqtt.connect(level=3)
    client.send(packet)
    client.expect_closed()
