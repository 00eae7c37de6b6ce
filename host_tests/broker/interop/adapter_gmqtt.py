"""gmqtt, an asyncio client that was written for MQTT 5.0, in the scenario of that version."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import gmqtt
from gmqtt.storage import PersistentStorage

from .moves5 import Adapter, Cannot, Connect, Message, Publish, Subscribe

TIMEOUT_S = 10.0
NAMES = {
    "format": "payload_format_id",
    "content_type": "content_type",
    "response_topic": "response_topic",
    "correlation": "correlation_data",
    "expiry": "message_expiry_interval",
    "user": "user_property",
}
DISCONNECT_WITH_WILL = 4
Answer = TypeVar("Answer")


def _came(topic: str, payload: bytes, qos: int, more: dict[str, Any]) -> Message:
    told = {ours: more[name][0] for ours, name in NAMES.items() if name in more}
    told |= {"user": more.get("user_property", ()), "aliased": "topic_alias" in more}
    fields = {"topic": topic, "payload": bytes(payload).decode(), "qos": qos}
    identifiers = more.get("subscription_identifier", ())
    return Message.came(told, identifiers, retain=bool(more["retain"]), **fields)


class GmqttAdapter(Adapter):
    def __init__(self, address: tuple[str, int], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(address)
        self._loop = loop
        self._client: Any = None
        self._present = False
        self._unacknowledged = PersistentStorage()
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._subacks: asyncio.Queue[list[int]] = asyncio.Queue()
        self._ends: asyncio.Queue[int] = asyncio.Queue()

    def connect(self, how: Connect) -> bool:
        more: dict[str, Any] = {"session_expiry_interval": how.expiry}
        if how.aliases:
            more["topic_alias_maximum"] = how.aliases
        if will := how.will:
            fields = (will.topic, will.payload, will.qos, will.retain)
            more["will_message"] = gmqtt.Message(
                *fields, will_delay_interval=0, **will.given(NAMES)
            )
        self._client = gmqtt.Client(
            how.name, how.clean, persistent_storage=self._unacknowledged, **more
        )
        self._call_back()
        self._wait(self._client.connect(*self.address))
        return self._present

    def _call_back(self) -> None:
        client = self._client
        client.stop_reconnect()
        client.on_connect = self._connected
        client.on_message = self._message
        client.on_subscribe = lambda c, mid, codes, more: self._subacks.put_nowait(list(codes))
        client.on_disconnect = lambda c, packet: self._ends.put_nowait(packet[0] if packet else 0)

    def _connected(self, client: Any, present: int, code: int, more: Any) -> None:
        self._present = bool(present)

    async def _message(self, client: Any, *fields: Any) -> int:
        self._messages.put_nowait(_came(*fields))
        return 0

    def subscribe(self, how: Subscribe) -> list[int]:
        options = (how.qos, how.no_local, how.as_published, how.handling)
        more = {"subscription_identifier": how.identifier} if how.identifier else {}
        self._client.subscribe(
            [gmqtt.Subscription(name, *options) for name in how.filters], **more
        )
        return self._wait(self._subacks.get())

    def publish(self, how: Publish) -> None:
        if how.reason is not None:
            raise Cannot("gmqtt does not read the reason code of a PUBACK")
        message, given = how.message, how.message.given(NAMES)
        if how.alias:
            given["topic_alias"] = how.alias
        for number in range(how.times):
            topic = "" if how.alias and number else message.topic
            self._client.publish(topic, message.payload, message.qos, message.retain, **given)
            self._wait(self._unacknowledged.wait_empty())

    def receive(self) -> Message:
        return self._wait(self._messages.get())

    def ended(self) -> int:
        return self._wait(self._ends.get())

    def leave(self) -> None:
        self._wait(self._client.disconnect())

    def die(self) -> None:
        """gmqtt cannot drop the connection; DISCONNECT with 0x04 publishes the will."""
        self._wait(self._client.disconnect(reason_code=DISCONNECT_WITH_WILL))

    def close(self) -> None:
        if self._client:
            self.leave()

    def _wait(self, what: Coroutine[Any, Any, Answer]) -> Answer:
        return self._loop.run_until_complete(asyncio.wait_for(what, TIMEOUT_S))
