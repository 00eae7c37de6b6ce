"""Packets that no client may send: each ends its connection, in 5.0 with the right reason code."""

import pytest

from . import codec
from .codec import Will
from .refusals import refuse, refuse_connect
from .scene import each_version, spec
from .vectors import BAD_TEXT, EACH_CASE, cases, wire

# A code of 0: the broker cannot read the version, so it does not know which CONNACK to send.
BAD_CONNECT = cases("""
reserved-flag        | 10 [ 'MQTT' v 03 0000 _ 'x' ] | 81 | 3.1.2-3 3.2.2-6 | 3.1.2-3
will-qos-3           | 10 [ 'MQTT' v 1e 0000 _ 'x' _ 'w' 'm' ] | 81 | 3.1.2-14 | 3.1.2-12
qos-no-will          | 10 [ 'MQTT' v 0a 0000 _ 'x' ] | 81 | 3.1.2-11 3.1.2-13 | 3.1.2-11
retain-no-will       | 10 [ 'MQTT' v 22 0000 _ 'x' ] | 81 | 3.1.2-15 | 3.1.2-13
will-nowhere         | 10 [ 'MQTT' v 06 0000 _ 'x' ] | 81 | 3.1.2-9 | 3.1.2-9
+will-properties-only | 10 [ 'MQTT' v 06 0000 _ 'x' _ ] | 81 | | 3.1.2-9
will-no-payload      | 10 [ 'MQTT' v 06 0000 _ 'x' _ 'w' ] | 81 | 3.1.2-9 | 3.1.2-9
+will-no-properties  | 10 [ 'MQTT' v 06 0000 _ 'x' 'w' 'm' ] | 81
will-payload-cut     | 10 [ 'MQTT' v 06 0000 _ 'x' _ 'w' 0005 "gone" ] | 81
will-without-flag    | 10 [ 'MQTT' v 02 0000 _ 'x' _ 'w' 'm' ] | 81 | 3.1.2-11
will-topic-empty     | 10 [ 'MQTT' v 06 0000 _ 'x' _ '' 'm' ] | 82 | 4.7.3-1
will-topic-plus      | 10 [ 'MQTT' v 06 0000 _ 'x' _ 'a/+' 'm' ] | 82 | 4.7.1-1
user-no-flag         | 10 [ 'MQTT' v 02 0000 _ 'x' 'user' ] | 81 | 3.1.2-18 | 3.1.2-16
user-missing         | 10 [ 'MQTT' v 82 0000 _ 'x' ] | 81 | 3.1.2-19 | 3.1.2-17
password-no-flag     | 10 [ 'MQTT' v 82 0000 _ 'x' 'u' 'p' ] | 81 | 3.1.2-20 | 3.1.2-18
password-missing     | 10 [ 'MQTT' v c2 0000 _ 'x' 'user' ] | 81 | 3.1.2-21 | 3.1.2-19
password-no-user     | 10 [ 'MQTT' v 42 0000 'x' 'pw' ] | | 3.1.2-22
no-client-id         | 10 [ 'MQTT' v 02 0000 _ ] | 81 | 3.1.3-3 | 3.1.3-3
client-id-cut        | 10 [ 'MQTT' v 02 0000 _ 0003 6162 ] | 81
+no-properties       | 10 [ 'MQTT' v 02 0000 ] | 81 | | 2.2.2-1
+properties-too-long | 10 [ 'MQTT' v 02 0000 09 'x' ] | 81
+properties-endless  | 10 [ 'MQTT' v 02 0000 ffff ffff 7f 'x' ] | 81
+length-not-shortest | 10 [ 'MQTT' v 02 0000 8000 'x' ] | 81 | | 1.5.5-1 | mosquitto takes it
surplus              | 10 [ 'MQTT' v 02 0000 _ 'x' 00 ] | 81
fixed-header-flag    | 11 [ 'MQTT' v 02 0000 _ 'x' ] | 0 | 2.2.2-1 2.2.2-2 | 2.1.3-1
no-keep-alive        | 10 [ 'MQTT' v 02 ] | 0
no-flags             | 10 [ 'MQTT' v ] | 0
no-level             | 10 [ 'MQTT' ] | 0
nothing              | 10 [ ] | 0
name-cut             | 10 [ 0004 "MQT" ] | 0
""")

FIRST_PACKETS = cases("""
publish        | 30 [ 't' _ ] | 0
publish-qos-2  | 34 [ 't' 0001 _ ] | 0
puback         | 40 [ 0001 ] | 0
pubrel         | 62 [ 0001 ] | 0
subscribe      | 82 [ 0001 _ 't' 00 ] | 0
unsubscribe    | a2 [ 0001 _ 't' ] | 0
pingreq        | c0 [ ] | 0
disconnect     | e0 [ ] | 0
+disconnect-0  | e0 [ 00 ] | 0
+auth          | f0 [ 18 [ ] ] | 0
connack        | 20 [ 0000 ] | 0
type-0         | 00 [ ] | 0
type-15        | f0 [ ] | 0
other-protocol | "GET / HTTP/1.1" 0d0a 0d0a | 0
endless-length | 10 ffff ffff 7f | 0
""")

