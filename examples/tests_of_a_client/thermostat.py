"""A small program to test: it switches the heating of rooms by their temperatures."""

import paho.mqtt.client as paho


def _connected(client, *_):
    client.subscribe("room/+/temperature", 1)
    client.publish("thermostat", "online", 1, retain=True)


def _measured(client, _, message):
    state = "on" if float(message.payload) < 18 else "off"
    client.publish("heating/" + message.topic.split("/")[1], state, 1)


def started(host, port):
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "thermostat")
    client.on_connect, client.on_message = _connected, _measured
    client.will_set("thermostat", "offline", 1, retain=True)
    client.reconnect_delay_set(1, 1)
    client.connect(host, port)
    client.loop_start()
    return client
