"""All workloads. A load is a workload's connections to one broker."""

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from . import pipelined
from .brokers import RECORDING, Broker, Running, running
from .churn import Churn
from .idle import IdleClients
from .meter import measure
from .nonmatching import COUNTS, NonMatching
from .pipelined import Shape
from .retained import RetainedMessages
from .roundtrip import SHAPE as ONE_AT_A_TIME
from .roundtrip import RoundTrip

_MICRO = 1000  # in ns
_SLICES = 5  # of a round, in which two brokers take turns


class Load(Protocol):
    """A workload's connections to one broker."""

    def round(self, seconds: float) -> dict[str, float]:
        """Run for about so long; -> figures by name."""

    def close(self) -> None:
        """Close all connections."""


class Source(Protocol):
    """What a counted load runs."""

    def run(self, seconds: float) -> int:
        """Run for about so long; -> the number of delivered messages."""

    def close(self) -> None:
        """Close all connections."""


@dataclass
class Counted:
    """A load whose figures are costs per delivered message, or per client."""

    pid: int
    source: Source

    def round(self, seconds: float) -> dict[str, float]:
        """The broker's cost of each message."""
        with measure(self.pid) as cost:
            count = self.source.run(seconds)
        return cost.per_message(count)

    def close(self) -> None:
        """Close all connections."""
        self.source.close()


class Timed:
    """A load whose figures are also delays."""

    def __init__(self, running: Running) -> None:
        self._pid = running.pid
        self._source = RoundTrip(running.address, handshake=not running.broker.is_relay)

    def round(self, seconds: float) -> dict[str, float]:
        """CPU per message, median and 99th percentile of the round trip."""
        with measure(self._pid) as cost:
            delays = self._source.run(seconds)
        percentiles = statistics.quantiles(delays, n=100)
        times = {"p50_us": percentiles[49] / _MICRO, "p99_us": percentiles[98] / _MICRO}
        return cost.per_message(len(delays)) | times

    def close(self) -> None:
        """Close all connections."""
        self._source.close()


class Growing:
    """A load with few, more and many subscriptions that do not match, one after the other."""

    def __init__(self, running: Running) -> None:
        self._pid = running.pid
        self._source = NonMatching(running.address)

    def round(self, seconds: float) -> dict[str, float]:
        """The cost with the fewest, and the ratios of the others to it."""
        costs = []
        for count in COUNTS:
            self._source.set_count(count)
            with measure(self._pid) as cost:
                messages = self._source.run(seconds / len(COUNTS))
            costs.append(cost.per_message(messages))
        ratios = {
            f"growth_{count}": costs[index]["cpu_us"] / costs[0]["cpu_us"]
            for index, count in enumerate(COUNTS)
            if index
        }
        return costs[0] | ratios

    def close(self) -> None:
        """Close all connections."""
        self._source.close()


class Recorded:
    """Two loads in turns: on a broker, and on another process of it that records everything."""

    def __init__(self, shape: Shape, plain: Running) -> None:
        self._stack = ExitStack()
        recording = self._stack.enter_context(running(plain.broker, conf=RECORDING))
        self._sources = [
            (each.pid, pipelined.connect(shape, each.address)) for each in (plain, recording)
        ]

    def round(self, seconds: float) -> dict[str, float]:
        """The cost of a recorded message, and its ratio to the cost without recording."""
        costs: list[list[dict[str, float]]] = [[], []]
        for _ in range(_SLICES):
            for (pid, source), figures in zip(self._sources, costs, strict=True):
                with measure(pid) as cost:
                    count = source.run(seconds / _SLICES)
                figures.append(cost.per_message(count))
        pairs = zip(*costs, strict=True)
        ratio = statistics.median(with_["cpu_us"] / without["cpu_us"] for without, with_ in pairs)
        shown = {name: statistics.median(each[name] for each in costs[1]) for name in costs[1][0]}
        return shown | {"recorded": ratio}

    def close(self) -> None:
        """Close all connections, and end the recording broker."""
        for _, source in self._sources:
            source.close()
        self._stack.close()


