"""The will: published at every end of a connection other than DISCONNECT."""

import contextlib
import os
import signal
from pathlib import Path

import pytest

from . import codec
from .codec import Will
from .scene import EACH_VERSION
from .vectors import wire


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


ENDS = [
    closes,
    resets,
    breaks_the_protocol,
    pytest.param(connects_again, marks=pytest.mark.ours("mosquitto publishes no will then")),
    is_taken_over,
    sends_half_a_packet,
]


@EACH_VERSION
@pytest.mark.spec("MQTT-3.1.2-8", "MQTT-3.1.2-9", "MQTT-3.1.2-10", "MQTT-3.1.2-16")
@pytest.mark.spec("MQTT-3.1.2-7", "MQTT-3.1.2-8", "MQTT-3.1.2-9", "MQTT-3.1.2-10", of="5.0")
@pytest.mark.parametrize("end", ENDS)
def test_the_will_is_published_once_when_the_client(mqtt, topic, end):
    witness = mqtt.connect()
    witness.subscribe(topic, qos=2)
    client = mqtt.connect("mortal", will=Will(topic, b"gone", 1))
    witness.expect_silence()
    end(mqtt, client)
    witness.receive(topic, b"gone", 1)
    witness.expect_silence()
    late = mqtt.connect()
    late.subscribe(topic)
    late.expect_silence()


@pytest.mark.ours("mosquitto drops the will of a kept session that is taken over")
@pytest.mark.spec("MQTT-3.1.2-8", "MQTT-3.1.4-2")
def test_the_will_is_published_when_a_kept_session_is_taken_over(mqtt, topic):
    witness = mqtt.connect()
    witness.subscribe(topic)
    mqtt.connect("mortal", clean=False, will=Will(topic, b"first"))
    mqtt.connect("mortal", clean=False, will=Will(topic, b"second"))
    witness.receive(topic, b"first")
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.1.2-8", "MQTT-3.1.2-10", "MQTT-3.14.4-3")
@pytest.mark.parametrize("clean", [True, False])
def test_a_disconnect_removes_the_will(mqtt, topic, clean):
    witness = mqtt.connect()
    witness.subscribe(topic)
    mqtt.connect("mortal", clean=clean, will=Will(topic)).disconnect()
    witness.expect_silence()
    mqtt.connect("mortal", clean=clean).drop()
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


@pytest.mark.spec("MQTT-3.1.2-10", "MQTT-3.14.4-3")
@pytest.mark.whole  # else the system delays most of the bytes, and drops them at the reset
def test_what_came_before_a_reset_counts(mqtt, topic):
    """The last message, or a DISCONNECT, is there when the broker sees the reset."""
    witness = mqtt.connect()
    witness.subscribe(f"{topic}/#", qos=1)
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


@pytest.mark.spec("MQTT-3.1.2-12")
def test_without_a_will_nothing_is_published(mqtt):
    witness = mqtt.connect()
    witness.subscribe(f"{mqtt.topic}/#")
    mqtt.connect().drop()
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.1.2-10")
def test_the_next_connection_has_its_own_will(mqtt, topic):
    witness = mqtt.connect()
    witness.subscribe(topic)
    mqtt.connect("mortal", clean=False, will=Will(topic, b"first")).drop()
    witness.receive(topic, b"first")
    mqtt.connect("mortal", clean=False, will=Will(topic, b"second")).drop()
    witness.receive(topic, b"second")
    mqtt.connect("mortal", clean=False).drop()
    witness.expect_silence()


@pytest.mark.spec("MQTT-3.1.2-9", "MQTT-3.1.2-17", "MQTT-3.3.1-8")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_retained_will_is_kept_with_its_qos(mqtt, topic, qos):
    mqtt.connect(will=Will(topic, b"gone", qos, retain=True)).drop()
    late = mqtt.connect()
    late.subscribe(topic, qos=2)
    late.receive(topic, b"gone", qos, retain=True)
    mqtt.connect().publish(topic, b"", retain=True)


@pytest.mark.spec("MQTT-3.1.2-9")
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_will_has_its_own_qos(mqtt, topic, qos, granted):
    witness = mqtt.connect()
    witness.subscribe(topic, qos=granted)
    mqtt.connect(will=Will(topic, b"gone", qos)).drop()
    witness.receive(topic, b"gone", min(qos, granted))


def test_an_empty_will_is_published_too(mqtt, topic):
    witness = mqtt.connect()
    witness.subscribe(topic)
    mqtt.connect(will=Will(topic, b"")).drop()
    witness.receive(topic, b"")


def test_an_empty_retained_will_clears_the_retained_message(mqtt, topic):
    mqtt.connect().publish(topic, b"kept", retain=True)
    mqtt.connect(will=Will(topic, b"", retain=True)).drop()
    late = mqtt.connect()
    late.subscribe(topic)
    late.expect_silence()


@pytest.mark.spec("MQTT-3.1.2-5", "MQTT-3.1.2-8")
def test_a_will_is_queued_for_a_session_that_is_away(mqtt, topic):
    witness = mqtt.connect("witness", clean=False)
    witness.subscribe(topic, qos=1)
    witness.disconnect()
    mqtt.connect(will=Will(topic, b"gone", 1)).drop()
    mqtt.connect("witness", clean=False).receive(topic, b"gone", 1)


@pytest.mark.ours("mosquitto marks the will as sent before")
def test_a_client_subscribed_to_its_own_will_gets_it_at_the_next_connect(mqtt, topic):
    client = mqtt.connect("mortal", clean=False, will=Will(topic, b"gone", 1))
    client.subscribe(topic, qos=1)
    client.drop()
    mqtt.connect("mortal", clean=False).receive(topic, b"gone", 1)


@pytest.mark.spec("MQTT-3.1.2-8")
@pytest.mark.own_broker
def test_an_orderly_stop_publishes_the_wills_of_those_connected(mqtt, broker, topic):
    witness = mqtt.connect("witness")
    witness.subscribe(topic, qos=1)
    mqtt.connect(will=Will(topic, b"gone", 1))
    mqtt.connect(will=Will(topic, b"never")).disconnect()
    broker.stop()
    witness.expect_publish(topic, b"gone", 1)
    witness.expect_closed()
