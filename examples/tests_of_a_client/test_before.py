"""Without the plugin: mosquitto in a process, and a client that watches."""

import socket
import subprocess
import time

import paho.mqtt.client as paho
import paho.mqtt.subscribe as subscribe
import pytest
import thermostat


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]  # hopefully still free when mosquitto takes it
    with subprocess.Popen(["mosquitto", "-p", str(number)]) as broker:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", number)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        yield number
        broker.terminate()


def test_it_heats_a_cold_room(port):
    program = thermostat.started("127.0.0.1", port)
    watcher = paho.Client(paho.CallbackAPIVersion.VERSION2, "watcher")
    seen = []
    watcher.on_message = lambda _client, _data, message: seen.append(message.payload)
    watcher.connect("127.0.0.1", port)
    watcher.subscribe("heating/1")
    watcher.loop_start()
    subscribe.simple("thermostat", hostname="127.0.0.1", port=port)  # waits until it is online
    watcher.publish("room/1/temperature", "17.5")
    for _ in range(100):
        if seen:
            break
        time.sleep(0.1)
    assert seen == [b"on"]
    for client in (watcher, program):
        client.disconnect()
        client.loop_stop()
