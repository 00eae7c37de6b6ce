"""Properties in the wrong packet, twice, cut, or with an invalid value."""

import pytest

from ..wire.codec import length
from ..wire.refusals import refuse, refuse_connect
from ..wire.scene import spec
from ..wire.vectors import BAD_TEXT, EACH_CASE, cases, wire
from . import codec
from .codec import (
    BINARY,
    IDS,
    PAIR,
    TABLE,
    TEXT,
    VARINT,
    Value,
    encode,
    number,
    packet,
    string,
)

BY_TYPE: dict[str | int, Value] = {TEXT: "text", BINARY: b"data", PAIR: (("a", "b"),), VARINT: 1}
SAMPLES = {name: BY_TYPE.get(kind, 1) for name, kind in TABLE.values()}
ABOUT = {"reason_string", "user"}
# What a client may put into each packet.
BELONG = {
    "connect": {
        "session_expiry", "receive_maximum", "maximum_packet_size", "topic_alias_maximum",
        "request_response_info", "request_problem_info", "user", "auth_method", "auth_data",
    },
    "will": {
        "will_delay", "payload_format", "message_expiry", "content_type", "response_topic",
        "correlation_data", "user",
    },
    "publish": {
        "payload_format", "message_expiry", "topic_alias", "response_topic",
        "correlation_data", "user", "content_type",
    },
    "puback": ABOUT,
    "pubrec": ABOUT,
    "pubrel": ABOUT,
    "pubcomp": ABOUT,
    "subscribe": {"subscription_id", "user"},
    "unsubscribe": {"user"},
    "disconnect": {"session_expiry", *ABOUT},
}  # fmt: skip
# A server may send these, a client may not [3.3.4-6]. For the second the standard does not say
# which error it is.
FROM_A_SERVER = {("publish", "subscription_id"): 0x82, ("disconnect", "server_reference"): 0x81}
KINDS = pytest.mark.parametrize("kind", BELONG)
pytestmark = pytest.mark.whole


def with_properties(kind, properties):
    """A packet of that kind with these bytes in the place of its properties."""
    head = string("MQTT") + bytes.fromhex("05 02 0000")
    mortal = string("MQTT") + bytes.fromhex("05 06 0000")
    first, body = {
        "connect": (0x10, head + properties + string("x")),
        "will": (0x10, mortal + b"\0" + string("x") + properties + string("t") + string("m")),
        "publish": (0x30, string("t") + properties),
        "puback": (0x40, number(1) + b"\0" + properties),
        "pubrec": (0x50, number(1) + b"\0" + properties),
        "pubrel": (0x62, number(1) + b"\0" + properties),
        "pubcomp": (0x70, number(1) + b"\0" + properties),
        "subscribe": (0x82, number(1) + properties + string("t") + b"\0"),
        "unsubscribe": (0xA2, number(1) + properties + string("t")),
        "disconnect": (0xE0, b"\0" + properties),
    }[kind]
    return packet(first, body)


def expect_refused(mqtt5, kind, properties, code, what=""):
    bad = with_properties(kind, properties)
    if kind in ("connect", "will"):
        refuse_connect(mqtt5, bad, code, what)
    else:
        refuse(mqtt5, mqtt5.connect(), bad, code, what)


def sized(body):
    return length(len(body)) + body


@spec(new="4.13.1-1 3.14.2-2")
@KINDS
def test_a_property_that_does_not_belong_to_a_packet_is_malformed(mqtt5, kind):
    for name in SAMPLES.keys() - BELONG[kind]:
        code = FROM_A_SERVER.get((kind, name), 0x81)
        if not (mqtt5.is_peer and (kind, name) in FROM_A_SERVER):
            expect_refused(mqtt5, kind, encode({name: SAMPLES[name]}), code, name)


@KINDS
def test_an_unknown_property_is_malformed(mqtt5, kind):
    for unknown in ("00 00", "04 00", "10 00 00 00 00", "2b 00", "7f 00", "80 01 00", "ff ff"):
        expect_refused(mqtt5, kind, sized(bytes.fromhex(unknown)), 0x81, unknown)


@KINDS
def test_a_repeated_property_is_a_protocol_error(mqtt5, kind):
    for name in BELONG[kind] - {"user"}:
        before = encode({"auth_method": "X"})[1:] if name == "auth_data" else b""
        one = encode({name: SAMPLES[name]})[1:]
        expect_refused(mqtt5, kind, sized(before + one + one), 0x82, name)
        between = encode({"user": SAMPLES["user"]})[1:]
        expect_refused(mqtt5, kind, sized(before + one + between + one), 0x82, name)


