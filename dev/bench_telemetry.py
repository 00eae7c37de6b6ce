"""`make bench-telemetry`: measures the tables, for docs/measurements.md.

    python -m slotmq_dev.bench_telemetry [--records N]

CPU seconds are the sum over all processes: the JVM, Spark's Python workers, this one. Unlike wall
time they are reliable on a busy machine.
"""

from __future__ import annotations

import struct
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import click
import psutil
from pyspark.sql import SparkSession

from slotmq_telemetry import bronze, build, session
from slotmq_telemetry.engine import Engine
from slotmq_telemetry.harvest.manifest import NAME, Line, locked
from slotmq_telemetry.lake import Lake
from slotmq_telemetry.season import writer as w

MOST_GROWTH = 1.2
LEAST = {"silver": 500_000, "gold": 300_000}  # records per CPU second
SHARES = (4, 1, 0.2)  # the records, divided by these, are measured
_SAMPLE_S = 0.2
STEPS = ("bronze", "silver", "gold")
SIZE = 65536
BOARDS = 40
START = 1_772_323_200_000
_PLACE = b"site/00/"  # part of each topic; the number is the board's
_BUNDLE = 32  # segments


@dataclass(frozen=True)
class Cost:
    """The cost of a piece of work."""

    cpu: float
    wall: float
    memory: int  # peak of the sampled bytes of all processes together


