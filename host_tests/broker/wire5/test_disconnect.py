"""DISCONNECT both ways: with which reasons, and what it ends."""

import socket
import time

import pytest

from . import codec
from .codec import Will

CODES = [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]
ABOUT = {"reason_string": "good bye", "user": (("a", "b"), ("a", "c"))}


@pytest.mark.spec("MQTT-3.14.2-1", "MQTT-3.14.4-1", "MQTT-3.14.4-2", of="5.0")
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("properties", [{}, ABOUT], ids=["bare", "about"])
def test_a_client_may_leave_with_each_of_its_codes(mqtt5, topic, code, properties):
    client = mqtt5.connect()
    client.disconnect(code, **properties)


@pytest.mark.spec("MQTT-3.14.4-1", of="5.0")
def test_nothing_counts_that_follows_it(mqtt5, topic):
    witness = mqtt5.connect()
    witness.subscribe(topic)
    client = mqtt5.connect()
    client.send(
        codec.publish(topic, b"before") + codec.disconnect(0) + codec.publish(topic, b"after")
    )
    client.expect_closed()
    witness.receive(topic, b"before")
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.14.4-1", "MQTT-4.13.1-1", of="5.0")
def test_what_came_before_an_error_counts_and_what_follows_does_not(mqtt5, topic):
    witness = mqtt5.connect()
    witness.subscribe(topic)
    client = mqtt5.connect()
    client.send(codec.publish(topic, b"before") + b"\xc1\x00" + codec.publish(topic, b"after"))
    client.expect_disconnect(0x81)
    witness.receive(topic, b"before")
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.14.4-1", of="5.0")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_nothing_follows_the_brokers_own_word(mqtt5, topic, qos):
    """Its own message before the error was still to be given to it, and PINGREQ follows."""
    client = mqtt5.connect("a", session_expiry=60)
    client.subscribe(topic, qos=qos)
    client.send(codec.publish(topic, b"own", qos, 1 if qos else 0) + b"\xc1\x00" + codec.PINGREQ)
    found = list(iter(client.answer, None))
    assert found[-1] == codec.Disconnect(0x81), found


@pytest.mark.spec("MQTT-3.14.2-2", "MQTT-3.14.4-2", "MQTT-4.13.2-1", of="5.0")
def test_the_reason_is_read_by_who_is_still_sending(mqtt5, topic):
    """The broker closes without resetting what it has just said."""
    for _ in range(5):
        client = mqtt5.connect()
        client.send(codec.publish(topic, b"x", topic_alias=65535) + b"\x30" * 50000)
        client.expect_disconnect(0x94)


def test_a_half_closed_connection_is_still_answered_or_closed(mqtt5, topic):
    client = mqtt5.connect(will=Will(topic))
    witness = mqtt5.connect()
    witness.subscribe(topic)
    client.send(codec.publish(topic, b"x", 1, 1))
    client.sock.shutdown(socket.SHUT_WR)
    client.expect_end()
    witness.receive(topic, b"x")
    witness.receive(topic, b"gone")


@pytest.mark.spec("MQTT-3.14.4-2", "MQTT-3.14.2-2", of="5.0")
def test_a_client_that_does_not_close_is_closed(mqtt5):
    """After its DISCONNECT, and after the broker's: nobody waits for the other side."""
    one, two = mqtt5.connect(), mqtt5.connect()
    start = time.monotonic()
    one.send(codec.disconnect(0))
    two.send(b"\xc1\x00")
    one.expect_closed()
    assert two.next() == codec.Disconnect(0x81)
    two.expect_closed()
    assert time.monotonic() - start < 5


@pytest.mark.ours("mosquitto closes without a word, and counts whole seconds")
@pytest.mark.waits
@pytest.mark.spec("MQTT-3.1.2-22", "MQTT-3.14.2-1", of="5.0")
def test_silence_ends_with_a_reason(mqtt5, topic):
    witness = mqtt5.connect()
    witness.subscribe(topic)
    start = time.monotonic()
    mute = mqtt5.connect(keep_alive=1, will=Will(topic))
    patient = mqtt5.connect(keep_alive=60)
    mute.expect_disconnect(0x8D)
    assert 1.4 < time.monotonic() - start < 3
    witness.receive(topic, b"gone")
    patient.expect_silence()


