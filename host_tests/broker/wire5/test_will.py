"""The will in MQTT 5.0: when it is published, and with which properties."""

import time

import pytest

from ..wire.vectors import wire
from . import codec
from .codec import Will

PROPERTIES = {
    "payload_format": 1,
    "content_type": "text/plain",
    "response_topic": "answer/here",
    "correlation_data": b"\x00\xff",
    "user": (("b", "2"), ("a", "1"), ("b", "2"), ("", "")),
}


def leaves_with_its_will(mqtt5, client):
    client.disconnect(codec.WITH_WILL)


def leaves_with_an_error(mqtt5, client):
    client.disconnect(0x80)


def says_its_quota_is_exceeded(mqtt5, client):
    client.disconnect(0x97, reason_string="too much")


ONLY_4 = pytest.mark.ours("mosquitto publishes the will at no code but 4")
ENDS = [
    leaves_with_its_will,
    pytest.param(leaves_with_an_error, marks=ONLY_4),
    pytest.param(says_its_quota_is_exceeded, marks=ONLY_4),
]


@pytest.fixture
def witness(mqtt5, topic):
    """A client that gets every will."""
    client = mqtt5.connect("witness")
    client.subscribe(f"{topic}/#", qos=2)
    return client


@pytest.mark.spec("MQTT-3.1.2-8", of="5.0")
@pytest.mark.parametrize("end", ENDS)
def test_the_will_is_published_once_when_the_client(mqtt5, topic, witness, end):
    client = mqtt5.connect("mortal", will=Will(topic, b"gone", 1))
    witness.expect_silence()
    end(mqtt5, client)
    witness.receive(topic, b"gone", 1)
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.14.4-3", "MQTT-3.1.2-10", "MQTT-3.1.2-8", of="5.0")
@pytest.mark.parametrize("seconds", [0, 60])
@pytest.mark.parametrize("how", ["e0 [ ]", "e0 [ 00 ]", "e0 [ 00 [ ] ]"])
def test_an_orderly_disconnect_removes_the_will(mqtt5, topic, witness, seconds, how):
    client = mqtt5.connect("mortal", session_expiry=seconds, will=Will(topic))
    client.send(wire(how))
    client.expect_closed()
    witness.expect_silence()
    mqtt5.connect("mortal", clean=False).drop()
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.1.3-10", "MQTT-3.1.2-9", "MQTT-3.3.2-17", "MQTT-3.3.2-18", of="5.0")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_its_properties_go_with_it(mqtt5, topic, witness, qos):
    will = Will(topic, "gött".encode(), qos, properties={"will_delay": 0, **PROPERTIES})
    mqtt5.connect(will=will).drop()
    witness.receive(topic, "gött".encode(), qos, **PROPERTIES)


@pytest.mark.spec("MQTT-3.1.2-14", "MQTT-3.1.2-15", "MQTT-3.3.1-5", of="5.0")
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_will_is_retained_where_it_says_so(mqtt5, topic, witness, qos, retain):
    mqtt5.connect(will=Will(topic, b"gone", qos, retain, properties=PROPERTIES)).drop()
    witness.receive(topic, b"gone", qos, **PROPERTIES)
    late = mqtt5.connect()
    late.subscribe(topic, qos=2)
    if retain:
        late.receive(topic, b"gone", qos, retain=True, **PROPERTIES)
        late.publish(topic, b"", retain=True)
    else:
        late.expect_silence()


