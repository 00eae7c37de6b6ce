"""Possible duplicates: messages of several boards that may be one, by their times."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from slotmq_tools.telemetry import bridges
from slotmq_tools.telemetry.schemas import MESSAGES

from .test_findings import START, message, table

Row = dict[str, Any]


def sent_by(board: str, seconds: float | None, error: float = 0, **columns: Any) -> Row:
    """`error` in seconds; None as time: nobody knows when."""
    known: Row = {"wall": None, "wall_error_us": None}
    if seconds is not None:
        known = {"wall": START + timedelta(seconds=seconds), "wall_error_us": int(error * 1e6)}
    return message(0, board=board, payload=b"21.5", **known) | columns


def marked(spark: SparkSession, *cases: list[Row]) -> list[list[int]]:
    """Which rows of each case may be doubles, by their places; the cases have topics of their
    own, since a table costs Spark a second however small it is."""
    rows = [
        row | {"boot": number, "seq": seq, "topic": f"{number}/{row['topic']}"}
        for number, case in enumerate(cases)
        for seq, row in enumerate(case)
    ]
    messages = table(spark, MESSAGES, rows)
    shared = messages.select("topic").distinct()
    found = [(row["boot"], row["seq"]) for row in bridges.possible(messages, shared).collect()]
    return [sorted(seq for boot, seq in found if boot == number) for number in range(len(cases))]


def test_times_are_compared_by_their_bounds(spark: SparkSession) -> None:
    exact = [
        sent_by("a", 0),
        sent_by("b", 5),
        sent_by("b", 100),
        sent_by("c", 105.1),
    ]
    apart: list[Row] = [
        sent_by("a", 0, 0.01),
        sent_by("b", 40, 60),
        sent_by("c", 5000, 60),
    ]
    just = [sent_by("a", 0, 20), sent_by("b", 40, 15)]
    too_far = [sent_by("a", 0, 20), sent_by("b", 40, 14)]
    days = [sent_by("a", 0, 86_400), sent_by("a", 50), sent_by("b", 70_000)]
    found = marked(spark, exact, apart, just, too_far, days)
    assert found == [[0, 1], [0, 1], [0, 1], [], [0, 2]]


def test_a_message_without_time_may_be_a_duplicate(spark: SparkSession) -> None:
    one = [sent_by("a", 0), sent_by("b", None), sent_by("b", 9000)]
    both = [sent_by("a", None), sent_by("b", None)]
    same_board = [sent_by("a", 0), sent_by("a", None)]
    other: list[Row] = [
        sent_by("b", None, payload=b"22"),
        sent_by("b", None, topic="other"),
    ]
    found = marked(spark, one, both, same_board, [sent_by("a", 0), *other])
    assert found == [[0, 1], [0, 1], [], []]


def test_all_overlapping_times_are_found(spark: SparkSession) -> None:
    """Many times, long and short errors, boards that overtake each other: all with all."""
    random = Random(0)
    cases = [
        [
            sent_by(random.choice("abc"), random.choice((None, *[random.randrange(3000)] * 19)),
                  random.choice((0, 1, 30, 300)))
            for _ in range(random.randrange(2, 12))
        ]
        for _ in range(120)
    ]  # fmt: skip
    right = [
        [i for i, one in enumerate(case) if any(near(one, other) for other in case)]
        for case in cases
    ]
    assert marked(spark, *cases) == right
    assert any(right) and right != [[*range(len(case))] for case in cases]


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