@pytest.mark.spec("MQTT-3.1.4-3", "MQTT-3.14.0-1", of="5.0")
def test_who_is_taken_over_is_told_so_once(mqtt5):
    clients = [mqtt5.connect("me") for _ in range(5)]
    for client in clients[:-1]:
        client.expect_disconnect(0x8E)
    clients[-1].expect_silence()


@pytest.mark.spec("MQTT-3.14.2-3", "MQTT-3.1.2-29", of="5.0")
def test_who_wants_no_problem_information_still_hears_the_code(mqtt5, topic):
    """That no other packet has a reason string is checked at each that the client reads."""
    client = mqtt5.connect(request_problem_info=0)
    client.publish(topic, b"x", 1)
    client.publish(topic, b"x", 2)
    assert client.withdraw(topic) == (0x11,)
    client.send(codec.ack(codec.PUBREL, 77))
    assert client.next().kind == codec.PUBCOMP
    client.send(codec.subscribe(5, ("a/#/b", 0)))
    client.expect_disconnect(*mqtt5.codes(0x81, 0x82, 0x8F))


@pytest.mark.own_broker
@pytest.mark.ours("mosquitto's tables grow")
@pytest.mark.config("max_connections 2")
def test_one_client_too_many_is_refused_with_a_reason(mqtt5):
    kept = [mqtt5.connect(f"kept{i}") for i in range(2)]
    for _ in range(3):
        assert mqtt5.refuse(0x88).properties == {}
    kept[0].disconnect()
    mqtt5.connect()


@pytest.mark.own_broker
@pytest.mark.ours("mosquitto's tables grow")
@pytest.mark.config("max_connections 1\nserver_reference other.example:1883")
def test_and_told_where_to_go(mqtt5):
    mqtt5.connect("kept")
    answer = mqtt5.refuse(0x9C)
    assert answer.properties == {"server_reference": "other.example:1883"}
    assert "server_reference" not in mqtt5.connect("kept").connack.properties


@pytest.mark.own_broker
@pytest.mark.ours("mosquitto's tables grow")
@pytest.mark.config("max_connections 1\nserver_reference other.example:1883")
@pytest.mark.spec("MQTT-3.1.2-24", "MQTT-3.2.0-1", of="5.0")
def test_but_only_where_that_fits_into_a_packet_of_his(mqtt5):
    mqtt5.connect("kept")
    whole = 5 + 3 + len("other.example:1883")
    for size in (whole - 1, whole, whole + 1):
        client = mqtt5.socket()
        client.terms = {"maximum_packet_size": size}
        answer = client.expect_refused(mqtt5.packet(maximum_packet_size=size), 0x9C)
        assert ("server_reference" in answer.properties) == (size >= whole)


@pytest.mark.whole
@pytest.mark.ours("mosquitto closes at once")
def test_who_goes_on_sending_meets_no_closed_socket_at_once(mqtt5):
    """Which would be told by a reset, and that may cost the last packet."""
    client = mqtt5.connect()
    client.send(b"\xc1\x00")
    assert client.next() == codec.Disconnect(0x81)
    for _ in range(4):
        client.sock.sendall(codec.PINGREQ)
        time.sleep(0.05)
    client.expect_closed()


@pytest.mark.own_broker
@pytest.mark.whole
@pytest.mark.ours("mosquitto's tables grow")
@pytest.mark.config("limit connections 2")
def test_nobody_waits_for_those_that_were_told(mqtt5):
    """They may read for a second, unless another one needs their place."""
    mqtt5.connect("other")
    mqtt5.connect("me")
    start = time.monotonic()
    for _ in range(8):
        refused = mqtt5.socket()
        assert refused.connect(mqtt5.packet("refused")).code == 0x88
        refused.send(codec.PINGREQ)
        mqtt5.connect("me").expect_silence()
    assert time.monotonic() - start < 6, "a second for each"
