"""Runs a scenario, and holds the result as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slotmq import Limits
from slotmq.config import budget

from .. import boards
from . import broker_config, traffic
from .message_state import CAUSES
from .model import Clients, Scenario
from .network import Network
from .tracker import Tally
from .usage import MORE, TABLES, Hit
from .wear import Wear

OF_VERSION_5 = ("version 5", "aliases", "shares")  # rows of the budget, as app/start.py has them
_SETTLE_MS = 10_000  # at the end, for messages in transit
_STEPS = 200  # of the progress bar


@dataclass(frozen=True)
class Group:
    """A row of the table of clients."""

    clients: Clients
    tally: Tally
    refused: int  # connections
    breaks: int

    def delay(self, part: float) -> int | None:
        """The delay that this part of its delivered messages did not exceed."""
        delays = self.tally.delays
        left = part * sum(delays.values())
        for ms in sorted(delays):
            left -= delays[ms]
            if left <= 0:
                return ms
        return None


@dataclass(frozen=True)
class Table:
    """A row of the table of tables."""

    name: str
    size: int
    peak: int
    refused: int


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    scenario: Scenario
    limits: Limits
    available: int  # bytes of RAM for the tables after a start on the board; 0: unlimited
    groups: list[Group]
    tables: list[Table]
    hits: list[Hit]  # limits that were reached, in this order
    refusals: list[Hit]  # settings that refused a client
    ram: list[tuple[str, int, int]]  # owner, bytes, slots: as in `slotmq budget`
    wear: Wear | None
    power_cuts: int
    curves: dict[str, list[int]]
    trace: str  # a hash of every byte that was sent, with its time

    def total(self, what: str) -> int:
        """The sum over all groups of this count of Tally."""
        return sum(getattr(group.tally, what) for group in self.groups)

    @property
    def causes(self) -> Counter[str]:
        """Lost messages by cause, in the order of CAUSES."""
        found: Counter[str] = Counter()
        for group in self.groups:
            found.update(group.tally.lost)
        return Counter({cause: found[cause] for cause in CAUSES if found[cause]})

    @property
    def ram_bytes(self) -> int:
        """The sum of the budget."""
        return sum(size for _, size, _ in self.ram)

    @property
    def fits(self) -> bool:
        """Would the board start with these limits?"""
        return not self.available or self.ram_bytes <= self.available

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        sums = (
            "published",
            "due",
            "delivered",
            "late",
            "waiting",
            "duplicates",
            "retained",
            "wills",
        )
        return {
            "title": self.scenario.title,
            "board": self.scenario.board,
            "seed": self.scenario.seed,
            "duration_s": self.scenario.duration / 1000,
            **{name: self.total(name) for name in sums},
            "lost": sum(self.causes.values()),
            "causes": dict(self.causes),
            "limits_hit": [
                {"limit": hit.limit, "at_s": max(0, hit.ms) / 1000, "by": hit.who}
                for hit in self.hits
            ],
            "refused_by": [
                {"setting": hit.limit, "at_s": max(0, hit.ms) / 1000, "by": hit.who}
                for hit in self.refusals
            ],
            "groups": [self._group_as_json(group, sums) for group in self.groups],
            "tables": [vars(table) for table in self.tables],
            "ram": {
                "tables": self.ram_bytes,
                "available": self.available or None,
                "fits": self.fits,
            }
            | {"rows": {owner: size for owner, size, _ in self.ram}},
            "power_cuts": self.power_cuts,
            "wear": vars(self.wear) if self.wear else None,
            "trace": self.trace,
        }

    def _group_as_json(self, group: Group, sums: tuple[str, ...]) -> dict[str, Any]:
        return {
            "name": group.clients.name,
            "clients": group.clients.count,
            **{name: getattr(group.tally, name) for name in sums},
            "lost": dict(group.tally.lost),
            "refused": group.refused,
            "broken": group.breaks,
            "median_ms": group.delay(0.5),
            "p99_ms": group.delay(0.99),
            "max_ms": group.delay(1),
        }


def simulate(scenario: Scenario, progress: Callable[[float], None]) -> Outcome:
    """Run a scenario; `progress` is called with the percentage that is done."""
    limits, settings = broker_config.make(scenario)
    network = Network(scenario, limits, settings)
    traffic.schedule(network)
    network.run(0)
    network.journal.begin()
    duration = scenario.duration
    for step in range(1, _STEPS + 1):
        network.run(duration * step // _STEPS)
        progress(100 * step / _STEPS)
    wear = network.journal.wear(duration)
    end = duration
    while not network.tracker.is_settled() and end < duration + _SETTLE_MS:
        end += 100
        network.run(end)
    network.tracker.close()
    return _outcome(network, limits, wear)


def _available(scenario: Scenario) -> int:
    configuration = ["3"] if scenario.settings.get("mqtt_versions") == 3 else []
    configuration += ["kept"] if scenario.persistence else []
    return boards.load(scenario.board).tables_bytes.get(" ".join(configuration), 0)


def _outcome(network: Network, limits: Limits, wear: Wear | None) -> Outcome:
    scenario, usage, tracker = network.scenario, network.usage, network.tracker
    groups = []
    for group in scenario.clients:
        devices = [device for device in network.devices if device.group is group]
        refused = sum(device.refused for device in devices)
        breaks = sum(device.breaks for device in devices)
        groups.append(Group(group, tracker.tallies[group.name], refused, breaks))
    sizes = {name: getattr(limits, name) for name in (*TABLES, *MORE)}
    return Outcome(
        scenario,
        limits,
        _available(scenario),
        groups,
        [Table(n, sizes[n], usage.peak(n), usage.refused_count(n)) for n in sizes],
        sorted(usage.hits.values(), key=lambda hit: hit.ms),
        sorted(usage.refusals.values(), key=lambda hit: hit.ms),
        _ram(network, limits),
        wear,
        network.power_cuts,
        {
            "delivered": tracker.delivered,
            "late": tracker.late,
            "lost": tracker.lost,
            **usage.curves,
        },
        network.trace.shown(),
    )


def _ram(network: Network, limits: Limits) -> list[tuple[str, int, int]]:
    """The rows of the budget, as app/start.py counts them."""
    without = OF_VERSION_5 if network.broker.settings.mqtt_versions == 3 else ()
    rows = [row for row in limits.rows() if row[0] not in without]
    return [*rows, budget.journal(limits)] if network.scenario.persistence else rows
