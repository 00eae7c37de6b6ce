"""A client as devices have them: it comes, subscribes, publishes, acknowledges, pings, loses
its network and comes again. It needs no time of its own for any of it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from .. import codec
from ..sim.numbers import Numbers
from . import refusal
from .model import Clients, Publish
from .queue import Queue
from .wire import Wire

if TYPE_CHECKING:
    from .network import Network
    from .tracker import Message

_CONNECT_MS = 10_000  # timeout of a CONNACK
_LINGER_MS = 1000  # of one that sleeps: for messages that wait for it
_NEVER = 0xFFFFFFFF
_NONE = 0xFFFF
WILL = b"\xff\xff\xff\xff"  # where other payloads have their number


class Device:
    """One client of a group."""

    def __init__(self, network: Network, group: Clients, number: int, index: int) -> None:
        self.network = network
        self.group = group
        self.number = number
        self.index = index
        self.name = group.client_id(number)
        self.id = self.name.encode()
        self.numbers = Numbers(network.seed, 20000 + index)
        self.filters = [text.replace("{n}", str(number)) for text in group.subscribe]
        self.topics = [each.topic.replace("{n}", str(number)).encode() for each in group.publish]
        self.wire: Wire | None = None
        self.is_online = False  # has CONNACK come?
        self.is_subscribed = not self.filters
        self.is_known = False  # has it ever come?
        self.is_dark = False  # its network is away
        self._before: Wire | None = None  # the connection that it had then
        self.has_left = False  # it said goodbye
        self.shut_out = ""  # why it was not let in when it came last, as in message_state.CAUSES
        self.full = ""  # what limit was in its way then
        self.online_ms = 0  # when CONNACK came
        self.has_been_in = False
        self.refused = self.connects = self.breaks = 0
        self.refused_filters: set[str] = set()
        self.retained = self.wills = self.twice = 0  # messages that it got
        self.received: set[int] = set()  # QoS 2 ids between PUBLISH and PUBREL
        self.queue = Queue(self)
        settings = network.broker.settings
        # of each stream: the setting that is in its way
        self.forbidden = [
            refusal.of_message(self, stream, settings) for stream in range(len(self.topics))
        ]
        self._sent_ms = 0

    # Coming and going

    def come(self, _: Any = None) -> None:
        """Connect, unless it is connected or there is no network."""
        self.is_known = True
        if self.wire:
            return
        self.has_left = False
        if self.is_dark:
            return  # it comes with its network
        self.full = ""
        self.wire = wire = self.network.open(self)
        self.connects += 1
        wire.post(self._connect, "connect")
        self.network.after(_CONNECT_MS, self._give_up, wire)

    @cached_property
    def _connect(self) -> bytes:
        group = self.group
        props = b""
        if group.level == 5 and not group.clean:
            seconds = _NEVER if group.expiry is None else group.expiry // 1000
            props = b"\x11" + codec.number4(seconds)
        keep_alive = group.keep_alive // 1000
        made: bytes = codec.connect(
            group.level, self.id, group.clean, keep_alive, props, self._will()
        )
        return made

    @property
    def connect_bytes(self) -> int:
        """How long its CONNECT is."""
        return len(self._connect)

    def _will(self) -> tuple[bytes, bytes, int, bool, bytes] | None:
        will = self.group.will
        if not will:
            return None
        topic = will.topic.replace("{n}", str(self.number)).encode()
        return topic, (WILL + bytes(will.payload))[: will.payload], will.qos, will.retain, b""

    def _give_up(self, wire: Wire) -> None:
        if self.wire is wire and not self.is_online:
            if self.network.waits(wire):
                self._is_refused(refusal.NO_ROOM[0])
            wire.hang_up()
            self._lost(self.group.reconnect)

    def _is_refused(self, code: int) -> None:
        self.refused += 1
        self.shut_out = self.network.usage.refused(self, code)

    def leave(self, wire: Wire | None) -> None:
        """Say goodbye, if that is still the connection."""
        if wire and self.wire is wire and self.is_online:
            wire.post(codec.disconnect(), "disconnect")
            wire.hang_up()
            self.has_left = True
            self._lost(0)
            if self.group.offline_for:
                self.network.after(self.group.offline_for, self.come)

    def was_closed(self, wire: Wire) -> None:
        """The broker has closed the connection."""
        if self.wire is wire:
            self.breaks += self.is_online
            if not self.is_online and refusal.of_connect(self, self.network.broker.settings):
                self._is_refused(refusal.CLOSED)
            self._lost(self.group.reconnect)

    def _lost(self, pause: int) -> None:
        self.wire = None
        self.is_online = False
        self.is_subscribed = not self.filters
        self.queue.lost()
        if pause:
            self.network.after(pause + self.numbers.below(200), self.come)

    def network_goes(self) -> None:
        """The network is away: the device knows, the broker does not."""
        self.is_dark = True
        self._before = self.wire
        if self.wire:
            self.breaks += self.is_online
            self.wire.cut()
            self._lost(0)

    def network_comes(self) -> None:
        """The network is back."""
        self.is_dark = False
        if self._before:
            self._before.reset_if_waiting()
        if self.is_known and not self.has_left:
            self.come()

    def power_is_back(self) -> None:
        """The broker was off, and may have forgotten who was there."""
        sessions = self.network.broker.sessions
        self.has_been_in = sessions.find(self.id, 0, len(self.id)) != _NONE
        if self.wire and self.wire.closed:
            self.was_closed(self.wire)

    def is_shut_out(self) -> str:
        """Is it there, and was not let in? Why, as in message_state.CAUSES."""
        return "" if self.is_online or self.is_dark else self.shut_out

    def was_online_since(self, ms: int) -> bool:
        """Has it had one connection since then?"""
        return self.is_online and self.online_ms <= ms

    def has_bytes_under_way(self) -> bool:
        """Is it still to get what the broker has written?"""
        return self.wire is not None and self.wire.written > self.wire.taken

    # Sending

    def post(self, data: bytes, *packet: Any) -> None:
        """Send a packet on the connection that there is."""
        assert self.wire
        self.wire.post(data, *packet)
        self._sent_ms = self.network.clock.ms

    def publish(self, message: Message, source: Publish) -> None:
        """A message of its application."""
        self.queue.add(message, source)
        if self.group.sleeps and not self.wire:
            self.come()

    def _ping(self, wire: Wire) -> None:
        if self.wire is not wire:
            return
        keep_alive = self.group.keep_alive
        left = self._sent_ms + keep_alive - self.network.clock.ms
        if left <= 0:
            self.post(codec.PING, "ping")
            left = keep_alive
        self.network.after(left, self._ping, wire)

    def rest(self) -> None:
        """One that sleeps leaves when all is done."""
        if self.group.sleeps and self.is_online and self.is_subscribed and self.queue.is_done():
            self.network.after(_LINGER_MS if self.filters else 0, self._leave_if_done, self.wire)

    def _leave_if_done(self, wire: Wire) -> None:
        if self.queue.is_done():
            self.leave(wire)

    # What comes

    def handle(self, wire: Wire, packet: Any) -> None:
        """A packet of the broker has come."""
        act = _HANDLERS.get(packet.kind)
        if self.wire is wire and act:
            act(self, packet)

    def _on_connack(self, packet: Any) -> None:
        assert self.wire
        if packet.code:
            self._is_refused(packet.code)
            self.wire.hang_up()
            self._lost(self.group.reconnect)
            return
        self.is_online = self.has_been_in = True
        self.shut_out = ""
        self.online_ms = self.network.now()
        if self.filters:
            wanted = [(text.encode(), self.group.subscribe_qos) for text in self.filters]
            self.post(codec.subscribe(self.group.level, self.queue.new_id(), wanted), "subscribe")
        if self.group.keep_alive:
            self.network.after(self.group.keep_alive, self._ping, self.wire)
        if self.group.online_for:
            self.network.after(self.group.online_for, self.leave, self.wire)
        if not packet.present:
            self.received.clear()
        self.queue.come(packet)
        self.rest()

    def _on_suback(self, packet: Any) -> None:
        self.is_subscribed = True
        codes = zip(self.filters, packet.codes, strict=True)
        self.refused_filters = {text for text, code in codes if code >= 0x80}
        self.rest()

    def _on_publish(self, packet: Any) -> None:
        again = packet.qos == 2 and packet.packet_id in self.received
        if not again:
            self.network.tracker.came(self, packet)
        if packet.qos == 1:
            self.post(codec.ack(codec.PUBACK, packet.packet_id), "puback")
        elif packet.qos == 2:
            self.received.add(packet.packet_id)
            self.post(codec.ack(codec.PUBREC, packet.packet_id), "pubrec")

    def _on_pubrel(self, packet: Any) -> None:
        self.received.discard(packet.packet_id)
        self.post(codec.ack(codec.PUBCOMP, packet.packet_id), "pubcomp")

    def _on_disconnect(self, _: Any) -> None:
        assert self.wire
        self.wire.hang_up()
        self.was_closed(self.wire)

    def _on_ack(self, packet: Any) -> None:
        self.queue.acknowledged(packet)
        self.rest()


_HANDLERS = {
    codec.CONNACK: Device._on_connack,
    codec.SUBACK: Device._on_suback,
    codec.PUBLISH: Device._on_publish,
    codec.PUBREL: Device._on_pubrel,
    codec.DISCONNECT: Device._on_disconnect,
    codec.PUBACK: Device._on_ack,
    codec.PUBREC: Device._on_ack,
    codec.PUBCOMP: Device._on_ack,
}