@dataclass(frozen=True)
class Workload:
    """A workload: name, title, and how its connections are made."""

    name: str
    title: str
    open: Callable[[Running], Load]
    relayed: Shape | None = None  # if a relay supports it
    level: int = 4  # the MQTT version that it needs
    ours: bool = False  # only slotmq supports it

    def suits(self, broker: Broker) -> bool:
        """Whether this broker supports it."""
        if self.ours and not broker.is_ours:
            return False
        return self.relayed is not None if broker.is_relay else broker.level >= self.level


def _publishing(name: str, title: str, shape: Shape) -> Workload:
    def connect(running: Running) -> Load:
        handshake = not running.broker.is_relay
        return Counted(running.pid, pipelined.connect(shape, running.address, handshake=handshake))

    bare = shape.qos == 0 and not shape.wildcards and shape.level == 4
    return Workload(name, title, connect, shape if bare else None, shape.level)


def _recorded(name: str, title: str, shape: Shape) -> Workload:
    return Workload(name, title, lambda plain: Recorded(shape, plain), ours=True)


_TEN = "ten publishers to ten subscribers"
WORKLOADS = (
    _publishing("qos0", f"QoS 0, {_TEN}, 64 bytes", Shape()),
    _publishing("qos0-16", f"QoS 0, {_TEN}, 16 bytes", Shape(payload=16)),
    _publishing("qos1", f"QoS 1, {_TEN}, 64 bytes", Shape(qos=1, burst=20, depth=1)),
    _publishing(
        "qos1-16", f"QoS 1, {_TEN}, 16 bytes", Shape(qos=1, burst=20, depth=1, payload=16)
    ),
    _publishing("qos2", f"QoS 2, {_TEN}, 64 bytes", Shape(qos=2, burst=20, depth=1)),
    _publishing(
        "qos2-16", f"QoS 2, {_TEN}, 16 bytes", Shape(qos=2, burst=20, depth=1, payload=16)
    ),
    _publishing("qos0-v5", f"MQTT 5.0: QoS 0, {_TEN}, 64 bytes", Shape(level=5)),
    _publishing(
        "qos1-v5", f"MQTT 5.0: QoS 1, {_TEN}, 64 bytes", Shape(qos=1, burst=20, depth=1, level=5)
    ),
    _publishing(
        "qos0-v5-alias",
        "the same as qos0-v5, with a topic alias for every topic",
        Shape(level=5, alias=True),
    ),
    _publishing(
        "qos1-v5-alias",
        "the same as qos1-v5, with a topic alias for every topic",
        Shape(qos=1, burst=20, depth=1, level=5, alias=True),
    ),
    _publishing("fan-out", "QoS 0, 1 publisher to 50 subscribers", Shape(1, 50)),
    _publishing("fan-in", "QoS 0, 50 publishers to 1 subscriber", Shape(50, 1, burst=20, depth=1)),
    _publishing(
        "wildcards",
        "QoS 0, 1,000 subscriptions with wildcards, one matches each publish",
        Shape(1, 50, burst=100, depth=4, wildcards=1000),
    ),
    Workload(
        "retained",
        "1,000 retained messages to each new subscriber",
        lambda running: Counted(running.pid, RetainedMessages(running.address)),
    ),
    Workload(
        "connect",
        "connect, subscribe, disconnect",
        lambda running: Counted(running.pid, Churn(running.address)),
    ),
    Workload("round-trip", "one message at a time, 1 ms apart", Timed, ONE_AT_A_TIME),
    Workload("idle", "200 connected clients that do nothing", IdleClients),
    _recorded("recorded", f"QoS 0, {_TEN}, 64 bytes, each recorded", Shape()),
    _recorded("recorded-16", f"QoS 0, {_TEN}, 16 bytes, each recorded", Shape(payload=16)),
    Workload("non-matching", "QoS 0 beside subscriptions that do not match", Growing),
)
