"""Tracks every message: who should get it, and whether it is delivered, late, lost or waiting.

A message is due to every client that is subscribed when it is published, connected or not. A
client that disconnected from a clean session is no longer subscribed. A message of a shared
subscription is due to one member.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import codec
from . import message_state
from .model import NUMBER_BYTES

if TYPE_CHECKING:
    from .device import Device
    from .model import Publish
    from .network import Network

BUCKETS = 240  # intervals of the duration, for curves
_WILL = 0xFFFFFFFF


class Message:
    """A message that an application publishes."""

    __slots__ = ("due", "number", "pending", "qos", "sender", "stream")

    def __init__(self, number: int, sender: Device, stream: int, qos: int, due: int) -> None:
        self.number = number
        self.sender = sender
        self.stream = stream
        self.qos = qos
        self.due = due
        self.pending: dict[Receiver, int] = {}  # states, as in message_state


@dataclass(eq=False)
class Receiver:
    """A client, or the members of a shared subscription, subscribed to a topic."""

    devices: tuple[Device, ...]
    qos: int
    filters: tuple[str, ...]

    def is_subscribed(self) -> bool:
        """Is a message that is published now due here?"""
        return any(_is_due(device) for device in self.devices)


def _is_due(device: Device) -> bool:
    return device.has_started and not (device.has_left and device.group.clean)


@dataclass
class Tally:
    """Counts of the messages for one group of clients."""

    published: int = 0
    due: int = 0
    delivered: int = 0
    late: int = 0
    duplicates: int = 0  # received again
    retained: int = 0  # retained messages, after a new subscription
    wills: int = 0
    waiting: int = 0
    lost: Counter[str] = field(default_factory=Counter)  # by cause
    delays: Counter[int] = field(default_factory=Counter)  # milliseconds


class Tracker:
    """All messages that are neither delivered nor lost yet, and the counts of each group."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._receivers: dict[bytes, list[Receiver]] = {}
        self._in_transit: dict[int, Message] = {}
        self._number = 0
        self._bucket_ms = max(1, -(-network.scenario.duration // BUCKETS))
        self.tallies = {group.name: Tally() for group in network.scenario.clients}
        self.delivered, self.late, self.lost = ([0] * BUCKETS for _ in range(3))

    # From the publisher

    def published(self, device: Device, stream: int, source: Publish) -> Message:
        """An application publishes a message now."""
        self._number += 1
        message = Message(self._number, device, stream, source.qos, self._network.now())
        self.tallies[device.group.name].published += 1
        for receiver in self._receivers_of(device.topics[stream]):
            if receiver.is_subscribed():
                message.pending[receiver] = message_state.SENT
                self._tally(receiver).due += 1
        if message.pending:
            self._in_transit[message.number] = message
        return message

    def was_handled(self, packets: list[tuple[Any, ...]]) -> None:
        """The broker has handled these packets, which arrived in one read."""
        numbers = {packet[1] for packet in packets if packet[0] == "publish"}
        if not numbers:
            return
        state_now = message_state.AfterRead(self._network, numbers)
        for number in numbers & self._in_transit.keys():
            message = self._in_transit[number]
            for receiver, state in list(message.pending.items()):
                if state == message_state.SENT:
                    found = state_now.find(message, receiver)
                    if isinstance(found, int):
                        message.pending[receiver] = found
                    else:
                        self._lose(message, receiver, found)

    # To the receiver

    def received(self, device: Device, packet: Any) -> None:
        """A client received a message."""
        tally = self.tallies[device.group.name]
        number = int.from_bytes(packet.payload[:NUMBER_BYTES], "big")
        if packet.topic.startswith(b"$"):
            return
        if number == _WILL:
            tally.wills += 1
            return
        receiver = self._pending_receiver(device, number)
        if receiver:
            self._deliver(number, receiver)
        elif packet.retain:
            tally.retained += 1
        else:
            tally.duplicates += 1

    def _pending_receiver(self, device: Device, number: int) -> Receiver | None:
        message = self._in_transit.get(number)
        for receiver in message.pending if message else ():
            if device in receiver.devices:
                return receiver
        return None

    def _deliver(self, number: int, receiver: Receiver) -> None:
        tally = self._tally(receiver)
        message = self._in_transit[number]
        self._settle(message, receiver)
        now = self._network.now()
        bucket = min(max(now, 0) // self._bucket_ms, BUCKETS - 1)
        tally.delivered += 1
        tally.delays[now - message.due] += 1
        self.delivered[bucket] += 1
        if now - message.due > self._network.scenario.late_after:
            tally.late += 1
            self.late[bucket] += 1

    # Losses

    def lose(self, message: Message, cause: str) -> None:
        """The message is lost for all its receivers."""
        for receiver in list(message.pending):
            self._lose(message, receiver, cause)

    def _lose(self, message: Message, receiver: Receiver, cause: str) -> None:
        self._settle(message, receiver)
        self._tally(receiver).lost[cause] += 1
        self.lost[min(message.due // self._bucket_ms, BUCKETS - 1)] += 1
        self._network.usage.lost(cause, receiver.devices[0])

    def _settle(self, message: Message, receiver: Receiver) -> None:
        del message.pending[receiver]
        if not message.pending:
            self._in_transit.pop(message.number, None)

    def power_returns(self) -> None:
        """The broker restarted: a message that it had queued was restored, or is lost."""
        waits_for_pubrel = self._network.broker.settings.qos2_delivery == "release"
        last = message_state.AtEnd(self._network)
        for message in list(self._in_transit.values()):
            for receiver, state in list(message.pending.items()):
                if state != message_state.QUEUED or (waits_for_pubrel and message.qos == 2):
                    continue
                if not last.waits(receiver, message.number):
                    self._lose(message, receiver, "power")

    def is_settled(self) -> bool:
        """Is every message delivered or lost?"""
        return not self._in_transit

    def close(self) -> None:
        """End of the run: what was not delivered is waiting somewhere, or lost."""
        waiting = {
            number for device in self._network.devices for number in device.queue.unacknowledged()
        }
        last = message_state.AtEnd(self._network)
        for message in list(self._in_transit.values()):
            for receiver, state in list(message.pending.items()):
                cause = last.find(message, receiver, state, message.number in waiting)
                if cause:
                    self._lose(message, receiver, cause)
                else:
                    self._settle(message, receiver)
                    self._tally(receiver).waiting += 1

    # Subscriptions

    def _tally(self, receiver: Receiver) -> Tally:
        return self.tallies[receiver.devices[0].group.name]

    def _receivers_of(self, topic: bytes) -> list[Receiver]:
        found = self._receivers.get(topic)
        if found is None:
            found = self._receivers[topic] = list(_receivers(self._network.devices, topic))
        return found


def _receivers(devices: list[Device], topic: bytes) -> list[Receiver]:
    found = []
    shared: dict[str, list[Device]] = {}
    for device in devices:
        filters = []
        for text in device.filters:
            if text.startswith("$share/"):
                if codec.matches(text.split("/", 2)[2], topic):
                    shared.setdefault(text, []).append(device)
            elif codec.matches(text, topic):
                filters.append(text)
        if filters:
            found.append(Receiver((device,), device.group.subscribe_qos, tuple(filters)))
    for text, members in shared.items():
        found.append(Receiver(tuple(members), members[0].group.subscribe_qos, (text,)))
    return found
