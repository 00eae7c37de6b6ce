"""`slotmq telemetry live`: reads the boards' rings into bronze, one micro-batch at a time, and
makes silver and gold of what has come.

A batch of the stream is a transaction of bronze. A repeated batch has the same name, so a batch
that exists stays as it is: the rings may have overwritten its contents since. So
every record is in bronze once, whichever process is killed, and when. The name contains a hash of
the planned offsets, too. If a power cut loses Spark's plan but leaves the batch, Spark plans a
longer batch with the same number, under another name; silver drops the records that came twice.

If a board goes away in the middle of a batch, the query ends and is started again until the board
is back.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import click
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ..errors import ToolError
from ..harvest.manifest import replace_file, sync_folder
from . import bronze, build
from .engine import Engine
from .lake import Lake
from .ring_fetch import Away
from .ring_source import NAME, RingSource
from .schemas import BRONZE

CHECKPOINT = ".live"  # in the folder of the tables
_AGAIN_S = 10.0
_OURS = re.compile(r"slotmq_tools\.[\w.]*\b(\w+): (.+)")  # an error's line in a traceback


def start(
    spark: SparkSession, lake: Lake, options: dict[str, str], every: float | None,
    count: Callable[[int], None],
) -> StreamingQuery:  # fmt: skip
    """The running query, which counts its records; with `every` None it ends when it has what
    is there now."""
    spark.dataSource.register(RingSource)
    checkpoint = lake.made().folder / CHECKPOINT
    fresh = Fresh(Engine(lambda: spark), lake)
    name = _name(checkpoint)

    def take(frames: DataFrame, number: int) -> None:
        batch = f"live-{name}-{number:010}-{_plan(checkpoint / 'spark', number)}"
        if lake.marked(BRONZE, batch) is None:  # else Spark was killed before it wrote that down
            count(bronze.commit(lake, batch, frames))
            fresh.make()

    writer = spark.readStream.format(NAME).options(**options).load().writeStream
    writer = writer.foreachBatch(take).option("checkpointLocation", str(checkpoint / "spark"))
    once = {"availableNow": True} if every is None else {"processingTime": f"{every} seconds"}
    return writer.trigger(**once).start()


class Fresh:
    """Makes silver and gold of what has come, in at most half of the time."""

    def __init__(self, engine: Engine, lake: Lake) -> None:
        self._engine, self._lake = engine, lake
        self._next = 0.0

    def make(self, *, late: bool = False) -> None:
        """Unless the last time has taken too long; `late`: in any case."""
        begun = time.monotonic()
        if begun < self._next and not late:
            return
        try:
            if self._lake.open(BRONZE) is not None:
                build.build_silver(self._engine, self._lake)
                build.build_gold(self._engine, self._lake)
        except ToolError as error:  # another process is at it
            click.echo(f"{error}", err=True)
        ended = time.monotonic()
        self._next = ended + (ended - begun)


def run(
    spark: SparkSession, lake: Lake, options: dict[str, str], every: float | None,
    seconds: float | None = None,
) -> int:  # fmt: skip
    """Until it ends by itself, or after so many seconds, or on Ctrl-C; -> records read."""
    with lake.made().locked("live"):
        found = sum(_batches(spark, lake, options, every, seconds))
        Fresh(Engine(lambda: spark), lake).make(late=True)
        return found


def _batches(
    spark: SparkSession, lake: Lake, options: dict[str, str], every: float | None,
    seconds: float | None,
) -> list[int]:  # fmt: skip
    """The records of each."""
    deadline = None if seconds is None else time.monotonic() + seconds
    found: list[int] = []
    while True:
        query = start(spark, lake, options, every, found.append)
        try:
            query.awaitTermination(_left(deadline))  # type: ignore[arg-type]
            away = None
        except StreamingQueryException as error:
            away = _away(error, every)
        except KeyboardInterrupt:
            away = None
        if query.isActive:
            query.stop()
        if away is None or not _waited(away, deadline):
            return found
        options = options | {"waits": "true"}


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.001, deadline - time.monotonic())


def _away(error: StreamingQueryException, every: float | None) -> str:
    """Why a board has to be waited for; ToolError if that is not it, or nobody waits."""
    name, told = _reason(error)
    if name != Away.__name__ or every is None:
        raise ToolError(told) from None
    return told


def _waited(why: str, deadline: float | None) -> bool:
    """False: it is time to end."""
    click.echo(f"{why}; trying again in {_AGAIN_S:g} s", err=True)
    left = _left(deadline)
    try:
        time.sleep(_AGAIN_S if left is None else min(_AGAIN_S, left))
    except KeyboardInterrupt:
        return False
    return deadline is None or time.monotonic() < deadline


def _name(checkpoint: Path) -> str:
    """Of the stream: another checkpoint counts its batches anew, under another name."""
    file = checkpoint / "name"
    if not (file.exists() and (checkpoint / "spark").exists()):
        replace_file(file, uuid.uuid4().hex[:8].encode())
    return file.read_text()


def _plan(log: Path, number: int) -> str:
    """A batch's own: a mark of the offsets that it begins and ends with, which are on the disk
    before it is, as far as the disk can be believed."""
    folder = log / "offsets"
    with (folder / str(number)).open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(folder)
    ends = [folder / str(each) for each in (number - 1, number)]
    told = [path.read_bytes().split(b"\n", 2) for path in ends if path.exists()]
    mark = hashlib.sha256(
        b"\n".join(each[-1] for each in told)
    )  # behind version, and when and how
    return mark.hexdigest()[:8]


def _reason(error: StreamingQueryException) -> tuple[str, str]:
    """The line of a Python traceback that says it: the kind of error, and in which words."""
    ours = _OURS.findall(str(error))
    return ours[-1] if ours else ("", str(error).splitlines()[0])
