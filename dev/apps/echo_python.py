"""An application with paho, aiomqtt or gmqtt: echo_python.py LIBRARY URL CA"""

import asyncio
import ssl
import sys
from typing import Any
from urllib.parse import urlsplit

LIBRARY, URL, CA = sys.argv[1:]
PLACE = urlsplit(URL)
HOST, PORT = str(PLACE.hostname), int(PLACE.port or 0)
TLS = ssl.create_default_context(cafile=CA) if CA else None
FILTERS = [("app/kept/+", 0), ("app/in", 1)]
kept: set[str] = set()


def answer(topic: str, payload: bytes) -> str | None:
    """What to publish."""
    if topic.startswith("app/kept/"):
        kept.add(topic)
        return None
    return f"{payload.decode()} {len(kept)}"


def of_paho() -> None:
    """paho with its own loop."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    transport: Any = "websockets" if "w" in PLACE.scheme else "tcp"
    client = Client(CallbackAPIVersion.VERSION2, "paho", transport=transport)

    def on_message(one: Client, _: object, message: Any) -> None:
        text = answer(message.topic, message.payload)
        if text:
            one.publish("app/out", text, 1)

    client.on_message = on_message
    client.on_connect = lambda one, *_: one.subscribe(FILTERS)
    if TLS:
        client.tls_set_context(TLS)
    client.connect(HOST, PORT)
    client.loop_forever()


async def of_aiomqtt() -> None:
    """paho in an event loop."""
    from aiomqtt import Client

    transport: Any = "websockets" if "w" in PLACE.scheme else "tcp"
    async with Client(HOST, PORT, tls_context=TLS, transport=transport) as client:
        await client.subscribe([(name, qos) for name, qos in FILTERS])
        async for message in client.messages:
            text = answer(str(message.topic), bytes(message.payload))
            if text:
                await client.publish("app/out", text, 1)


async def of_gmqtt() -> None:
    """A client of its own."""
    from gmqtt import Client

    client = Client("gmqtt")

    async def on_message(one: Any, topic: str, payload: bytes, *_: object) -> int:
        text = answer(topic, payload)
        if text:
            one.publish("app/out", text, qos=1)
        return 0

    client.on_message = on_message
    await client.connect(HOST, PORT, ssl=TLS)
    for name, qos in FILTERS:
        client.subscribe(name, qos=qos)
    await asyncio.Event().wait()


if LIBRARY == "paho":
    of_paho()
else:
    asyncio.run(of_aiomqtt() if LIBRARY == "aiomqtt" else of_gmqtt())
