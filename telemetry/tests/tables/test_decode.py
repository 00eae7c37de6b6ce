"""The decoder: golden segments of the recorder, and all kinds of damage; the page of columns."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import pytest

from slotmq_dev.golden import decode as decoded
from slotmq_telemetry import decode
from slotmq_telemetry.columns import COLUMNS
from slotmq_telemetry.harvest import segments as segment
from slotmq_telemetry.schemas import ALL, ONLY_BAD, PAGE, page
from slotmq_telemetry.season import writer

GOLDEN = sorted((Path(__file__).parents[3] / "host_tests/support/golden/record").glob("*.seg"))
HERE = decode.Place("a.smq", 0, 0, 5)
BOARD = b"\x28\x6f\x00\x01"


def rows(data: bytes, size: int = 512, place: decode.Place = HERE) -> list[dict[str, Any]]:
    return [row for batch in decode.decode(data, size, place) for row in batch.to_pylist()]


def a_segment(*records: bytes, size: int = 512) -> bytes:
    return (writer.header(BOARD, 3, 7, 0, size) + b"".join(records)).ljust(size, b"\xff")


CLIENT = writer.record(1, 0, 0, 10, 1, writer.NO_ID, b"sensor")
TOPIC = writer.record(1, 1, 1, 10, writer.NO_ID, 2, b"a/b")
MESSAGE = writer.record(2, 1, 2, 2**30 + 5, 1, 2, b"21.5")


def test_a_record_has_what_was_written() -> None:
    *_, message = rows(a_segment(CLIENT, TOPIC, MESSAGE))
    assert message == {
        "board": "286f000100000000", "boot": 3, "segment": 7, "seq": 2, "ticks": 5, "type": 2,
        "flags": 1, "client": "sensor", "topic": "a/b", "payload": b"21.5",
        "crc": int.from_bytes(MESSAGE[:4], "little"), "line": 0, "offset": 32 + 26 + 23,
        "harvested_ms": 5, **dict.fromkeys(ONLY_BAD.split()),
    }  # fmt: skip


def test_a_redefined_id_means_the_new_text_from_there_on() -> None:
    other = writer.record(1, 1, 3, 10, writer.NO_ID, 2, b"c")
    again = writer.record(2, 1, 4, 10, 1, 2, b"")
    found = rows(a_segment(CLIENT, TOPIC, MESSAGE, other, again))
    assert [row["topic"] for row in found if row["type"] == 2] == ["a/b", "c"]


WRONG = {
    "unknown type": writer.record(9, 0, 0, 0, writer.NO_ID, writer.NO_ID, b""),
    "bad definition": writer.record(1, 2, 0, 0, 1, 1, b"x"),
    "not UTF-8": writer.record(1, 0, 0, 0, 8, writer.NO_ID, b"\xff"),
    "QoS 3": writer.record(2, 3, 0, 0, 1, 2, b""),
    "cut origin": writer.record(2, 16, 0, 0, 1, 2, bytes(15)),
    "no topic": writer.record(2, 0, 0, 0, 1, writer.NO_ID, b""),
    "undefined topic": writer.record(2, 0, 0, 0, 1, 9, b""),
    "undefined client": writer.record(3, 2, 0, 0, 9, writer.NO_ID, b"\x04"),
    "bad length of payload": writer.record(4, 2, 0, 0, writer.NO_ID, writer.NO_ID, bytes(9)),
}


@pytest.mark.parametrize(("reason", "record"), WRONG.items(), ids=WRONG)
def test_an_unusable_record_is_a_bad_frame_and_decoding_continues(
    reason: str, record: bytes
) -> None:
    found = rows(a_segment(CLIENT, TOPIC, record, MESSAGE))
    [bad] = [row for row in found if row["reason"]]
    assert (bad["reason"], bad["offset"], bad["file"]) == (reason, 32 + 26 + 23, "a.smq")
    assert (bad["board"], bad["segment"], bad["seq"]) == ("286f000100000000", 7, 0)
    assert len([row for row in found if row["reason"] is None]) == 3


def _broken(data: bytes, at: int, *values: int) -> bytes:
    return data[:at] + bytes(values) + data[at + len(values) :]


ENDS = {
    "not a segment": _broken(a_segment(MESSAGE), 0, 0),
    "bad header CRC": _broken(a_segment(MESSAGE), 9, 0xAA),
    "cut header": a_segment(MESSAGE)[:31],
    "segment size 1024": a_segment(MESSAGE, size=1024)[:512],
    "bad CRC": _broken(a_segment(CLIENT), 32 + 22, 0),
    "bad length": _broken(a_segment(CLIENT), 32 + 4, 19, 0),
    "torn record": a_segment(CLIENT[:-1]),
    "bytes behind the end": _broken(a_segment(), 32 + 30, 0),
}


@pytest.mark.parametrize(("reason", "data"), ENDS.items(), ids=ENDS)
def test_the_reason_why_a_segment_ends_early_is_named(reason: str, data: bytes) -> None:
    assert [row["reason"] for row in rows(data)] == [reason]


def test_a_segment_of_a_later_version_is_not_decoded() -> None:
    head = bytearray(writer.header(BOARD, 1, 1, 0, 512))
    head[4] = 2
    head[28:] = writer.le(zlib.crc32(head[:28]), 4)
    assert [row["reason"] for row in rows(bytes(head) + MESSAGE)] == ["format version 2"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_segments_are_decoded(path: Path) -> None:
    data = path.read_bytes()
    told = decoded(data)
    head = told["head"]
    found = rows(data, head["size"])
    good = [row for row in found if row["reason"] is None]
    assert segment.header(data) == segment.Header(
        head["board"], head["boot"], head["segment"], head["seq"], head["size"]
    )
    names = {"at": "offset", "type": "type", "flags": "flags", "seq": "seq", "ticks": "ticks"}
    assert [{old: row[new] for old, new in names.items()} for row in good] == [
        {old: record[old] for old in names} for record in told["records"]
    ]
    assert [row["payload"].hex() for row in good] == [r["payload"] for r in told["records"]]
    assert bool(len(found) - len(good)) == (told["end"] != told["bytes"])
    assert segment.walk(data).end == told["end"]


def test_there_are_golden_segments() -> None:
    assert len(GOLDEN) >= 10


def test_the_page_is_made_from_the_schemas() -> None:
    assert PAGE.read_text() == page()


def test_no_text_is_left_over() -> None:
    names = {field.name for table in ALL for field in table.schema}
    names |= {f"{table.name}.{field.name}" for table in ALL for field in table.schema}
    assert COLUMNS.keys() <= names
