"""Tables of gold for given sensors, QoS faults, sessions and boards."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from slotmq_telemetry import gold, gold_health, silver
from slotmq_telemetry import report_sentences as said
from slotmq_telemetry.names import Named
from slotmq_telemetry.schemas import BRONZE, GOLD, SILVER

Row = dict[str, Any]

START = datetime(2026, 3, 1, tzinfo=UTC)


def told(**rows: list[Row]) -> gold.Silver:
    """Tables of silver with these rows; what they do not name is null, or there is none."""
    return gold.Silver(**{
        name: pa.Table.from_pylist(rows.get(name, []), table.schema)
        for name, table in SILVER.items()
    })  # fmt: skip


def rows_of(name: str, found: Any) -> list[Row]:
    rows: list[Row] = GOLD[name].made("b", found).to_pylist()
    return rows


def lost(*places: tuple[int, int]) -> list[Row]:
    """Losses of these boots that begin with these numbers."""
    return [{"board": "b", "boot": boot, "first_seq": seq, "last_seq": seq, "segments": []}
            for boot, seq in places]  # fmt: skip


def sensors(rows: list[Row], **more: list[Row]) -> list[Row]:
    found: list[Row] = rows_of("sensors", gold.sensors(numbers(rows, **more)))
    return found


def numbers(rows: list[Row], **more: list[Row]) -> gold.Numbers:
    return gold.Numbers(gold.Sent(told(messages=rows, **more)))


def message(seq: int, minutes: float = 0, **columns: Any) -> dict[str, Any]:
    row = {"board": "b", "boot": 1, "seq": seq, "client": "c", "topic": "t", "qos": 1,
           "dup": False, "retain": False, "payload": b"%d" % seq, "clock": "anchored",
           "conflict": False, "wall": START + timedelta(minutes=minutes),
           "wall_error_us": 5000}  # fmt: skip
    return row | columns


def untimed(seq: int, **columns: Any) -> Row:
    return message(seq, wall=None, wall_error_us=None, **columns)


def counter(seq: int, n: int, qos: int = 1, **columns: Any) -> dict[str, Any]:
    return message(seq, json=f'{{"n": {n}}}', qos=qos, payload=f"n{n}".encode(), **columns)


def findings(messages: list[Row], *holes: int) -> list[tuple[str, int, int]]:
    found = told(messages=messages, losses=lost(*((1, hole) for hole in holes)))
    rows = rows_of("audit", gold.audit(gold.Sent(found), found.holes))
    return sorted((row["finding"], row["seq"], row["messages"]) for row in rows)


def test_the_audit_finds_what_contradicts_a_qos() -> None:
    rows = [
        counter(1, 1, qos=2), counter(2, 1, qos=2), counter(3, 2, qos=2),  # 2: twice
        counter(4, 5),  # 3 and 4 are lost
        counter(5, 4),  # and one comes late
        counter(6, 0), counter(7, 1),  # the publisher begins anew
        counter(8, 9, qos=0),  # nothing was promised
        counter(20, 30),  # behind a hole in the recording, or after QoS 0
        counter(21, 40, client="other"), counter(22, 41, topic="other"),
    ]  # fmt: skip
    assert findings(rows, 15) == [("lost", 4, 2), ("order broken", 5, 1), ("twice", 2, 1)]
    ahead = [counter(1, 1), counter(9, 5)]
    assert findings(ahead) == [("lost", 9, 3)]
    assert findings(ahead, 4) == []


def test_without_a_counter_only_dup_tells_that_a_message_came_twice() -> None:
    same: dict[str, Any] = {"payload": b"21.5", "qos": 2}
    assert findings([message(1, **same), message(2, **same)]) == []
    assert findings([message(1, **same), message(2, dup=True, **same)]) == [("twice", 2, 1)]


def test_sensors_that_drift_or_stand_still_are_found() -> None:
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
    found = sensors(rows)
    by_field = {(row["topic"], row["field"]): row for row in found}
    assert by_field.keys() == {("creeps", ""), ("stuck", ""), ("well", ""), ("json", "a")}
    assert by_field["creeps", ""]["drifts"]
    assert abs(by_field["creeps", ""]["drift_per_day"] - 4.8) < 1e-6
    assert [key for key, row in by_field.items() if row["flat"]] == [("stuck", "")]
    assert by_field["stuck", ""]["same"] == 28
    assert not by_field["well", ""]["drifts"]


def test_a_bridged_message_is_its_origins_once_if_the_origin_has_not_recorded_it() -> None:
    own = [message(i, number=1.0) for i in range(3)]
    bridged: list[Row] = [
        message(seq, number=5.0, recorder=recorder, recorder_boot=1, recorder_seq=seq)
        for recorder, seq in (("x", 2), ("x", 3), ("y", 3), ("y", 4))
    ]
    found = told(messages=own, bridged=bridged)
    sent = gold.Sent(found)
    assert gold.traffic(sent)["messages"].tolist() == [5]
    (hour,) = rows_of("readings", gold.readings(gold.Numbers(sent)))
    assert (hour["count"], hour["mean"]) == (5, 13 / 5)
    (board,) = gold_health.boards(found, Named("b"))
    assert board["messages"] == 3


def test_a_counter_neither_drifts_nor_stands_still() -> None:
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
    found = sensors(rows)
    assert {row["field"] for row in found if row["counter"]} == {"n", "wh"}
    assert {row["field"] for row in found if row["drifts"]} == {"degrees", "share"}


def quiet(rows: list[Row], *losses: tuple[int, int]) -> list[tuple[str, float, bool]]:
    """Silences by topic, how many minutes, and whether the board began anew."""
    found = rows_of("silences", gold.silences(told(messages=rows, losses=lost(*losses))))
    return sorted((row["topic"], row["seconds"] / 60, row["restarted"]) for row in found)


def test_a_pause_is_a_silence_where_all_of_it_was_recorded() -> None:
    steady = [message(i, i, topic="steady") for i in range(8)]
    rows = [
        *steady,
        message(50, 300, topic="steady"), message(51, 301, topic="steady"),
        message(0, 800, boot=2, topic="steady"),
    ]  # fmt: skip
    silences = [("steady", 293, False), ("steady", 499, True)]
    assert quiet(rows) == silences
    assert quiet(rows, (1, 5), (2, 7), (3, 0)) == silences
    assert quiet(rows, (1, 30)) == silences[1:]
    assert quiet(rows, (1, 52)) == silences[:1]
    assert quiet(rows, (1, 8), (1, 52)) == []
    elsewhere = [untimed(20, topic="other")]
    assert quiet([*rows, *elsewhere]) == silences
    assert quiet([*rows, untimed(20, topic="steady")]) == silences[1:]
    back = [message(200 + i, 300 + i, boot=0, topic="steady") for i in range(2)]
    assert quiet([*steady, *back]) == [("steady", 293, True)]
    assert quiet([*steady, *back], (0, 202)) == []


def test_a_topic_that_says_nothing_more_is_silent_up_to_the_end() -> None:
    steady = [message(i, i, topic="steady") for i in range(8)]
    rows = [*steady, *(message(20 + i, at, topic="x") for i, at in enumerate((60, 62)))]
    assert quiet(rows) == [("steady", 55, False)]
    assert quiet(rows, (1, 10)) == quiet(rows, (1, 30)) == [], "two minutes are not long"
    assert quiet([*rows, untimed(10, topic="steady")]) == []
    rows += [message(i, at, boot=2, topic="x") for i, at in enumerate((100, 106))]
    assert quiet(rows) == [("steady", 99, True)]
    assert quiet([*rows, message(2, 107, boot=2, topic="steady")]) == [("steady", 100, True)]
    found = rows_of("silences", gold.silences(told(messages=rows)))
    ((_, words),) = said.silences(found)
    assert words == (
        "b: steady was silent for 1 h 39 min from 2026-03-01 00:07 UTC, up to the end of the"
        " recording; it usually pauses for 1 min."
    )


def test_a_time_that_is_not_known_to_the_hour_is_in_no_hour() -> None:
    vague = {"wall_error_us": 3_600_000_001, "clock": "between"}
    sent = [message(i, 10 * i, number=20.0 + i) for i in range(5)]
    sent += [message(5, 1000, number=99.0, **vague), message(6, wall=None, wall_error_us=None)]
    sent += [message(7, 40, number=24.0, wall_error_us=3_600_000_000)]
    found = told(messages=sent)
    assert gold.traffic(gold.Sent(found))["messages"].tolist() == [6]
    hours = rows_of("readings", gold.readings(numbers(sent)))
    assert [(row["count"], row["max"]) for row in hours] == [(6, 24.0)]
    assert [row["count"] for row in sensors(sent)] == [6]
    (board,) = gold_health.boards(found, Named("b"))
    assert (board["messages"], board["without_time"]) == (8, 2)


def test_which_fields_of_an_object_are_numbers() -> None:
    alike = [f'{{"t": {i}, "u": "{i}.5", "v": true, "w": null, "x": "b"}}' for i in range(5)]
    odd = ['{"a": {"t": 1}, "t": 2}', '{"t":3,\n"u":[1]}', '{"t": "1e400", "v": 7}',
           '{"t": 1, "t": "x", "u": 2}', '{}', '{"t": 123456789012345678901234567890}',
           '{"a:": 1, "b": "c:"}', "[1]", '{"q\\"": 4}']  # fmt: skip
    for texts in (alike, odd, [*alike, *odd], odd[::-1]):
        sent = [message(i, json=text) for i, text in enumerate(texts)]
        found = numbers(sent)
        names = found.fields.take(pa.array(found.field)).to_pylist()
        got = sorted(zip((found.identity & 0xFFFF).tolist(), names, found.value, strict=True))
        assert got == sorted(
            (i, name, float(value))
            for i, text in enumerate(texts)
            for name, value in (json.loads(text).items() if text[0] == "{" else ())
            if is_number(value)
        )


def is_number(value: object) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def event(name: str, minutes: float = 0, **columns: Any) -> dict[str, Any]:
    row = {"board": "b", "boot": 1, "seq": 0, "stretch": 0, "event": name, "client": "c"}
    return row | {"uptime_ms": round(minutes * 60_000)} | columns


def test_a_client_that_comes_and_goes_is_flapping() -> None:
    rows = [event("connect", minutes=i) for i in range(6)]
    rows += [event("disconnect", minutes=i, code=8) for i in range(5)]
    rows += [event("connect", minutes=30 * i, client="calm") for i in range(6)]
    rows += [event("disconnect", code=1, client="calm")]
    found = told(events=rows, messages=[message(1), message(2)])
    assert {
        row["client"]: (row["flapping"], row["keep_alive_deaths"], row["messages"])
        for row in gold_health.sessions(found)
    } == {"c": (True, 5, 2), "calm": (False, 0, 0)}


def test_connects_flap_within_any_ten_minutes_of_a_boot() -> None:
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
    found = gold_health.sessions(told(events=rows))
    assert {row["client"]: row["most_connects"] for row in found} == {
        "across": 5, "close": 5, "far": 4, "at once": 5, "later": 5, "restarted": 4,
        "holed": 4,
    }  # fmt: skip


def test_a_board_is_advised_which_limit_to_raise() -> None:
    events = [
        event("table full", detail="queued"), event("table full", detail="sessions"),
        event("heap low-water", heap_bytes=5000), event("boot"),
    ]  # fmt: skip
    losses = [{"board": "b", "boot": 1, "first_seq": 1, "lost": 7, "reasons": ["overwritten"]}]
    anchors = [{"board": "b", "boot": 1, "seq": 1, "believed": False}]
    found = told(
        messages=[message(1, conflict=True)], events=events, losses=losses, anchors=anchors
    )
    (row,) = gold_health.boards(found, Named("b"))
    assert (row["refusals"], row["least_heap"], row["lost"]) == (2, 5000, 7)
    advice = row["advice"]
    words = ("queued", "sessions", "heap", "overwritten", "$SLOTMQ/time", "clock", "identity")
    assert len(advice) == len(words)
    assert all(word in sentence for word, sentence in zip(words, advice, strict=True)), advice


def at_once(said: Sequence[tuple[int, str, str]], *holes: int) -> int | None:
    """Most clients of a board, by boot, event and client in the order of their numbers."""
    rows = [event(name, boot=boot, seq=10 * i, client=client)
            for i, (boot, name, client) in enumerate(said)]  # fmt: skip
    return gold_health.most_connected(told(events=rows, losses=lost(*((1, h) for h in holes))))


def test_most_clients_at_once_despite_losses() -> None:
    said = (
        (1, "connect", "a"), (1, "connect", "b"), (1, "disconnect", "a"), (1, "connect", "c"),
        (1, "connect", "c"), (1, "disconnect", "d"), (1, "disconnect", "b"), (2, "connect", "a"),
        (2, "connect", "b"), (2, "connect", "c"), (2, "disconnect", "c"), (2, "connect", "c"),
    )  # fmt: skip
    assert at_once(said) == 3
    assert at_once(said[:7]) == 2


def test_clients_before_a_hole_may_have_left_in_it() -> None:
    said = [(1, "connect", f"web-{i}") for i in range(6)]
    assert at_once(said) == 6
    assert at_once(said, 15, 45) == 3
    said += [(1, "disconnect", "web-0"), (1, "disconnect", "web-5"), (1, "connect", "web-0")]
    assert at_once(said, 35) == 4
    assert at_once(said[2:], 15) == 2


def test_another_record_with_the_same_identity_is_marked() -> None:
    frames = [
        {"board": "b", "boot": 1, "segment": 0, "seq": seq, "ticks": 5, "type": 3, "flags": 1,
         "payload": b"", "crc": crc, "line": line, "offset": 32, "harvested_ms": 9 - line}
        for seq, crc, line in ((0, 1, 0), (0, 2, 1), (1, 3, 0), (1, 3, 1))
    ]  # fmt: skip
    records = silver.Records(pa.Table.from_pylist(frames, BRONZE.schema))
    assert records.rows["harvested_ms"].to_pylist() == [8, 8]
    assert (records.copies.tolist(), records.conflict.tolist()) == ([2, 2], [True, False])
    assert silver.of_board("b", BRONZE.schema.empty_table(), [])["messages"].num_rows == 0
