"""Gold of the seasons, worked out again from the true messages and events in plain Python."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from statistics import median
from typing import Any

import duckdb
import pandas as pd
import pytest

from .made import Made
from .tables import plain

HOUR_US = 3_600_000_000
Row = dict[str, Any]


def timed(made: Made) -> list[Row]:
    return [row for row in made.campaign.all("messages") if row["wall_us"] is not None]


def hour(row: Row) -> int:
    return int(row["wall_us"]) // HOUR_US * HOUR_US


def fields(row: Row) -> dict[str, float]:
    if row["number"] is not None:
        return {"": row["number"]}
    told = json.loads(row["json"] or "null")
    if not isinstance(told, dict):
        return {}
    return {k: float(v) for k, v in told.items() if isinstance(v, int | float)}


def test_traffic_counts_the_messages_of_each_hour(made: Made) -> None:
    right: Counter[tuple[str, int, str]] = Counter()
    for row in timed(made):
        key = (row["topic"], hour(row))
        right[*key, "messages"] += 1
        right[*key, "bytes"] += len(row["payload"])
        right[*key, "acknowledged"] += row["qos"] > 0
        right[*key, "retained"] += row["retain"]
        right[*key, "possible_duplicates"] += row["possible_duplicate"]
    found = {
        (row["topic"], row["start_us"], name): row[name]
        for row in plain(made.gold("traffic"))
        for name in ("messages", "bytes", "acknowledged", "retained", "possible_duplicates")
    }
    assert found == {key: right[key] for key in found}
    assert len(found) == len({key[:2] for key in right}) * 5


def test_readings_are_those_of_each_field_in_each_hour(made: Made) -> None:
    right: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for row in timed(made):
        for field, value in fields(row).items():
            right[row["topic"], field, hour(row)].append(value)
    found = {(r["topic"], r["field"], r["start_us"]): r for r in plain(made.gold("readings"))}
    assert found.keys() == right.keys()
    assert {field for _, field, _ in found} >= {"", "t", "n"}
    for key, numbers in right.items():
        row = found[key]
        assert (row["count"], row["min"], row["max"]) == (len(numbers), min(numbers), max(numbers))
        assert row["p50"] == pytest.approx(median(numbers))
        assert row["mean"] == pytest.approx(sum(numbers) / len(numbers))
        assert row["min"] <= row["p10"] <= row["p50"] <= row["p90"] <= row["max"]


def test_silences_are_steps_much_longer_than_usual(made: Made) -> None:
    by_topic: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for row in timed(made):
        by_topic[row["board"], row["topic"]].append((row["wall_us"], row["boot"], row["seq"]))
    right = set()
    for (board, topic), times in by_topic.items():
        times.sort()
        steps = list(pairwise(times))
        usual = median([(b[0] - a[0]) / 1e6 for a, b in steps]) if steps else 0
        for a, b in steps:
            length = (b[0] - a[0]) / 1e6
            if len(times) >= 5 and length > 60 and length > usual * 5:
                right.add((board, topic, a[0], b[0], a[1] != b[1]))
    found = plain(made.gold("silences"))
    assert {
        (r["board"], r["topic"], r["after_us"], r["before_us"], r["restarted"]) for r in found
    } == right
    assert len(found) == len(right) > 10


def test_gaps_name_the_segments_that_are_gone(made: Made) -> None:
    found = {(r["board"], r["boot"], r["first_seq"]): r for r in plain(made.gold("gaps"))}
    right = made.campaign.all("losses")
    assert len(found) == len(right)
    for row in right:
        files = found[row["board"], row["boot"], row["first_seq"]]["files"]
        assert files == [f"{number:08x}.seg" for number in row["segments"]]


def test_sessions_count_what_happened_to_each_client(made: Made) -> None:
    right: Counter[tuple[str, str, str]] = Counter()
    for row in made.campaign.all("events"):
        if row["client"] is not None:
            right[row["board"], row["client"], row["event"]] += 1
    found = plain(made.gold("sessions"))
    names = {"connects": "connect", "disconnects": "disconnect", "wills": "will"}
    names |= {"takeovers": "takeover"}
    assert {(r["board"], r["client"]) for r in found} == {key[:2] for key in right}
    for row in found:
        for name, event in names.items():
            assert row[name] == right[row["board"], row["client"], event]


def test_boards_are_all_there_with_their_advice(made: Made) -> None:
    messages = Counter(row["board"] for row in made.campaign.all("messages"))
    lost: Counter[str] = Counter()
    for row in made.campaign.all("losses"):
        lost[row["board"]] += row["lost"] or 0
    found = {row["board"]: row for row in plain(made.gold("boards"))}
    assert found.keys() >= messages.keys()
    for board, row in found.items():
        assert (row["messages"], row["lost"]) == (messages[board], lost[board])
        overwritten = "overwritten" in row["reasons"]
        assert any("overwritten" in sentence for sentence in row["advice"]) == overwritten


def test_readers_outside_of_spark_see_the_same(made: Made) -> None:
    files = f"{made.lake.folder}/silver/messages/**/*.parquet"
    ask = f"select count(*), count(distinct board) from read_parquet('{files}')"
    counted = duckdb.connect().execute(ask)
    boards = {row["board"] for row in made.campaign.all("messages")}
    assert counted.fetchall() == [(len(made.campaign.all("messages")), len(boards))]
    frame = pd.read_parquet(made.lake.folder / "gold/boards")
    assert set(frame["board"]) == {row["board"] for row in plain(made.gold("boards"))}
