"""Three tests as a new user has written them from docs/pytest.md alone."""

import threading
import unittest
from typing import Any

import aiomqtt
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from slotmq_tools.testing.mqtt import Mqtt


def client(name: str) -> paho.Client:
    return paho.Client(CallbackAPIVersion.VERSION2, name)


@pytest.mark.mqtt(users={"ada": "lovelace"})
def test_a_wrong_password_reaches_the_program(mqtt: Mqtt) -> None:
    codes: list[Any] = []
    done = threading.Event()
    panel = client("panel")
    panel.username_pw_set("ada", "byron")

    def connected(_client: object, _user: object, _flags: object, code: Any, _: object) -> None:
        codes.append(code)
        done.set()

    panel.on_connect = connected
    panel.connect(mqtt.host, mqtt.port)
    panel.loop_start()
    assert done.wait(5)
    panel.disconnect()
    panel.loop_stop()
    assert codes[0].is_failure
    assert mqtt.clients == []


def test_an_answer_that_is_lost_is_sent_again(mqtt: Mqtt) -> None:
    heater = client("heater")

    def answer(client: paho.Client, _user: object, got: paho.MQTTMessage) -> None:
        client.publish("heater", got.payload, qos=1)

    heater.on_message = answer
    heater.connect(mqtt.host, mqtt.port)
    heater.loop_start()
    heater.subscribe("heater/set", qos=1)
    mqtt.wait_for_subscription("heater/set", "heater")
    mqtt.drop("heater")
    mqtt.publish("heater/set", "on", qos=1)
    with pytest.raises(AssertionError):
        mqtt.wait_for("heater", "on", timeout=0.2)
    mqtt.disconnect("heater")
    assert mqtt.wait_for("heater", "on", timeout=5).client == "heater"
    heater.disconnect()
    heater.loop_stop()


class TestMeter(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.mqtt = Mqtt(board="RPI_PICO_W")
        self.addCleanup(self.mqtt.close)

    async def test_a_meter_without_a_network_is_reported(self) -> None:
        mqtt = self.mqtt
        meter = client("meter")
        meter.will_set("meter", "dead", qos=1, retain=True)
        async with aiomqtt.Client(mqtt.host, mqtt.port, identifier="panel") as panel:
            await panel.subscribe("meter")
            meter.connect(mqtt.host, mqtt.port, keepalive=30)
            mqtt.half_open("meter")
            mqtt.advance(minutes=1)
            got = await anext(aiter(panel.messages))
        meter.disconnect()
        self.assertEqual(got.payload, b"dead")
        self.assertEqual(mqtt.retained, {"meter": b"dead"})
