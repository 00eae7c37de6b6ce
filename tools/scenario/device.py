"""A client on a device: it connects, subscribes, publishes, acknowledges, pings, loses its network
and connects again. Its own processing takes no time.
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

_CONNECT_MS = 10_000  # timeout for CONNACK
_LINGER_MS = 1000  # a sleeping subscriber stays so long, to receive queued messages
_NEVER = 0xFFFFFFFF
_NONE = 0xFFFF
WILL = b"\xff\xff\xff\xff"  # the number in the payload of wills


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
        self.is_online = False  # CONNACK was received
        self.is_subscribed = not self.filters
        self.has_started = False  # it has tried to connect, or will at the start
        self.is_network_down = False  # an outage of its link
        self._wire_before_outage: Wire | None = None  # its connection when the outage began
        self.has_left = False  # it sent DISCONNECT
        self.last_refusal = ""  # cause, as in message_state.CAUSES; "": was accepted
        self.full_limit = ""  # the limit that was reached then
        self.online_ms = 0  # time of CONNACK
        self.was_online = False
        self.refused = self.connects = self.breaks = 0
        self.refused_filters: set[str] = set()
        self.retained = self.wills = self.duplicates = 0  # messages received
        self.received: set[int] = set()  # QoS 2 ids between PUBLISH and PUBREL
        self.queue = Queue(self)
        settings = network.broker.settings
        # of each stream of messages: the setting that refuses it
        self.forbidden = [
            refusal.of_message(self, stream, settings) for stream in range(len(self.topics))
        ]
        self._sent_ms = 0

    # Connections

    def connect(self, _: Any = None) -> None:
        """Connect, unless it is connected or its network is down."""
        self.has_started = True
        if self.wire:
            return
        self.has_left = False
        if self.is_network_down:
            return  # it connects when the network returns
        self.full_limit = ""
        self.wire = wire = self.network.open(self)
        self.connects += 1
        wire.post(self._connect_packet, "connect")
        self.network.after(_CONNECT_MS, self._give_up, wire)

    @cached_property
    def _connect_packet(self) -> bytes:
        group = self.group
        props = b""
        if group.level == 5 and not group.clean:
            seconds = _NEVER if group.expiry is None else group.expiry // 1000
            props = b"\x11" + codec.number4(seconds)
        keep_alive = group.keep_alive // 1000
        made: bytes = codec.connect(
            self.id, group.clean, self._will(), keep_alive, level=group.level, properties=props
        )
        return made

    @property
    def connect_bytes(self) -> int:
        """The length of its CONNECT."""
        return len(self._connect_packet)

    def _will(self) -> tuple[bytes, bytes, int, bool] | None:
        will = self.group.will
        if not will:
            return None
        topic = will.topic.replace("{n}", str(self.number)).encode()
        return topic, (WILL + bytes(will.payload))[: will.payload], will.qos, will.retain

    def _give_up(self, wire: Wire) -> None:
        if self.wire is wire and not self.is_online:
            if self.network.is_waiting(wire):
                self._refused(refusal.TABLE_FULL[0])
            wire.hang_up()
            self._disconnected(self.group.reconnect)

    def _refused(self, code: int) -> None:
        self.refused += 1
        self.last_refusal = self.network.usage.refused(self, code)

    def disconnect(self, wire: Wire | None) -> None:
        """Send DISCONNECT, if this is still the connection."""
        if wire and self.wire is wire and self.is_online:
            wire.post(codec.disconnect(), "disconnect")
            wire.hang_up()
            self.has_left = True
            self._disconnected(0)
            if self.group.offline_for:
                self.network.after(self.group.offline_for, self.connect)

    def was_closed(self, wire: Wire) -> None:
        """The broker has closed the connection."""
        if self.wire is wire:
            self.breaks += self.is_online
            if not self.is_online and refusal.of_connect(self, self.network.broker.settings):
                self._refused(refusal.CLOSED)
            self._disconnected(self.group.reconnect)

    def _disconnected(self, pause: int) -> None:
        self.wire = None
        self.is_online = False
        self.is_subscribed = not self.filters
        self.queue.disconnected()
        if pause:
            self.network.after(pause + self.numbers.below(200), self.connect)

    def network_fails(self) -> None:
        """An outage begins: the device notices, the broker does not."""
        self.is_network_down = True
        self._wire_before_outage = self.wire
        if self.wire:
            self.breaks += self.is_online
            self.wire.cut()
            self._disconnected(0)

    def network_returns(self) -> None:
        """The outage is over."""
        self.is_network_down = False
        if self._wire_before_outage:
            self._wire_before_outage.reset_if_waiting()
        if self.has_started and not self.has_left:
            self.connect()

    def power_returns(self) -> None:
        """The broker restarted, and may have lost this client's session."""
        sessions = self.network.broker.sessions
        self.was_online = sessions.find(self.id, 0, len(self.id)) != _NONE
        if self.wire and self.wire.closed:
            self.was_closed(self.wire)

    def refused_because(self) -> str:
        """Why the broker does not accept it, as in message_state.CAUSES; "": it does."""
        return "" if self.is_online or self.is_network_down else self.last_refusal

    def was_online_since(self, ms: int) -> bool:
        """Has its connection existed since this time?"""
        return self.is_online and self.online_ms <= ms

    def has_bytes_in_transit(self) -> bool:
        """Has the broker written bytes that have not arrived?"""
        return self.wire is not None and self.wire.written > self.wire.taken

    # Sending

    def post(self, data: bytes, *packet: Any) -> None:
        """Send a packet."""
        assert self.wire
        self.wire.post(data, *packet)
        self._sent_ms = self.network.clock.ms

    def publish(self, message: Message, source: Publish) -> None:
        """Publish a message of its application."""
        self.queue.add(message, source)
        if self.group.sleeps and not self.wire:
            self.connect()

    def _ping(self, wire: Wire) -> None:
        if self.wire is not wire:
            return
        keep_alive = self.group.keep_alive
        left = self._sent_ms + keep_alive - self.network.clock.ms
        if left <= 0:
            self.post(codec.PING, "ping")
            left = keep_alive
        self.network.after(left, self._ping, wire)

    def sleep_if_done(self) -> None:
        """A sleeping client disconnects when it has nothing left to do."""
        if self.group.sleeps and self.is_online and self.is_subscribed and self.queue.is_done():
            self.network.after(
                _LINGER_MS if self.filters else 0, self._disconnect_if_done, self.wire
            )

    def _disconnect_if_done(self, wire: Wire) -> None:
        if self.queue.is_done():
            self.disconnect(wire)

    # Received packets

    def handle(self, wire: Wire, packet: Any) -> None:
        """A packet of the broker has arrived."""
        act = _HANDLERS.get(packet.kind)
        if self.wire is wire and act:
            act(self, packet)

    def _on_connack(self, packet: Any) -> None:
        assert self.wire
        if packet.code:
            self._refused(packet.code)
            self.wire.hang_up()
            self._disconnected(self.group.reconnect)
            return
        self.is_online = self.was_online = True
        self.last_refusal = ""
        self.online_ms = self.network.now()
        if self.filters:
            qos: int = self.group.subscribe_qos
            filters = [(text.encode(), qos) for text in self.filters]
            made = codec.subscribe(
                self.queue.new_id(), *filters, properties=codec.of(self.group.level)
            )
            self.post(made, "subscribe")
        if self.group.keep_alive:
            self.network.after(self.group.keep_alive, self._ping, self.wire)
        if self.group.online_for:
            self.network.after(self.group.online_for, self.disconnect, self.wire)
        if not packet.present:
            self.received.clear()
        self.queue.connected(packet)
        self.sleep_if_done()

    def _on_suback(self, packet: Any) -> None:
        self.is_subscribed = True
        codes = zip(self.filters, packet.codes, strict=True)
        self.refused_filters = {text for text, code in codes if code >= 0x80}
        self.sleep_if_done()

    def _on_publish(self, packet: Any) -> None:
        is_duplicate = packet.qos == 2 and packet.packet_id in self.received
        if not is_duplicate:
            self.network.tracker.received(self, packet)
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
        self.sleep_if_done()


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
