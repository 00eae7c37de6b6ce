"""The simulation: broker, clients, clock and the queue of future events.

The clock counts whole milliseconds and jumps to the next event. A turn of the broker takes 1 ms;
an idle broker turns when its timers need it. The speed of a board's processor is not simulated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from slotmq import Broker, Limits, Settings
from slotmq.net.loop import Loop

from ..sim.machine import PERIOD, Clock, Listener, Poller, Trace
from ..sim.numbers import Numbers
from .device import Device
from .model import Scenario
from .tracker import Tracker
from .usage import TableUsage
from .wear import Journal
from .wire import Wire

_LAST_MS = 2  # of Connections.counts
_WARM_UP_MS = 5000  # for clients to connect, before the measured time begins
_TRIPS = 8  # over a link, from the first TCP packet to SUBACK
_TURN_MS = 1
WAIT_MS = 250  # for events, in the real loop
_LONG_MS = 3 * WAIT_MS
_MARGIN = 10  # tenths of a second, more than _LONG_MS
_FREE = 0
_CONNECTED = (2, 4)  # states of a connection: MQTT 3, MQTT 5
_NONE = 0xFFFF


class Network:
    """One run. It is the `world` that links report to, see tools/sim/link.py."""

    def __init__(self, scenario: Scenario, limits: Limits, settings: Settings) -> None:
        self.scenario = scenario
        self.seed = scenario.seed
        self.clock = _Clock(0)
        self._begin_ms = _WARM_UP_MS + _TRIPS * max(
            link.latency + link.jitter for link in scenario.links.values()
        )
        self.trace = Trace()
        self.turns = self.packets_in = self.packets_out = self.wires = 0
        self._events: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._event = 0
        self._last_turn = 0
        self._wait_ms = 0  # until the next turn of an idle broker; 0: to be calculated
        self._last_read: tuple[Wire, list[tuple[Any, ...]]] | None = None
        self._made_from = limits, settings
        self.is_off = False
        self.power_cuts = 0
        self.journal = Journal(scenario.persistence, scenario.board)
        self.clock.before_asked = self.settle
        self._start()
        each = [(group, n) for group in scenario.clients for n in range(1, group.count + 1)]
        self.devices = [Device(self, group, n, at) for at, (group, n) in enumerate(each)]
        self.usage = TableUsage(self)
        self.tracker = Tracker(self)

    # The broker

    def _start(self) -> None:
        """A broker as after power-on, restored from its journal."""
        self.broker = Broker(*self._made_from)
        self.poller = Awake()
        self.listener = Listener(Numbers(self.seed, 2 + self.power_cuts))
        self.loop = self.broker.loop = Loop(self.broker, self.poller, self.clock)
        self.loop.listeners.add(self.listener, self.listener.accept)
        # An exception ends the run, not a connection.
        self.broker.caught = lambda *_: True  # type: ignore[attr-defined]
        self.journal.attach(self.broker)

    def cut_power(self) -> None:
        """All connections die; clients notice when the power is back."""
        self.is_off = True
        self.power_cuts += 1
        for wire in [*self.loop.of_stream, *self.listener.waiting]:
            if isinstance(wire, Wire):
                wire.die()
        self.usage.save()
        self.after(self.scenario.power_off_for, self._power_returns)

    def _power_returns(self, _: None) -> None:
        self.is_off = False
        self._start()
        self._last_turn, self._wait_ms = self.clock.ms, 0
        self.usage.watch(self.broker)
        self.tracker.power_returns()
        for device in self.devices:
            device.power_returns()

    # Time

    def now(self) -> int:
        """Milliseconds since the measured time began."""
        ms: int = self.clock.ms - self._begin_ms
        return ms

    def at(self, ms: float, act: Callable[[Any], None], what: Any = None) -> None:
        """Call act(what) when the clock shows this time."""
        self._event += 1
        when, now = round(ms), self.clock.ms
        heapq.heappush(self._events, (when if when > now else now, self._event, act, what))

    def after(self, ms: float, act: Callable[[Any], None], what: Any = None) -> None:
        """Call act(what) in so many milliseconds."""
        self.at(self.clock.ms + ms, act, what)

    def run(self, until: int) -> None:
        """Run until this time, in milliseconds since the measured time began."""
        events, clock = self._events, self.clock
        end = until + self._begin_ms
        while clock.ms < end:
            poller = self.poller
            is_busy = bool(self.broker.turn_soon or (poller.awake and poller.is_busy()))
            if not is_busy and not self._wait_ms:
                self._wait_ms = wait_ms(self.broker)
            turn = self._last_turn + (_TURN_MS if is_busy else self._wait_ms)
            if events and (self.is_off or events[0][0] <= turn or events[0][0] <= clock.ms):
                clock.ms, _, act, what = heapq.heappop(events)
                act(what)
            else:
                clock.ms = max(turn, clock.ms)
                self._turn(is_busy)

    def _turn(self, is_busy: bool) -> None:
        self.turns += 1
        idle = (self.clock.ms - self._last_turn - 1) // WAIT_MS * WAIT_MS
        if is_busy and idle > 0:
            passed = self._last_turn + idle - self.broker.conns.counts[_LAST_MS]
            self.loop.finish(passed % PERIOD)  # as the last idle turn would have done
        self._last_turn = self.clock.ms
        self.loop.turn(0)
        self.settle()
        self._wait_ms = 0
        if is_busy or self.usage.is_due():
            self.usage.update(None)

    # Called by links

    def settle(self) -> None:
        """The broker has handled the packets of the last read."""
        if self._last_read:
            (wire, packets), self._last_read = self._last_read, None
            self.tracker.was_handled(packets)
            self.usage.update(wire.device)

    def was_read(self, wire: Wire, packets: list[tuple[Any, ...]]) -> None:
        """The broker has read these packets of a client, and will handle them now."""
        self._last_read = wire, packets

    def was_written(self, wire: Wire) -> None:
        """The broker has written to a connection."""

    def was_closed(self, wire: Wire) -> None:
        """The broker has closed a connection."""

    # Called by clients

    def open(self, device: Device) -> Wire:
        """A new connection; the broker can accept it after the link's latency."""
        link = self.scenario.links[device.group.link]
        self.wires += 1
        wire = Wire(self, self.wires, device, link)
        self.after(link.latency, self._arrive, wire)
        return wire

    def _arrive(self, wire: Wire) -> None:
        if self.is_off:
            wire.die()
            self.after(wire.link.latency, wire.device.was_closed, wire)
        elif not wire.is_cut:
            self.listener.waiting.append(wire)
            self.poller.wake(self.listener)

    def is_waiting(self, wire: Wire) -> bool:
        """Is this connection still to be accepted, since the broker has no socket for it?"""
        return wire in self.listener.waiting


