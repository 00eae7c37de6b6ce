"""With the plugin: a broker for each test, and what goes wrong in the field."""

import pytest
import thermostat


@pytest.fixture(autouse=True)
def program(mqtt):
    client = thermostat.started(mqtt.host, mqtt.port)
    mqtt.wait_for("thermostat", "online")
    yield
    client.disconnect()
    client.loop_stop()


def test_it_heats_a_cold_room(mqtt):
    mqtt.publish("room/1/temperature", "17.5")
    mqtt.wait_for("heating/1", "on")


def test_it_works_again_after_the_network_was_lost(mqtt):
    with mqtt.cut():
        mqtt.wait_for("thermostat", "offline")
    mqtt.wait_for("thermostat", "online", count=2, timeout=20)
    mqtt.publish("room/1/temperature", "21")
    mqtt.wait_for("heating/1", "off")
