"""`spark.readStream.format("slotmq_ring")`: a stream of the rings on the boards' flash.

The driver plans, the executors fetch. Rows are those of schemas.FRAMES.

    brokers               HOST:PORT, separated by commas
    user                  its password is in $SLOTMQ_PASSWORD of the driver
    boards                ids, separated by commas; default: all
    maxRecordsPerTrigger  limit of a batch
    waits                 if set, no broker needs to answer at the start

The offset is {board: [boot, seq]} of the next record. For a new board, or a ring that was made
anew, it is [boot, seq, boot, seq]: the next record, and the first one. So a planned batch can be
planned again after a driver was killed. A broker that does not answer has nothing new. A board
that does not answer, or of which only a head exists, is left out for two minutes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ..deploy.mqtt_client import Login
from ..deploy.options import LOGIN_PASSWORD, Address
from ..errors import ToolError
from ..harvest.network import Head, Ring
from .harvest_source import FRAMES
from .ring_fetch import Away, Work, frames
from .ring_index import Position, RingIndex, lost

NAME = "slotmq_ring"
_SILENT_S = 120.0
Offset = dict[str, list[int]]


class _Field:
    """The boards behind the brokers, as the driver knows them."""

    def __init__(self, options: dict[str, str]) -> None:
        texts = [text.strip() for text in options.get("brokers", "").split(",")]
        if not all(texts):
            raise ToolError("format slotmq_ring needs .option('brokers', 'HOST:PORT')")
        self.addresses = [Address().convert(text, None, None) for text in texts]
        self.only = set(options.get("boards", "").replace(",", " ").split())
        self.login = Login(
            options.get("user"), os.environ.get(LOGIN_PASSWORD), options.get("cafile")
        )
        self.indices: dict[str, RingIndex] = {}
        self.where: dict[str, tuple[str, int]] = {}
        self._silent: dict[tuple[tuple[str, int], str], float] = {}  # until when, of which broker

    def update(self) -> None:
        """Ask every broker; ToolError if none of them, or none of their boards, answers."""
        with ThreadPoolExecutor(len(self.addresses)) as pool:
            failed = [error for error in pool.map(self._ask, self.addresses) if error]
        if len(failed) == len(self.addresses):
            raise failed[0]

    def _ask(self, address: tuple[str, int]) -> ToolError | None:
        try:
            ring = Ring(address, self.login)
        except ToolError as error:
            return error
        try:
            heads = ring.heads()
            chosen = [board for board in heads if not self.only or board in self.only]
            failed = [self._look(ring, address, heads[board]) for board in chosen]
        except ToolError as error:
            return error
        finally:
            ring.close()
        return next((error for error in failed if all(failed)), None)

    def _look(self, ring: Ring, address: tuple[str, int], head: Head) -> ToolError | None:
        """At one board, whose silence keeps none of the others."""
        board = head.board
        if self._silent.get((address, board), 0) > time.monotonic():
            return ToolError(f"board {board} did not answer a moment ago")
        index = self.indices.get(board) or RingIndex()
        try:
            index.update(ring, head)
        except ToolError as error:
            self._silent[address, board] = time.monotonic() + _SILENT_S
            click.echo(f"{error}; next attempt in {_SILENT_S / 60:g} minutes", err=True)
            return error
        self.indices[board], self.where[board] = index, address
        return None

    def ends(self) -> dict[str, Position]:
        return {board: self.indices[board].end for board in sorted(self.indices)}


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: dict[str, str]) -> None:
        self._field: _Field | None = _Field(options)
        self._login = self._field.login
        limit = options.get("maxrecordspertrigger")
        self._limit = int(limit) if limit else None
        self._target: dict[str, Position] | None = None
        self._reached = "waits" in options

    def __getstate__(self) -> dict[str, Any]:
        """What executors need of it."""
        return {"_field": None, "_login": self._login}

    @property
    def _driver(self) -> _Field:
        assert self._field is not None
        return self._field

    def _update(self) -> None:
        """From the second time on a silence of all brokers only means that nothing is new."""
        try:
            self._driver.update()
            self._reached = True
        except ToolError:
            if not self._reached:
                raise

    def initialOffset(self) -> Offset:  # noqa: N802
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._limit) if self._limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._update()
        self._target = self._driver.ends()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        if self._target is None:
            self._update()
        ends = self._driver.ends() if self._target is None else self._target
        begins = {board: self._begin(start, board) for board in ends}
        more = [board for board, end in ends.items() if end > begins[board]]
        share = None
        if isinstance(limit, ReadMaxRows):
            share = max(1, limit.max_rows // max(1, len(more)))
        found = dict(start)
        for board in more:
            end = ends[board]
            if share is not None:
                end = min(end, self._driver.indices[board].limited(begins[board], share))
            known = board in start and begins[board] == _next(start[board])
            found[board] = [*end] if known else [*end, *begins[board]]
        return found

    def _begin(self, start: Offset, board: str) -> Position:
        index = self._driver.indices[board]
        if board in start and not index.is_behind(_next(start[board])):
            return _next(start[board])
        return index.oldest

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        return {board: list(end) for board, end in self._driver.ends().items()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        if not end.keys() <= self._driver.indices.keys():
            try:
                self._driver.update()  # planned by one that was killed
            except ToolError as error:
                raise Away(str(error)) from None
            self._reached = True
        return [InputPartition(work) for work in self._works(start, end)]

    def _works(self, start: Offset, end: Offset) -> Iterator[Work]:
        for board, last in end.items():
            before = start.get(board)
            if last == before:
                continue
            index = self._driver.indices.get(board)
            if index is None:
                raise Away(f"board {board} is not behind these brokers now")
            if not index.reaches(_next(last)):
                raise Away(f"board {board}: its head does not name all planned records")
            begin = Position(*last[2:]) if last[2:] else _next(before or [*index.oldest])
            gaps = index.gaps(begin, _next(last))
            if before is not None and begin != _next(before):
                gaps = [*lost(_next(before), begin), *gaps]
            pieces = index.pieces(begin, _next(last))
            yield Work(self._driver.where[board], board, pieces, gaps)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        # Spark asks for a partition of nothing where there are none.
        if partition.value is not None:
            yield from frames(partition.value, self._login)

    def commit(self, end: Offset) -> None:
        """A ring forgets by itself, and never because somebody has read it."""

    def stop(self) -> None:
        """No connection outlives a question."""


def _next(offset: list[int]) -> Position:
    """The next record, of a board's part of an offset."""
    return Position(*offset[:2])


class RingSource(DataSource):
    """The format `slotmq_ring`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return FRAMES

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _StreamReader({key.lower(): value for key, value in self.options.items()})
