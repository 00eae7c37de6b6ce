"""A driver of the live source over boards in memory, without Spark and network."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from host_tests.telemetry.harvest.recording import Recorder, records
from slotmq_tools.deploy.mqtt_client import Login
from slotmq_tools.errors import ToolError
from slotmq_tools.harvest.network import Gone, Head
from slotmq_tools.telemetry import ring_fetch
from slotmq_tools.telemetry.harvest_source import FRAMES
from slotmq_tools.telemetry.ring_fetch import Work
from slotmq_tools.telemetry.ring_source import Offset, RingSource

BOARD = "00000000000000aa"
Row = dict[str, Any]


class Ring:
    """The boards of a broker, without the way; without a board nobody answers."""

    boards: tuple[Recorder, ...] = ()
    silent: frozenset[int] = frozenset()  # segments

    def __init__(self, *_: object) -> None:
        if not self.boards:
            raise ToolError("nobody is there")

    def heads(self) -> dict[str, Head]:
        return {each.name: Head(**each.state()) for each in self.boards}  # type: ignore[arg-type]

    def read(self, board: str, segment: int, begin: int, end: int | None) -> bytes:
        (one,) = (each for each in self.boards if each.name == board)
        if segment in self.silent:
            raise ToolError("no answer")
        if segment not in one.segments:
            raise Gone(segment)
        return one.segments[segment][begin:end]

    def close(self) -> None:
        pass


def recorder(messages: int, boot: int = 0, **options: Any) -> Recorder:
    board = Recorder(BOARD, boot=boot, **options)
    board.start()
    for number in range(messages):
        board.message("room/1", b"%d" % number)
    Ring.boards = (board,)
    return board


class Driver:
    """A driver's life: after a kill there is a new one, with what Spark has written down."""

    def __init__(self, **options: str) -> None:
        source = RingSource({"brokers": "127.0.0.1:1883", **options})
        self.reader: Any = source.streamReader(FRAMES)

    def plan(self, start: Offset, limit: ReadLimit | None = None) -> Offset:
        planned = self.reader.latestOffset(start, limit or ReadAllAvailable())
        read: Offset = json.loads(json.dumps(planned))
        return read

    def works(self, start: Offset, end: Offset) -> list[Work]:
        return [partition.value for partition in self.reader.partitions(start, end)]

    def rows(self, start: Offset, end: Offset) -> list[Row]:
        work = self.works(start, end)
        batches = (batch for each in work for batch in ring_fetch.frames(each, Login()))
        return [row for batch in batches for row in batch.to_pylist()]


def numbers(board: Recorder) -> set[int]:
    """What a ring has of one boot."""
    return {seq for segment in board.segments.values() for seq, _ in records(segment)}


def good(rows: list[Row]) -> set[int]:
    return {row["seq"] for row in rows if row["reason"] is None}


def written(board: Recorder) -> set[tuple[int, int]]:
    """What is on flash now."""
    return {
        (int.from_bytes(segment[16:20], "little"), seq)
        for segment in board.segments.values()
        for seq, _ in records(segment)
    }


def said(monkeypatch: pytest.MonkeyPatch, **more: int) -> None:
    """Somebody's head, whose numbers are by so much more than the board's."""
    true = Ring.heads

    def heads(ring: Ring) -> dict[str, Head]:
        return {name: told(head, more) for name, head in true(ring).items()}

    monkeypatch.setattr(Ring, "heads", heads)


def told(head: Head, more: dict[str, int]) -> Head:
    changes: dict[str, Any] = {name: getattr(head, name) + by for name, by in more.items()}
    return replace(head, **changes)


def identities(rows: list[Row]) -> set[tuple[int, int]]:
    assert all(row["reason"] is None for row in rows)
    assert len(rows) == len({(row["boot"], row["seq"]) for row in rows})
    return {(row["boot"], row["seq"]) for row in rows}


DRIVERS = pytest.mark.parametrize("again", [True, False], ids=["another driver", "the same"])


def goes_on(board: Recorder, messages: int) -> None:
    for number in range(messages):
        board.message("room/1", b"more %d" % number)
