"""Fake boards: clients of a real broker that answer as lib/FORMAT.md says.

A test can make answers be lost, cut or damaged.
"""

import json
import struct
from collections.abc import Callable

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from .recording import Recorder

PACKET = 700  # bytes that fit into one answer
NONE = 0xFFFFFFFF


class FakeBoards:
    """Recorders behind one client; `published` must be called for their state to be seen."""

    def __init__(self, address: tuple[str, int], recorders: list[Recorder]) -> None:
        self.recorders = {each.name: each for each in recorders}
        self.requests: list[tuple[str, int, int]] = []  # board, segment, offset
        self.times: list[str] = []
        self.spoil: Callable[[int, bytes], bytes | None] = lambda _count, answer: answer
        self._client = client = paho.Client(CallbackAPIVersion.VERSION2)
        client.on_message = self._asked
        client.connect(*address)
        client.loop_start()
        client.subscribe([("$SLOTMQ/record/+/get", 1), ("$SLOTMQ/time", 1)])
        self.published()

    def published(self) -> None:
        """Every board's head, as it is now."""
        for name, recorder in self.recorders.items():
            state = json.dumps(recorder.state())
            topic = f"$SLOTMQ/record/{name}/head"
            self._client.publish(topic, state, 1, retain=True).wait_for_publish(10)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _asked(self, client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        if message.topic == "$SLOTMQ/time":
            self.times.append(message.payload.decode())
            return
        name = message.topic.split("/")[2]
        if name not in self.recorders:
            return
        asked = json.loads(message.payload)
        assert not asked["reply"].startswith("$")
        number, offset = asked["segment"], asked["offset"]
        self.requests.append((name, number, offset))
        segment = self.recorders[name].segments.get(number)
        total = NONE if segment is None else len(segment)
        piece = (segment or b"")[offset : offset + min(asked["length"], PACKET)]
        answer = self.spoil(len(self.requests), struct.pack("<III", number, offset, total) + piece)
        if answer is not None:
            client.publish(asked["reply"], answer, 0)
