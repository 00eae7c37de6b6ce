"""The figures of a benchmark in documents: see slotmq_dev.figures."""

from collections.abc import Iterator
from typing import Any

from ..figures import table
from .results import CPYTHON, MICROPYTHON, YARDSTICK, Results, judged, number
from .workloads import WORKLOADS

_SUBJECTS = {"32-bit MicroPython": MICROPYTHON, "CPython": CPYTHON}
# What a row is called, and its workload; with -v5 in MQTT 5.0
_ROWS = {
    "QoS 0": "qos0",
    "QoS 1": "qos1",
    "QoS 2": "qos2",
    "fan-out: 1 to 50": "fan-out",
    "fan-in: 50 to 1": "fan-in",
    "wildcards: 1,000 subscriptions": "wildcards",
    "retained: 1,000 at once": "retained",
    "one at a time, QoS 0": "round-trip",
    "one at a time, QoS 1": "round-trip-1",
    "connect, subscribe, leave": "connect",
}
_WAITS = {
    **{f"QoS {q}, window {n}": f"window-{q}-{n}" for q in (1, 2) for n in (1, 5, 20)},
    "3,000 retained": "retained-late",
    "1,000 queued": "queued-late",
}
_OTHERS = {
    "p50_us": "round trip, median, µs",
    "p99_us": "round trip, 99th percentile, µs",
    "recorded": "cost of a recorded message, against one that is not recorded",
}
_HOW_FAST = """\
CPU time for each delivered message on 32-bit MicroPython, compared with mosquitto (less is
better): QoS 0 **{}**, QoS 1 **{}**, QoS 2 **{}**, in MQTT 5.0 {}, {} and {}. One message at a time
takes {}; to connect, subscribe and leave takes {}."""
_BASES = ("qos0", "qos1", "qos2", "fan-out")  # of the factors
_QUOTED = ("qos0", "qos1", "qos2", "qos0-v5", "qos1-v5", "qos2-v5", "round-trip", "connect")


def texts(data: dict[str, Any]) -> dict[str, dict[str, str]]:
    """By document and marker."""
    results: Results = data["bench"]
    legend = "\n".join(f"- **{each.name}**: {each.title}" for each in WORKLOADS)
    told = [number(_ratio(results, name, MICROPYTHON)) for name in _QUOTED]
    return {
        "README.md": {"how-fast": _HOW_FAST.format(*told)},
        "docs/performance.md": {"ratios": _ratios(results), "waits": _waits(results)},
        "docs/measurements.md": {
            "bench": f"{legend}\n\n{whole(results)}",
            "instructions": _instructions(data["instructions"]),
        },
    }


def _ratio(results: Results, workload: str, who: str) -> float | None:
    return results.get(workload, {}).get(who, {}).get("cpu_us ratio")


def _ratios(results: Results) -> str:
    columns = [f"{who}, {version}" for who in _SUBJECTS for version in ("3.1.1", "5.0")]
    rows = [
        [
            title,
            *(
                number(_ratio(results, workload + version, who))
                for who in _SUBJECTS.values()
                for version in ("", "-v5")
            ),
        ]
        for title, workload in _ROWS.items()
    ]
    return table(["", *columns], rows)


def _waits(results: Results) -> str:
    who = {**_SUBJECTS, YARDSTICK: YARDSTICK}
    rows = [
        [
            title,
            *(number(results.get(name, {}).get(each, {}).get("wall_ms")) for each in who.values()),
        ]
        for title, name in _WAITS.items()
    ]
    return table(["", *who], rows)


def _instructions(counts: dict[str, list[float]]) -> str:
    rows = []
    for name, (instructions, calls) in counts.items():
        base = next((each for each in _BASES if name.startswith(each)), name)
        factor = f"{instructions / counts[base][0]:.1f}" if base != name else ""
        rows.append([name, f"{instructions:,}", f"{calls:.2f}", factor])
    return table(["workload", "instructions", "system calls", "factor"], rows)


def whole(results: Results) -> str:
    """The tables of all workloads."""
    brokers = list(dict.fromkeys(who for row in results.values() for who in row))
    columns = ["workload", *brokers]
    parts = [
        f"CPU of the broker per delivered message, µs (as a ratio to {YARDSTICK})",
        table(columns, _costs(results, brokers)),
        "Other figures",
        table(["workload", "figure", *brokers], _others(results, brokers)),
        "Targets",
        table(["workload", "figure", "at most", *_SUBJECTS], _targets(results)),
    ]
    return "\n\n".join(f"### {a}\n\n{b}" for a, b in zip(parts[::2], parts[1::2], strict=True))


def _costs(results: Results, brokers: list[str]) -> Iterator[list[str]]:
    for workload, row in results.items():
        if any("cpu_us" in each for each in row.values()):
            cells = (row.get(who, {}) for who in brokers)
            shown = (_with_ratio(cell.get("cpu_us"), cell.get("cpu_us ratio")) for cell in cells)
            yield [workload, *shown]


def _with_ratio(value: float | None, ratio: float | None) -> str:
    return number(value) + (f" ({number(ratio)})" if ratio is not None else "")


def _others(results: Results, brokers: list[str]) -> Iterator[list[str]]:
    for workload, row in results.items():
        for figure, title in _OTHERS.items():
            if any(figure in each for each in row.values()):
                yield [workload, title, *(number(row.get(w, {}).get(figure)) for w in brokers)]


def _targets(results: Results) -> Iterator[list[str]]:
    for workload, figure, at_most, values in judged(results):
        verdicts = (
            f"{number(values[who])} {'met' if values[who] <= at_most else 'NOT MET'}"
            if who in values
            else "-"
            for who in _SUBJECTS.values()
        )
        yield [workload, figure, number(at_most), *verdicts]
