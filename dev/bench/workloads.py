"""All workloads. A load is a workload's connections to one broker."""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

from . import pipelined
from .brokers import RECORDING, Broker, Running, running
from .churn import Churn
from .meter import cpu_us
from .pipelined import Shape
from .retained import RetainedMessages
from .waiting import Wait, Waiting

_MICRO = 1000  # in ns
_PAUSE_S = 0.001
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
    """A load whose figure is the cost of a delivered message, or of a client."""

    pid: int
    source: Source

    def round(self, seconds: float) -> dict[str, float]:
        """The broker's cost of each message."""
        return {"cpu_us": cpu_us(self.pid, lambda: self.source.run(seconds))}

    def close(self) -> None:
        """Close all connections."""
        self.source.close()


class Timed:
    """One message at a time, at a low rate: a load whose figures are also delays."""

    def __init__(self, running: Running, qos: int = 0) -> None:
        self._pid = running.pid
        shape = Shape(publishers=1, subscribers=1, payload=16, burst=1, depth=1, qos=qos)
        self._source = pipelined.connect(shape, running.address)

    def round(self, seconds: float) -> dict[str, float]:
        """CPU per message, median and 99th percentile of the round trip."""
        delays: list[int] = []

        def run() -> int:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(_PAUSE_S)
                delays.append(self._source.time_burst())
            return len(delays)

        cost = cpu_us(self._pid, run)
        percentiles = statistics.quantiles(delays, n=100)
        return {
            "cpu_us": cost,
            "p50_us": percentiles[49] / _MICRO,
            "p99_us": percentiles[98] / _MICRO,
        }

    def close(self) -> None:
        """Close both connections."""
        self._source.close()


class Recorded:
    """Two loads in turns: on a broker, and on another process of it that records everything."""

    def __init__(self, shape: Shape, plain: Running) -> None:
        self._stack = ExitStack()
        recording = self._stack.enter_context(running(plain.broker, conf=RECORDING))
        self._loads = [
            Counted(each.pid, pipelined.connect(shape, each.address))
            for each in (plain, recording)
        ]

    def round(self, seconds: float) -> dict[str, float]:
        """The cost of a recorded message, and its ratio to the cost without recording."""
        plain, recorded = zip(
            *([load.round(seconds / _SLICES)["cpu_us"] for load in self._loads]
              for _ in range(_SLICES)), strict=True,
        )  # fmt: skip
        ratio = statistics.median(b / a for a, b in zip(plain, recorded, strict=True))
        return {"cpu_us": statistics.median(recorded), "recorded": ratio}

    def close(self) -> None:
        """Close all connections, and end the recording broker."""
        for load in self._loads:
            load.close()
        self._stack.close()


@dataclass(frozen=True)
class Workload:
    """A workload: name, title, and how its connections are made."""

    name: str
    title: str
    open: Callable[[Running], Load]
    ours: bool = False  # only slotmq supports it

    def suits(self, broker: Broker) -> bool:
        """Whether this broker supports it."""
        return broker.is_ours or not self.ours


def _counted(name: str, title: str, connect: Callable[[Running], Source]) -> Workload:
    return Workload(name, title, lambda running: Counted(running.pid, connect(running)))


def _publishing(name: str, title: str, shape: Shape) -> Workload:
    return _counted(name, title, lambda running: pipelined.connect(shape, running.address))


def _waiting(name: str, title: str, wait: Wait) -> Workload:
    return Workload(name, title, lambda running: Waiting(wait, running.address))


def _recorded(name: str, title: str, shape: Shape) -> Workload:
    return Workload(name, title, lambda plain: Recorded(shape, plain), ours=True)


_TEN = "ten publishers to ten subscribers"
_NARROW = "until the last has come: MQTT 5.0, Receive Maximum"
_RETAINED = "1,000 retained messages to each new subscriber"
_ACKNOWLEDGED = Shape(burst=20, depth=1)
_SHAPES = {
    "qos0": (f"QoS 0, {_TEN}, 64 bytes", Shape()),
    "qos1": (f"QoS 1, {_TEN}, 64 bytes", replace(_ACKNOWLEDGED, qos=1)),
    "qos2": (f"QoS 2, {_TEN}, 64 bytes", replace(_ACKNOWLEDGED, qos=2)),
    "fan-out": ("QoS 0, 1 publisher to 50 subscribers", Shape(1, 50)),
    "fan-in": ("QoS 0, 50 publishers to 1 subscriber", Shape(50, 1, burst=20, depth=1)),
    "wildcards": (
        "QoS 0, 1,000 subscriptions with wildcards, one matches each publish",
        Shape(1, 50, burst=100, depth=4, wildcards=1000),
    ),
}
WORKLOADS = (
    *(_publishing(name, *row) for name, row in _SHAPES.items()),
    *(
        _publishing(f"{name}-v5", f"MQTT 5.0: {title}", replace(shape, level=5))
        for name, (title, shape) in _SHAPES.items()
    ),
    *(
        _publishing(
            f"{name}-v5-alias",
            f"the same as {name}-v5, with a topic alias for every topic",
            replace(_SHAPES[name][1], level=5, alias=True),
        )
        for name in ("qos0", "qos1")
    ),
    _counted("retained", _RETAINED, lambda running: RetainedMessages(running.address)),
    _counted(
        "retained-v5",
        f"MQTT 5.0: {_RETAINED}",
        lambda running: RetainedMessages(running.address, 5),
    ),
    _counted("connect", "connect, subscribe, disconnect", lambda running: Churn(running.address)),
    Workload("round-trip", "one message at a time, 1 ms apart", Timed),
    Workload("round-trip-1", "the same at QoS 1", lambda running: Timed(running, 1)),
    *(
        _waiting(f"window-{qos}-{n}", f"1,000 at QoS {qos}, {_NARROW} {n}", Wait("live", n, qos))
        for qos in (1, 2)
        for n in (1, 5, 20)
    ),
    _waiting(
        "retained-late", f"3,000 retained at QoS 1, {_NARROW} 20", Wait("retained", count=3000)
    ),
    _waiting("queued-late", f"1,000 queued at QoS 1, {_NARROW} 20", Wait("queued")),
    _recorded("recorded", f"QoS 0, {_TEN}, 64 bytes, each recorded", Shape()),
    _recorded("recorded-16", f"QoS 0, {_TEN}, 16 bytes, each recorded", Shape(payload=16)),
)
