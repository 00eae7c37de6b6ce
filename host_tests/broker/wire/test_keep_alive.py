"""Keep alive: a client that is silent for one and a half times as long is disconnected."""

import time

import pytest

from .codec import Will
from .scene import EACH_VERSION


def seconds_until_closed(client, since):
    client.expect_disconnect(0x8D)
    return time.monotonic() - since


@EACH_VERSION
@pytest.mark.ours("mosquitto counts whole seconds, and closes 5.0 without DISCONNECT")
@pytest.mark.spec("MQTT-3.1.2-24", "MQTT-3.1.2-8")
@pytest.mark.spec("MQTT-3.1.2-22", "MQTT-3.14.2-1", of="5.0")
def test_silence_for_one_and_a_half_times_the_keep_alive(mqtt, topic):
    witness = mqtt.connect()  # promises nothing: keep alive 0
    witness.subscribe(topic)
    start = time.monotonic()
    mute = mqtt.connect(keep_alive=1, will=Will(topic))
    patient = mqtt.connect(keep_alive=60)
    assert 1.4 < seconds_until_closed(mute, start) < 3.0
    witness.receive(topic, b"gone")
    witness.expect_silence()
    patient.expect_silence()


@pytest.mark.spec("MQTT-3.1.2-24")
def test_every_packet_restarts_the_keep_alive(mqtt, topic):
    pinging, publishing, silent = (mqtt.connect(keep_alive=1) for _ in range(3))
    time.sleep(0.8)  # of the second and a half that they may be silent
    pinging.ping()
    publishing.publish(topic, qos=1)
    silent.expect_closed()
    start = time.monotonic()
    pinging.expect_silence()
    publishing.expect_silence()
    assert 1.4 < seconds_until_closed(pinging, start) < 3.0
    publishing.expect_closed()
