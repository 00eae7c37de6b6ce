"""paho-mqtt for tests: its callbacks fill queues, and every wait has a timeout."""

import contextlib
import queue
import socket
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

TIMEOUT_S = 10.0
V31 = MQTTProtocolVersion.MQTTv31
V311 = MQTTProtocolVersion.MQTTv311
V5 = MQTTProtocolVersion.MQTTv5


def properties(packet: int, **values: Any) -> Properties:
    """Properties for a packet of that type, by paho's names."""
    made = Properties(packet)
    for name, value in values.items():
        setattr(made, name, value)
    return made


class Received(NamedTuple):
    """The fields of a message that tests compare."""

    topic: str
    payload: bytes
    qos: int
    retain: bool


class Paho:
    """One client with its thread; `connect` and `subscribe` wait for the broker's answer."""

    def __init__(
        self,
        client_id: str,
        level: MQTTProtocolVersion = V311,
        clean: bool = True,
        transport: Literal["tcp", "websockets"] = "tcp",
    ):
        options: dict[str, Any] = {} if level == V5 else {"clean_session": clean}
        self.client = Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=level,
            transport=transport,
            reconnect_on_failure=False,
            **options,
        )
        self._how: dict[str, Any] = {}
        if level == V5:
            self._how = {"clean_start": clean, "properties": properties(PacketTypes.CONNECT)}
        self.present = False  # the broker knew the session
        self.address = ("", 0)
        self.code = 0  # why the connection ended
        self._connacks: queue.Queue[tuple[str, bool]] = queue.Queue()
        self._subacks: queue.Queue[list[int]] = queue.Queue()
        self._unsubacks: queue.Queue[int] = queue.Queue()
        self._ends: queue.Queue[bool] = queue.Queue()
        self._messages: queue.Queue[Received] = queue.Queue()
        self._call_back()

    def connect(self, address: tuple[str, int], expiry: int = 0) -> tuple[str, bool]:
        """-> the broker's answer in the words of paho, and "session present"."""
        self.address = address
        if expiry:
            self._how["properties"].SessionExpiryInterval = expiry
        self.client.connect(*address, **self._how)
        self.client.loop_start()
        return self._connacks.get(timeout=TIMEOUT_S)

    def subscribe(
        self,
        *filters: tuple[str, int] | tuple[str, SubscribeOptions],
        more: Properties | None = None,
    ) -> list[int]:
        """-> the codes of the SUBACK."""
        self.client.subscribe(list(filters), properties=more)  # type: ignore[arg-type]
        return self._subacks.get(timeout=TIMEOUT_S)

    def unsubscribe(self, *filters: str) -> None:
        self.client.unsubscribe(list(filters))
        self._unsubacks.get(timeout=TIMEOUT_S)

    def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False) -> None:
        """Publish, and wait for the acknowledgements of its QoS."""
        done = self.client.publish(topic, payload, qos, retain)
        done.wait_for_publish(TIMEOUT_S)
        assert done.is_published(), f"QoS {qos} to {topic} was never acknowledged"

    def receive(self) -> Received:
        return self._messages.get(timeout=TIMEOUT_S)

    def expect_closed(self) -> None:
        self._ends.get(timeout=TIMEOUT_S)

    def kill(self) -> None:
        """End the connection without a DISCONNECT."""
        sock = self.client.socket()
        assert isinstance(sock, socket.socket)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        self.expect_closed()
        self._stop()

    def leave(self) -> None:
        self.client.disconnect()
        self._stop()

    def _stop(self) -> None:
        self.client.loop_stop()
        self.client._reset_sockets()  # paho leaves a pair of its own to the garbage collector

    def _call_back(self) -> None:
        client = self.client
        client.on_connect = lambda c, u, flags, code, p: self._connacks.put(
            (str(code), flags.session_present)
        )
        client.on_subscribe = lambda c, u, mid, codes, p: self._subacks.put(
            [code.value for code in codes]
        )
        client.on_unsubscribe = lambda c, u, mid, codes, p: self._unsubacks.put(mid)
        client.on_disconnect = self._ended
        client.on_message = self._queue

    def _ended(self, client: Client, userdata: object, flags: object, code: Any, p: object):
        self.code = code.value
        self._ends.put(True)

    def _queue(self, client: Client, userdata: object, message: MQTTMessage) -> None:
        fields = (message.topic, bytes(message.payload), message.qos, message.retain)
        self._messages.put(Received(*fields))


Start = Callable[..., Paho]


@contextlib.contextmanager
def clients(address: tuple[str, int], level: MQTTProtocolVersion) -> Iterator[Start]:
    """Starts clients that are connected, and disconnects them all at the end."""
    started: list[Paho] = []

    def start(client_id: str, clean: bool = True, will: tuple[str, bytes, int] | None = None):
        paho = Paho(client_id, level, clean)
        if will:
            paho.client.will_set(*will)
        started.append(paho)
        answer, paho.present = paho.connect(address)
        assert answer == "Success"
        return paho

    yield start
    for paho in started:
        paho.leave()
