"""What a client has to send: messages of QoS 1 and 2 wait here until they are acknowledged,
also while it has no connection. QoS 0 is sent at once or not at all.
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
        # packet id: message, where it is from, has PUBREC come?
        self._in_flight: dict[int, tuple[Message, Publish, bool]] = {}
        self._last_id = 0
        self._window = device.group.inflight

    def new_id(self) -> int:
        """A packet id that is free."""
        while True:
            self._last_id = self._last_id % 65535 + 1
            if self._last_id not in self._in_flight:
                return self._last_id

    def is_done(self) -> bool:
        """Is there nothing left to send, and to wait for?"""
        return not self._waiting and not self._in_flight

    def left(self) -> list[int]:
        """The numbers of the messages that the broker has not acknowledged."""
        waiting = [message.number for message, _ in self._waiting]
        return waiting + [message.number for message, *_ in self._in_flight.values()]

    def add(self, message: Message, source: Publish) -> None:
        """One more; of QoS 0 only if there is a connection, or will be in a moment."""
        device = self._device
        if source.qos or device.group.sleeps:
            self._waiting.append((message, source))
            self._go_on()
        elif device.is_online:
            self._send(message, source, 0, False)
        else:
            self._lose(message)

    def come(self, connack: Any) -> None:
        """The connection is there: first what was in flight."""
        device = self._device
        most = (connack.props or {}).get(_RECEIVE_MAX, 65535)
        self._window = min(device.group.inflight, most)
        before, self._in_flight = self._in_flight, {}
        for packet_id, (message, source, released) in before.items():
            if not connack.present and device.group.level > 3:
                if not released:  # the broker knows nothing of it: all of it again
                    self._start(message, source)
            else:
                self._in_flight[packet_id] = message, source, released
                if released:
                    self._release(packet_id)
                else:
                    self._send(message, source, packet_id, True)
        self._go_on()

    def lost(self) -> None:
        """The connection has gone: QoS 0 does not wait for another one."""
        for row in [row for row in self._waiting if not row[1].qos]:
            self._waiting.remove(row)
            self._lose(row[0])

    def _lose(self, message: Message) -> None:
        device = self._device
        cause = device.forbidden[message.stream] or device.is_shut_out() or "publisher"
        device.network.tracker.lose(message, cause)

    def acknowledged(self, packet: Any) -> None:
        """PUBACK, PUBREC or PUBCOMP."""
        row = self._in_flight.get(packet.packet_id)
        if packet.kind == codec.PUBREC and packet.code < 0x80:
            if row:
                self._in_flight[packet.packet_id] = row[0], row[1], True
            self._release(packet.packet_id)
        elif row:
            del self._in_flight[packet.packet_id]
            self._go_on()

    def _go_on(self) -> None:
        while self._device.is_online and self._waiting and len(self._in_flight) < self._window:
            self._start(*self._waiting.popleft())

    def _start(self, message: Message, source: Publish) -> None:
        packet_id = 0
        if source.qos:
            packet_id = self.new_id()
            self._in_flight[packet_id] = message, source, False
        self._send(message, source, packet_id, False)

    def _send(self, message: Message, source: Publish, packet_id: int, again: bool) -> None:
        device = self._device
        body = message.number.to_bytes(NUMBER_BYTES, "big") + bytes(source.payload - NUMBER_BYTES)
        topic = device.topics[message.stream]
        retain, level = source.retain, device.group.level
        data = codec.publish(level, topic, body, source.qos, packet_id, retain, again)
        device.post(data, "publish", message.number)

    def _release(self, packet_id: int) -> None:
        self._device.post(codec.ack(codec.PUBREL, packet_id), "pubrel")
