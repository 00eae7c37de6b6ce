"""The broker, its clients and the time: what is to happen next, and when the broker turns.

Time goes in whole milliseconds and jumps to whatever comes next. A turn of the broker takes
one; with nothing to do it turns when its timers need it. How fast a board's processor is, is
not simulated.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from slotmq import Broker, Limits, Settings
from slotmq.net.loop import Loop

from ..sim.machine import PERIOD, Clock, Listener, Poller
from ..sim.numbers import Numbers
from ..sim.trace import Trace
from .device import Device
from .idle import WAIT_MS, wait_ms
from .model import Scenario
from .tracker import Tracker
from .usage import TableUsage
from .wear import Journal
from .wire import Wire

_WARM_UP_MS = 5000  # in which clients come in, before anything is counted
_WAYS = 8  # of a link, from the first packet to SUBACK
_TURN_MS = 1


class Network:
    """One run. The links tell it what happens to them, as tools/sim/link.py has it."""

    def __init__(self, scenario: Scenario, limits: Limits, settings: Settings) -> None:
        self.scenario = scenario
        self.seed = scenario.seed
        self.clock = _Clock(0)
        self._begin_ms = _WARM_UP_MS + _WAYS * max(
            link.latency + link.jitter for link in scenario.links.values()
        )
        self.trace = Trace()
        self.turns = self.packets_in = self.packets_out = self.wires = 0
        self._events: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._event = 0
        self._last_turn = 0
        self._wait_ms = 0  # with nothing to do; 0: not known yet
        self._window: tuple[Wire, list[tuple[Any, ...]]] | None = None
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
        """A broker as after power-on, with what its journal has kept."""
        self.broker = Broker(*self._made_from)
        self.poller = Awake()
        self.listener = Listener(Numbers(self.seed, 2 + self.power_cuts))
        self.loop = self.broker.loop = Loop(self.broker, self.poller, self.clock)
        self.loop.listeners.add(self.listener, self.listener.accept)
        self.journal.attach(self.broker)

    def cut_power(self) -> None:
        """Nothing comes or goes any more; clients hear of it when the power is back."""
        self.is_off = True
        self.power_cuts += 1
        for wire in [*self.loop.of_stream, *self.listener.waiting]:
            if isinstance(wire, Wire):
                wire.die()
        self.usage.keep()
        self.after(self.scenario.power_off_for, self._power_is_back)

    def _power_is_back(self, _: None) -> None:
        self.is_off = False
        self._start()
        self._last_turn, self._wait_ms = self.clock.ms, 0
        self.usage.watch(self.broker)
        self.tracker.power_is_back()
        for device in self.devices:
            device.power_is_back()

    # Time

    def now(self) -> int:
        """Milliseconds since the traffic began."""
        ms: int = self.clock.ms - self._begin_ms
        return ms

    def at(self, ms: float, act: Callable[[Any], None], what: Any = None) -> None:
        """Call act(what) at this time of the clock."""
        self._event += 1
        when, now = round(ms), self.clock.ms
        heapq.heappush(self._events, (when if when > now else now, self._event, act, what))

    def after(self, ms: float, act: Callable[[Any], None], what: Any = None) -> None:
        """Call act(what) in so many milliseconds."""
        self.at(self.clock.ms + ms, act, what)

    def run(self, until: int) -> None:
        """Go on until then, in milliseconds since the traffic began."""
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
            self.loop._keep_time((self._last_turn + idle) % PERIOD)  # as its last idle turn
        self._last_turn = self.clock.ms
        self.loop.turn(0)
        self.settle()
        self._wait_ms = 0
        if is_busy or self.usage.is_due():
            self.usage.look(None)

    # What links tell

    def settle(self) -> None:
        """The broker has made what it makes of the last read."""
        if self._window:
            (wire, packets), self._window = self._window, None
            self.tracker.was_handled(packets)
            self.usage.look(wire.device)

    def was_read(self, wire: Wire, packets: list[tuple[Any, ...]]) -> None:
        """These packets of a client will be handled now."""
        self._window = wire, packets

    def was_written(self, wire: Wire) -> None:
        """The broker has written; the bytes are under way."""

    def was_closed(self, wire: Wire) -> None:
        """The broker has closed a connection."""

    # What clients do

    def open(self, device: Device) -> Wire:
        """A new connection, which the broker sees when its first packet is there."""
        link = self.scenario.links[device.group.link]
        self.wires += 1
        wire = Wire(self, self.wires, device, link)
        self.after(link.latency, self._knock, wire)
        return wire

    def _knock(self, wire: Wire) -> None:
        if self.is_off:
            wire.die()
            self.after(wire.link.latency, wire.device.was_closed, wire)
        elif not wire.is_cut:
            self.listener.waiting.append(wire)
            self.poller.wake(self.listener)

    def waits(self, wire: Wire) -> bool:
        """Has the broker not taken this connection yet, for want of a socket?"""
        return wire in self.listener.waiting


class _Clock(Clock):
    """As the one of tests, for CPython alone, whose heap has no lock."""

    def ticks_ms(self) -> int:
        if self.before_asked:
            self.before_asked()
        now: int = (self.base + self.ms) % PERIOD
        return now

    def ticks_diff(self, now: int, before: int) -> int:
        return (now - before + PERIOD // 2) % PERIOD - PERIOD // 2


class Awake(Poller):
    """A poller that looks only at those streams for which something has happened."""

    def __init__(self) -> None:
        super().__init__(None)
        self.awake: dict[Any, None] = {}

    def register(self, stream: Any, mask: int) -> None:
        """Look at this one from now on."""
        self.masks[stream] = mask
        self.awake[stream] = None

    def modify(self, stream: Any, mask: int) -> None:
        """Look for something else from now on."""
        self.register(stream, mask)

    def unregister(self, stream: Any) -> None:
        """Look at it no more."""
        del self.masks[stream]
        self.awake.pop(stream, None)

    def wake(self, stream: Any) -> None:
        """Something has happened there."""
        if stream in self.masks:
            self.awake[stream] = None

    def is_busy(self) -> bool:
        """Is there anything to be served?"""
        if self.awake:
            for stream in list(self.awake):
                if not stream.events(self.masks[stream]):
                    del self.awake[stream]
        return bool(self.awake)

    def ipoll(self, timeout_ms: int) -> list[tuple[Any, int]]:
        """All that are to be served."""
        found = ((stream, stream.events(self.masks[stream])) for stream in self.awake)
        return [(stream, event) for stream, event in found if event]
