"""paho-mqtt in the scenario of MQTT 5.0."""

import queue

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.subscribeoptions import SubscribeOptions

from .moves5 import Adapter, Cannot, Connect, Message, Publish, Subscribe
from .paho_client import TIMEOUT_S, V5, Paho, properties

NAMES = {
    "format": "PayloadFormatIndicator",
    "content_type": "ContentType",
    "response_topic": "ResponseTopic",
    "correlation": "CorrelationData",
    "expiry": "MessageExpiryInterval",
    "user": "UserProperty",
}


def _came(message: MQTTMessage) -> Message:
    more = message.properties
    told = {ours: getattr(more, name) for ours, name in NAMES.items() if hasattr(more, name)}
    return Message.came(
        told,
        getattr(more, "SubscriptionIdentifier", ()),
        topic=message.topic,
        payload=message.payload.decode(),
        qos=message.qos,
        retain=message.retain,
    )


class PahoAdapter(Adapter):
    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self._paho: Paho | None = None
        self._messages: queue.Queue[MQTTMessage] = queue.Queue()
        self._codes: queue.Queue[int] = queue.Queue()

    @property
    def _client(self) -> Client:
        assert self._paho
        return self._paho.client

    def connect(self, how: Connect) -> bool:
        if how.aliases:
            raise Cannot("paho hands a message on without the topic")
        self._paho = Paho(how.name, V5, how.clean)
        self._client.on_message = lambda c, u, message: self._messages.put(message)
        self._client.on_publish = lambda c, u, mid, code, p: self._codes.put(code.value)
        if will := how.will:
            more = properties(PacketTypes.WILLMESSAGE, WillDelayInterval=0, **will.given(NAMES))
            self._client.will_set(will.topic, will.payload, will.qos, will.retain, more)
        answer, present = self._paho.connect(self.address, how.expiry)
        assert answer == "Success"
        return present

    def subscribe(self, how: Subscribe) -> list[int]:
        assert self._paho
        options = SubscribeOptions(how.qos, how.no_local, how.as_published, how.handling)
        more = properties(PacketTypes.SUBSCRIBE)
        if how.identifier:
            more.SubscriptionIdentifier = how.identifier
        return self._paho.subscribe(*((name, options) for name in how.filters), more=more)

    def publish(self, how: Publish) -> int:
        message, more = how.message, properties(PacketTypes.PUBLISH, **how.message.given(NAMES))
        if how.alias:
            more.TopicAlias = how.alias
        for number in range(how.times):
            topic = "" if how.alias and number else message.topic
            self._client.publish(topic, message.payload, message.qos, message.retain, more)
            code = self._codes.get(timeout=TIMEOUT_S)
        return code

    def receive(self) -> Message:
        return _came(self._messages.get(timeout=TIMEOUT_S))

    def ended(self) -> int:
        assert self._paho
        self._paho.expect_closed()
        return self._paho.code

    def leave(self) -> None:
        assert self._paho
        self._paho.leave()

    def die(self) -> None:
        assert self._paho
        self._paho.kill()

    def close(self) -> None:
        if self._paho:
            self._paho.leave()
