"""Who is due which message, and what became of it: delivered, late, lost and why, waiting.

A message is due to every client that is subscribed when it is published, whether it is
connected or not; one that said goodbye with a clean session is not subscribed any more. Of a
shared subscription it is due to one of its members.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import message_state
from .model import NUMBER_BYTES

if TYPE_CHECKING:
    from .device import Device
    from .model import Publish
    from .network import Network

BUCKETS = 240  # of the duration, for curves
_WILL = 0xFFFFFFFF


class Message:
    """One PUBLISH of an application."""

    __slots__ = ("due", "number", "owed", "qos", "sender", "stream")

    def __init__(self, number: int, sender: Device, stream: int, qos: int, due: int) -> None:
        self.number = number
        self.sender = sender
        self.stream = stream
        self.qos = qos
        self.due = due
        self.owed: dict[Receiver, int] = {}  # -> fate


@dataclass(eq=False)
class Receiver:
    """Who gets a topic's messages: a client, or one of those that share a subscription."""

    devices: tuple[Device, ...]
    qos: int
    filters: tuple[str, ...]

    def is_subscribed(self) -> bool:
        """Should a message that is published now come here?"""
        return any(_is_due(device) for device in self.devices)


def _is_due(device: Device) -> bool:
    return device.is_known and not (device.has_left and device.group.clean)


@dataclass
class Tally:
    """What became of the messages for one group of clients."""

    published: int = 0
    due: int = 0
    delivered: int = 0
    late: int = 0
    twice: int = 0  # a copy of one that had come
    retained: int = 0  # kept ones, for a new subscription
    wills: int = 0
    waiting: int = 0
    lost: Counter[str] = field(default_factory=Counter)  # by cause
    took: Counter[int] = field(default_factory=Counter)  # milliseconds


class Tracker:
    """All messages that are under way, and the tallies."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._receivers: dict[bytes, list[Receiver]] = {}
        self._under_way: dict[int, Message] = {}
        self._number = 0
        self._bucket_ms = max(1, -(-network.scenario.duration // BUCKETS))
        self.tallies = {group.name: Tally() for group in network.scenario.clients}
        self.delivered, self.late, self.lost = ([0] * BUCKETS for _ in range(3))

    # From the publisher

    def published(self, device: Device, stream: int, source: Publish) -> Message:
        """An application publishes now."""
        self._number += 1
        message = Message(self._number, device, stream, source.qos, self._network.now())
        self.tallies[device.group.name].published += 1
        for receiver in self._receivers_of(device.topics[stream]):
            if receiver.is_subscribed():
                message.owed[receiver] = message_state.SENT
                self._tally(receiver).due += 1
        if message.owed:
            self._under_way[message.number] = message
        return message

    def was_handled(self, packets: list[tuple[Any, ...]]) -> None:
        """The broker has handled these packets, all that came by one read."""
        numbers = {packet[1] for packet in packets if packet[0] == "publish"}
        if not numbers:
            return
        here = message_state.AfterRead(self._network, numbers)
        for number in numbers & self._under_way.keys():
            message = self._under_way[number]
            for receiver, state in list(message.owed.items()):
                if state == message_state.SENT:
                    found = here.look(message, receiver)
                    if isinstance(found, int):
                        message.owed[receiver] = found
                    else:
                        self._lose(message, receiver, found)

    # At the receiver

    def came(self, device: Device, packet: Any) -> None:
        """A client was given a message."""
        tally = self.tallies[device.group.name]
        number = int.from_bytes(packet.payload[:NUMBER_BYTES], "big")
        if packet.topic.startswith(b"$"):
            return
        if number == _WILL:
            tally.wills += 1
            return
        receiver = self._owed_to(device, number)
        if receiver:
            self._deliver(number, receiver)
        elif packet.retain:
            tally.retained += 1
        else:
            tally.twice += 1

    def _owed_to(self, device: Device, number: int) -> Receiver | None:
        message = self._under_way.get(number)
        for receiver in message.owed if message else ():
            if device in receiver.devices:
                return receiver
        return None

    def _deliver(self, number: int, receiver: Receiver) -> None:
        tally = self._tally(receiver)
        message = self._under_way[number]
        self._settle(message, receiver)
        now = self._network.now()
        bucket = min(max(now, 0) // self._bucket_ms, BUCKETS - 1)
        tally.delivered += 1
        tally.took[now - message.due] += 1
        self.delivered[bucket] += 1
        if now - message.due > self._network.scenario.late_after:
            tally.late += 1
            self.late[bucket] += 1

    # Losses

    def lose(self, message: Message, cause: str) -> None:
        """Nobody will get it."""
        for receiver in list(message.owed):
            self._lose(message, receiver, cause)

    def _lose(self, message: Message, receiver: Receiver, cause: str) -> None:
        self._settle(message, receiver)
        self._tally(receiver).lost[cause] += 1
        self.lost[min(message.due // self._bucket_ms, BUCKETS - 1)] += 1
        self._network.usage.lost(cause, receiver.devices[0])

    def _settle(self, message: Message, receiver: Receiver) -> None:
        del message.owed[receiver]
        if not message.owed:
            self._under_way.pop(message.number, None)

    def power_is_back(self) -> None:
        """The broker was off: what it had queued is there again, or lost."""
        held = self._network.broker.settings.qos2_delivery == "release"
        last = message_state.AtEnd(self._network)
        for message in list(self._under_way.values()):
            for receiver, state in list(message.owed.items()):
                if state != message_state.QUEUED or (held and message.qos == 2):
                    continue
                if not last.waits(receiver, message.number):
                    self._lose(message, receiver, "power")

    def is_settled(self) -> bool:
        """Is nothing under way any more?"""
        return not self._under_way

    def close(self) -> None:
        """The end: what has not come by now waits somewhere, or is lost."""
        waiting = {number for device in self._network.devices for number in device.queue.left()}
        last = message_state.AtEnd(self._network)
        for message in list(self._under_way.values()):
            for receiver, state in list(message.owed.items()):
                cause = last.look(message, receiver, state, message.number in waiting)
                if cause:
                    self._lose(message, receiver, cause)
                else:
                    self._settle(message, receiver)
                    self._tally(receiver).waiting += 1

    # Who is subscribed

    def _tally(self, receiver: Receiver) -> Tally:
        return self.tallies[receiver.devices[0].group.name]

    def _receivers_of(self, topic: bytes) -> list[Receiver]:
        found = self._receivers.get(topic)
        if found is None:
            found = self._receivers[topic] = list(_receivers(self._network.devices, topic))
        return found


def _receivers(devices: list[Device], topic: bytes) -> list[Receiver]:
    levels = topic.decode().split("/")
    found = []
    shared: dict[str, list[Device]] = {}
    for device in devices:
        mine = []
        for text in device.filters:
            parts = text.split("/")
            if parts[0] == "$share":
                if _match(parts[2:], levels):
                    shared.setdefault(text, []).append(device)
            elif _match(parts, levels):
                mine.append(text)
        if mine:
            found.append(Receiver((device,), device.group.subscribe_qos, tuple(mine)))
    for text, members in shared.items():
        found.append(Receiver(tuple(members), members[0].group.subscribe_qos, (text,)))
    return found


def _match(wanted: list[str], levels: list[str]) -> bool:
    if levels[0].startswith("$") and wanted[0] in ("+", "#"):
        return False
    for at, level in enumerate(wanted):
        if level == "#":
            return True
        if at >= len(levels) or level not in ("+", levels[at]):
            return False
    return len(wanted) == len(levels)