BAD_PUBLISH = """
qos-3                | 36 [ 't' 0001 _ ] | 81 | 3.3.1-4 | 3.3.1-4
dup-with-qos-0       | 38 [ 't' _ ] | 81 | 3.3.1-2 4.3.1-1 | 3.3.1-2
topic-empty          | 30 [ '' _ ] | 82 | 4.7.3-1 | 4.7.3-1
topic-plus           | 30 [ 'a/+' _ ] | 82 | 3.3.2-2 4.7.1-1 | 3.3.2-2 4.7.0-1
topic-hash           | 30 [ 'a/#' _ ] | 82 | 3.3.2-2 4.7.1-1 | 3.3.2-2 4.7.0-1
topic-hash-alone     | 30 [ '#' _ ] | 82 | 3.3.2-2 4.7.1-1 | 3.3.2-2 4.7.0-1
topic-wildcard-inside | 32 [ 'a#b' 0001 _ ] | 82 | 3.3.2-2 | 3.3.2-2
topic-missing        | 30 [ ] | 81 | 3.3.2-1 | 3.3.2-1
topic-length-cut     | 30 [ 00 ] | 81
topic-cut            | 30 [ 0005 61626364 ] | 81
packet-id-missing    | 32 [ 't' ] | 81 | 2.3.1-1 | 2.2.1-3
packet-id-cut        | 34 [ 't' 01 ] | 81
packet-id-0-qos-1    | 32 [ 't' 0000 _ ] | 82 | 2.3.1-1 | 2.2.1-3
packet-id-0-qos-2    | 34 [ 't' 0000 _ ] | 82 | 2.3.1-1 | 2.2.1-3
+no-properties       | 30 [ 't' ] | 81 | | 2.2.2-1
+no-properties-qos-1 | 32 [ 't' 0001 ] | 81 | | 2.2.2-1
+properties-too-long | 30 [ 't' 05 01 00 ] | 81
+properties-endless  | 30 [ 't' ffff ffff 7f ] | 81
endless-length       | 30 ffff ffff 7f |
length-of-five-bytes | 30 8080 8080 00 | 81
"""

# A reason code that is not the packet's is a Protocol Error: the packet could be parsed, and
# has what the protocol does not allow.
BAD_ACKNOWLEDGEMENTS = """
puback-flags         | 42 [ 0001 ] | 81 | 2.2.2-1 2.2.2-2 | 2.1.3-1
puback-short         | 40 [ 01 ] | 81
puback-long          | 40 [ 0001 00 ] |
puback-empty         | 40 [ ] | 81
+puback-code         | 40 [ 0001 05 ] | 82 | | 3.4.2-1
+puback-code-of-pubrel | 40 [ 0001 92 ] | 82 | | 3.4.2-1
+puback-cut          | 40 [ 0001 00 05 ] | 81
+puback-surplus      | 40 [ 0001 00 [ ] 00 ] | 81
+puback-code-and-cut | 40 [ 0001 05 05 ] | 81
+puback-code-and-property | 40 [ 0001 05 [ 1f 'why' ] ] | 82 | | 3.4.2-1
pubrec-flags         | 58 [ 0001 ] | 81 | 2.2.2-1 2.2.2-2 | 2.1.3-1
pubrec-long          | 50 [ 0001 00 ] |
+pubrec-code         | 50 [ 0001 02 ] | 82 | | 3.5.2-1
+pubrec-surplus      | 50 [ 0001 00 [ ] 00 ] | 81
pubrel-flags-0       | 60 [ 0001 ] | 81 | 3.6.1-1 2.2.2-1 2.2.2-2 | 3.6.1-1 2.1.3-1
pubrel-flags-dup     | 6a [ 0001 ] | 81 | 3.6.1-1 | 3.6.1-1
pubrel-flags-all     | 6f [ 0001 ] | 81 | 3.6.1-1 | 3.6.1-1
pubrel-short         | 62 [ 01 ] | 81
+pubrel-code         | 62 [ 0001 10 ] | 82 | | 3.6.2-1
+pubrel-cut          | 62 [ 0001 00 7f ] | 81
pubcomp-flags        | 71 [ 0001 ] | 81 | 2.2.2-1 2.2.2-2 | 2.1.3-1
pubcomp-empty        | 70 [ ] | 81
+pubcomp-code        | 70 [ 0001 80 ] | 82 | | 3.7.2-1
+puback-id-0         | 40 [ 0000 ] | 82 | | | mosquitto takes it for an unknown one
+puback-id-0-and-code | 40 [ 0000 00 ] | 82 | | | mosquitto takes it for an unknown one
+puback-id-0-and-properties | 40 [ 0000 10 [ ] ] | 82 | | | mosquitto takes it for an unknown one
+puback-id-0-and-cut | 40 [ 0000 00 05 ] | 81
+pubrel-id-0-and-surplus | 62 [ 0000 00 [ ] 00 ] | 81
+pubrec-id-0         | 50 [ 0000 ] | 82 | | | mosquitto takes it for an unknown one
+pubrec-id-0-and-error | 50 [ 0000 80 ] | 82 | | | mosquitto takes it for an unknown one
+pubrel-id-0         | 62 [ 0000 ] | 82 | | | mosquitto takes it for an unknown one
+pubrel-id-0-and-code | 62 [ 0000 92 ] | 82 | | | mosquitto takes it for an unknown one
+pubcomp-id-0        | 70 [ 0000 ] | 82 | | | mosquitto takes it for an unknown one
+pubcomp-id-0-and-code | 70 [ 0000 92 ] | 82 | | | mosquitto takes it for an unknown one
+pubrel-id-0-and-flags | 60 [ 0000 ] | 81 | | 2.1.3-1
"""

