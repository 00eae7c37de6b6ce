"""Packets that no client may send: each ends its connection without an answer."""

import pytest

from . import codec
from .scene import EACH_VERSION
from .vectors import BAD_TEXT, case, wire

FLAGS = ("MQTT-2.2.2-1", "MQTT-2.2.2-2")
CONNECTED = "MQTT-4.8.0-1"

BAD_CONNECT = [
    case("reserved-flag", "10 [ 'MQTT' 04 03 0000 'x' ]", "MQTT-3.1.2-3", "MQTT-3.2.2-6"),
    case("fixed-header-flag", "11 [ 'MQTT' 04 02 0000 'x' ]", *FLAGS),
    case("will-qos-3", "10 [ 'MQTT' 04 1e 0000 'x' 'w' 'm' ]", "MQTT-3.1.2-14"),
    case(
        "will-qos-without-will", "10 [ 'MQTT' 04 0a 0000 'x' ]", "MQTT-3.1.2-11", "MQTT-3.1.2-13"
    ),
    case("will-retain-without-will", "10 [ 'MQTT' 04 22 0000 'x' ]", "MQTT-3.1.2-15"),
    case("will-without-fields", "10 [ 'MQTT' 04 06 0000 'x' ]", "MQTT-3.1.2-9"),
    case("will-without-message", "10 [ 'MQTT' 04 06 0000 'x' 'w' ]", "MQTT-3.1.2-9"),
    case("will-fields-without-flag", "10 [ 'MQTT' 04 02 0000 'x' 'w' 'm' ]", "MQTT-3.1.2-11"),
    case("will-topic-empty", "10 [ 'MQTT' 04 06 0000 'x' '' 'm' ]", "MQTT-4.7.3-1"),
    case("will-topic-wildcard", "10 [ 'MQTT' 04 06 0000 'x' 'a/+' 'm' ]", "MQTT-4.7.1-1"),
    case("will-message-cut", "10 [ 'MQTT' 04 06 0000 'x' 'w' 0005 \"gone\" ]"),
    case("user-name-without-flag", "10 [ 'MQTT' 04 02 0000 'x' 'user' ]", "MQTT-3.1.2-18"),
    case("user-name-missing", "10 [ 'MQTT' 04 82 0000 'x' ]", "MQTT-3.1.2-19"),
    case("password-without-flag", "10 [ 'MQTT' 04 82 0000 'x' 'user' 'pw' ]", "MQTT-3.1.2-20"),
    case("password-missing", "10 [ 'MQTT' 04 c2 0000 'x' 'user' ]", "MQTT-3.1.2-21"),
    case("password-without-user-name", "10 [ 'MQTT' 04 42 0000 'x' 'pw' ]", "MQTT-3.1.2-22"),
    case("no-client-id", "10 [ 'MQTT' 04 02 0000 ]", "MQTT-3.1.3-3"),
    case("no-keep-alive", "10 [ 'MQTT' 04 02 ]"),
    case("no-flags", "10 [ 'MQTT' 04 ]"),
    case("no-level", "10 [ 'MQTT' ]"),
    case("nothing", "10 [ ]"),
    case("name-cut", '10 [ 0004 "MQT" ]'),
    case("client-id-cut", "10 [ 'MQTT' 04 02 0000 0003 6162 ]"),
    case("surplus", "10 [ 'MQTT' 04 02 0000 'x' 00 ]"),
]

FIRST_PACKETS = [
    case("publish", "30 [ 't' ]"),
    case("publish-qos-2", "34 [ 't' 0001 ]"),
    case("puback", "40 [ 0001 ]"),
    case("pubrel", "62 [ 0001 ]"),
    case("subscribe", "82 [ 0001 't' 00 ]"),
    case("unsubscribe", "a2 [ 0001 't' ]"),
    case("pingreq", "c0 [ ]"),
    case("disconnect", "e0 [ ]"),
    case("connack", "20 [ 0000 ]"),
    case("type-0", "00 [ ]"),
    case("type-15", "f0 [ ]"),
    case("other-protocol", '"GET / HTTP/1.1" 0d0a 0d0a'),
    case("endless-length", "10 ffff ffff 7f"),
]

