"""MQTT 3.1, 3.1.1 and 5.0 on one broker: each version gets the messages of the others."""

import pytest

from ..wire.codec import Ack as OldAck
from ..wire.scene import spec
from ..wire.vectors import wire
from . import codec
from .codec import AS_PUBLISHED, Will

QOS = [0, 1, 2]
OLDER = pytest.mark.parametrize("level", [3, 4], ids=["v31", "v311"])
PROPERTIES = {
    "payload_format": 1,
    "content_type": "text",
    "response_topic": "r",
    "correlation_data": b"\0",
    "user": (("a", "b"),),
}


@OLDER
@pytest.mark.parametrize("qos", QOS)
@pytest.mark.parametrize("properties", [{}, PROPERTIES], ids=["plain", "properties"])
def test_long_topics_do_not_forge_packets(mqtt5, topic, level, qos, properties):
    """Whatever their payload ends with, its bytes stay in the packet: the preset's outgoing
    buffer has 16 KB."""
    forged = codec.publish("home/door", b"OPEN")
    readers = [mqtt5.older(level=level), mqtt5.connect()]
    for reader in readers:
        reader.subscribe("#", qos=qos)
    writer = mqtt5.connect()
    for size in (16_350, *range(16_370, 16_390), 30_000, 32_768):
        name = topic + "x" * (size - len(topic))
        writer.publish(name, forged, qos, **properties)
        readers[0].receive(name, forged, qos)
        readers[1].receive(name, forged, qos, **properties)
    for reader in readers:
        reader.expect_silence()


@OLDER
@pytest.mark.parametrize("qos", QOS)
def test_the_packet_size_of_a_client_that_has_left_holds_for_no_other(mqtt5, topic, level, qos):
    writer = mqtt5.connect()
    mqtt5.connect(maximum_packet_size=60).disconnect()
    reader = mqtt5.older(level=level)  # in its slot
    reader.subscribe(topic, qos=qos)
    for payload in (b"y" * 100, b"z" * 5000):
        writer.publish(topic, payload, qos, **PROPERTIES)
        reader.receive(topic, payload, qos)


@spec(new="3.3.2-17 3.3.4-4")
@pytest.mark.parametrize("qos", QOS)
def test_each_client_gets_a_message_in_its_own_version(mqtt5, topic, qos):
    older = [mqtt5.older(level=level) for level in (3, 4)]
    newer = mqtt5.connect()
    identified = mqtt5.connect(topic_alias_maximum=5)
    for reader in (*older, newer):
        reader.subscribe(topic, qos=qos)
    identified.subscribe(topic, qos=qos, subscription_id=3)
    for writer in (mqtt5.connect(), *older):
        for payload in (b"", b"x", b"y" * 20000):
            properties = {} if writer in older else PROPERTIES
            writer.publish(
                topic, payload, qos, **properties, **(properties and {"topic_alias": 1})
            )
            for reader in older:
                reader.receive(topic, payload, qos)
            newer.receive(topic, payload, qos, **properties)
            identified.receive(topic, payload, qos, subscription_id=(3,), **properties)
    for reader in (*older, newer, identified):
        reader.expect_silence()


@OLDER
def test_retained_messages_pass_between_versions(mqtt5, topic, level):
    new, old = mqtt5.connect(), mqtt5.older(level=level)
    new.publish(f"{topic}/new", b"from new", 1, retain=True, **PROPERTIES)
    old.publish(f"{topic}/old", b"from old", 1, retain=True)
    reader = mqtt5.older(level=level)
    reader.subscribe(f"{topic}/#", qos=1)
    first, second = reader.receive_many(2)
    assert (first.payload, second.payload) == (b"from new", b"from old")
    reader = mqtt5.reader(f"{topic}/#", qos=1)
    first, second = reader.receive_many(2)
    assert (first.payload, first.properties) == (b"from new", PROPERTIES)
    assert (second.payload, second.properties) == (b"from old", {})
    old.publish(f"{topic}/new", b"", retain=True)
    new.publish(f"{topic}/old", b"", retain=True)


@OLDER
def test_wills_pass_between_versions(mqtt5, topic, level):
    new, old = mqtt5.connect(), mqtt5.older(level=level)
    for client in (new, old):
        client.subscribe(topic, qos=1)
    mqtt5.connect(will=Will(topic, b"new", 1, properties=PROPERTIES)).drop()
    new.receive(topic, b"new", 1, **PROPERTIES)
    old.receive(topic, b"new", 1)
    mqtt5.older(level=level, will=Will(topic, b"old", 1)).drop()
    new.receive(topic, b"old", 1)
    old.receive(topic, b"old", 1)


