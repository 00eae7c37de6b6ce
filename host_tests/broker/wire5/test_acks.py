"""Acknowledgements: reason codes, long and short forms, and refusals."""

import pytest

from ..wire.scene import spec
from . import codec
from .codec import NO_SUBSCRIBERS, PUBACK, PUBCOMP, PUBREC, PUBREL, Ack

ABOUT = {"reason_string": "because", "user": (("a", "b"), ("a", "c"))}
# The forms in which a client may put an acknowledgement that means success.
FORMS = {
    "2 bytes": (None, None),
    "3 bytes": (0, None),
    "4 bytes": (0, {}),
    "reason string": (0, {"reason_string": "fine"}),
    "properties": (0, ABOUT),
}
EACH_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
KEEPS = pytest.mark.ours("mosquitto keeps it, and sends it again")
ERRORS = (0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99)


def subscribed(mqtt5, topic, qos, **options):
    """A client with a persistent session and one message to acknowledge."""
    client = mqtt5.reader(topic, name="sub", qos=qos, session_expiry=60, **options)
    mqtt5.connect().publish(topic, b"x", qos)
    return client, client.expect_publish(topic, b"x", qos).packet_id


def nothing_is_left(mqtt5, client):
    client.expect_silence()
    client.drop()
    mqtt5.connect("sub", clean=False).expect_silence()


@spec(new="3.4.2-1 3.5.2-1 3.6.2-1 3.7.2-1 2.2.1-5 4.3.2-4 4.3.3-4 4.3.3-11")
@EACH_FORM
@pytest.mark.parametrize("qos", [1, 2])
def test_every_form_of_acknowledgement(mqtt5, topic, qos, form):
    client, packet_id = subscribed(mqtt5, topic, qos)
    if qos == 1:
        client.send(codec.ack(PUBACK, packet_id, *form))
    else:
        client.send(codec.ack(PUBREC, packet_id, *form))
        client.expect(Ack(PUBREL, packet_id))
        client.send(codec.ack(PUBCOMP, packet_id, *form))
    nothing_is_left(mqtt5, client)
    publisher = mqtt5.connect()
    publisher.send(codec.publish(topic, b"x", 2, 65535))
    publisher.expect_accepted(65535, 2)
    publisher.send(codec.ack(PUBREL, 65535, *form))
    publisher.expect(Ack(PUBCOMP, 65535))
    publisher.expect_silence()


@spec(new="3.4.2-1 3.5.2-1 4.4.0-2 4.3.3-9")
@pytest.mark.parametrize(
    ("qos", "code"),
    [
        *((1, code) for code in (NO_SUBSCRIBERS, *ERRORS)),
        *(pytest.param(2, code, marks=KEEPS) for code in ERRORS),
    ],
)
@pytest.mark.parametrize("properties", [None, {}, ABOUT], ids=["bare", "empty", "about"])
def test_an_acknowledgement_with_an_error_ends_the_delivery(mqtt5, topic, qos, code, properties):
    client, packet_id = subscribed(mqtt5, topic, qos)
    client.send(codec.ack(PUBACK if qos == 1 else PUBREC, packet_id, code, properties))
    nothing_is_left(mqtt5, client)


@spec(new="4.3.3-4 3.5.2-1")
def test_a_pubrec_with_no_matching_subscribers_is_a_success(mqtt5, topic):
    client, packet_id = subscribed(mqtt5, topic, 2)
    client.send(codec.ack(PUBREC, packet_id, NO_SUBSCRIBERS))
    client.expect(Ack(PUBREL, packet_id))
    client.send(codec.ack(PUBCOMP, packet_id, 0x92))
    nothing_is_left(mqtt5, client)


@spec(new="3.7.2-1 4.3.3-11")
@pytest.mark.parametrize("code", [None, 0, 0x92])
def test_a_pubrel_with_an_unknown_id_is_completed(mqtt5, topic, code):
    client = mqtt5.connect()
    client.publish(topic, b"x", 2)
    for packet_id in (500, 1):  # never known, and known no longer
        client.send(codec.ack(PUBREL, packet_id, code))
        answer = client.next()
        assert (answer.kind, answer.packet_id) == (PUBCOMP, packet_id)
        assert answer.code in mqtt5.codes(0x92, 0)


@spec(new="3.6.2-1")
@pytest.mark.parametrize("kind", [PUBACK, PUBREC, PUBCOMP])
@pytest.mark.parametrize("code", [None, 0, 0x80])
def test_other_acknowledgements_of_unknown_ids_end_nothing(mqtt5, topic, kind, code):
    """A PUBREC is answered by PUBREL with 0x92; the peer may leave that out."""
    client = mqtt5.connect()
    if kind == PUBCOMP and code:
        code = 0x92
    client.send(codec.ack(kind, 500, code))
    client.ping()
    if kind == PUBREC and not code:
        released = client.next()
        assert (released.kind, released.packet_id) == (PUBREL, 500)
        assert released.code in mqtt5.codes(0x92, 0)
    client.expect_silence()


@spec(new="3.4.2-1 3.5.2-1")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_message_with_a_subscriber_is_acknowledged_with_code_0(mqtt5, topic, qos):
    client = mqtt5.connect()
    client.publish(topic, b"x", qos)
    client.subscribe(topic)
    packet_id = client.next_id()
    client.send(codec.publish(topic, b"x", qos, packet_id))
    answer = client.expect_accepted(packet_id, qos)
    assert answer.code == 0
    if qos == 2:
        client.release(packet_id)


@spec(new="4.3.3-12 4.3.2-5")
@pytest.mark.parametrize("qos", [1, 2])
def test_after_the_last_acknowledgement_an_id_is_free(mqtt5, topic, qos):
    witness, client = mqtt5.reader(topic), mqtt5.connect()
    for payload, dup in ((b"1", False), (b"2", True), (b"3", False)):
        client.send(codec.publish(topic, payload, qos, 9, dup=dup))
        client.expect_accepted(9, qos)
        if qos == 2:
            client.release(9)
    assert [m.payload for m in witness.publishes()] == [b"1", b"2", b"3"]
