"""What the broker did with a message, as its tables and counters tell: queued for a receiver,
handed to its connection, or lost, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .device import Device
    from .network import Network
    from .tracker import Message, Receiver

# Of a message and one of its receivers, until it has come
SENT, QUEUED, PASSED, BUSY, AWAY, FULL = range(6)  # from FULL on: a table that was full then
_TABLES = ("messages", "message_bytes", "deliveries", "queued")

# Why one was lost, in words; the first ones are tables that were full
CAUSES = {
    "messages": "no slot in the table of messages",
    "message_bytes": "no bytes left for messages",
    "deliveries": "no slot in the table of deliveries",
    "queued": "the receiver's queue, or its share of the tables, was full",
    "oldest": "dropped from a queue for a newer one",
    "connections": "publisher or receiver found no free connection",
    "subscriptions": "the receiver's subscription was refused",
    "sessions": "the receiver's session was given up for another one",
    "power": "the broker had it when the power failed, and did not keep it",
    "busy": "QoS 0: the receiver's connection took nothing more",
    "offline": "the receiver was not connected, and nothing is kept for it",
    "publisher": "QoS 0: its publisher was not connected",
    "on the way in": "QoS 0: its publisher's connection broke",
    "on the way out": "the receiver's connection broke, and nothing was kept",
    "refused": "the broker refused it, see settings",
    "settings": "publisher or receiver was refused, see settings",
    "room": "publisher or receiver was refused for want of room",
    "message_size_limit": "settings.message_size_limit is smaller: the broker refused it",
    "max_packet_size": "settings.max_packet_size is smaller: the broker closed its publisher",
    "max_qos": "settings.max_qos is lower: the broker closed its publisher",
    "retain_available": "settings.retain_available is false: the broker closed its publisher",
}
_NONE = 0xFFFF
_EXTRA = 8


class _Tables:
    def __init__(self, network: Network) -> None:
        self._broker = broker = network.broker
        self._sessions: Any = broker.sessions
        self._deliveries: Any = broker.deliveries

    def _session(self, device: Device) -> int:
        slot: int = self._sessions.find(device.id, 0, len(device.id))
        return slot

    def _number(self, msg: int) -> int:
        """Which message is in a slot."""
        messages: Any = self._broker.messages
        at = 2 + messages.topic_len[msg]
        if messages.flags[msg] & _EXTRA and self._broker.five:
            at += self._broker.five.props[msg]
        return int.from_bytes(messages.arena.text(messages.first[msg])[at : at + 4], "big")


class AfterRead(_Tables):
    """Just after the broker has handled what came by one read."""

    def __init__(self, network: Network, numbers: set[int]) -> None:
        super().__init__(network)
        self._usage = network.usage
        self._numbers = numbers
        self._grown = network.usage.grown()
        self._settings = network.broker.settings

    def look(self, message: Message, receiver: Receiver) -> int | str:
        """Where it is now, or why it is lost."""
        forbidden = message.sender.forbidden[message.stream]
        if forbidden:
            return forbidden
        qos = receiver.qos if self._settings.upgrade_outgoing_qos else min(
            receiver.qos, message.qos
        )  # fmt: skip
        if message.qos == 2 and self._settings.qos2_delivery == "release":
            return QUEUED
        if _is_refused(receiver):
            return "subscriptions"
        slots = [self._session(device) for device in receiver.devices]
        slots = [slot for slot in slots if slot != _NONE]
        if qos or self._settings.queue_qos0_messages:
            found = self._look_in_queues(message, receiver, slots)
            if qos or found == QUEUED:
                return found
        if any(self._is_queued(slot, message.number) for slot in slots):
            return QUEUED  # behind others, or its receiver sent it
        return self._look_at_connections(receiver, slots)

    def _look_in_queues(self, message: Message, receiver: Receiver, slots: list[int]) -> int | str:
        for slot in slots:
            self._usage.queue(self._sessions.queued[slot], self._sessions.inflight[slot])
            if self._is_queued(slot, message.number):
                return QUEUED
        if not slots:
            return _absent(receiver)
        return self._full() or ("refused" if _any_subscribed(receiver) else "offline")

    def _full(self) -> str:
        """Which table was full just now."""
        grown = self._grown
        if grown["messages"]:
            full = self._broker.messages.count[0] >= self._broker.messages.slots
            return "messages" if full else "message_bytes"
        if grown["deliveries"]:
            return "deliveries" if self._deliveries.count[2] == _NONE else "queued"
        return ""

    def _is_queued(self, slot: int, number: int) -> bool:
        """Is it among the newest of this session's queue?"""
        entry = self._sessions.tail[slot]
        while entry != _NONE and self._deliveries.msg[entry] != _NONE:
            found = self._number(self._deliveries.msg[entry])
            if found == number:
                return True
            if found not in self._numbers:
                return False
            entry = self._deliveries.prev[entry]
        return False

    def _look_at_connections(self, receiver: Receiver, slots: list[int]) -> int | str:
        if all(self._sessions.conn[slot] == _NONE for slot in slots):
            return "offline" if slots else _absent(receiver)
        if not _any_subscribed(receiver):
            return AWAY
        if self._grown["qos 0"]:
            return BUSY
        full = self._full()  # not every message needs it
        return FULL + _TABLES.index(full) if full else PASSED