BAD_SUBSCRIBE = """
flags-0              | 80 [ 0001 _ 't' 00 ] | 81 | 3.8.1-1 2.2.2-1 2.2.2-2 | 3.8.1-1 2.1.3-1
flags-dup            | 8a [ 0001 _ 't' 00 ] | 81 | 3.8.1-1 | 3.8.1-1
no-filter            | 82 [ 0001 _ ] | 82 | 3.8.3-3 | 3.8.3-2
packet-id-0          | 82 [ 0000 _ 't' 00 ] | 82 | 2.3.1-1 | 2.2.1-3
packet-id-missing    | 82 [ ] | 81
+no-properties       | 82 [ 0001 ] | 81 | | 2.2.2-1
qos-3                | 82 [ 0001 _ 't' 03 ] | 82 | 3.8.3-4
reserved-bit-2       | 82 [ 0001 't' 04 ] | | 3.8.3-4
+handling-3          | 82 [ 0001 _ 't' 30 ] | 82
+reserved-bit-6      | 82 [ 0001 _ 't' 40 ] | 81 | | 3.8.3-5
reserved-bit-7       | 82 [ 0001 _ 't' 80 ] | 81 | 3.8.3-4 | 3.8.3-5
second-qos-3         | 82 [ 0001 _ 't' 01 'u' 03 ] | 82 | 3.8.3-4
+qos-3-and-reserved  | 82 [ 0001 _ 't' 83 ] | 81 | | 3.8.3-5
+qos-3-and-cut       | 82 [ 0001 _ 't' 03 0002 75 ] | 81
+second-handling-3   | 82 [ 0001 _ 't' 01 'u' 31 ] | 82
qos-missing          | 82 [ 0001 _ 't' ] | 81
second-filter-cut    | 82 [ 0001 _ 't' 00 0002 75 ] | 81
+no-local-and-shared | 82 [ 0001 _ '$share/g/t' 04 ] | 82 | | 3.8.3-4
unsubscribe-flags    | a0 [ 0001 _ 't' ] | 81 | 3.10.1-1 2.2.2-1 2.2.2-2 | 3.10.1-1 2.1.3-1
unsubscribe-flags-dup | aa [ 0001 _ 't' ] | 81 | 3.10.1-1 | 3.10.1-1
unsubscribe-no-filter | a2 [ 0001 _ ] | 82 | 3.10.3-2 | 3.10.3-2
unsubscribe-id-0     | a2 [ 0000 _ 't' ] | 82 | 2.3.1-1 | 2.2.1-3
+unsubscribe-no-properties | a2 [ 0001 ] | 81 | | 2.2.2-1
unsubscribe-gap      | a2 [ 0001 _ 't' 00 ] | 81 | 3.10.3-1
unsubscribe-filter-cut | a2 [ 0001 _ 0003 7475 ] | 81
"""

