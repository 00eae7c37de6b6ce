"""An application with mqtt_async on MicroPython: echo_mqtt_async_micropython.py PORT

The client is mqtt_as of Peter Hinch as Thorsten von Eicken went on with it."""

import asyncio
import sys

from mqtt_async import MQTTClient, config

PORT = int(sys.argv[1])
kept = set()


class Client(MQTTClient):
    def _dns_lookup(self):  # the unix port of MicroPython finds bytes
        self._addr = "127.0.0.1", PORT


def answer(topic, payload, _retained, _qos):
    if topic.startswith(b"app/kept/"):
        kept.add(topic)
    else:  # in a task of its own: what handles a message may not wait for the next one
        text = f"{payload.decode()} {len(kept)}"
        asyncio.create_task(client.publish("app/out", text, qos=1))  # noqa: RUF006


async def main():
    await client.connect()
    await client.subscribe("app/kept/+", 0)
    await client.subscribe("app/in", 1)
    while True:
        await asyncio.sleep(1)


config.server = "127.0.0.1"
config.subs_cb = answer
config.set_last_will("app/gone", "mqtt_async", False, 1)
client = Client(config)
asyncio.run(main())