@KINDS
def test_user_properties_may_be_repeated(mqtt5, kind):
    twice = encode({"user": (("a", "b"), ("a", "b"), ("", ""))})
    client = mqtt5.connect() if kind not in ("connect", "will") else mqtt5.socket()
    client.send(with_properties(kind, twice))
    if kind == "disconnect":
        client.expect_closed()
    elif kind in ("connect", "will"):
        assert client.next().code == 0
        client.disconnect()
    else:
        client.ping()


@KINDS
def test_a_cut_property_is_malformed(mqtt5, kind):
    """The length of the properties cuts it, whatever follows."""
    for name in BELONG[kind]:
        whole = encode({name: SAMPLES[name]})[1:]
        for end in {1, len(whole) - 1}:
            expect_refused(mqtt5, kind, sized(whole[:end]), 0x81, f"{name} of {end} bytes")


@spec(new="1.5.4-1 1.5.4-2 1.5.7-1 3.3.2-13 3.3.2-19")
@KINDS
def test_invalid_utf_8_is_malformed(mqtt5, kind):
    for name in BELONG[kind]:
        for what, bad in BAD_TEXT.items():
            values: dict[str | int, list[Value]] = {
                TEXT: [bad],
                PAIR: [((bad, "v"),), (("n", bad),)],
            }
            for value in values.get(TABLE[IDS[name]][1], []):
                expect_refused(mqtt5, kind, encode({name: value}), 0x81, f"{name} {what}")


VALUES = cases("""
receive-maximum-0  | 10 [ 'MQTT' v 02 0000 [ 21 0000 ] 'x' ] | 82
packet-size-0      | 10 [ 'MQTT' v 02 0000 [ 27 00000000 ] 'x' ] | 82
response-info-2    | 10 [ 'MQTT' v 02 0000 [ 19 02 ] 'x' ] | 82
problem-info-2     | 10 [ 'MQTT' v 02 0000 [ 17 02 ] 'x' ] | 82
problem-info-255   | 10 [ 'MQTT' v 02 0000 [ 17 ff ] 'x' ] | 82
auth-data-alone    | 10 [ 'MQTT' v 02 0000 [ 16 'x' ] 'x' ] | 82 | | | mosquitto overlooks it
will-response-plus | 10 [ 'MQTT' v 06 0000 _ 'x' [ 08 'a/+' ] 't' 'm' ] | 82
alias-0            | 30 [ 't' [ 23 0000 ] ] | 94 | | 3.3.2-8
alias-0-and-no-topic | 30 [ '' [ 23 0000 ] ] | 94 | | 3.3.2-8
response-topic-plus | 30 [ 't' [ 08 'a/+' ] ] | 82 | | 3.3.2-14
response-topic-hash | 30 [ 't' [ 08 '#' ] ] | 82 | | 3.3.2-14
identifier-0       | 82 [ 0001 [ 0b 00 ] 't' 00 ] | 82
identifier-of-5-bytes | 82 [ 0001 [ 0b 80808080 01 ] 't' 00 ] | 81
identifier-not-shortest | 82 [ 0001 [ 0b 8100 ] 't' 00 ] | 81 | | 1.5.5-1
length-not-shortest | 30 [ 't' 8200 0101 ] | 81 | | 1.5.5-1
""", ["5.0"])  # fmt: skip


@pytest.mark.parametrize(EACH_CASE, VALUES, indirect=["mqtt"])
def test_an_invalid_value_ends_the_connection(mqtt, packet, code):
    if packet[0] == 0x10:
        refuse_connect(mqtt, packet, code)
    else:
        refuse(mqtt, mqtt.connect(), packet, code)


@pytest.mark.parametrize("vector", ["30 [ 't' [ 01 02 ] ]", "30 [ 't' [ 01 ff ] ]"])
def test_an_unknown_payload_format_is_a_protocol_error(mqtt5, vector):
    """The peer may pass it on."""
    client = mqtt5.connect()
    client.send(wire(vector) + codec.PINGREQ)
    answer = client.next()
    if mqtt5.is_peer and answer == codec.Pingresp():
        return
    assert answer.code in mqtt5.codes(0x82, 0x81, 0x99)
    client.expect_last()
