"""All workloads. A load is a workload's connections to one broker."""

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from multiprocessing import Process
from typing import Protocol

from . import pipelined
from .brokers import RECORDING, Broker, Running, running
from .churn import Churn, at_a_rate
from .client import Silent
from .idle import IdleClients
from .meter import measure
from .nonmatching import COUNTS, NonMatching
from .pipelined import Shape
from .retained import RetainedMessages
from .roundtrip import SHAPE as ONE_AT_A_TIME
from .roundtrip import RoundTrip
from .waiting import Wait, Waiting
from .windows import Generator, Windows

_MICRO = 1000  # in ns
_PER_SECOND = 100  # of clients that come and go
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

    def __init__(self, running: Running, qos: int = 0) -> None:
        self._pid = running.pid
        shape = replace(ONE_AT_A_TIME, qos=qos)
        self._source = RoundTrip(running.address, shape, handshake=not running.broker.is_relay)

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


class Crowded:
    """Round trips alone, and while other clients come and go."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._alone = Timed(running)

    def round(self, seconds: float) -> dict[str, float]:
        """How much later the slowest hundredth of the messages arrive beside the other clients."""
        p99 = [self._alone.round(seconds / 2)["p99_us"]]
        crowd = Process(target=at_a_rate, args=(self._running.address, _PER_SECOND))
        crowd.start()
        try:
            p99.append(self._alone.round(seconds / 2)["p99_us"])
            if not crowd.is_alive():
                raise Silent("a connecting client failed")
        finally:
            crowd.kill()
            crowd.join()
        return {"later_us": p99[1] - p99[0]}

    def close(self) -> None:
        """Close both connections."""
        self._alone.close()


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


def _waiting(name: str, title: str, wait: Wait) -> Workload:
    return Workload(name, title, lambda running: Waiting(wait, running.address), level=5)


def _recorded(name: str, title: str, shape: Shape) -> Workload:
    return Workload(name, title, lambda plain: Recorded(shape, plain), ours=True)


def _windows(name: str, qos: int) -> Workload:
    return Workload(
        name,
        f"QoS {qos}, {_TEN}, 64 bytes, in windows of 200 by a load generator in C",
        lambda running: Counted(running.pid, Generator(Windows(qos), running.address)),
    )


def _of_5(workload: str, title: str, shape: Shape) -> Workload:
    return _publishing(f"{workload}-v5", f"MQTT 5.0: {title}", replace(shape, level=5))


_TEN = "ten publishers to ten subscribers"
_FAN_OUT = "QoS 0, 1 publisher to 50 subscribers"
_FAN_IN = "QoS 0, 50 publishers to 1 subscriber"
_WILDCARDS = "QoS 0, 1,000 subscriptions with wildcards, one matches each publish"
_NARROW = "until the last has come: MQTT 5.0, Receive Maximum"
_RETAINED = "1,000 retained messages to each new subscriber"
_ACKNOWLEDGED = {qos: Shape(qos=qos, burst=20, depth=1) for qos in (1, 2)}
_FANNED_IN = Shape(50, 1, burst=20, depth=1)
_MANY = Shape(1, 50, burst=100, depth=4, wildcards=1000)
WORKLOADS = (
    _publishing("qos0", f"QoS 0, {_TEN}, 64 bytes", Shape()),
    _publishing("qos0-16", f"QoS 0, {_TEN}, 16 bytes", Shape(payload=16)),
    _publishing("qos1", f"QoS 1, {_TEN}, 64 bytes", _ACKNOWLEDGED[1]),
    _publishing("qos1-16", f"QoS 1, {_TEN}, 16 bytes", replace(_ACKNOWLEDGED[1], payload=16)),
    _windows("qos1-200", 1),
    _publishing("qos2", f"QoS 2, {_TEN}, 64 bytes", _ACKNOWLEDGED[2]),
    _publishing("qos2-16", f"QoS 2, {_TEN}, 16 bytes", replace(_ACKNOWLEDGED[2], payload=16)),
    _windows("qos2-200", 2),
    _of_5("qos0", f"QoS 0, {_TEN}, 64 bytes", Shape()),
    _of_5("qos1", f"QoS 1, {_TEN}, 64 bytes", _ACKNOWLEDGED[1]),
    _of_5("qos2", f"QoS 2, {_TEN}, 64 bytes", _ACKNOWLEDGED[2]),
    _publishing(
        "qos0-v5-alias",
        "the same as qos0-v5, with a topic alias for every topic",
        Shape(level=5, alias=True),
    ),
    _publishing(
        "qos1-v5-alias",
        "the same as qos1-v5, with a topic alias for every topic",
        replace(_ACKNOWLEDGED[1], level=5, alias=True),
    ),
    _publishing("fan-out", _FAN_OUT, Shape(1, 50)),
    _of_5("fan-out", _FAN_OUT, Shape(1, 50)),
    _publishing("fan-in", _FAN_IN, _FANNED_IN),
    _of_5("fan-in", _FAN_IN, _FANNED_IN),
    _publishing("wildcards", _WILDCARDS, _MANY),
    _of_5("wildcards", _WILDCARDS, _MANY),
    Workload(
        "retained",
        _RETAINED,
        lambda running: Counted(running.pid, RetainedMessages(running.address)),
    ),
    Workload(
        "retained-v5",
        f"MQTT 5.0: {_RETAINED}",
        lambda running: Counted(running.pid, RetainedMessages(running.address, 5)),
        level=5,
    ),
    Workload(
        "connect",
        "connect, subscribe, disconnect",
        lambda running: Counted(running.pid, Churn(running.address)),
    ),
    Workload("round-trip", "one message at a time, 1 ms apart", Timed, ONE_AT_A_TIME),
    Workload("round-trip-1", "the same at QoS 1", lambda running: Timed(running, 1)),
    Workload("crowd", f"round trips while {_PER_SECOND} clients a second come and go", Crowded),
    *(
        _waiting(f"window-{qos}-{window}", f"1,000 at QoS {qos}, {_NARROW} {window}", Wait(*how))
        for qos in (1, 2)
        for window in (1, 5, 20)
        for how in [("live", window, qos)]
    ),
    _waiting(
        "retained-late", f"3,000 retained at QoS 1, {_NARROW} 20", Wait("retained", count=3000)
    ),
    _waiting("queued-late", f"1,000 queued at QoS 1, {_NARROW} 20", Wait("queued")),
    Workload("idle", "200 connected clients that do nothing", IdleClients),
    _recorded("recorded", f"QoS 0, {_TEN}, 64 bytes, each recorded", Shape()),
    _recorded("recorded-16", f"QoS 0, {_TEN}, 16 bytes, each recorded", Shape(payload=16)),
    Workload("non-matching", "QoS 0 beside subscriptions that do not match", Growing),
)
