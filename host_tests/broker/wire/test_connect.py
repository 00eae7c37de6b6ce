"""CONNECT and CONNACK: what is accepted, and which code refuses the rest."""

import string

import pytest

from . import codec
from .codec import Connack
from .scene import EACH_VERSION
from .vectors import GOOD_TEXT, wire

ACCEPTED = Connack(False, 0)


@pytest.mark.spec("MQTT-3.1.4-4", "MQTT-3.2.0-1", "MQTT-3.2.2-1", "MQTT-7.1.1-1")
def test_a_valid_connect_is_accepted(mqtt):
    client = mqtt.socket()
    client.send(mqtt.packet("me"))
    assert client.next() == ACCEPTED
    client.expect_silence()


@pytest.mark.spec("MQTT-3.1.3-5")
@pytest.mark.parametrize(
    "client_id", ["Z", string.digits + "abcdefghijklm", string.ascii_letters[13:36], "A" * 23]
)
def test_client_ids_of_1_to_23_letters_and_digits_are_accepted(mqtt, client_id):
    assert mqtt.socket().connect(codec.connect(client_id)) == ACCEPTED


@pytest.mark.spec("MQTT-3.1.3-4")
@pytest.mark.parametrize("text", GOOD_TEXT.values(), ids=GOOD_TEXT)
def test_client_ids_are_any_utf8_text(mqtt, text):
    assert mqtt.socket().connect(codec.connect(mqtt.client_id(text))) == ACCEPTED


@pytest.mark.spec(
    "MQTT-3.1.2-18", "MQTT-3.1.2-19", "MQTT-3.1.2-20", "MQTT-3.1.2-21", "MQTT-3.1.3-1"
)
@pytest.mark.parametrize("password", [None, b"", b"secret\x00\xff"])
@pytest.mark.parametrize("username", ["", "user"])
@pytest.mark.parametrize("will", [None, codec.Will("w", b"", 2, True)])
def test_every_combination_of_fields_is_read_to_its_end(mqtt, will, username, password):
    packet = mqtt.packet(will=will, username=username, password=password)
    client = mqtt.socket()
    assert client.connect(packet) == ACCEPTED
    client.disconnect()


@pytest.mark.spec("MQTT-3.1.2-2", "MQTT-3.2.2-4", "MQTT-3.2.2-5")
@pytest.mark.parametrize("level", [0, 1, 2, 3, 6, 0x7F, 0xFF])
def test_an_unknown_protocol_level_is_refused_with_code_1(mqtt, level):
    mqtt.socket().expect_refused(wire(f"10 [ 'MQTT' {level:02x} 02 0000 'x' ]"), 1)


@pytest.mark.spec("MQTT-3.1.2-2")
def test_level_4_under_the_name_of_level_3_is_refused(mqtt):
    mqtt.socket().expect_refused(wire("10 [ 'MQIsdp' 04 02 0000 'x' ]"), 1)


@pytest.mark.spec("MQTT-3.1.2-1", "MQTT-3.2.2-6")
@pytest.mark.parametrize("name", ["", "MQT", "mqtt", "MQTTT", "MQIsdP", "HTTP"])
def test_another_protocol_is_not_served(mqtt, name):
    client = mqtt.socket()
    client.send(wire(f"10 [ '{name}' 04 02 0000 'x' ]"))
    client.expect_closed()


@pytest.mark.spec("MQTT-3.1.3-6", "MQTT-3.1.3-7")
def test_clients_without_an_id_are_given_one_each(mqtt, topic):
    clients = [mqtt.socket() for _ in range(3)]
    for client in clients:
        assert client.connect(codec.connect("")) == ACCEPTED
        client.subscribe(topic)
    clients[0].publish(topic)
    for client in clients:
        client.receive(topic)


@pytest.mark.spec("MQTT-3.1.3-7", "MQTT-3.1.3-8", "MQTT-3.1.3-9")
def test_a_persistent_session_needs_a_client_id(mqtt):
    mqtt.socket().expect_refused(codec.connect("", clean=False), 2)


@pytest.mark.spec("MQTT-3.1.3-9")
@pytest.mark.config("allow_zero_length_clientid false")
def test_an_empty_client_id_can_be_forbidden(mqtt):
    mqtt.socket().expect_refused(codec.connect(""), 2)


@pytest.mark.config("allow_anonymous false")
def test_a_missing_user_name_is_refused_with_code_5(mqtt):
    mqtt.socket().expect_refused(mqtt.packet(), 5)


@pytest.mark.spec("MQTT-3.1.0-2")
def test_a_second_connect_ends_the_connection(mqtt):
    client = mqtt.connect("twice")
    client.send(mqtt.packet("twice"))
    client.expect_closed()


@pytest.mark.spec("MQTT-3.1.4-5")
def test_nothing_after_a_refused_connect_is_handled(mqtt, topic):
    witness = mqtt.connect()
    witness.subscribe(topic)
    mqtt.socket().expect_refused(wire("10 [ 'MQTT' 09 02 0000 'x' ]") + codec.publish(topic), 1)
    witness.expect_silence()


@EACH_VERSION
def test_packets_sent_together_with_connect_are_handled_after_it(mqtt, topic):
    client = mqtt.socket()
    subscribe = mqtt.codec.subscribe(1, (topic, 1))
    publish = mqtt.codec.publish(topic, b"x", 1, 2)
    client.send(mqtt.packet() + subscribe + publish + codec.PINGREQ)
    assert client.next() == mqtt.codec.Connack(False, 0)
    client.expect(mqtt.codec.Suback(1, (1,)))
    client.expect_accepted(2, 1)
    client.receive(topic, qos=1)


@pytest.mark.ours("mosquitto has no time limit of its own for CONNECT")
@pytest.mark.config("connect_timeout 1\npacket_timeout 1")
def test_a_connection_without_connect_is_closed_in_time(mqtt):
    silent, half = mqtt.socket(), mqtt.socket()
    half.send(mqtt.packet()[:7])
    other = mqtt.connect()
    silent.expect_closed()
    half.expect_closed()
    other.expect_silence()


@EACH_VERSION
@pytest.mark.spec("MQTT-3.12.4-1")
@pytest.mark.spec("MQTT-3.12.4-1", of="5.0")
def test_every_pingreq_is_answered(mqtt):
    client = mqtt.connect()
    client.send(codec.PINGREQ * 3)
    assert [client.next() for _ in range(3)] == [codec.Pingresp()] * 3
    client.expect_silence()