class _Clock(Clock):
    """A faster one, for CPython only, where the heap has no lock."""

    def ticks_ms(self) -> int:
        if self.before_asked:
            self.before_asked()
        now: int = (self.base + self.ms) % PERIOD
        return now

    def ticks_diff(self, now: int, before: int) -> int:
        return (now - before + PERIOD // 2) % PERIOD - PERIOD // 2


class Awake(Poller):
    """A poller that checks only streams on which something has happened."""

    def __init__(self) -> None:
        super().__init__(None)
        self.awake: dict[Any, None] = {}

    def register(self, stream: Any, mask: int) -> None:
        """Poll this stream from now on."""
        self.masks[stream] = mask
        self.awake[stream] = None

    def modify(self, stream: Any, mask: int) -> None:
        """Poll for other events from now on."""
        self.register(stream, mask)

    def unregister(self, stream: Any) -> None:
        """Do not poll it any more."""
        del self.masks[stream]
        self.awake.pop(stream, None)

    def wake(self, stream: Any) -> None:
        """Something has happened on this stream."""
        if stream in self.masks:
            self.awake[stream] = None

    def is_busy(self) -> bool:
        """Is any stream ready?"""
        if self.awake:
            for stream in list(self.awake):
                if not stream.events(self.masks[stream]):
                    del self.awake[stream]
        return bool(self.awake)

    def ipoll(self, timeout_ms: int) -> list[tuple[Any, int]]:
        """All streams that are ready."""
        found = ((stream, stream.events(self.masks[stream])) for stream in self.awake)
        return [(stream, event) for stream, event in found if event]


def wait_ms(broker: Any) -> int:
    """How long an idle broker needs no turn, so that every timer is handled when it is due.

    The real loop waits 250 ms for events, then checks its timers. Where no timer is near, one turn
    is made instead of three. More must not be skipped: after four the loop takes the gap for a
    standstill of the machine and extends the clients' keep-alive."""
    soon = broker.now + _MARGIN
    if broker.retry or _is_due(broker.five, broker.journal, soon):
        return WAIT_MS
    conns = broker.conns
    for conn in range(conns.top):
        state = conns.state[conn]
        if state == _FREE:
            continue
        if state not in _CONNECTED or conns.buffered[conn]:
            return WAIT_MS
        timeout = conns.keep_alive_timeout[conn]
        if timeout and soon - conns.last_activity[conn] >= timeout:
            return WAIT_MS
        session = conns.session[conn]
        if session != _NONE and broker.sessions.scans[session]:
            return WAIT_MS
    return _LONG_MS


def _is_due(five: Any, journal: Any, soon: int) -> bool:
    if five and (five.to_sweep or soon >= five.next_due):
        return True
    if not journal:
        return False
    waited = soon - journal.saved
    return bool(not journal.whole or waited >= min(journal.interval, journal.time_interval))
