"""The will: published at every end of a connection other than DISCONNECT; in 5.0 also later."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from ..wire5 import codec as codec5
from . import codec
from .codec import Will
from .scene import each_version, spec
from .vectors import wire

PROPERTIES = {
    "payload_format": 1,
    "content_type": "text/plain",
    "response_topic": "answer/here",
    "correlation_data": b"\x00\xff",
    "user": (("b", "2"), ("a", "1"), ("b", "2"), ("", "")),
}


def closes(mqtt, client):
    client.drop()


def resets(mqtt, client):
    client.reset()


def breaks_the_protocol(mqtt, client):
    client.send(wire("c1 [ ]"))
    client.expect_end()


def connects_again(mqtt, client):
    client.send(mqtt.packet("mortal"))
    client.expect_end()


def is_taken_over(mqtt, client):
    mqtt.connect("mortal")
    client.expect_disconnect(0x8E)


def sends_half_a_packet(mqtt, client):
    client.send(mqtt.codec.publish("t", b"never whole", 1, 1)[:9])
    client.drop()


def leaves_with_its_will(mqtt5, client):
    client.disconnect(codec5.WITH_WILL)


def leaves_with_an_error(mqtt5, client):
    client.disconnect(0x80)


def says_its_quota_is_exceeded(mqtt5, client):
    client.disconnect(0x97, reason_string="too much")


ONLY_4 = pytest.mark.ours("mosquitto publishes the will at no code but 4")
ENDS = [
    closes,
    resets,
    breaks_the_protocol,
    pytest.param(connects_again, marks=pytest.mark.ours("mosquitto publishes no will then")),
    is_taken_over,
    sends_half_a_packet,
]
ENDS_5 = [
    leaves_with_its_will,
    pytest.param(leaves_with_an_error, marks=ONLY_4),
    pytest.param(says_its_quota_is_exceeded, marks=ONLY_4),
]


def goes_out_once(mqtt, topic, end):
    witness = mqtt.reader(topic, qos=2)
    client = mqtt.connect("mortal", will=Will(topic, b"gone", 1))
    witness.expect_silence()
    end(mqtt, client)
    witness.receive(topic, b"gone", 1)
    witness.expect_silence()
    mqtt.reader(topic).expect_silence()


@each_version("3.1.2-8 3.1.2-9 3.1.2-10 3.1.2-16", "3.1.2-7 3.1.2-8 3.1.2-9 3.1.2-10")
@pytest.mark.parametrize("end", ENDS)
def test_the_will_is_published_once_when_the_client(mqtt, topic, end):
    goes_out_once(mqtt, topic, end)


@spec(new="3.1.2-8")
@pytest.mark.parametrize("end", ENDS_5)
def test_the_will_is_published_once_at_a_disconnect_when_the_client(mqtt5, topic, end):
    goes_out_once(mqtt5, topic, end)


@each_version("3.1.2-8 3.1.4-2 3.1.2-10")
@pytest.mark.ours("mosquitto drops the will of a kept session that is taken over")
def test_each_connection_of_a_kept_session_has_its_own_will(mqtt, topic):
    witness = mqtt.reader(topic)
    mqtt.connect("mortal", clean=False, will=Will(topic, b"first"))
    second = mqtt.connect("mortal", clean=False, will=Will(topic, b"second"))
    witness.receive(topic, b"first")
    witness.expect_silence()
    second.drop()
    witness.receive(topic, b"second")
    mqtt.connect("mortal", clean=False).drop()
    witness.expect_silence()


@each_version("3.1.2-8 3.1.2-10 3.14.4-3 3.1.2-12", "3.14.4-3 3.1.2-10 3.1.2-8")
@pytest.mark.parametrize("clean", [True, False])
def test_a_disconnect_removes_the_will(mqtt, topic, clean):
    witness = mqtt.reader(topic)
    for how in ("e0 [ ]", "e0 [ 00 ]", "e0 [ 00 [ ] ]")[: 1 if mqtt.codec is codec else 3]:
        client = mqtt.connect("mortal", clean=clean, will=Will(topic))
        client.send(wire(how))
        client.expect_closed()
        mqtt.connect("mortal", clean=clean).drop()  # without a will
        witness.expect_silence()


@contextlib.contextmanager
def stopped(broker):
    """The broker is stopped meanwhile. On MicroPython it is a child of the process started."""
    known = broker.process.pid
    children = Path(f"/proc/{known}/task/{known}/children").read_text().split()
    number = int((children or [known])[-1])
    os.kill(number, signal.SIGSTOP)
    try:
        file = Path(f"/proc/{number}/stat")
        broker.wait_for(lambda: ") T" in file.read_text(), "the broker to be stopped")
        yield
    finally:
        os.kill(number, signal.SIGCONT)


@spec("3.1.2-10 3.14.4-3")
@pytest.mark.whole  # else the system delays most of the bytes, and drops them at the reset
def test_what_came_before_a_reset_counts(mqtt, topic):
    """The last message, or a DISCONNECT, is there when the broker sees the reset."""
    witness = mqtt.reader(f"{topic}/#", qos=1)
    for last in (codec.DISCONNECT, codec.publish(f"{topic}/last", b"x" * 99, 1, 1)):
        client = mqtt.connect("mortal", will=Will(f"{topic}/will", b"gone"))
        with stopped(mqtt.broker):
            client.send(last)
            client.reset()
        mqtt.connect("mortal").disconnect()  # the older connection has ended
        if last != codec.DISCONNECT:
            witness.receive(f"{topic}/last", b"x" * 99, 1)
            witness.receive(f"{topic}/will", b"gone")
        witness.expect_silence()


@each_version(
    "3.1.2-9 3.1.2-17 3.3.1-8",
    "3.1.2-14 3.1.2-15 3.3.1-5 3.1.3-10 3.1.2-9 3.3.2-17 3.3.2-18",
)
@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_will_has_its_own_qos_retain_flag_and_properties(mqtt, topic, qos, granted, retain):
    properties = {} if mqtt.codec is codec else PROPERTIES
    about = {"will_delay": 0, **PROPERTIES}
    witness, text = mqtt.reader(topic, qos=granted), "gött".encode()
    mqtt.connect(will=Will(topic, text, qos, retain, about)).drop()
    witness.receive(topic, text, min(qos, granted), **properties)
    late = mqtt.reader(topic, qos=2)
    if retain:
        late.receive(topic, text, qos, retain=True, **properties)
        late.publish(topic, b"", retain=True)
    else:
        late.expect_silence()


@each_version()
@pytest.mark.parametrize("retain", [False, True])
def test_an_empty_will_is_published_and_clears_the_retained_message(mqtt, topic, retain):
    witness, publisher = mqtt.reader(topic), mqtt.connect()
    publisher.publish(topic, b"kept", retain=True)
    mqtt.connect(will=Will(topic, b"", retain=retain)).drop()
    assert [m.payload for m in witness.publishes()] == [b"kept", b""]
    assert len(mqtt.reader(topic).publishes()) == (not retain)
    publisher.publish(topic, b"", retain=True)


@each_version("3.1.2-5 3.1.2-8")
def test_a_will_is_queued_for_a_session_that_is_away(mqtt, topic):
    witness = mqtt.reader(topic, name="witness", qos=1, clean=False)
    witness.disconnect()
    mqtt.connect(will=Will(topic, b"gone", 1)).drop()
    mqtt.connect("witness", clean=False).receive(topic, b"gone", 1)


@each_version()
@pytest.mark.ours("mosquitto marks the will as sent before")
def test_a_client_subscribed_to_its_own_will_gets_it_at_the_next_connect(mqtt, topic):
    mqtt.reader(topic, name="mortal", qos=1, clean=False, will=Will(topic, b"gone", 1)).drop()
    mqtt.connect("mortal", clean=False).receive(topic, b"gone", 1)


@each_version("3.1.2-8", "3.1.2-8")
@pytest.mark.ours("mosquitto stops without a word to those of 5.0")
@pytest.mark.own_broker
def test_an_orderly_stop_publishes_the_wills_of_those_connected(mqtt, broker, topic):
    witness = mqtt.reader(topic, name="witness", qos=1)
    mqtt.connect(will=Will(topic, b"gone", 1))
    mqtt.connect(will=Will(topic, b"never")).disconnect()
    broker.stop()
    witness.expect_publish(topic, b"gone", 1)
    witness.expect_disconnect(0x8B)


@pytest.fixture
def witness(mqtt5, topic):
    """A client that gets every will."""
    return mqtt5.reader(f"{topic}/#", name="witness", qos=2)


@pytest.mark.waits
@pytest.mark.ours("mosquitto lets the will wait although the session has ended")
@spec(new="3.1.2-8 3.1.3-9 3.3.2-6")
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
    leaving.disconnect(codec5.WITH_WILL)
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


@spec(new="3.1.3-9 3.1.2-10")
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
@spec(new="3.1.2-8 3.1.4-3")
def test_a_takeover_with_clean_start_publishes_a_delayed_will(mqtt5, topic, witness):
    will = Will(topic, b"first", 1, properties={"will_delay": 60})
    first = mqtt5.connect("mortal", session_expiry=60, will=will)
    mqtt5.connect("mortal", clean=True)
    first.expect_disconnect(0x8E)
    witness.receive(topic, b"first", 1)
    witness.expect_silence()


@pytest.mark.ours("mosquitto lets the will wait although the session has ended")
@spec(new="3.1.2-8")
def test_a_disconnect_that_ends_the_session_publishes_a_delayed_will(mqtt5, topic, witness):
    """DISCONNECT 0x04 with a session expiry of 0 ends the session, and so the delay."""
    will = Will(topic, b"gone", 1, properties={"will_delay": 60})
    client = mqtt5.connect("mortal", session_expiry=60, will=will)
    client.disconnect(codec5.WITH_WILL, session_expiry=0)
    witness.receive(topic, b"gone", 1)


@pytest.mark.config("max_qos 1")
@spec(new="3.2.2-12 3.2.2-9")
def test_a_will_above_the_maximum_qos_is_refused(mqtt5, topic):
    mqtt5.refuse(0x9B, will=Will(topic, qos=2))
    client = mqtt5.connect(will=Will(topic, qos=1))
    assert client.connack.properties["maximum_qos"] == 1


@pytest.mark.config("retain_available false")
@spec(new="3.2.2-13")
def test_a_retained_will_is_refused_where_nothing_is_retained(mqtt5, topic):
    mqtt5.refuse(0x9A, will=Will(topic, retain=True))
    client = mqtt5.connect(will=Will(topic))
    assert client.connack.properties["retain_available"] == 0
