"""Tables of gold for given sensors, QoS faults, sessions and boards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from slotmq_tools.telemetry import gold, gold_health
from slotmq_tools.telemetry.schemas import ANCHORS, EVENTS, LOSSES, MESSAGES, QUARANTINE

START = datetime(2026, 3, 1, tzinfo=UTC)


def table(spark: SparkSession, schema: StructType, rows: list[dict[str, Any]]) -> DataFrame:
    """Rows of a table of silver; what they do not name is null."""
    names = [column.name for column in schema]
    return spark.createDataFrame([[row.get(name) for name in names] for row in rows], schema)


def message(seq: int, minutes: float = 0, **columns: Any) -> dict[str, Any]:
    row = {"board": "b", "boot": 1, "seq": seq, "client": "c", "topic": "t", "qos": 1,
           "dup": False, "retain": False, "payload": b"%d" % seq, "clock": "anchored",
           "conflict": False, "wall": START + timedelta(minutes=minutes),
           "wall_error_us": 5000}  # fmt: skip
    return row | columns


def counter(seq: int, n: int, qos: int = 1, **columns: Any) -> dict[str, Any]:
    return message(seq, json=f'{{"n": {n}}}', qos=qos, payload=f"n{n}".encode(), **columns)


def findings(
    spark: SparkSession, messages: list[dict[str, Any]], *holes: int
) -> list[tuple[str, int, int]]:
    losses = [{"board": "b", "boot": 1, "first_seq": hole, "last_seq": hole} for hole in holes]
    found = gold.audit(table(spark, MESSAGES, messages), table(spark, LOSSES, losses)).collect()
    return sorted((row["finding"], row["seq"], row["messages"]) for row in found)


def test_the_audit_finds_what_contradicts_a_qos(spark: SparkSession) -> None:
    rows = [
        counter(1, 1, qos=2), counter(2, 1, qos=2), counter(3, 2, qos=2),  # 2: twice
        counter(4, 5),  # 3 and 4 are lost
        counter(5, 4),  # and one comes late
        counter(6, 0), counter(7, 1),  # the publisher begins anew
        counter(8, 9, qos=0),  # nothing was promised
        counter(20, 30),  # behind a hole in the recording, or after QoS 0
        counter(21, 40, client="other"), counter(22, 41, topic="other"),
    ]  # fmt: skip
    assert findings(spark, rows, 15) == [("lost", 4, 2), ("order broken", 5, 1), ("twice", 2, 1)]
    lost = [counter(1, 1), counter(9, 5)]
    assert findings(spark, lost) == [("lost", 9, 3)]
    assert findings(spark, lost, 4) == []


def test_without_a_counter_only_dup_tells_that_a_message_came_twice(spark: SparkSession) -> None:
    same: dict[str, Any] = {"payload": b"21.5", "qos": 2}
    assert findings(spark, [message(1, **same), message(2, **same)]) == []
    assert findings(spark, [message(1, **same), message(2, dup=True, **same)]) == [("twice", 2, 1)]


def test_sensors_that_drift_or_stand_still_are_found(spark: SparkSession) -> None:
    rows = []
    for i in range(48):
        half_hours = {"minutes": 30.0 * i}
        rows += [
            message(4 * i, topic="creeps", number=20 + 0.1 * i, **half_hours),
            message(4 * i + 1, topic="stuck", number=20.0 + min(i, 20), **half_hours),
            message(4 * i + 2, topic="well", number=20.0 + i % 3, **half_hours),
            message(4 * i + 3, topic="json", json=f'{{"a": {i % 2}, "b": "x", "c": null}}',
                    **half_hours),
        ]  # fmt: skip
    found = gold.sensors(gold.values(table(spark, MESSAGES, rows))).collect()
    by_field = {(row["topic"], row["field"]): row for row in found}
    assert by_field.keys() == {("creeps", ""), ("stuck", ""), ("well", ""), ("json", "a")}
    assert by_field["creeps", ""]["drifts"]
    assert abs(by_field["creeps", ""]["drift_per_day"] - 4.8) < 1e-6
    assert [key for key, row in by_field.items() if row["flat"]] == [("stuck", "")]
    assert by_field["stuck", ""]["same"] == 28
    assert not by_field["well", ""]["drifts"]


def test_boards_that_share_a_topic_are_told_apart(spark: SparkSession) -> None:
    """Every board is a broker of its own: one stands still, one drifts, and one brings messages
    of the first."""
    rows = []
    for i in range(48):
        half_hours: dict[str, Any] = {"minutes": 30.0 * i, "topic": "temp"}
        rows += [
            message(i, board="stuck", number=21.0, **half_hours),
            message(i, board="drifts", number=20 + 0.1 * i, **half_hours),
            message(i, board="other", number=21.0, origin_board="stuck", origin_boot=9,
                    origin_seq=i, **half_hours),
        ]  # fmt: skip
    messages = table(spark, MESSAGES, rows)
    numbers = gold.values(messages)
    found = {row["board"]: row for row in gold.sensors(numbers).collect()}
    assert {board: (row["flat"], row["drifts"]) for board, row in found.items()} == {
        "stuck": (True, False), "drifts": (False, True),
    }  # fmt: skip
    assert abs(found["drifts"]["drift_per_day"] - 4.8) < 1e-6
    means = {(row["board"], row["mean"]) for row in gold.readings(numbers).collect()}
    assert [mean for board, mean in means if board == "stuck"] == [21.0]
    sent = {row["board"]: row["messages"] for row in gold.traffic(messages).collect()}
    assert sent == {"stuck": 4, "drifts": 2}


def test_a_counter_neither_drifts_nor_stands_still(spark: SparkSession) -> None:
    said: dict[str, list[float]] = {
        "n": [500 + i // 4 for i in range(60)],  # by its name
        "wh": [(7 * i) % 280 for i in range(60)],  # from 0 again
        "level": [7 * i % 280 + 2 for i in range(60)],
        "degrees": [20 + i // 4 for i in range(60)],
        "share": [i / 2 for i in range(60)],
    }
    rows = [
        message(
            60 * i + j, payload=b"", json=f'{{"{field}": {value}}}', topic=field, minutes=30.0 * j
        )
        for i, (field, values) in enumerate(said.items())
        for j, value in enumerate(values)
    ]
    found = gold.sensors(gold.values(table(spark, MESSAGES, rows))).collect()
    assert {row["field"] for row in found if row["counter"]} == {"n", "wh"}
    assert {row["field"] for row in found if row["drifts"]} == {"degrees", "share"}


def test_no_number_is_too_large_for_its_mean_or_its_drift(spark: SparkSession) -> None:
    rows = []
    for i in range(30):
        at = {"minutes": 30.0 * i}
        rows += [
            message(4 * i, topic="huge", number=1e308, **at),
            message(4 * i + 1, topic="huge", number=1e308 - i * 1e306, **at),
            message(4 * i + 2, topic="told", json='{"t": "1e400", "u": 1e400, "v": -1e999}', **at),
            message(4 * i + 3, topic="both", number=1.7e308 if i % 2 else -1.7e308, **at),
        ]  # fmt: skip
    numbers = gold.values(table(spark, MESSAGES, rows))
    found = gold.readings(numbers).collect()
    assert {row["topic"] for row in found} == {"huge", "both"}
    for row in found:
        assert row["min"] <= row["mean"] <= row["max"]
        assert row["min"] <= row["p50"] <= row["max"]
    assert abs(max(row["mean"] for row in found) / 9.975e307 - 1) < 1e-12
    by_topic = {row["topic"]: row for row in gold.sensors(numbers).collect()}
    assert by_topic.keys() == {"huge", "both"}
    for row in by_topic.values():
        assert row["drift_r2"] < 0.7
        assert abs(row["drift_per_day"]) < 1e308
        assert not row["drifts"]


def test_a_drift_too_large_for_a_double_is_null(spark: SparkSession) -> None:
    rows = [message(i, minutes=i / 60000, number=1e308 * (-1) ** i) for i in range(2)]
    [row] = gold.sensors(gold.values(table(spark, MESSAGES, rows))).collect()
    assert (row["drift_per_day"], row["drifts"]) == (None, False)


def quiet(
    spark: SparkSession, rows: list[dict[str, Any]], *losses: tuple[int, int]
) -> list[tuple[str, float, bool]]:
    """Silences by topic, how many minutes, and whether the board began anew."""
    gone = [{"board": "b", "boot": boot, "first_seq": seq} for boot, seq in losses]
    found = gold.silences(table(spark, MESSAGES, rows), table(spark, LOSSES, gone)).collect()
    return sorted((row["topic"], row["seconds"] / 60, row["restarted"]) for row in found)


def test_a_pause_is_a_silence_where_all_of_it_was_recorded(spark: SparkSession) -> None:
    steady = [message(i, i, topic="steady") for i in range(8)]
    rows = [
        *steady,
        message(50, 300, topic="steady"), message(51, 301, topic="steady"),
        message(0, 800, boot=2, topic="steady"),
    ]  # fmt: skip
    silences = [("steady", 293, False), ("steady", 499, True)]
    assert quiet(spark, rows) == silences
    assert quiet(spark, rows, (1, 5), (2, 7), (3, 0)) == silences
    assert quiet(spark, rows, (1, 30)) == silences[1:]
    assert quiet(spark, rows, (1, 52)) == silences[:1]
    assert quiet(spark, rows, (1, 8), (1, 52)) == []
    elsewhere = [message(20, topic="other", wall=None), message(21, 9000, board="c", wall=None)]
    assert quiet(spark, [*rows, *elsewhere]) == silences
    assert quiet(spark, [*rows, message(20, topic="steady", wall=None)]) == silences[1:]
    back = [message(200 + i, 300 + i, boot=0, topic="steady") for i in range(2)]
    assert quiet(spark, [*steady, *back]) == [("steady", 293, True)]
    assert quiet(spark, [*steady, *back], (0, 202)) == []


def test_a_time_that_is_not_known_to_the_hour_is_in_no_hour(spark: SparkSession) -> None:
    vague = {"wall_error_us": 3_600_000_001, "clock": "between"}
    sent = [message(i, 10 * i, number=20.0 + i) for i in range(5)]
    sent += [message(5, 1000, number=99.0, **vague), message(6, wall=None, wall_error_us=None)]
    sent += [message(7, 40, number=24.0, wall_error_us=3_600_000_000)]
    messages = table(spark, MESSAGES, sent)
    assert [row["messages"] for row in gold.traffic(messages).collect()] == [6]
    numbers = gold.values(messages)
    assert [(row["count"], row["max"]) for row in gold.readings(numbers).collect()] == [(6, 24.0)]
    assert [row["count"] for row in gold.sensors(numbers).collect()] == [6]
    empty = (table(spark, schema, []) for schema in (EVENTS, LOSSES, ANCHORS))
    [board] = gold_health.boards(messages, *empty).collect()
    assert (board["messages"], board["without_time"]) == (8, 2)


def test_a_field_that_an_object_has_twice_is_its_last(spark: SparkSession) -> None:
    sent = [
        message(1, json='{"a": 1, "b": 5, "a": 2}'), message(2, json='{"a": 1, "a": "x"}'),
        message(3, json='{"a": 3}'), message(4, number=7.0), message(5, json="[1]"),
        message(6, json='{"b": 1, "a": 9, "b": 3, "a": 10, "b": 2, "c": null, "c": 4, "d": null}'),
    ]  # fmt: skip
    found = gold.values(table(spark, MESSAGES, sent)).collect()
    assert sorted((row["seq"], row["field"], row["value"]) for row in found) == [
        (1, "a", 2.0), (1, "b", 5.0), (3, "a", 3.0), (4, "", 7.0),
        (6, "a", 10.0), (6, "b", 2.0), (6, "c", 4.0),
    ]  # fmt: skip


def event(name: str, minutes: float = 0, **columns: Any) -> dict[str, Any]:
    row = {"board": "b", "boot": 1, "seq": 0, "stretch": 0, "event": name, "client": "c"}
    return row | {"uptime_ms": round(minutes * 60_000)} | columns


def test_a_client_that_comes_and_goes_is_flapping(spark: SparkSession) -> None:
    rows = [event("connect", minutes=i) for i in range(6)]
    rows += [event("disconnect", minutes=i, code=8) for i in range(5)]
    rows += [event("connect", minutes=30 * i, client="calm") for i in range(6)]
    rows += [event("disconnect", code=1, client="calm")]
    found = gold_health.sessions(
        table(spark, EVENTS, rows), table(spark, MESSAGES, [message(1), message(2)])
    )
    told = {r["client"]: (r["flapping"], r["keep_alive_deaths"], r["messages"])
            for r in found.collect()}  # fmt: skip
    assert told == {"c": (True, 5, 2), "calm": (False, 0, 0)}


def test_connects_flap_within_any_ten_minutes_of_a_boot(spark: SparkSession) -> None:
    times: dict[str, list[float]] = {
        "across": [8, 9, 9.5, 10.5, 12], "close": [0, 3, 5, 8, 9.999], "far": [0, 3, 5, 8, 10],
        "at once": [7] * 5, "later": [0, 20, 40, 41, 42, 43, 44, 90],
    }  # fmt: skip
    rows = [
        event("connect", minutes=at, client=client) for client in times for at in times[client]
    ]
    rows += [event("connect", minutes=i, boot=i % 2, client="restarted") for i in range(8)]
    # Any number of wraps may lie between two stretches: their uptimes are days apart, or not.
    rows += [event("connect", minutes=i, stretch=i % 2, client="holed") for i in range(8)]
    found = gold_health.sessions(table(spark, EVENTS, rows), table(spark, MESSAGES, [])).collect()
    assert {row["client"]: row["most_connects"] for row in found} == {
        "across": 5, "close": 5, "far": 4, "at once": 5, "later": 5, "restarted": 4,
        "holed": 4,
    }  # fmt: skip


def test_a_board_is_advised_which_limit_to_raise(spark: SparkSession) -> None:
    events = [
        event("table full", detail="queued"), event("table full", detail="sessions"),
        event("heap low-water", heap_bytes=5000), event("boot"),
    ]  # fmt: skip
    losses = [{"board": "b", "boot": 1, "first_seq": 1, "lost": 7, "reasons": ["overwritten"]}]
    anchors = [{"board": "b", "boot": 1, "seq": 1, "believed": False}]
    found = gold_health.boards(
        table(spark, MESSAGES, [message(1, conflict=True)]), table(spark, EVENTS, events),
        table(spark, LOSSES, losses), table(spark, ANCHORS, anchors),
    )  # fmt: skip
    [row] = found.collect()
    assert (row["refusals"], row["least_heap"], row["lost"]) == (2, 5000, 7)
    advice = row["advice"]
    words = ("queued", "sessions", "heap", "overwritten", "$SLOTMQ/time", "clock", "identity")
    assert len(advice) == len(words)
    assert all(word in sentence for word, sentence in zip(words, advice, strict=True)), advice


def at_once(spark: SparkSession, said: Sequence[tuple[int, str, str]], *holes: int) -> list[int]:
    """Most clients of a board, by boot, event and client in the order of their numbers."""
    rows = [event(name, boot=boot, seq=10 * i, client=client)
            for i, (boot, name, client) in enumerate(said)]  # fmt: skip
    gone = [{"board": "b", "boot": 1, "first_seq": hole, "last_seq": hole} for hole in holes]
    found = gold_health.most_connected(table(spark, EVENTS, rows), table(spark, LOSSES, gone))
    return [row["most_connected"] for row in found.collect()]


def test_most_clients_at_once_despite_losses(spark: SparkSession) -> None:
    said = (
        (1, "connect", "a"), (1, "connect", "b"), (1, "disconnect", "a"), (1, "connect", "c"),
        (1, "connect", "c"), (1, "disconnect", "d"), (1, "disconnect", "b"), (2, "connect", "a"),
        (2, "connect", "b"), (2, "connect", "c"), (2, "disconnect", "c"), (2, "connect", "c"),
    )  # fmt: skip
    assert at_once(spark, said) == [3]
    assert at_once(spark, said[:7]) == [2]


def test_clients_before_a_hole_may_have_left_in_it(spark: SparkSession) -> None:
    said = [(1, "connect", f"web-{i}") for i in range(6)]
    assert at_once(spark, said) == [6]
    assert at_once(spark, said, 15, 45) == [3]
    said += [(1, "disconnect", "web-0"), (1, "disconnect", "web-5"), (1, "connect", "web-0")]
    assert at_once(spark, said, 35) == [4]
    assert at_once(spark, said[2:], 15) == [2]


def test_another_record_with_the_same_identity_is_marked(spark: SparkSession) -> None:
    from slotmq_tools.telemetry import silver

    frames = [
        {"board": "b", "boot": 1, "segment": 0, "seq": seq, "ticks": 5, "type": 3, "flags": 1,
         "payload": b"", "crc": crc, "line": line, "offset": 32, "harvested_ms": 9 - line}
        for seq, crc, line in ((0, 1, 0), (0, 2, 1), (1, 3, 0), (1, 3, 1))
    ]  # fmt: skip
    found = silver.ordered(table(spark, QUARANTINE, frames)).orderBy("seq").collect()
    assert [(r["seq"], r["copies"], r["conflict"], r["harvested_ms"]) for r in found] == [
        (0, 2, True, 8), (1, 2, False, 8),
    ]  # fmt: skip
