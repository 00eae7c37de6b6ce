"""docs/performance.md: one screen with a picture, and the tables of docs/measurements.md."""

import io
import os
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from .report import markdown
from .results import Results, Row, ratio
from .tables import YARDSTICK, Table, number
from .workloads import WORKLOADS

_SUBJECTS = {"32-bit MicroPython": "slotmq-micropython32", "CPython": "slotmq-cpython"}
# What a row is called, its workload in MQTT 3.1.1, and whether it has one in 5.0
_ROWS = (
    ("QoS 0", "qos0", True),
    ("QoS 1", "qos1", True),
    ("QoS 2", "qos2", True),
    ("fan-out: 1 to 50", "fan-out", True),
    ("fan-in: 50 to 1", "fan-in", True),
    ("wildcards: 1,000 subscriptions", "wildcards", True),
    ("retained: 1,000 at once", "retained", True),
    ("one at a time, QoS 0", "round-trip", False),
    ("one at a time, QoS 1", "round-trip-1", False),
    ("connect, subscribe, leave", "connect", False),
)
# How long messages wait: what a column is called, and its workload
_WAITS = (
    *(
        (f"QoS {qos}, window {window}", f"window-{qos}-{window}")
        for qos in (1, 2)
        for window in (1, 5, 20)
    ),
    ("3,000 retained", "retained-late"),
    ("1,000 queued", "queued-late"),
)
_BEGINS, _ENDS = "<!-- bench:begin -->\n", "<!-- bench:end -->\n"
_PAGE = """\
# Performance

![CPU time as a ratio to mosquitto's](performance.svg)

CPU time of the broker per delivered message (per client in the last row), as a ratio to that of
mosquitto {mosquitto}; less is better. Written by `make bench`.

{table}

{waits}

**Method.** All brokers run on one machine, each in its own process, and take turns; a ratio is the
median of the rounds' ratios, after a round to warm up. CPU time is user and system time of all
threads. Messages have 64 bytes, and each is checked: a lost, double, altered or reordered one
fails the run. Nobody logs or writes to disk. Measured on {day} with

    {command}

with {versions}; rounds: {rounds}.{failed}

Another broker takes part if you name the command that starts it:
`python -m slotmq_dev.bench --peer 'nanomq=nanomq start --url nmq-tcp://127.0.0.1:{{port}}'`.
[measurements.md](measurements.md) has all workloads, brokers and targets, what leaves the fast
path, and the cycles of an RP2040.
"""
_COLOURS = ("#3b6ea5", "#e08e45")


_WAITING = """\
Milliseconds on the wall until the last of 1,000 messages has come to a client of MQTT 5.0 that
acknowledges each read at once, with this Receive Maximum (retained and queued ones: QoS 1, 20).

{table}

Medians of {rounds} rounds on {day}; a load of {load:.0f} on {cores} cores."""


def write(
    file: Path,
    results: Results,
    tables: Sequence[Table],
    *,
    command: str,
    versions: Mapping[str, str],
    rounds: str,
    failures: Sequence[tuple[str, str, str]],
) -> None:
    """Write the page, its picture beside it, and the tables of measurements.md beside it."""
    failed = "".join(f"\n\n{who} failed at {what}: {why}." for what, who, why in failures)
    text = _PAGE.format(
        mosquitto=versions["mosquitto"],
        table=markdown(_summary(results)),
        waits=waits(results),
        day=date.today().isoformat(),
        command=command,
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
        rounds=rounds,
        failed=failed,
    )
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.with_suffix(".svg").write_text(picture(results))
    long = file.with_name("measurements.md")
    before, begin, rest = (long.read_text() if long.exists() else "").partition(_BEGINS)
    shown = "\n".join(f"## {each.title}\n\n{markdown(each)}\n" for each in tables)
    legend = "\n".join(f"- **{each.name}**: {each.title}" for each in WORKLOADS)
    after = rest.partition(_ENDS)[2]
    long.write_text(f"{before}{begin or _BEGINS}\n{legend}\n\n{shown}\n{_ENDS}{after}")


def waits(results: Results) -> str:
    """The paragraph about how long messages wait; with none measured a sentence."""
    row: Row = next((results[name] for _, name in _WAITS if name in results), {})
    if not row:
        return "How long messages wait was not measured."
    lines = []
    for who, broker in (*_SUBJECTS.items(), (YARDSTICK, YARDSTICK)):
        found = [results.get(name, {}).get(broker) for _, name in _WAITS]
        lines.append([who, *(number(cell.median("wall_ms") if cell else None) for cell in found)])
    return _WAITING.format(
        table=markdown(Table("", ["", *(title for title, _ in _WAITS)], lines)),
        rounds=max(len(cell.rounds) for cell in row.values()),
        day=date.today().isoformat(),
        load=os.getloadavg()[0],
        cores=os.cpu_count(),
    )


def _ratios(results: Results, workload: str) -> list[float | None]:
    """Of each subject, in MQTT 3.1.1 and in 5.0; None: it was not measured."""
    return [
        ratio(results.get(f"{workload}{version}", {}), "cpu_us", subject, YARDSTICK)
        for subject in _SUBJECTS.values()
        for version in ("", "-v5")
    ]


def _summary(results: Results) -> Table:
    columns = ["", *(f"{who}, {version}" for who in _SUBJECTS for version in ("3.1.1", "5.0"))]
    rows = []
    for title, workload, in_5 in _ROWS:
        shown = [number(value) for value in _ratios(results, workload)]
        rows.append([title, *(cell if in_5 or not k % 2 else "" for k, cell in enumerate(shown))])
    return Table("", columns, rows)


def picture(results: Results) -> str:
    """The same as bars, as SVG; the line at 1 is mosquitto."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    FigureCanvasSVG(figure)
    panels = figure.subplots(1, 2, sharey=True)
    places = range(len(_ROWS))
    for k, (who, panel) in enumerate(zip(_SUBJECTS, panels, strict=True)):
        for version, colour in enumerate(_COLOURS):
            widths = [_ratios(results, row[1])[2 * k + version] or 0 for row in _ROWS]
            at = [place + (version - 0.5) * 0.38 for place in places]
            label = "MQTT 5.0" if version else "MQTT 3.1.1"
            panel.barh(at, widths, 0.38, color=colour, label=label)
        panel.axvline(1, color="#888", linewidth=1)
        panel.set_title(who, fontsize=10)
        panel.set_xlabel("mosquitto = 1", fontsize=8)
        panel.tick_params(labelsize=8)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    panels[0].set_yticks(places, [row[0] for row in _ROWS])
    panels[0].invert_yaxis()
    panels[1].legend(fontsize=8, frameon=False, loc="center right")
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "slotmq"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return "\n".join(each.rstrip() for each in text[text.index("<svg") :].splitlines()) + "\n"