@pytest.mark.waits
@pytest.mark.ours("mosquitto lets the will wait although the session has ended")
@pytest.mark.spec("MQTT-3.1.2-8", "MQTT-3.1.3-9", "MQTT-3.3.2-6", of="5.0")
def test_a_will_waits_for_its_delay_or_the_end_of_the_session(mqtt5, topic, witness):
    """All cases that take time, at once: session expiry and will delay of several clients."""

    def mortal(name, seconds, delay, **more):
        will = Will(f"{topic}/{name}", b"gone", 1, properties={"will_delay": delay, **more})
        return mqtt5.connect(name, session_expiry=seconds, will=will)

    session_ends_at_once = mortal("at once", 0, 60)
    comes_back = mortal("comes back", 60, 1)
    starts_anew = mortal("starts anew", 60, 60)
    others = [
        mortal("delayed", 60, 1, message_expiry=100),
        mortal("session ends first", 1, 60),
        mortal("both", 1, 1),
    ]
    leaving = mortal("leaving", 60, 1)
    later = mortal("later", 60, 60)
    start = time.monotonic()
    for client in (comes_back, starts_anew, later, *others):
        client.drop()
    leaving.disconnect(codec.WITH_WILL)
    session_ends_at_once.drop()
    witness.receive(f"{topic}/at once", b"gone", 1)
    mqtt5.connect("starts anew", clean=True)
    witness.receive(f"{topic}/starts anew", b"gone", 1)
    assert mqtt5.connect("comes back", clean=False).connack.session_present
    witness.expect_silence()
    found: dict[str, float] = {}
    while len(found) < 4:
        message = witness.next_message()
        found[message.topic.removeprefix(f"{topic}/")] = time.monotonic() - start
        if "delayed" in message.topic:  # its time begins when it is published
            assert message.properties["message_expiry"] in (99, 100)
    assert found.keys() == {"delayed", "session ends first", "both", "leaving"}
    assert all(0.9 < seconds < 4 for seconds in found.values()), found
    witness.wait(0.3)
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.1.3-9", "MQTT-3.1.2-10", of="5.0")
def test_a_takeover_of_the_session_cancels_a_delayed_will(mqtt5, topic, witness):
    will = Will(topic, b"first", 1, properties={"will_delay": 60})
    first = mqtt5.connect("mortal", session_expiry=60, will=will)
    second = mqtt5.connect("mortal", clean=False, session_expiry=60)
    first.expect_disconnect(0x8E)
    witness.expect_silence()
    second.disconnect()
    mqtt5.connect("mortal", clean=True).disconnect()
    witness.expect_silence()


@pytest.mark.ours("mosquitto drops the will then")
@pytest.mark.spec("MQTT-3.1.2-8", "MQTT-3.1.4-3", of="5.0")
def test_a_takeover_with_clean_start_publishes_a_delayed_will(mqtt5, topic, witness):
    will = Will(topic, b"first", 1, properties={"will_delay": 60})
    first = mqtt5.connect("mortal", session_expiry=60, will=will)
    mqtt5.connect("mortal", clean=True)
    first.expect_disconnect(0x8E)
    witness.receive(topic, b"first", 1)
    witness.expect_silence()


@pytest.mark.ours("mosquitto lets the will wait although the session has ended")
@pytest.mark.spec("MQTT-3.1.2-8", of="5.0")
def test_a_disconnect_that_ends_the_session_publishes_a_delayed_will(mqtt5, topic, witness):
    """DISCONNECT 0x04 with a session expiry of 0 ends the session, and so the delay."""
    will = Will(topic, b"gone", 1, properties={"will_delay": 60})
    client = mqtt5.connect("mortal", session_expiry=60, will=will)
    client.disconnect(codec.WITH_WILL, session_expiry=0)
    witness.receive(topic, b"gone", 1)


@pytest.mark.config("max_qos 1")
@pytest.mark.spec("MQTT-3.2.2-12", "MQTT-3.2.2-9", of="5.0")
def test_a_will_above_the_maximum_qos_is_refused(mqtt5, topic):
    mqtt5.refuse(0x9B, will=Will(topic, qos=2))
    client = mqtt5.connect(will=Will(topic, qos=1))
    assert client.connack.properties["maximum_qos"] == 1


@pytest.mark.config("retain_available false")
@pytest.mark.spec("MQTT-3.2.2-13", of="5.0")
def test_a_retained_will_is_refused_where_nothing_is_retained(mqtt5, topic):
    mqtt5.refuse(0x9A, will=Will(topic, retain=True))
    client = mqtt5.connect(will=Will(topic))
    assert client.connack.properties["retain_available"] == 0


@pytest.mark.ours("mosquitto stops without a word")
@pytest.mark.spec("MQTT-3.1.2-8", of="5.0")
@pytest.mark.own_broker
def test_a_shutdown_publishes_the_wills_and_sends_disconnect(mqtt5, broker, topic, witness):
    mqtt5.connect(will=Will(topic, b"gone", 1))
    broker.stop()
    witness.expect_publish(topic, b"gone", 1)
    witness.expect_disconnect(0x8B)
