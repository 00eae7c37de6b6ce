"""Packets that no client may send: each ends its connection with the right reason code."""

import pytest

from ..wire.vectors import BAD_TEXT
from . import codec
from .codec import Will
from .refusals import case, refuse, refuse_connect

FLAGS = "MQTT-2.1.3-1"
PACKET_ID = "MQTT-2.2.1-3"
IDS = "mosquitto takes it for one that it does not know"

BAD_CONNECT = [
    case("reserved-flag", "10 [ 'MQTT' 05 03 0000 [ ] 'x' ]", "81", "MQTT-3.1.2-3"),
    case("will-qos-3", "10 [ 'MQTT' 05 1e 0000 [ ] 'x' [ ] 'w' 'm' ]", "81", "MQTT-3.1.2-12"),
    case("qos-no-will", "10 [ 'MQTT' 05 0a 0000 [ ] 'x' ]", "81", "MQTT-3.1.2-11"),
    case("retain-no-will", "10 [ 'MQTT' 05 22 0000 [ ] 'x' ]", "81", "MQTT-3.1.2-13"),
    case("will-nowhere", "10 [ 'MQTT' 05 06 0000 [ ] 'x' ]", "81", "MQTT-3.1.2-9"),
    case("will-properties-only", "10 [ 'MQTT' 05 06 0000 [ ] 'x' [ ] ]", "81", "MQTT-3.1.2-9"),
    case("will-no-payload", "10 [ 'MQTT' 05 06 0000 [ ] 'x' [ ] 'w' ]", "81", "MQTT-3.1.2-9"),
    case("will-no-properties", "10 [ 'MQTT' 05 06 0000 [ ] 'x' 'w' 'm' ]", "81"),
    case("will-payload-cut", "10 [ 'MQTT' 05 06 0000 [ ] 'x' [ ] 'w' 0005 \"gone\" ]", "81"),
    case("will-without-flag", "10 [ 'MQTT' 05 02 0000 [ ] 'x' [ ] 'w' 'm' ]", "81"),
    case("will-topic-empty", "10 [ 'MQTT' 05 06 0000 [ ] 'x' [ ] '' 'm' ]", "82"),
    case("will-topic-plus", "10 [ 'MQTT' 05 06 0000 [ ] 'x' [ ] 'a/+' 'm' ]", "82"),
    case("user-no-flag", "10 [ 'MQTT' 05 02 0000 [ ] 'x' 'user' ]", "81", "MQTT-3.1.2-16"),
    case("user-missing", "10 [ 'MQTT' 05 82 0000 [ ] 'x' ]", "81", "MQTT-3.1.2-17"),
    case("password-no-flag", "10 [ 'MQTT' 05 82 0000 [ ] 'x' 'u' 'p' ]", "81", "MQTT-3.1.2-18"),
    case("password-missing", "10 [ 'MQTT' 05 c2 0000 [ ] 'x' 'user' ]", "81", "MQTT-3.1.2-19"),
    case("no-client-id", "10 [ 'MQTT' 05 02 0000 [ ] ]", "81", "MQTT-3.1.3-3"),
    case("client-id-cut", "10 [ 'MQTT' 05 02 0000 [ ] 0003 6162 ]", "81"),
    case("no-properties", "10 [ 'MQTT' 05 02 0000 ]", "81", "MQTT-2.2.2-1"),
    case("properties-too-long", "10 [ 'MQTT' 05 02 0000 09 'x' ]", "81"),
    case("properties-endless", "10 [ 'MQTT' 05 02 0000 ffff ffff 7f 'x' ]", "81"),
    case("length-not-shortest", "10 [ 'MQTT' 05 02 0000 8000 'x' ]", "81", "MQTT-1.5.5-1",
         ours="mosquitto takes it"),
    case("surplus", "10 [ 'MQTT' 05 02 0000 [ ] 'x' 00 ]", "81"),
]  # fmt: skip

# The broker cannot read the version, so it does not know which CONNACK to send.
UNREADABLE_CONNECT = [
    case("fixed-header-flag", "11 [ 'MQTT' 05 02 0000 [ ] 'x' ]", "81", FLAGS),
    case("no-keep-alive", "10 [ 'MQTT' 05 02 ]", "81"),
    case("no-flags", "10 [ 'MQTT' 05 ]", "81"),
    case("no-level", "10 [ 'MQTT' ]", "81"),
    case("nothing", "10 [ ]", "81"),
]  # fmt: skip

