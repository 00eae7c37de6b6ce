"""MQTT 3.1 (`MQIsdp`, level 3): its differences from 3.1.1, and what mosquitto 0.1 recorded."""

import pytest

from . import codec
from .codec import Ack, Connack, Suback, Will
from .scene import spec
from .vectors import wire


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_level_3_is_served(mqtt, topic, qos):
    subscriber = mqtt.reader(topic, name="sub", qos=2, level=3)
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
    mqtt.reader(topic, name="sub", qos=1, clean=False, level=3).disconnect()
    mqtt.connect().publish(topic, b"kept", 1)
    new = mqtt.connect("sub", clean=False, level=4)
    assert new.connack == Connack(True, 0)
    new.receive(topic, b"kept", 1)


def test_the_will_works_at_level_3(mqtt, topic):
    witness = mqtt.reader(topic)
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
        "81 [ 0001 't' 00 ]",
        pytest.param("61 [ 0001 ]", marks=pytest.mark.ours("mosquitto does not look at them")),
        "a1 [ 0001 't' ]",
        "c1 [ ]",
        "36 [ 't' 0001 ]",
        "82 [ 0001 'a+' 00 ]",
    ],
)
def test_other_violations_end_the_connection_at_level_3_too(mqtt, packet):
    client = mqtt.connect(level=3)
    client.send(wire(packet))
    client.expect_closed()


# (sent, answered)
DIALOGUE = [
    ("10 [ 'MQIsdp' 03 02 003c 'mosquitto_pub_4247' ]", "20 02 00 00"),
    ("82 08 00 01 00 03 6d 73 67 00", "90 03 00 01 00"),
    ("30 0b 00 03 6d 73 67 71 30 5f 6d 73 67", "30 0b 00 03 6d 73 67 71 30 5f 6d 73 67"),
    ("c0 00", "d0 00"),
    ("a2 07 00 02 00 03 6d 73 67", "b0 02 00 02"),
    ("32 0d 00 03 6d 73 67 00 01 71 31 5f 6d 73 67", "40 02 00 01"),
    ("34 0d 00 03 6d 73 67 00 01 71 32 5f 6d 73 67", "50 02 00 01"),
    ("62 02 00 01", "70 02 00 01"),
    ("e0 00", ""),
]
SCENARIO_TOPIC = "msg"
WILL_SUB01 = b"this is a will-retain qos=2 msg from sub01"
FROM_PUB01 = b"this is qos=2 topic=msg from pub01"


@pytest.mark.own_broker
def test_each_byte_of_the_dialogue(mqtt):
    client = mqtt.socket()
    for sent, answered in DIALOGUE:
        client.send(wire(sent))
        assert client.read_bytes(len(wire(answered))) == wire(answered)
    client.expect_closed()


def test_the_codec_writes_the_bytes_of_the_dialogue():
    packets = [
        codec.connect("mosquitto_pub_4247", keep_alive=60, level=3),
        codec.subscribe(1, ("msg", 0)),
        codec.publish("msg", b"q0_msg"),
        codec.PINGREQ,
        codec.unsubscribe(2, "msg"),
        codec.publish("msg", b"q1_msg", 1, 1),
        codec.publish("msg", b"q2_msg", 2, 1),
        codec.ack(codec.PUBREL, 1),
        codec.DISCONNECT,
    ]
    assert packets == [wire(sent) for sent, _ in DIALOGUE]


def will(text):
    return Will(SCENARIO_TOPIC, text, 2, retain=True)


@pytest.mark.own_broker
@spec("3.1.2-17 3.1.2-10 3.3.1-8")
def test_a_retained_message_and_a_retained_will(mqtt):
    sub01 = mqtt.reader(SCENARIO_TOPIC, name="sub01", qos=2, level=3, will=will(WILL_SUB01))
    pub01 = mqtt.connect("pub01", level=3, will=will(b"never"))
    pub01.publish(SCENARIO_TOPIC, FROM_PUB01, 2, retain=True)
    pub01.disconnect()
    sub01.receive(SCENARIO_TOPIC, FROM_PUB01, 2)
    sub02 = mqtt.reader(SCENARIO_TOPIC, name="sub02", qos=2, level=3)
    sub02.receive(SCENARIO_TOPIC, FROM_PUB01, 2, retain=True)
    sub01.drop()
    sub02.receive(SCENARIO_TOPIC, WILL_SUB01, 2)
    late = mqtt.reader(SCENARIO_TOPIC, name="late", qos=2, level=3)
    late.receive(SCENARIO_TOPIC, WILL_SUB01, 2, retain=True)
    late.expect_silence()
    sub02.expect_silence()