class AtEnd(_Tables):
    """At the end of a run."""

    def look(self, message: Message, receiver: Receiver, state: int, unsent: bool) -> str:
        """Why it is lost, or "": it still waits."""
        if state == SENT:
            lost = "" if unsent else "on the way in" if not message.qos else "refused"
            return message.sender.forbidden[message.stream] or lost
        if state >= FULL or state == PASSED:
            return _passed(
                message, receiver, _TABLES[state - FULL] if state >= FULL else "refused"
            )
        if state in (BUSY, AWAY):
            return "busy" if state == BUSY else "offline"
        if self.waits(receiver, message.number):
            return ""
        slots = [self._session(device) for device in receiver.devices]
        if all(slot == _NONE for slot in slots) and not receiver.devices[0].group.clean:
            return "sessions"
        if not receiver.devices[0].group.clean:
            return "oldest"
        return _passed(message, receiver, "oldest")

    def waits(self, receiver: Receiver, number: int) -> bool:
        """Is it in one of its queues?"""
        slots = (self._session(device) for device in receiver.devices)
        return any(slot != _NONE and self._waits(slot, number) for slot in slots)

    def _waits(self, slot: int, number: int) -> bool:
        entry = self._sessions.head[slot]
        while entry != _NONE:
            msg = self._deliveries.msg[entry]
            if msg != _NONE and self._number(msg) == number:
                return True
            entry = self._deliveries.next[entry]
        return False


def _is_refused(receiver: Receiver) -> bool:
    return all(device.refused_filters.issuperset(receiver.filters) for device in receiver.devices)


def _any_subscribed(receiver: Receiver) -> bool:
    return any(device.is_subscribed for device in receiver.devices)


def _should_be_kept(device: Device) -> bool:
    return device.has_been_in and not device.group.clean and device.group.expiry is None


def _absent(receiver: Receiver) -> str:
    """Why the broker has nobody there."""
    if all(_should_be_kept(device) for device in receiver.devices):
        return "sessions"
    shut_out = (device.is_shut_out() for device in receiver.devices)
    return next(filter(None, shut_out), "offline")


def _passed(message: Message, receiver: Receiver, cause: str) -> str:
    """Why it has not come: its connection broke, or this; "" if it still may."""
    if not all(device.was_online_since(message.due) for device in receiver.devices):
        return "on the way out"
    under_way = any(device.has_bytes_under_way() for device in receiver.devices)
    return "" if under_way else cause
