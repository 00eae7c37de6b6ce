"""A client's queue of outgoing messages. Those of QoS 1 and 2 stay here until they are
acknowledged, also without a connection; QoS 0 is sent at once or lost.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from .. import codec
from .model import NUMBER_BYTES, Publish

if TYPE_CHECKING:
    from .device import Device
    from .tracker import Message

_RECEIVE_MAX = 0x21


class Queue:
    """The outgoing half of a client's session."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._waiting: deque[tuple[Message, Publish]] = deque()
        # packet id: message, source, whether PUBREC was received
        self._in_flight: dict[int, tuple[Message, Publish, bool]] = {}
        self._last_id = 0
        self._window = device.group.inflight

    def new_id(self) -> int:
        """An unused packet id."""
        while True:
            self._last_id = self._last_id % 65535 + 1
            if self._last_id not in self._in_flight:
                return self._last_id

    def is_done(self) -> bool:
        """Is everything sent and acknowledged?"""
        return not self._waiting and not self._in_flight

    def unacknowledged(self) -> list[int]:
        """The numbers of the messages that the broker has not acknowledged."""
        waiting = [message.number for message, _ in self._waiting]
        return waiting + [message.number for message, *_ in self._in_flight.values()]

    def add(self, message: Message, source: Publish) -> None:
        """Send a message, or queue it. A client that connects for it queues QoS 0, too."""
        device = self._device
        if source.qos or device.group.sleeps:
            self._waiting.append((message, source))
            self._send_waiting()
        elif device.is_online:
            self._send(message, source, 0, False)
        else:
            self._lose(message)

    def connected(self, connack: Any) -> None:
        """CONNACK was received: first send again what was in flight."""
        device = self._device
        most = (connack.props or {}).get(_RECEIVE_MAX, 65535)
        self._window = min(device.group.inflight, most)
        before, self._in_flight = self._in_flight, {}
        for packet_id, (message, source, released) in before.items():
            if not connack.present and device.group.level > 3:
                if not released:  # the broker has no session: publish it as new
                    self._start(message, source)
            else:
                self._in_flight[packet_id] = message, source, released
                if released:
                    self._release(packet_id)
                else:
                    self._send(message, source, packet_id, True)
        self._send_waiting()

    def disconnected(self) -> None:
        """The connection is lost, and with it queued messages of QoS 0."""
        for row in [row for row in self._waiting if not row[1].qos]:
            self._waiting.remove(row)
            self._lose(row[0])

    def _lose(self, message: Message) -> None:
        device = self._device
        cause = device.forbidden[message.stream] or device.refused_because() or "publisher"
        device.network.tracker.lose(message, cause)

    def acknowledged(self, packet: Any) -> None:
        """PUBACK, PUBREC or PUBCOMP was received."""
        row = self._in_flight.get(packet.packet_id)
        if packet.kind == codec.PUBREC and packet.code < 0x80:
            if row:
                self._in_flight[packet.packet_id] = row[0], row[1], True
            self._release(packet.packet_id)
        elif row:
            del self._in_flight[packet.packet_id]
            self._send_waiting()

    def _send_waiting(self) -> None:
        while self._device.is_online and self._waiting and len(self._in_flight) < self._window:
            self._start(*self._waiting.popleft())

    def _start(self, message: Message, source: Publish) -> None:
        packet_id = 0
        if source.qos:
            packet_id = self.new_id()
            self._in_flight[packet_id] = message, source, False
        self._send(message, source, packet_id, False)

    def _send(self, message: Message, source: Publish, packet_id: int, is_duplicate: bool) -> None:
        device = self._device
        body = message.number.to_bytes(NUMBER_BYTES, "big") + bytes(source.payload - NUMBER_BYTES)
        topic = device.topics[message.stream]
        retain, level = source.retain, device.group.level
        data = codec.publish(
            topic, body, source.qos, packet_id, retain, is_duplicate, codec.of(level)
        )
        device.post(data, "publish", message.number)

    def _release(self, packet_id: int) -> None:
        self._device.post(codec.ack(codec.PUBREL, packet_id), "pubrel")