BAD_PUBLISH = [
    case("qos-3", "36 [ 't' 0001 ]", "MQTT-3.3.1-4"),
    case("dup-with-qos-0", "38 [ 't' ]", "MQTT-3.3.1-2", "MQTT-4.3.1-1"),
    case("topic-empty", "30 [ '' ]", "MQTT-4.7.3-1"),
    case("topic-plus", "30 [ 'a/+' ]", "MQTT-3.3.2-2", "MQTT-4.7.1-1"),
    case("topic-hash", "30 [ 'a/#' ]", "MQTT-3.3.2-2", "MQTT-4.7.1-1"),
    case("topic-wildcard-inside", "32 [ 'a#b' 0001 ]", "MQTT-3.3.2-2"),
    case("topic-missing", "30 [ ]", "MQTT-3.3.2-1"),
    case("topic-length-cut", "30 [ 00 ]"),
    case("topic-cut", "30 [ 0005 61626364 ]"),
    case("packet-id-missing", "32 [ 't' ]", "MQTT-2.3.1-1"),
    case("packet-id-cut", "34 [ 't' 01 ]"),
    case("packet-id-0-qos-1", "32 [ 't' 0000 ]", "MQTT-2.3.1-1"),
    case("packet-id-0-qos-2", "34 [ 't' 0000 ]", "MQTT-2.3.1-1"),
    case("endless-length", "30 ffff ffff 7f"),
    case("length-of-five-bytes", "30 8080 8080 00"),
]

BAD_ACKNOWLEDGEMENTS = [
    case("puback-flags", "42 [ 0001 ]", *FLAGS),
    case("puback-short", "40 [ 01 ]"),
    case("puback-long", "40 [ 0001 00 ]"),
    case("puback-empty", "40 [ ]"),
    case("pubrec-flags", "58 [ 0001 ]", *FLAGS),
    case("pubrec-long", "50 [ 0001 00 ]"),
    case("pubrel-flags-0", "60 [ 0001 ]", "MQTT-3.6.1-1", *FLAGS),
    case("pubrel-flags-dup", "6a [ 0001 ]", "MQTT-3.6.1-1"),
    case("pubrel-flags-all", "6f [ 0001 ]", "MQTT-3.6.1-1"),
    case("pubrel-short", "62 [ 01 ]"),
    case("pubcomp-flags", "71 [ 0001 ]", *FLAGS),
    case("pubcomp-empty", "70 [ ]"),
]

BAD_SUBSCRIBE = [
    case("flags-0", "80 [ 0001 't' 00 ]", "MQTT-3.8.1-1", *FLAGS),
    case("flags-dup", "8a [ 0001 't' 00 ]", "MQTT-3.8.1-1"),
    case("no-filter", "82 [ 0001 ]", "MQTT-3.8.3-3"),
    case("packet-id-0", "82 [ 0000 't' 00 ]", "MQTT-2.3.1-1"),
    case("packet-id-missing", "82 [ ]"),
    case("qos-3", "82 [ 0001 't' 03 ]", "MQTT-3.8.3-4"),
    case("reserved-bit-2", "82 [ 0001 't' 04 ]", "MQTT-3.8.3-4"),
    case("reserved-bit-7", "82 [ 0001 't' 80 ]", "MQTT-3.8.3-4"),
    case("second-qos-3", "82 [ 0001 't' 01 'u' 03 ]", "MQTT-3.8.3-4"),
    case("qos-missing", "82 [ 0001 't' ]"),
    case("second-filter-cut", "82 [ 0001 't' 00 0002 75 ]"),
    case("unsubscribe-flags", "a0 [ 0001 't' ]", "MQTT-3.10.1-1", *FLAGS),
    case("unsubscribe-flags-dup", "aa [ 0001 't' ]", "MQTT-3.10.1-1"),
    case("unsubscribe-no-filter", "a2 [ 0001 ]", "MQTT-3.10.3-2"),
    case("unsubscribe-packet-id-0", "a2 [ 0000 't' ]", "MQTT-2.3.1-1"),
    case("unsubscribe-gap", "a2 [ 0001 't' 00 ]", "MQTT-3.10.3-1"),
    case("unsubscribe-filter-cut", "a2 [ 0001 0003 7475 ]"),
]

