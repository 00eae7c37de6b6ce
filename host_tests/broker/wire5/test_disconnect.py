"""DISCONNECT in both directions: its reason codes, and what it ends."""

import socket
import time

import pytest

from ..wire.scene import spec
from . import codec
from .codec import Will

CODES = [0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]
ABOUT = {"reason_string": "good bye", "user": (("a", "b"), ("a", "c"))}


@spec(new="3.14.2-1 3.14.4-1 3.14.4-2")
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("properties", [{}, ABOUT], ids=["bare", "about"])
def test_a_client_may_disconnect_with_each_of_its_codes(mqtt5, topic, code, properties):
    mqtt5.connect().disconnect(code, **properties)


@spec(new="3.14.4-1")
def test_packets_after_disconnect_are_ignored(mqtt5, topic):
    witness, client = mqtt5.reader(topic), mqtt5.connect()
    client.send(
        codec.publish(topic, b"before") + codec.disconnect(0) + codec.publish(topic, b"after")
    )
    client.expect_closed()
    witness.receive(topic, b"before")
    witness.expect_silence()


@spec(new="3.14.4-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_disconnect_is_the_last_packet_of_the_broker(mqtt5, topic, qos):
    """Even with a message still to be delivered, and with a PINGREQ after the error."""
    client = mqtt5.reader(topic, name="a", qos=qos, session_expiry=60)
    client.send(codec.publish(topic, b"own", qos, 1 if qos else 0) + b"\xc1\x00" + codec.PINGREQ)
    found = list(iter(client.answer, None))
    assert found[-1] == codec.Disconnect(0x81), found


@spec(new="3.14.2-2 3.14.4-2 4.13.2-1")
def test_a_client_that_is_still_sending_can_read_the_reason(mqtt5, topic):
    """The broker closes without a reset, which could destroy the DISCONNECT."""
    for _ in range(5):
        client = mqtt5.connect()
        client.send(codec.publish(topic, b"x", topic_alias=65535) + b"\x30" * 50000)
        client.expect_disconnect(0x94)


def test_a_half_closed_connection_is_still_answered_or_closed(mqtt5, topic):
    client, witness = mqtt5.connect(will=Will(topic)), mqtt5.reader(topic)
    client.send(codec.publish(topic, b"x", 1, 1))
    client.sock.shutdown(socket.SHUT_WR)
    client.expect_end()
    witness.receive(topic, b"x")
    witness.receive(topic, b"gone")


@spec(new="3.14.4-2 3.14.2-2")
def test_a_client_that_does_not_close_is_closed(mqtt5):
    """After its own DISCONNECT, and after the broker's."""
    one, two = mqtt5.connect(), mqtt5.connect()
    start = time.monotonic()
    one.send(codec.disconnect(0))
    two.send(b"\xc1\x00")
    one.expect_closed()
    assert two.next() == codec.Disconnect(0x81)
    two.expect_closed()
    assert time.monotonic() - start < 5


@spec(new="3.14.2-3 3.1.2-29")
def test_without_problem_information_the_code_is_still_sent(mqtt5, topic):
    """The client checks at each packet that it has no reason string."""
    client = mqtt5.connect(request_problem_info=0)
    client.publish(topic, b"x", 1)
    client.publish(topic, b"x", 2)
    assert client.withdraw(topic) == (0x11,)
    client.send(codec.ack(codec.PUBREL, 77))
    assert client.next().kind == codec.PUBCOMP
    client.send(codec.subscribe(5, ("a/#/b", 0)))
    client.expect_disconnect(*mqtt5.codes(0x81, 0x82, 0x8F))


@pytest.mark.ours("mosquitto's tables grow")
@pytest.mark.config("max_connections 1\nserver_reference other.example:1883")
def test_a_refusal_has_the_server_reference(mqtt5):
    mqtt5.connect("kept")
    answer = mqtt5.refuse(0x9C)
    assert answer.properties == {"server_reference": "other.example:1883"}
    assert "server_reference" not in mqtt5.connect("kept").connack.properties


@pytest.mark.ours("mosquitto's tables grow")
@pytest.mark.config("max_connections 1\nserver_reference other.example:1883")
@spec(new="3.1.2-24 3.2.0-1")
def test_the_server_reference_respects_maximum_packet_size(mqtt5):
    mqtt5.connect("kept")
    whole = 5 + 3 + len("other.example:1883")
    for size in (whole - 1, whole, whole + 1):
        client = mqtt5.socket()
        client.terms = {"maximum_packet_size": size}
        answer = client.expect_refused(mqtt5.packet(maximum_packet_size=size), 0x9C)
        assert ("server_reference" in answer.properties) == (size >= whole)


@pytest.mark.whole
@pytest.mark.ours("mosquitto closes at once")
def test_the_socket_stays_open_for_a_client_that_goes_on_sending(mqtt5):
    """A closed socket answers with a reset, which may destroy the last packet."""
    client = mqtt5.connect()
    client.send(b"\xc1\x00")
    assert client.next() == codec.Disconnect(0x81)
    for _ in range(4):
        client.sock.sendall(codec.PINGREQ)
        time.sleep(0.05)
    client.expect_closed()


@pytest.mark.whole
@pytest.mark.ours("mosquitto's tables grow")
@pytest.mark.config("limit connections 2")
def test_a_new_client_need_not_wait_for_refused_ones(mqtt5):
    """A refused client may read for a second, unless its slot is needed."""
    mqtt5.connect("other")
    mqtt5.connect("me")
    start = time.monotonic()
    for _ in range(8):
        refused = mqtt5.socket()
        assert refused.connect(mqtt5.packet("refused")).code == 0x88
        refused.send(codec.PINGREQ)
        mqtt5.connect("me").expect_silence()
    assert time.monotonic() - start < 6, "a second for each"
