"""`make bench-telemetry`: measures the tables, for docs/measurements.md.

    python -m slotmq_dev.bench_telemetry [--records N]

CPU seconds are the sum over all processes: the JVM, Spark's Python workers, this one. Unlike wall
time they are reliable on a busy machine.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import psutil
from pyspark.sql import SparkSession

from slotmq_telemetry import bronze, build, session
from slotmq_telemetry.engine import Engine
from slotmq_telemetry.lake import Lake

from . import bench_telemetry_data as data

MOST_GROWTH = 1.2
LEAST = {"silver": 500_000, "gold": 300_000}  # records per CPU second
SHARES = (4, 1, 0.2)  # the records, divided by these, are measured
_SAMPLE_S = 0.2
STEPS = ("bronze", "silver", "gold")


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
    held = data.hold_back(folder)
    return {
        "bronze": meter.cost(lambda: bronze.ingest(engine, folder, lake), "bronze"),
        "silver": meter.cost(lambda: build.build_silver(engine, lake), "silver"),
        "gold": meter.cost(lambda: build.build_gold(engine, lake), "gold"),
        "nothing new": meter.cost(lambda: little(folder, lake), "nothing new"),
        "1 % new": meter.cost(lambda: little(data.given_back(folder, held), lake), "1 % new"),
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
    data.make(folder / "warm", 200_000)
    pipeline(meter, spark, folder / "warm", Lake(folder / "warm-tables").made())
    steps = {}
    for size in sizes:
        data.make(folder / f"{size}", size)
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