BAD_PUBLISH = [
    case("qos-3", "36 [ 't' 0001 [ ] ]", "81", "MQTT-3.3.1-4"),
    case("dup-with-qos-0", "38 [ 't' [ ] ]", "81", "MQTT-3.3.1-2"),
    case("topic-empty", "30 [ '' [ ] ]", "82", "MQTT-4.7.3-1"),
    case("topic-plus", "30 [ 'a/+' [ ] ]", "82", "MQTT-3.3.2-2", "MQTT-4.7.0-1"),
    case("topic-hash", "30 [ '#' [ ] ]", "82", "MQTT-3.3.2-2", "MQTT-4.7.0-1"),
    case("topic-wildcard-inside", "32 [ 'a#b' 0001 [ ] ]", "82", "MQTT-3.3.2-2"),
    case("topic-missing", "30 [ ]", "81", "MQTT-3.3.2-1"),
    case("topic-cut", "30 [ 0005 61626364 ]", "81"),
    case("packet-id-missing", "32 [ 't' ]", "81", PACKET_ID),
    case("packet-id-0-qos-1", "32 [ 't' 0000 [ ] ]", "82", PACKET_ID),
    case("packet-id-0-qos-2", "34 [ 't' 0000 [ ] ]", "82", PACKET_ID),
    case("no-properties", "30 [ 't' ]", "81", "MQTT-2.2.2-1"),
    case("no-properties-qos-1", "32 [ 't' 0001 ]", "81", "MQTT-2.2.2-1"),
    case("properties-too-long", "30 [ 't' 05 01 00 ]", "81"),
    case("properties-endless", "30 [ 't' ffff ffff 7f ]", "81"),
    case("length-of-five-bytes", "30 8080 8080 00", "81"),
]

# A reason code that is not the packet's is a Protocol Error: the packet could be parsed, and
# has what the protocol does not allow.
BAD_ACKNOWLEDGEMENTS = [
    case("puback-flags", "42 [ 0001 ]", "81", FLAGS),
    case("puback-short", "40 [ 01 ]", "81"),
    case("puback-empty", "40 [ ]", "81"),
    case("puback-code", "40 [ 0001 05 ]", "82", "MQTT-3.4.2-1"),
    case("puback-code-of-pubrel", "40 [ 0001 92 ]", "82", "MQTT-3.4.2-1"),
    case("puback-cut", "40 [ 0001 00 05 ]", "81"),
    case("puback-surplus", "40 [ 0001 00 [ ] 00 ]", "81"),
    case("puback-code-and-cut", "40 [ 0001 05 05 ]", "81"),
    case("puback-code-and-property", "40 [ 0001 05 [ 1f 'why' ] ]", "82", "MQTT-3.4.2-1"),
    case("pubrec-flags", "58 [ 0001 ]", "81", FLAGS),
    case("pubrec-code", "50 [ 0001 02 ]", "82", "MQTT-3.5.2-1"),
    case("pubrec-surplus", "50 [ 0001 00 [ ] 00 ]", "81"),
    case("pubrel-flags-0", "60 [ 0001 ]", "81", "MQTT-3.6.1-1", FLAGS),
    case("pubrel-flags-dup", "6a [ 0001 ]", "81", "MQTT-3.6.1-1"),
    case("pubrel-short", "62 [ 01 ]", "81"),
    case("pubrel-code", "62 [ 0001 10 ]", "82", "MQTT-3.6.2-1"),
    case("pubrel-cut", "62 [ 0001 00 7f ]", "81"),
    case("pubcomp-flags", "71 [ 0001 ]", "81", FLAGS),
    case("pubcomp-empty", "70 [ ]", "81"),
    case("pubcomp-code", "70 [ 0001 80 ]", "82", "MQTT-3.7.2-1"),
    case("puback-id-0", "40 [ 0000 ]", "82", ours=IDS),
    case("puback-id-0-and-code", "40 [ 0000 00 ]", "82", ours=IDS),
    case("puback-id-0-and-properties", "40 [ 0000 10 [ ] ]", "82", ours=IDS),
    case("puback-id-0-and-cut", "40 [ 0000 00 05 ]", "81"),
    case("pubrel-id-0-and-surplus", "62 [ 0000 00 [ ] 00 ]", "81"),
    case("pubrec-id-0", "50 [ 0000 ]", "82", ours=IDS),
    case("pubrec-id-0-and-error", "50 [ 0000 80 ]", "82", ours=IDS),
    case("pubrel-id-0", "62 [ 0000 ]", "82", ours=IDS),
    case("pubrel-id-0-and-code", "62 [ 0000 92 ]", "82", ours=IDS),
    case("pubcomp-id-0", "70 [ 0000 ]", "82", ours=IDS),
    case("pubcomp-id-0-and-code", "70 [ 0000 92 ]", "82", ours=IDS),
    case("pubrel-id-0-and-flags", "60 [ 0000 ]", "81", FLAGS),
]

