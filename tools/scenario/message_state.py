"""The state of a message, read from the broker's tables and counters: queued for a receiver,
written to its connection, or lost, and the cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .device import Device
    from .network import Network
    from .tracker import Message, Receiver

# States of a message for one of its receivers, until it is delivered
SENT = 0  # the broker has not handled it
QUEUED = 1  # in a session's queue
PASSED = 2  # QoS 0: written to the connection
BUSY = 3  # QoS 0: the connection accepted nothing
AWAY = 4  # QoS 0: the receiver was not subscribed yet
FULL = 5  # QoS 0: FULL + n, the table _TABLES[n] was full
_TABLES = ("messages", "message_bytes", "deliveries", "queued")

# Causes of losses, explained; the first four are full tables
CAUSES = {
    "messages": "no slot in the table of messages",
    "message_bytes": "no bytes left for messages",
    "deliveries": "no slot in the table of deliveries",
    "queued": "the receiver's queue, or its quota of the tables, was full",
    "oldest": "the oldest of a full queue, dropped for a newer message",
    "connections": "no free connection for the publisher or the receiver",
    "subscriptions": "the receiver's subscription was refused",
    "sessions": "the receiver's session was removed for another one",
    "power": "in the broker when its power failed, and not in the journal",
    "busy": "QoS 0: the receiver's connection was busy",
    "offline": "the receiver was not connected and has no stored session",
    "publisher": "QoS 0: the publisher was not connected",
    "publisher_lost": "QoS 0: the publisher's connection broke",
    "receiver_lost": "the receiver's connection broke, and it has no stored session",
    "refused": "the broker refused the message, see settings",
    "settings": "a setting refused the publisher or the receiver",
    "full_table": "a full table refused the publisher or the receiver",
    "message_size_limit": "longer than settings.message_size_limit: the broker refused it",
    "max_packet_size": "longer than settings.max_packet_size: the publisher was disconnected",
    "max_qos": "settings.max_qos is lower: the publisher was disconnected",
    "retain_available": "settings.retain_available is false: the publisher was disconnected",
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
        """The number of the message in a slot."""
        messages: Any = self._broker.messages
        at = 2 + messages.topic_len[msg]
        if messages.flags[msg] & _EXTRA and self._broker.five:
            at += self._broker.five.props[msg]
        return int.from_bytes(messages.arena.text(messages.first[msg])[at : at + 4], "big")


class AfterRead(_Tables):
    """States just after the broker has handled the packets of one read."""

    def __init__(self, network: Network, numbers: set[int]) -> None:
        super().__init__(network)
        self._usage = network.usage
        self._numbers = numbers
        self._refused = network.usage.refused_now()
        self._settings = network.broker.settings

    def find(self, message: Message, receiver: Receiver) -> int | str:
        """Its state, or the cause of its loss."""
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
            found = self._find_in_queues(message, receiver, slots)
            if qos or found == QUEUED:
                return found
        if any(self._is_queued(slot, message.number) for slot in slots):
            return QUEUED  # behind other messages, or since the receiver sent it
        return self._find_at_connections(receiver, slots)

    def _find_in_queues(self, message: Message, receiver: Receiver, slots: list[int]) -> int | str:
        for slot in slots:
            self._usage.queue(self._sessions.queued[slot], self._sessions.inflight[slot])
            if self._is_queued(slot, message.number):
                return QUEUED
        if not slots:
            return _absent(receiver)
        return self._full() or ("refused" if _any_subscribed(receiver) else "offline")

    def _full(self) -> str:
        """The table that refused something during this read."""
        refused = self._refused
        if refused["messages"]:
            full = self._broker.messages.count[0] >= self._broker.messages.slots
            return "messages" if full else "message_bytes"
        if refused["deliveries"]:
            return "deliveries" if self._deliveries.count[2] == _NONE else "queued"
        return ""

    def _is_queued(self, slot: int, number: int) -> bool:
        """Is it among the newest messages of this session's queue?"""
        entry = self._sessions.tail[slot]
        while entry != _NONE and self._deliveries.msg[entry] != _NONE:
            found = self._number(self._deliveries.msg[entry])
            if found == number:
                return True
            if found not in self._numbers:
                return False
            entry = self._deliveries.prev[entry]
        return False

    def _find_at_connections(self, receiver: Receiver, slots: list[int]) -> int | str:
        if all(self._sessions.conn[slot] == _NONE for slot in slots):
            return "offline" if slots else _absent(receiver)
        if not _any_subscribed(receiver):
            return AWAY
        if self._refused["qos 0"]:
            return BUSY
        full = self._full()  # perhaps for another message
        return FULL + _TABLES.index(full) if full else PASSED


class AtEnd(_Tables):
    """States at the end of a run, or after a restart."""

    def find(self, message: Message, receiver: Receiver, state: int, is_unsent: bool) -> str:
        """The cause of its loss; "": it still waits."""
        if state == SENT:
            lost = "" if is_unsent else "publisher_lost" if not message.qos else "refused"
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
        """Is it in a queue of this receiver?"""
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


def _should_have_a_session(device: Device) -> bool:
    return device.was_online and not device.group.clean and device.group.expiry is None


def _absent(receiver: Receiver) -> str:
    """The cause where the broker has no session of the receiver."""
    if all(_should_have_a_session(device) for device in receiver.devices):
        return "sessions"
    causes = (device.refused_because() for device in receiver.devices)
    return next(filter(None, causes), "offline")


def _passed(message: Message, receiver: Receiver, cause: str) -> str:
    """The cause where a written message did not arrive; "": it may still arrive."""
    if not all(device.was_online_since(message.due) for device in receiver.devices):
        return "receiver_lost"
    in_transit = any(device.has_bytes_in_transit() for device in receiver.devices)
    return "" if in_transit else cause
