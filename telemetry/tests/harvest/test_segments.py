"""harvest/segments.py: how many records of a cut or damaged segment are intact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotmq_telemetry.harvest.segments import NotASegment, header, scan

from . import recording
from .recording import Recorder

BOARD = "0123456789abcdef"


def three_records() -> bytes:
    recorder = Recorder(BOARD)
    recorder.start()
    recorder.message("a", b"one")
    return recorder.segments[0]


def test_header_and_records_are_found() -> None:
    found = scan(three_records())
    assert (found.header.board, found.header.boot, found.header.segment) == (BOARD, 1, 0)
    assert (found.header.first, found.header.size) == (0, recording.SIZE)
    assert (found.end, found.last, found.torn) == (len(three_records()), 2, False)
    erased = three_records() + b"\xff" * 100
    assert scan(erased).end == found.end and not scan(erased).torn


@given(st.integers(32, len(three_records()) - 1))
def test_a_cut_segment_is_whole_up_to_its_last_whole_record(length: int) -> None:
    data = three_records()[:length]
    found = scan(data)
    assert [seq for seq, _ in recording.records(data)] == list(range(found.last + 1))
    assert found.torn == found.cut == (found.end < length)


@given(st.integers(32, len(three_records()) - 1), st.integers(1, 255))
def test_a_damaged_byte_ends_the_records_before_it(at: int, change: int) -> None:
    data = bytearray(three_records())
    data[at] ^= change
    found = scan(bytes(data))
    assert found.torn and found.end <= at


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"SLMR", "cut header"),
        (b"\x7fELF" + bytes(60), "not a segment"),
        (three_records()[:9] + b"!" + three_records()[10:], "bad header CRC"),
    ],
)
def test_a_wrong_header_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(NotASegment, match=complaint):
        header(data)
