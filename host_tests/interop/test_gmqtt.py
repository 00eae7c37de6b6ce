"""gmqtt, an asyncio client that was written for MQTT 5.0."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import gmqtt
import pytest

from ..wire.process import BrokerProcess

PATIENCE_S = 10.0
LARGE = bytes(range(256)) * 80  # 20 KB
GIVEN: dict[str, Any] = {
    "payload_format_id": 0,
    "content_type": "bytes",
    "response_topic": "answers/here",
    "correlation_data": b"17",
    "user_property": [("b", "2"), ("a", "1")],
}


class Client:
    """One client; `received` and `subscribe` wait for the broker."""

    def __init__(self, client_id: str, **options: Any) -> None:
        self.client = gmqtt.Client(client_id, **options)
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._subacks: asyncio.Queue[Any] = asyncio.Queue()
        self.client.on_message = self._came
        self.client.on_subscribe = lambda c, mid, codes, p: self._subacks.put_nowait(codes)

    async def start(self, broker: BrokerProcess) -> "Client":
        await self.client.connect(*broker.address)
        return self

    async def subscribe(self, *subscriptions: gmqtt.Subscription, **options: Any) -> None:
        self.client.subscribe(list(subscriptions), **options)
        codes = await asyncio.wait_for(self._subacks.get(), PATIENCE_S)
        assert list(codes) == [subscription.qos for subscription in subscriptions]

    async def received(self) -> tuple[str, bytes, int, dict[str, Any]]:
        """Topic, payload, QoS, and of the properties those that are in GIVEN."""
        topic, payload, qos, properties = await asyncio.wait_for(self._messages.get(), PATIENCE_S)
        found = {}
        for name in GIVEN.keys() & properties.keys():
            value = properties[name]
            found[name] = value if name == "user_property" else value[0]
        return topic, bytes(payload), qos, found

    async def _came(self, client: Any, topic: str, payload: bytes, qos: int, more: Any) -> int:
        self._messages.put_nowait((topic, payload, qos, more))
        return 0


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 3 * PATIENCE_S))


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_arrive_with_their_properties(broker: BrokerProcess, base: str, qos: int):
    async def scenario() -> None:
        reader = await Client(f"{base}r").start(broker)
        writer = await Client(f"{base}w").start(broker)
        await reader.subscribe(gmqtt.Subscription(f"{base}/+", qos=qos))
        for payload in (b"small", LARGE):
            writer.client.publish(f"{base}/x", payload, qos=qos, **GIVEN)
            assert await reader.received() == (f"{base}/x", payload, qos, GIVEN)
        await reader.client.disconnect()
        await writer.client.disconnect()

    run(scenario())


def test_a_will_with_properties_and_a_session_that_is_kept(broker: BrokerProcess, base: str):
    async def scenario() -> None:
        kept = {"clean_session": False, "session_expiry_interval": 60}
        reader = await Client(f"{base}r", **kept).start(broker)
        await reader.subscribe(gmqtt.Subscription(f"{base}/#", qos=1))
        await reader.client.disconnect()
        will = gmqtt.Message(f"{base}/will", b"gone", qos=1, **GIVEN)
        mortal = await Client(f"{base}m", will_message=will).start(broker)
        await mortal.client.disconnect(reason_code=4)
        reader = await Client(f"{base}r", clean_session=False).start(broker)
        assert await reader.received() == (f"{base}/will", b"gone", 1, GIVEN)
        await reader.client.disconnect()

    run(scenario())


def test_options_of_a_subscription(broker: BrokerProcess, base: str):
    async def scenario() -> None:
        client = await Client(f"{base}c").start(broker)
        writer = await Client(f"{base}w").start(broker)
        await client.subscribe(gmqtt.Subscription(f"{base}/+", qos=1, no_local=True))
        client.client.publish(f"{base}/x", b"mine", qos=1)
        writer.client.publish(f"{base}/x", b"yours", qos=1)
        assert (await client.received())[1] == b"yours"
        await client.client.disconnect()
        await writer.client.disconnect()

    run(scenario())
