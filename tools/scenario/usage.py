"""How full the tables were and which limit was reached first, from the broker's own high-water
marks and counters: those of `$SYS/broker/slots/...`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from slotmq.status.sys_topics import SLOTS

from . import refusal

if TYPE_CHECKING:
    from .device import Device
    from .network import Network

# By the limit that gives the size: tables, and parts of sessions and buffers with counters
TABLES = (
    *("connections", "sessions", "subscriptions", "nodes", "retained", "messages"),
    *("deliveries", "received", "reassembly", "shares", "aliases"),
)
MORE = ("message_bytes", "queued", "inflight")  # the broker does not count these
CURVES = ("connections", "messages", "message_bytes", "deliveries", "queued")
BUCKETS = 240
_DROPPED = 4
_NONE = 0xFFFF
_LIMIT_CAUSES = {"messages", "message_bytes", "deliveries", "queued"}


class Hit(NamedTuple):
    """The first time that a limit was reached, or that a setting refused a client."""

    limit: str
    ms: int  # since the traffic began
    who: str  # a client id, or ""


class TableUsage:
    """Peaks, refusals and curves of the broker's tables."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._paths = dict(_paths())
        self._peaks = dict.fromkeys(TABLES, 0)  # of the brokers before a power failure
        self._counts = dict.fromkeys(TABLES, 0)
        self.watch(network.broker)
        self._bucket_ms = max(1, -(-network.scenario.duration // BUCKETS))
        self.hits: dict[str, Hit] = {}
        self.refusals: dict[str, Hit] = {}  # by setting, as in refusal.CLIENTS
        self._own_peaks = dict.fromkeys((*MORE, "connections"), 0)
        self._bucket = -1  # of the last update
        self._connected = 0  # connections at the last update
        self._last_values: tuple[int, ...] = ()
        self.curves = {name: [0] * BUCKETS for name in CURVES}

    def watch(self, broker: Any) -> None:
        """Take the figures from this broker from now on."""
        self._broker = broker
        self._refused = self._read_refused()

    def save(self) -> None:
        """Add the figures of this broker, whose power is cut."""
        for name in TABLES:
            self._peaks[name] = self.peak(name)
            self._counts[name] = self.refused_count(name)

    # During the run

    def is_due(self) -> bool:
        """Is an update due even if nothing was received?"""
        at = self._network.now() // self._bucket_ms
        return at != self._bucket or self._broker.connected != self._connected

    def update(self, device: Device | None) -> None:
        """The broker has served this client, or has finished a turn."""
        broker = self._broker
        now = self._read_refused()
        if now != self._refused:
            for name, after, before in zip(TABLES, now, self._refused, strict=False):
                if after != before:
                    self._reached(self._limit(name), device)
            self._refused = now
        arena = broker.messages.arena
        used = (arena.blocks - arena.free_blocks()) * arena.size
        peaks = self._own_peaks
        if used > peaks["message_bytes"]:
            peaks["message_bytes"] = used
        self._connected = broker.connected
        if self._connected > peaks["connections"]:
            peaks["connections"] = self._connected
        at = self._network.now() // self._bucket_ms
        if 0 <= at < BUCKETS:
            if at != self._bucket:
                self._bucket = at
                self.curves["queued"][at] = max(broker.sessions.queued)
                self._last_values = ()
            values = (broker.connected, broker.messages.count[0], used, broker.deliveries.count[0])
            if values != self._last_values:
                self._last_values = values
                self._add_to_curves(at, values)

    def _add_to_curves(self, at: int, values: tuple[int, ...]) -> None:
        for name, value in zip(CURVES, values, strict=False):
            row = self.curves[name]
            if value > row[at]:
                row[at] = value

    def queue(self, queued: int, inflight: int) -> None:
        """The length of one session's queue."""
        self._own_peaks["queued"] = max(self._own_peaks["queued"], queued)
        self._own_peaks["inflight"] = max(self._own_peaks["inflight"], inflight)
        at = self._network.now() // self._bucket_ms
        if 0 <= at < BUCKETS:
            self.curves["queued"][at] = max(self.curves["queued"][at], queued)

    def refused_now(self) -> dict[str, int]:
        """Refusals since the last update, by table."""
        now = self._read_refused()
        return _NOTHING if now == self._refused else self._since(now)

    def _since(self, now: list[int]) -> dict[str, int]:
        found = {
            name: after - before
            for name, after, before in zip((*TABLES, "qos 0"), now, self._refused, strict=True)
        }
        found["qos 0"] -= found["messages"] + found["deliveries"]
        return found

    def lost(self, cause: str, device: Device) -> None:
        """A message for this client was lost."""
        if cause in _LIMIT_CAUSES:
            self._hit(cause, device.name)
        elif cause == "busy":
            self._hit("tx_bytes", device.name)

    def refused(self, device: Device, code: int) -> str:
        """A client was refused with this code; -> the cause, as in message_state.CAUSES."""
        if code not in refusal.TABLE_FULL:
            name = refusal.of_client(device, self._broker.settings, code) or "settings"
            self.refusals.setdefault(name, Hit(name, self._network.now(), device.name))
            return "settings"
        limit = self._limit("connections")
        if not device.full_limit:  # its connection was not even accepted
            self._reached(limit, device)
        return "connections" if device.full_limit == limit else "full_table"

    def _reached(self, limit: str, device: Device | None) -> None:
        self._hit(limit, device.name if device else "")
        if device and not device.is_online:
            device.full_limit = limit

    def _hit(self, limit: str, who: str) -> None:
        if limit not in self.hits:
            if limit in ("queued", "deliveries"):
                who = self._longest()
            self.hits[limit] = Hit(limit, self._network.now(), who)

    def _longest(self) -> str:
        """The client with the longest queue."""
        sessions = self._broker.sessions
        slot = max(range(sessions.slots), key=lambda slot: sessions.queued[slot])
        return str(sessions.client_id(slot).decode())

    def _limit(self, table: str) -> str:
        """Which of a table's limits was reached."""
        broker = self._broker
        if (
            table == "connections"
            and 0 < broker.settings.max_connections < broker.limits.connections
        ):
            return "max_connections"
        if table == "messages" and broker.messages.count[0] < broker.messages.slots:
            return "message_bytes"
        if table == "deliveries" and broker.deliveries.count[2] != _NONE:
            return "queued"
        if table == "retained" and broker.retained.names.count() < broker.limits.retained:
            return "retained_name_bytes"
        return table

    def _read_refused(self) -> list[int]:
        broker = self._broker
        five = broker.five
        subs, conns, sessions = broker.subscriptions, broker.conns, broker.sessions
        dropped = broker.stats[_DROPPED] + broker.carried[_DROPPED] * 100_000_000
        # fmt: off
        return [
            conns.refused, sessions.refused, subs.refused, subs.nodes_refused,
            broker.retained.refused, broker.messages.refused, broker.deliveries.refused,
            sessions.ids_refused, conns.reassembly[2],
            five.shares.refused if five else 0, five.aliases.refused if five else 0, dropped,
        ]
        # fmt: on

    # After the run

    def peak(self, name: str) -> int:
        """The largest number of used slots."""
        if name in self._own_peaks:
            return self._own_peaks[name]
        return max(self._peaks[name], self._value(self._paths[f"{name}/high"]))

    def refused_count(self, name: str) -> int:
        """How often the table refused or dropped something."""
        path = self._paths.get(f"{name}/refused")
        return self._counts[name] + self._value(path) if path else 0

    def _value(self, path: str) -> int:
        found = self._broker
        for part in path.split("."):
            found = found[int(part)] if part.isdigit() else getattr(found, part, 0)
        return int(found)


_NOTHING = dict.fromkeys((*TABLES, "qos 0"), 0)


def _paths() -> list[tuple[str, str]]:
    """Attributes of the broker from which $SYS/broker/slots is published."""
    found = []
    for line in SLOTS.splitlines():
        name, high, refused = line.split(" ")
        found += [(f"{name}/high", high), (f"{name}/refused", refused)]
    return found
