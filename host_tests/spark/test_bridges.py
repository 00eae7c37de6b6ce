"""Which messages of several boards may be one, by what is known of their times."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from slotmq_tools.telemetry import bridges
from slotmq_tools.telemetry.schemas import MESSAGES

from .test_findings import START, message, table

Row = dict[str, Any]


def heard(board: str, seconds: float | None, error: float = 0, **columns: Any) -> Row:
    """`error` in seconds; None as time: nobody knows when."""
    known: Row = {"wall": None, "wall_error_us": None}
    if seconds is not None:
        known = {"wall": START + timedelta(seconds=seconds), "wall_error_us": int(error * 1e6)}
    return message(0, board=board, payload=b"21.5", **known) | columns


def marked(spark: SparkSession, rows: list[Row]) -> list[int]:
    """Which of them may be doubles, by their places."""
    rows = [row | {"seq": seq} for seq, row in enumerate(rows)]
    messages = table(spark, MESSAGES, rows)
    shared = messages.select("topic").distinct()
    return sorted(row["seq"] for row in bridges.possible(messages, shared).collect())


def test_times_are_compared_by_their_bounds(spark: SparkSession) -> None:
    exact = [heard("a", 0), heard("b", 5), heard("b", 100), heard("c", 105.1)]
    assert marked(spark, exact) == [0, 1]
    apart: list[Row] = [heard("a", 0, 0.01), heard("b", 40, 60), heard("c", 5000, 60)]
    assert marked(spark, apart) == [0, 1]
    assert marked(spark, [heard("a", 0, 20), heard("b", 40, 15)]) == [0, 1]
    assert marked(spark, [heard("a", 0, 20), heard("b", 40, 14)]) == []
    assert marked(spark, [heard("a", 0, 86_400), heard("a", 50), heard("b", 70_000)]) == [0, 2]


def test_what_has_no_time_may_be_what_another_board_has(spark: SparkSession) -> None:
    assert marked(spark, [heard("a", 0), heard("b", None), heard("b", 9000)]) == [0, 1]
    assert marked(spark, [heard("a", None), heard("b", None)]) == [0, 1]
    assert marked(spark, [heard("a", 0), heard("a", None)]) == []
    other: list[Row] = [heard("b", None, payload=b"22"), heard("b", None, topic="other")]
    assert marked(spark, [heard("a", 0), *other]) == []


@pytest.mark.parametrize("seed", range(3))
def test_whatever_overlaps_is_found(spark: SparkSession, seed: int) -> None:
    """Many times, long and short errors, boards that overtake each other: all with all."""
    random = Random(seed)
    rows, right = [], []
    for part in range(40):
        some = [
            heard(random.choice("abc"), random.choice((None, *[random.randrange(3000)] * 19)),
                  random.choice((0, 1, 30, 300)), payload=bytes((part,)))
            for _ in range(random.randrange(2, 12))
        ]  # fmt: skip
        right += [any(near(one, other) for other in some) for one in some]
        rows += some
    assert marked(spark, rows) == [i for i, is_near in enumerate(right) if is_near]
    assert {*right} == {True, False}


def near(one: Row, other: Row) -> bool:
    """Of two boards, and within 5 s for some of the times that they may have been at."""
    if one["board"] == other["board"]:
        return False
    if one["wall"] is None or other["wall"] is None:
        return True
    ends = [
        (row["wall"] + sign * timedelta(microseconds=row["wall_error_us"]))
        for row, sign in product((one, other), (-1, 1))
    ]
    gap = max(ends[2] - ends[1], ends[0] - ends[3])
    return bool(gap <= timedelta(seconds=bridges.WITHIN_US / 1e6))