BAD_OTHERS = """
pingreq-flags        | c1 [ ] | 81 | 2.2.2-1 2.2.2-2 | 2.1.3-1
pingreq-body         | c0 [ 00 ] | 81
disconnect-flags     | e1 [ ] | 81 | 3.14.1-1 2.2.2-1 2.2.2-2 | 3.14.1-1 2.1.3-1
disconnect-body      | e0 [ 00 ] |
+disconnect-flags-code | e8 [ 00 ] | 81 | | 3.14.1-1
+disconnect-code-1   | e0 [ 01 ] | 82 | | 3.14.2-1
+disconnect-code-of-a-server | e0 [ 8e ] | 82 | | 3.14.2-1
+disconnect-cut      | e0 [ 00 05 ] | 81
+disconnect-code-and-cut | e0 [ 01 05 ] | 81
+disconnect-surplus  | e0 [ 00 [ ] 00 ] | 81
+auth-flags          | f1 [ 18 [ 15 'X' ] ] | 81 | | 3.15.1-1 2.1.3-1
type-15              | f0 [ ] | 82 | | 4.12.0-7
+auth-unasked        | f0 [ 18 [ 15 'X' ] ] | 82 | | 4.12.0-7
+auth-again-without-method | f0 [ 19 [ 15 'X' ] ] | 82 | | 4.12.0-7
+auth-code           | f0 [ 01 [ 15 'X' ] ] | 82 | | 3.15.2-1
connack              | 20 [ 00 00 _ ] | 82
suback               | 90 [ 0001 _ 00 ] | 82
unsuback             | b0 [ 0001 _ ] | 82
+unsuback-with-code  | b0 [ 0001 _ 00 ] | 82
pingresp             | d0 [ ] | 82
type-0               | 00 [ ] | 82
connect-again        | 10 [ 'MQTT' v 02 0000 _ 'x' ] | 82 | 3.1.0-2 | 3.1.0-2
+connect-again-in-an-older-version | 10 [ 'MQTT' 04 02 0000 'x' ] | 82
"""

BAD_LATER = [
    *cases(BAD_PUBLISH), *cases(BAD_ACKNOWLEDGEMENTS), *cases(BAD_SUBSCRIBE), *cases(BAD_OTHERS),
]  # fmt: skip


@spec("3.1.4-1", "3.1.4-1")
@pytest.mark.parametrize(EACH_CASE, BAD_CONNECT, indirect=["mqtt"])
def test_a_malformed_connect_is_refused(mqtt, packet, code):
    refuse_connect(mqtt, packet, code)


@spec("3.1.0-1", "3.1.0-1 3.2.0-1 3.14.0-1")
@pytest.mark.parametrize(EACH_CASE, FIRST_PACKETS, indirect=["mqtt"])
def test_the_first_packet_is_connect(mqtt, packet, code):
    client = mqtt.socket()
    client.send(packet + (mqtt.packet() if packet[0] != 0x10 else codec.PINGREQ))
    client.expect_closed()


@spec("4.8.0-1", "4.13.1-1 4.13.2-1")
@pytest.mark.parametrize(EACH_CASE, BAD_LATER, indirect=["mqtt"])
def test_a_protocol_violation_ends_the_connection(mqtt, packet, code):
    refuse(mqtt, mqtt.connect(), packet + codec.PINGREQ, code)


@each_version(new="3.14.4-1 4.13.1-1")
def test_packets_before_a_violation_are_handled_and_none_after_it(mqtt, topic):
    witness, client = mqtt.reader(topic), mqtt.connect()
    before, after = (mqtt.codec.publish(topic, text) for text in (b"before", b"after"))
    client.send(before + wire("c1 [ ]") + after)
    client.expect_disconnect(0x81)
    witness.receive(topic, b"before")
    witness.expect_silence()


@each_version(
    "1.5.3-1 1.5.3-2 3.1.3-4 3.1.3-10 3.1.3-11",
    "1.5.4-1 1.5.4-2 3.1.3-4 3.1.3-11 3.1.3-12",
)
@pytest.mark.parametrize("text", BAD_TEXT.values(), ids=BAD_TEXT)
def test_a_connect_with_invalid_utf_8_is_refused(mqtt, text):
    for where, packet in {
        "client id": mqtt.codec.connect(text),
        "will topic": mqtt.codec.connect("x", will=Will(text)),
        "user name": mqtt.codec.connect("x", username=text),
    }.items():
        refuse_connect(mqtt, packet, 0x81, where)


@each_version(
    "1.5.3-1 1.5.3-2 3.3.2-1 3.8.3-1 3.10.3-1 4.7.3-2",
    "1.5.4-1 1.5.4-2 3.3.2-1 3.8.3-1 3.10.3-1 4.7.3-2",
)
@pytest.mark.parametrize("text", BAD_TEXT.values(), ids=BAD_TEXT)
def test_topics_with_invalid_utf_8_end_the_connection(mqtt, text):
    for where, packet in {
        "publish": mqtt.codec.publish(text),
        "subscribe": mqtt.codec.subscribe(1, (text, 0)),
        "shared": mqtt.codec.subscribe(1, (b"$share/" + text + b"/a", 0)),
        "unsubscribe": mqtt.codec.unsubscribe(1, text),
    }.items():
        refuse(mqtt, mqtt.connect(), packet, 0x81, where)
