"""`make bench-telemetry`: measures decoder and tables for docs/measurements.md.

    python -m slotmq_tools.dev.bench_telemetry [--records N] [--write FILE]

CPU seconds are the sum over all processes: the JVM, Spark's Python workers, this one. Unlike wall
time they are reliable on a busy machine.
"""

from __future__ import annotations

import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import duckdb
import psutil
from pyspark.sql import SparkSession

from ..telemetry import bronze, build, harvest_source, manifest, session
from ..telemetry.decode import frames_of
from ..telemetry.engine import Engine
from ..telemetry.folder import Folder
from ..telemetry.lake import Lake
from ..telemetry.schemas import SILVER
from . import bench_telemetry_data as data
from . import bench_telemetry_fleet as fleet

LEAST_RATIO, MOST_GROWTH = 0.5, 1.2
LEAST = {"silver": 500_000, "gold": 300_000}  # records per CPU second
SHARES = (4, 1, 0.2)  # the records, divided by these, are measured
FLEET = 10_000, 30  # boards and days
ROUNDS = 3
_SAMPLE_S = 0.2
PLAIN, TASKS, ROWS = (
    "a plain process",
    "Spark, local[2], as bronze is made",
    "Spark, local[2], every row into the JVM",
)
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


def plain(folder: Path) -> int:
    """The decoder in this process; -> the number of rows."""
    with manifest.opened(folder) as found:
        parts = manifest.parts(found.filled())
    return sum(
        batch.num_rows for some in parts for part in some for batch in frames_of(folder, part)
    )


def spark_decodes(spark: SparkSession, folder: Path) -> int:
    """The decoder in Spark's tasks, as for bronze, without writing; -> the number of rows."""
    with manifest.opened(folder) as lines:
        found = bronze.decode(in_spark(spark), Folder(folder), lines.filled(), None)
    return sum(file.rows for file in found)


def in_spark(spark: SparkSession) -> Engine:
    return Engine(lambda: spark, always=True)


def spark_reads(spark: SparkSession, folder: Path) -> None:
    """Pass every row to the JVM, as queries on the format do."""
    frames = spark.read.format(harvest_source.NAME).option("path", str(folder)).load()
    frames.write.format("noop").mode("overwrite").save()


def decoders(meter: Meter, spark: SparkSession, folder: Path) -> dict[str, Cost]:
    """Each decoder in turns; of ROUNDS the one with the least CPU counts."""
    ways: dict[str, Callable[[], object]] = {
        PLAIN: lambda: plain(folder),
        TASKS: lambda: spark_decodes(spark, folder),
        ROWS: lambda: spark_reads(spark, folder),
    }
    rounds = [{name: meter.cost(way, name) for name, way in ways.items()} for _ in range(ROUNDS)]
    return {name: min((each[name] for each in rounds), key=lambda c: c.cpu) for name in ways}


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


_WINDOWS = (
    "select topic, time_bucket(interval '1 hour', wall) as start, count(*), min(number),"
    " avg(number), max(number), quantile_cont(number, [0.1, 0.5, 0.9]) from {} "
    "where number is not null group by 1, 2"
)


def windows(meter: Meter, spark: SparkSession, lake: Lake) -> dict[str, Cost]:
    """One query on the same files: statistics of each topic in each hour."""
    table = SILVER["messages"]
    paths = [f"{lake.folder}/{table.name}/{path}" for path in lake.files(table)]
    base = str(lake.folder / table.name)
    spark.read.option("basePath", base).parquet(*paths).createOrReplaceTempView("messages")
    text = (
        _WINDOWS.format("messages")
        .replace("time_bucket(interval '1 hour', wall)", "date_trunc('hour', wall)")
        .replace("quantile_cont(number, [0.1, 0.5, 0.9])", "percentile(number, array(.1, .5, .9))")
    )
    files = f"read_parquet({paths})"
    duck = duckdb.connect(config={"threads": 2})
    ask = _WINDOWS.format(files)
    return {
        "Spark": meter.cost(lambda: spark.sql(text).write.format("noop").mode("overwrite").save()),
        "DuckDB": meter.cost(lambda: duck.execute(ask).fetchall()),
    }


@dataclass
class Figures:
    """Everything that was measured."""

    records: int
    decoders: dict[str, Cost]
    steps: dict[int, dict[str, Cost]]  # by number of records
    windows: dict[str, Cost]
    fleet: dict[str, Cost]

    @property
    def ratio(self) -> float:
        return self.decoders[PLAIN].cpu / self.decoders[TASKS].cpu

    def growth(self, of: Callable[[Cost], float]) -> float:
        """Of the largest, by record, compared with the smallest."""
        each = {n: sum(of(steps[name]) for name in STEPS) / n for n, steps in self.steps.items()}
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
    for size in sizes:
        data.make(folder / f"{size}", size)
    spark = session.start("local[2]", {"spark.driver.memory": "2g"})
    warm = folder / "warm"
    data.make(warm, 200_000)
    pipeline(meter, spark, warm, Lake(folder / "warm-tables").made())
    found = decoders(meter, spark, folder / f"{records}")
    steps = {}
    for size in sizes:
        lake = Lake(folder / f"tables-{size}").made()
        steps[size] = pipeline(meter, spark, folder / f"{size}", lake)
    asked = windows(meter, spark, Lake(folder / f"tables-{records}"))
    spark.stop()
    many = fleet.measure(lambda work: meter.cost(work, "fleet"), folder / "fleet", *FLEET)
    return Figures(records, found, steps, asked, many)