BAD_OTHERS = [
    case("pingreq-flags", "c1 [ ]", *FLAGS),
    case("pingreq-body", "c0 [ 00 ]"),
    case("disconnect-flags", "e1 [ ]", "MQTT-3.14.1-1", *FLAGS),
    case("disconnect-body", "e0 [ 00 ]"),
    case("from-a-server-connack", "20 [ 0000 ]"),
    case("from-a-server-suback", "90 [ 0001 00 ]"),
    case("from-a-server-unsuback", "b0 [ 0001 ]"),
    case("from-a-server-pingresp", "d0 [ ]"),
    case("type-0", "00 [ ]"),
    case("type-15", "f0 [ ]"),
]


@pytest.mark.spec("MQTT-3.1.4-1")
@pytest.mark.parametrize("packet", BAD_CONNECT)
def test_a_malformed_connect_is_not_answered(mqtt, packet):
    client = mqtt.socket()
    client.send(packet)
    client.expect_closed()


@pytest.mark.spec("MQTT-3.1.0-1")
@pytest.mark.parametrize("packet", FIRST_PACKETS)
def test_the_first_packet_is_connect(mqtt, packet):
    client = mqtt.socket()
    client.send(packet + codec.PINGREQ)
    client.expect_closed()


@pytest.mark.spec(CONNECTED)
@pytest.mark.parametrize("packet", BAD_PUBLISH + BAD_ACKNOWLEDGEMENTS + BAD_SUBSCRIBE + BAD_OTHERS)
def test_a_protocol_violation_ends_the_connection(mqtt, packet):
    client = mqtt.connect()
    client.send(packet + codec.PINGREQ)
    client.expect_closed()


@EACH_VERSION
@pytest.mark.spec("MQTT-3.14.4-1", "MQTT-4.13.1-1", of="5.0")
def test_packets_before_a_violation_are_handled_and_none_after_it(mqtt, topic):
    witness = mqtt.connect()
    witness.subscribe(topic)
    client = mqtt.connect()
    before, after = (mqtt.codec.publish(topic, text) for text in (b"before", b"after"))
    client.send(before + wire("c1 [ ]") + after)
    client.expect_disconnect(0x81)
    witness.receive(topic, b"before")
    witness.expect_silence()


@pytest.mark.spec("MQTT-1.5.3-1", "MQTT-1.5.3-2", "MQTT-3.1.3-4", "MQTT-3.1.3-10", "MQTT-3.1.3-11")
@pytest.mark.parametrize("text", BAD_TEXT.values(), ids=BAD_TEXT)
@pytest.mark.parametrize("where", ["client id", "will topic", "user name"])
def test_a_connect_with_invalid_utf_8_ends_the_connection(mqtt, where, text):
    client = mqtt.socket()
    client.send(
        codec.connect(
            text if where == "client id" else "x",
            will=codec.Will(text) if where == "will topic" else None,
            username=text if where == "user name" else None,
        )
    )
    client.expect_closed()


@pytest.mark.spec(
    "MQTT-1.5.3-1",
    "MQTT-1.5.3-2",
    "MQTT-3.3.2-1",
    "MQTT-3.8.3-1",
    "MQTT-3.10.3-1",
    "MQTT-4.7.3-2",
)
@pytest.mark.parametrize("text", BAD_TEXT.values(), ids=BAD_TEXT)
@pytest.mark.parametrize("kind", ["publish", "subscribe", "unsubscribe"])
def test_topics_with_invalid_utf_8_end_the_connection(mqtt, kind, text):
    packets = {
        "publish": codec.publish(text),
        "subscribe": codec.subscribe(1, (text, 0)),
        "unsubscribe": codec.unsubscribe(1, text),
    }
    client = mqtt.connect()
    client.send(packets[kind])
    client.expect_closed()