BAD_SUBSCRIBE = [
    case("flags-0", "80 [ 0001 [ ] 't' 00 ]", "81", "MQTT-3.8.1-1", FLAGS),
    case("flags-dup", "8a [ 0001 [ ] 't' 00 ]", "81", "MQTT-3.8.1-1"),
    case("no-filter", "82 [ 0001 [ ] ]", "82", "MQTT-3.8.3-2"),
    case("packet-id-0", "82 [ 0000 [ ] 't' 00 ]", "82", PACKET_ID),
    case("packet-id-missing", "82 [ ]", "81"),
    case("no-properties", "82 [ 0001 ]", "81", "MQTT-2.2.2-1"),
    case("qos-3", "82 [ 0001 [ ] 't' 03 ]", "82"),
    case("handling-3", "82 [ 0001 [ ] 't' 30 ]", "82"),
    case("reserved-bit-6", "82 [ 0001 [ ] 't' 40 ]", "81", "MQTT-3.8.3-5"),
    case("reserved-bit-7", "82 [ 0001 [ ] 't' 80 ]", "81", "MQTT-3.8.3-5"),
    case("second-qos-3", "82 [ 0001 [ ] 't' 01 'u' 03 ]", "82"),
    case("qos-3-and-reserved", "82 [ 0001 [ ] 't' 83 ]", "81", "MQTT-3.8.3-5"),
    case("qos-3-and-cut", "82 [ 0001 [ ] 't' 03 0002 75 ]", "81"),
    case("second-handling-3", "82 [ 0001 [ ] 't' 01 'u' 31 ]", "82"),
    case("options-missing", "82 [ 0001 [ ] 't' ]", "81"),
    case("second-filter-cut", "82 [ 0001 [ ] 't' 00 0002 75 ]", "81"),
    case("no-local-and-shared", "82 [ 0001 [ ] '$share/g/t' 04 ]", "82", "MQTT-3.8.3-4"),
    case("unsubscribe-flags", "a0 [ 0001 [ ] 't' ]", "81", "MQTT-3.10.1-1", FLAGS),
    case("unsubscribe-flags-dup", "aa [ 0001 [ ] 't' ]", "81", "MQTT-3.10.1-1"),
    case("unsubscribe-no-filter", "a2 [ 0001 [ ] ]", "82", "MQTT-3.10.3-2"),
    case("unsubscribe-id-0", "a2 [ 0000 [ ] 't' ]", "82", PACKET_ID),
    case("unsubscribe-no-properties", "a2 [ 0001 ]", "81", "MQTT-2.2.2-1"),
    case("unsubscribe-gap", "a2 [ 0001 [ ] 't' 00 ]", "81"),
    case("unsubscribe-filter-cut", "a2 [ 0001 [ ] 0003 7475 ]", "81"),
]

