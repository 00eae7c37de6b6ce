"""The largest allowed figures of slotmq, on CPython and on MicroPython."""

from dataclasses import dataclass

from .results import Results, ratio

_ONE_TO_ONE = ("qos0", "qos0-16", "qos1", "qos1-16", "qos2", "qos2-16")
_FLOWING = (*_ONE_TO_ONE, "fan-out", "fan-in", "wildcards", "retained")
_ALL = (*_FLOWING, "connect", "round-trip")
_OF_5 = tuple(
    f"{name}-v5" for name in ("qos0", "qos1", "qos2", "fan-out", "fan-in", "wildcards", "retained")
)
_CPYTHON, _MICROPYTHON = "slotmq-cpython", "slotmq-micropython32"


@dataclass(frozen=True)
class Target:
    """A figure's largest allowed ratio to a peer's, or the figure itself if there is no peer."""

    workload: str
    peer: str | None
    at_most: float
    figure: str = "cpu_us"
    aim: float | None = None
    only: str | None = None  # the only broker that it is for

    def value(self, results: Results, broker: str) -> float | None:
        """The value to compare; None if it was not measured."""
        if self.only not in (None, broker):
            return None
        row = results.get(self.workload, {})
        if self.peer:
            return ratio(row, self.figure, broker, self.peer)
        return row[broker].median(self.figure) if broker in row else None


def _aim(workload: str) -> float | None:
    if workload.startswith(("qos1", "qos2")):
        return 0.6
    if workload == "retained":
        return 0.7
    return 0.5 if workload.startswith(("qos0", "fan-")) else None


TARGETS = (
    *(Target(workload, "mosquitto", 1.0, aim=_aim(workload)) for workload in _FLOWING),
    Target("qos1-200", "mosquitto", 0.6),
    Target("qos2-200", "mosquitto", 0.5),
    *(
        Target(workload, "mosquitto", 1 if workload == "retained-v5" else 0.3, only=_MICROPYTHON)
        for workload in _OF_5
    ),
    *(Target(workload, "mosquitto", 1.0, only=_CPYTHON) for workload in _OF_5),
    Target("connect", "mosquitto", 3, aim=2),
    Target("round-trip", "mosquitto", 1.3),
    Target("crowd", None, 5000, "later_us"),
    Target("round-trip-1", "mosquitto", 1.2, only=_CPYTHON),
    Target("round-trip", "mosquitto", 1.4, "p50_us"),
    Target("round-trip", "mosquitto", 2, "p99_us"),
    *(
        Target(f"window-{qos}-{window}", "mosquitto", 8, "wall_ms")
        for qos in (1, 2)
        for window in (1, 5, 20)
    ),
    *(Target(f"{how}-late", "mosquitto", 8, "wall_ms") for how in ("retained", "queued")),
    *(Target(workload, "amqtt", 1 / 8) for workload in _ONE_TO_ONE),
    Target("fan-out", "amqtt", 1 / 2.5),
    Target("round-trip", "amqtt", 1 / 3),
    Target("connect", "amqtt", 1 / 5),
    *(Target(workload, "aedes", 1.0) for workload in _ALL),
    *(
        Target(workload, None, 3.5, "recorded", only=_MICROPYTHON)
        for workload in ("recorded", "recorded-16")
    ),
    Target("non-matching", None, 1.2, "growth_1000"),
    Target("non-matching", None, 1.2, "growth_10000"),
)
