"""Keep alive: a client that is silent for one and a half times its promise is gone."""

import time

import pytest

from .codec import Will


def seconds_until_closed(client, since):
    client.expect_closed()
    return time.monotonic() - since


@pytest.mark.ours("mosquitto counts whole seconds")
@pytest.mark.spec("MQTT-3.1.2-24", "MQTT-3.1.2-8")
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
def test_every_packet_counts_as_a_sign_of_life(mqtt, topic):
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