class Meter:
    """CPU seconds and memory of this process and its descendants, also of those that have ended.

    Spark's daemon does not wait for its workers, so their CPU time is not added to a parent's.
    Therefore all processes are sampled some times a second, and the last sample of each counts.
    """

    def __init__(self) -> None:
        self._seen: dict[psutil.Process, float] = {}
        self._most = 0
        self._own = 0.0  # what the samples themselves have taken
        self._counted = 0.0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._sampler = threading.Thread(target=self._sample_repeatedly, daemon=True)

    def __enter__(self) -> Meter:
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._sampler.join()

    def _sample_repeatedly(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            self.cpu()
            self._own = time.thread_time()

    def cpu(self) -> float:
        """Seconds so far."""
        with self._lock:
            memory = 0
            for process in everybody():
                with suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    self._seen[process] = times.user + times.system
                    memory += process.memory_info().rss
            self._most = max(self._most, memory)
            # The system counts a process in larger steps than a thread.
            self._counted = max(self._counted, sum(self._seen.values()) - self._own)
            return self._counted

    def cost(self, work: Callable[[], object], name: str = "") -> Cost:
        """The cost of this work; with a name it is printed at once, as progress."""
        with self._lock:
            self._most = 0
        before, start = self.cpu(), time.monotonic()
        work()
        found = Cost(self.cpu() - before, time.monotonic() - start, self._most)
        if name:
            click.echo(f"{name}: {found.cpu:.1f} CPU s, {found.wall:.1f} s", err=True)
        return found


def everybody() -> list[psutil.Process]:
    """This process and its descendants."""
    return [psutil.Process(), *psutil.Process().children(recursive=True)]


def in_spark(spark: SparkSession) -> Engine:
    return Engine(lambda: spark, always=True)


def pipeline(meter: Meter, spark: SparkSession, folder: Path, lake: Lake) -> dict[str, Cost]:
    """The cost of each step."""
    engine = in_spark(spark)
    held = hold_back(folder)
    return {
        "bronze": meter.cost(lambda: bronze.ingest(engine, folder, lake), "bronze"),
        "silver": meter.cost(lambda: build.build_silver(engine, lake), "silver"),
        "gold": meter.cost(lambda: build.build_gold(engine, lake), "gold"),
        "nothing new": meter.cost(lambda: little(folder, lake), "nothing new"),
        "1 % new": meter.cost(lambda: little(given_back(folder, held), lake), "1 % new"),
    }


def little(folder: Path, lake: Lake) -> None:
    """Ingest again, which needs no Spark."""
    engine = Engine(lambda: fail("there is much that is new"))
    bronze.ingest(engine, folder, lake)
    build.build_silver(engine, lake)
    build.build_gold(engine, lake)


def fail(why: str) -> Any:
    raise SystemExit(why)


@dataclass
class Figures:
    """Everything that was measured."""

    records: int
    steps: dict[int, dict[str, Cost]]  # by number of records

    @property
    def growth(self) -> float:
        """CPU of the largest, by record, compared with the smallest."""
        each = {n: sum(steps[name].cpu for name in STEPS) / n for n, steps in self.steps.items()}
        return each[max(each)] / each[min(each)]

    @property
    def part(self) -> float:
        """Of the CPU of all, what 1 % that is new takes."""
        steps = self.steps[self.records]
        return steps["1 % new"].cpu / sum(steps[name].cpu for name in STEPS)

    def rate(self, step: str) -> float:
        """Records per CPU second, of the size that is named."""
        return self.records / self.steps[self.records][step].cpu


def measure(meter: Meter, records: int, folder: Path) -> Figures:
    sizes = tuple(int(records / share) for share in SHARES)
    spark = session.start("local[2]", {"spark.driver.memory": "2g"})
    make(folder / "warm", 200_000)
    pipeline(meter, spark, folder / "warm", Lake(folder / "warm-tables").made())
    steps = {}
    for size in sizes:
        make(folder / f"{size}", size)
        lake = Lake(folder / f"tables-{size}").made()
        steps[size] = pipeline(meter, spark, folder / f"{size}", lake)
    spark.stop()
    return Figures(records, steps)


def page(figures: Figures) -> str:
    """Tables for the document, and what is to be told of them."""
    lines = [
        "| step | " + " | ".join(f"{n:,} records: CPU s | wall s" for n in figures.steps) + " |",
        "| --- |" + " ---: |" * 2 * len(figures.steps),
        *(_step(name, figures) for name in (*STEPS, "nothing new", "1 % new")),
        "",
        *(f"{step}: {figures.rate(step):,.0f} records per CPU second, of {figures.records:,}"
          f" (target: {least:,})" for step, least in LEAST.items()),
        (f"CPU of a record of the largest: {figures.growth:.2f} of one of the smallest"
        f" (target: {MOST_GROWTH})"),
        f"1 % new: {figures.part:.1%} of the CPU of all",
        *(f"{n:,} records: at most {max(c.memory for c in s.values()) >> 20:,} MB"
          for n, s in figures.steps.items()),
    ]  # fmt: skip
    return "\n".join(lines)


def _step(name: str, figures: Figures) -> str:
    costs = (steps[name] for steps in figures.steps.values())
    return f"| {name} | " + " | ".join(f"{c.cpu:.1f} | {c.wall:.1f}" for c in costs) + " |"


# A large harvest folder, made quickly: one board's ring, copied for other boards


@dataclass
class Template:
    """A segment, and the offsets of its topic definitions."""

    data: bytearray
    topics: list[int]


def make(folder: Path, records: int) -> None:
    """Write a harvest folder with about so many records of BOARDS boards."""
    templates = ring(records // BOARDS)
    (folder / "bundles").mkdir(parents=True)
    waiting: list[bytes] = []
    lines: list[Line] = []
    for board in range(BOARDS):
        for template in templates:
            waiting.append(copy(template, board))
            if len(waiting) == _BUNDLE:
                lines.append(_bundle(folder, len(lines), waiting))
                waiting = []
    if waiting:
        lines.append(_bundle(folder, len(lines), waiting))
    with locked(folder) as manifest:
        manifest.append(*lines)


def hold_back(folder: Path) -> list[Line]:
    """Take the last hundredth of the lines away, all of one board."""
    with locked(folder) as manifest:
        lines = manifest.lines()
    held = lines[-max(1, len(lines) // 100) :]
    (folder / NAME).unlink()
    with locked(folder) as manifest:
        manifest.append(*lines[: -len(held)])
    return held


def given_back(folder: Path, held: list[Line]) -> Path:
    """Add them as a harvest does."""
    with locked(folder) as manifest:
        manifest.append(*held)
    return folder


def _bundle(folder: Path, number: int, segments: list[bytes]) -> Line:
    path = f"bundles/{number:05}.smq"
    (folder / path).write_bytes(b"".join(segments))
    return Line(path, len(segments) * SIZE, "", SIZE, START / 1000 + 90 * 86400, "benchmark")


def ring(records: int) -> list[Template]:
    """Three boots of a board with 12 clients and 40 topics, an anchor in each segment."""
    random = Random(7)
    found: list[Template] = []
    per_boot = records // 3 + 1
    for boot in range(1, 4):
        seq, uptime, base = 0, 4000, START + boot * 30 * 86_400_000
        while seq < min(per_boot, records - per_boot * (boot - 1)):
            template = Template(bytearray(w.header(b"", boot, len(found), seq, SIZE)), [])
            seq, uptime = _fill(template, random, seq, uptime, base)
            found.append(template)
    return found


def _fill(
    template: Template, random: Random, seq: int, uptime: int, base: int
) -> tuple[int, int]:  # fmt: skip
    data = template.data
    for number in range(12):
        data += w.record(1, 0, seq, uptime, number, w.NO_ID, b"node-%02d" % number)
        seq += 1
    for number in range(40):
        template.topics.append(len(data))
        kind = (b"temp", b"humidity", b"soil", b"battery")[number % 4]
        data += w.record(1, 1, seq, uptime, w.NO_ID, number, _PLACE + kind + b"/%d" % number)
        seq += 1
    wall = base + uptime
    data += w.record(4, 2, seq, uptime, w.NO_ID, w.NO_ID,
                     struct.pack("<IHI", wall // 1000, wall % 1000, 40))  # fmt: skip
    seq += 1
    while len(data) < SIZE - 160:
        uptime += random.randrange(50, 900)
        topic = random.randrange(40)
        data += w.record(2, random.choice((0, 1, 1, 2, 5)), seq, uptime, random.randrange(12),
                         topic, _payload(random, seq))  # fmt: skip
        seq += 1
    return seq, uptime


def _payload(random: Random, seq: int) -> bytes:
    kind = seq % 20
    if kind < 10:
        return b"%.3f" % random.gauss(20, 4)
    if kind < 17:
        return b'{"t":%.2f,"bat":%d,"n":%d}' % (random.gauss(20, 4), random.randrange(9999), seq)
    if kind < 19:
        return b"\xa2at\xfb" + struct.pack(">d", random.gauss(20, 4)) + b"an\x1a" + struct.pack(
            ">I", seq
        )  # fmt: skip
    return b"motion in zone %d" % (seq % 9)


def copy(template: Template, board: int) -> bytes:
    """The same segment of another board, with the topics of its site."""
    data = bytearray(template.data.ljust(SIZE, b"\xff"))
    data[8:16] = struct.pack(">Q", 0x286F_0000_0000_0000 + board)
    data[28:32] = struct.pack("<I", zlib.crc32(data[:28]))
    for at in template.topics:
        end = at + int.from_bytes(data[at + 4 : at + 6], "little")
        data[at + 20 + 5 : at + 20 + 7] = b"%02d" % board
        data[at : at + 4] = struct.pack("<I", zlib.crc32(data[at + 4 : end]))
    return bytes(data)


@click.command()
@click.option("--records", type=click.IntRange(200_000), default=4_000_000, show_default=True)
def main(records: int) -> None:
    """Measure the tables."""
    with tempfile.TemporaryDirectory() as folder, Meter() as meter:
        figures = measure(meter, records, Path(folder))
    click.echo(page(figures))
    if figures.growth > MOST_GROWTH:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