@spec(new="3.1.2-5 3.1.2-23")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_can_be_resumed_in_another_version(mqtt5, topic, qos):
    client = mqtt5.reader(topic, name="me", qos=qos, subscription_id=5, session_expiry=60)
    writer = mqtt5.connect()
    client.disconnect()
    writer.publish(topic, b"1", qos, **PROPERTIES)
    old = mqtt5.older("me", clean=False)
    assert old.connack.session_present
    message = old.expect_publish(topic, b"1", qos)
    old.drop()
    writer.publish(topic, b"2", qos, content_type="text")
    client = mqtt5.connect("me", clean=False, session_expiry=60)
    assert client.connack.session_present
    again, second = client.receive_many(2)
    assert (again.payload, again.dup, again.packet_id) == (b"1", True, message.packet_id)
    assert second.payload == b"2"
    assert second.properties["content_type"] == "text"
    client.disconnect()
    assert not mqtt5.older("me", clean=True).connack.session_present


def test_an_older_session_without_clean_session_does_not_expire(mqtt5, topic):
    old = mqtt5.older("me", clean=False)
    old.subscribe(topic, qos=1)
    old.disconnect()
    client = mqtt5.connect("me", clean=False)
    assert client.connack.session_present
    client.publish(topic, b"x", 1)
    client.receive(topic, b"x", 1)
    client.disconnect()
    assert not mqtt5.older("me", clean=False).connack.session_present, "the last one said 0"


@spec(new="3.1.4-3")
def test_one_version_takes_over_from_another(mqtt5, topic):
    old = mqtt5.older("me")
    new = mqtt5.connect("me")
    old.expect_closed()
    older = mqtt5.older("me", level=3)
    new.expect_disconnect(0x8E)
    older.expect_silence()


def test_older_clients_get_acknowledgements_of_their_own_version(mqtt5, topic):
    """No code 0x10, no code 0x11, no reason, no DISCONNECT, even after an error."""
    old = mqtt5.older()
    old.publish(topic, b"x", 1)
    old.publish(topic, b"x", 2)
    old.unsubscribe(topic)
    old.send(codec.ack(codec.PUBREL, 77))
    old.expect(OldAck(codec.PUBCOMP, 77))
    old.send(b"\xc1\x00")
    old.expect_closed()


def test_packets_of_older_clients_have_no_properties(mqtt5, topic):
    """What MQTT 5.0 reads as an empty property length is the first byte of the payload."""
    reader = mqtt5.older()
    reader.subscribe(topic)
    old = mqtt5.older()
    old.send(codec.publish(topic, b"x"))
    reader.receive(topic, b"\0x")
    old.send(codec.ack(codec.PUBACK, 1, 0))
    old.expect_closed()


def test_retain_as_published_is_for_subscriptions_with_that_option(mqtt5, topic):
    new, old = mqtt5.connect(), mqtt5.older()
    new.subscribe(topic, options=AS_PUBLISHED)
    old.subscribe(topic)
    mqtt5.older().publish(topic, b"x", retain=True)
    new.receive(topic, b"x", retain=True)
    old.receive(topic, b"x")
    new.publish(topic, b"", retain=True)


@pytest.mark.config("mqtt_versions 3\nmax_packet_size 200")
@pytest.mark.ours("mosquitto takes all versions")
@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        ("10 [ 'MQTT' 05 02 0000 [ ] 'x' ]", "20 [ 00 01 ]"),
        ("10 [ 'MQTT' 05 02 0000 [ ] 'x' 00 ]", "20 [ 00 01 ]"),
        ("10 [ 'MQTT' 05 ff ffff ff ]", "20 [ 00 01 ]"),
        ("10 [ 'MQTT' 05 02 0000 [ 15 'SCRAM-SHA-256' ] 'x' ]", "20 [ 00 01 ]"),
        ("f0 [ 18 [ 15 'SCRAM-SHA-256' ] ]", ""),
        ("10 ff01 0004 4d515454 05 02 0000", ""),
        ("10 c901 0004 4d515454 05 02 0000", ""),
    ],
)
def test_with_mqtt_versions_3_no_packet_of_5_0_is_sent(mqtt5, packet, answer):
    """The last two have a length that is too large."""
    client = mqtt5.socket()
    client.send(wire(packet))
    assert client.read_to_end() == wire(answer)
    for level in (3, 4):
        mqtt5.older(level=level).expect_silence()