def page(figures: Figures, command: str) -> str:
    """A section of the document."""
    names = ("slotmq", "pyspark", "pyarrow", "duckdb")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    wall, cpu_growth = figures.growth(lambda c: c.wall), figures.growth(lambda c: c.cpu)
    about = (
        f"on {os.cpu_count()} cores with {versions}, CPython {platform.python_version()}; load"
        f" average {os.getloadavg()[1]:.1f} at the end. CPU is that of all processes.\n"
    )
    ratio = (
        f"\nSpark decodes {figures.ratio:.2f} times as many records per CPU second as the plain"
        f" process (target: at least {LEAST_RATIO}). Its tasks decode and return counts, as"
        " they do for bronze, but write no Parquet files here. The figure includes planning, the"
        " JVM and the Python workers; it excludes their start, since the session has made"
        " tables before."
        f" The decoders take turns in {ROUNDS} rounds; each row shows the round with the least"
        f" CPU. Reading the format `{harvest_source.NAME}` in a query costs more, since each row"
        " passes into the JVM.\n"
    )
    lines = [
        "## Tables\n",
        f"Measured on {time.strftime('%Y-%m-%d')} with\n\n    {command}\n",
        about,
        "| decoder | records | CPU s | wall s | records per CPU second |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(
            f"| {name} | {figures.records:,} | {c.cpu:.1f} | {c.wall:.1f} |"
            f" {figures.records / c.cpu:,.0f} |"
            for name, c in figures.decoders.items()
        ),
        ratio,
        "| step | " + " | ".join(f"{n:,} records: CPU s | wall s" for n in figures.steps) + " |",
        "| --- |" + " ---: |" * 2 * len(SHARES),
        *(_step(name, figures) for name in (*STEPS, "nothing new", "1 % new")),
        "\nA CPU second makes " + " and ".join(
            f"{step} of {figures.rate(step):,.0f} records (target: {least:,})"
            for step, least in LEAST.items()
        ) + f", of {figures.records:,}. A record of the largest takes {wall:.2f} times the time"
        f" and {cpu_growth:.2f} times the CPU of one of the smallest (target: at most"
        f" {MOST_GROWTH})."
        " The new bundle is of one board of"
        f" {data.BOARDS}, whose silver and gold are made anew as a whole: {figures.part:.1%} of"
        " the CPU of all. All processes together used at most "
        + " and ".join(f"{max(c.memory for c in s.values()) >> 20:,} MB"
                       for s in figures.steps.values())
        + f" of memory while the steps ran, sampled {1 / _SAMPLE_S:.0f} times a second.\n",
        "| statistics of each topic in each hour, from the same files | CPU s | wall s |",
        "| --- | ---: | ---: |",
        *(f"| {n} | {c.cpu:.1f} | {c.wall:.1f} |" for n, c in figures.windows.items()),
        "\nOn one machine DuckDB reads faster. Spark runs the same code on many machines.\n",
        f"| {FLEET[0]:,} boards, the last of {FLEET[1]} days, but no records | CPU s | wall s |",
        "| --- | ---: | ---: |",
        *(f"| {n} | {c.cpu:.1f} | {c.wall:.1f} |" for n, c in figures.fleet.items()),
        f"\nThe manifest has {FLEET[0] * FLEET[1]:,} lines then, and so many files has bronze.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _step(name: str, figures: Figures) -> str:
    costs = (steps[name] for steps in figures.steps.values())
    return f"| {name} | " + " | ".join(f"{c.cpu:.1f} | {c.wall:.1f}" for c in costs) + " |"


@click.command()
@click.option("--records", type=click.IntRange(200_000), default=4_000_000, show_default=True)
@click.option("--write", "file", type=click.Path(path_type=Path), help="Write it there, too.")
def main(records: int, file: Path | None) -> None:
    """Measure the decoder and the tables."""
    options: list[Any] = [f"--records {records}"] if records != 4_000_000 else []
    command = " ".join(["python -m slotmq_tools.dev.bench_telemetry", *options])
    with tempfile.TemporaryDirectory() as folder, Meter() as meter:
        figures = measure(meter, records, Path(folder))
    text = page(figures, command)
    click.echo(text)
    if file:
        file.write_text(text)
    if figures.ratio < LEAST_RATIO or figures.growth(lambda c: c.cpu) > MOST_GROWTH:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