BAD_OTHERS = [
    case("pingreq-flags", "c1 [ ]", "81", FLAGS),
    case("pingreq-body", "c0 [ 00 ]", "81"),
    case("disconnect-flags", "e1 [ ]", "81", "MQTT-3.14.1-1", FLAGS),
    case("disconnect-flags-code", "e8 [ 00 ]", "81", "MQTT-3.14.1-1"),
    case("disconnect-code-1", "e0 [ 01 ]", "82", "MQTT-3.14.2-1"),
    case("disconnect-code-of-a-server", "e0 [ 8e ]", "82", "MQTT-3.14.2-1"),
    case("disconnect-cut", "e0 [ 00 05 ]", "81"),
    case("disconnect-code-and-cut", "e0 [ 01 05 ]", "81"),
    case("disconnect-surplus", "e0 [ 00 [ ] 00 ]", "81"),
    case("auth-flags", "f1 [ 18 [ 15 'X' ] ]", "81", "MQTT-3.15.1-1", FLAGS),
    case("auth-bare", "f0 [ ]", "82", "MQTT-4.12.0-7"),
    case("auth-unasked", "f0 [ 18 [ 15 'X' ] ]", "82", "MQTT-4.12.0-7"),
    case("auth-again-without-method", "f0 [ 19 [ 15 'X' ] ]", "82", "MQTT-4.12.0-7"),
    case("auth-code", "f0 [ 01 [ 15 'X' ] ]", "82", "MQTT-3.15.2-1"),
    case("from-a-server-connack", "20 [ 00 00 [ ] ]", "82"),
    case("from-a-server-suback", "90 [ 0001 [ ] 00 ]", "82"),
    case("from-a-server-unsuback", "b0 [ 0001 [ ] 00 ]", "82"),
    case("from-a-server-pingresp", "d0 [ ]", "82"),
    case("type-0", "00 [ ]", "82"),
    case("connect-again", "10 [ 'MQTT' 05 02 0000 [ ] 'x' ]", "82", "MQTT-3.1.0-2"),
    case("connect-again-in-an-older-version", "10 [ 'MQTT' 04 02 0000 'x' ]", "82"),
]


@pytest.mark.spec("MQTT-3.1.4-1", of="5.0")
@pytest.mark.parametrize(("packet", "code"), BAD_CONNECT)
def test_a_malformed_connect_is_refused(mqtt5, packet, code):
    refuse_connect(mqtt5, packet, code)


@pytest.mark.spec("MQTT-3.1.4-1", of="5.0")
@pytest.mark.parametrize(("packet", "code"), UNREADABLE_CONNECT)
def test_a_connect_without_a_readable_version_is_not_answered(mqtt5, packet, code):
    if mqtt5.is_peer:
        refuse_connect(mqtt5, packet, code)
    else:
        client = mqtt5.socket()
        client.send(packet)
        client.expect_last()


@pytest.mark.spec("MQTT-4.13.1-1", "MQTT-4.13.2-1", of="5.0")
@pytest.mark.parametrize(
    ("packet", "code"), BAD_PUBLISH + BAD_ACKNOWLEDGEMENTS + BAD_SUBSCRIBE + BAD_OTHERS
)
def test_a_protocol_violation_ends_the_connection(mqtt5, packet, code):
    refuse(mqtt5, mqtt5.connect(), packet + codec.PINGREQ, code)


@pytest.mark.spec(
    "MQTT-1.5.4-1", "MQTT-1.5.4-2", "MQTT-3.1.3-4", "MQTT-3.1.3-11", "MQTT-3.1.3-12", of="5.0"
)
@pytest.mark.parametrize("text", BAD_TEXT.values(), ids=BAD_TEXT)
def test_a_connect_with_invalid_utf_8_is_refused(mqtt5, text):
    packets = {
        "client id": codec.connect(text),
        "will topic": codec.connect("x", will=Will(text)),
        "user name": codec.connect("x", username=text),
    }
    for where, packet in packets.items():
        refuse_connect(mqtt5, packet, 0x81, where)


@pytest.mark.spec(
    "MQTT-1.5.4-1", "MQTT-1.5.4-2", "MQTT-3.3.2-1", "MQTT-3.8.3-1", "MQTT-3.10.3-1",
    "MQTT-4.7.3-2", of="5.0",
)  # fmt: skip
@pytest.mark.parametrize("text", BAD_TEXT.values(), ids=BAD_TEXT)
def test_topics_with_invalid_utf_8_end_the_connection(mqtt5, text):
    packets = {
        "publish": codec.publish(text),
        "subscribe": codec.subscribe(1, (text, 0)),
        "shared": codec.subscribe(1, (b"$share/" + text + b"/a", 0)),
        "unsubscribe": codec.unsubscribe(1, text),
    }
    for where, packet in packets.items():
        refuse(mqtt5, mqtt5.connect(), packet, 0x81, where)
